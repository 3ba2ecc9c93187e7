//! Versions: what takes a number, and that every way of counting gives the same ones.

mod counting;
mod random;
mod repository;
