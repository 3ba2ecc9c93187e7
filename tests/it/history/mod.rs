//! Versions: what takes a number, and that every way of counting gives the same ones.

mod blame;
mod counting;
mod kept;
mod random;
mod repository;
