//! The JSON API: what it says of itself, its pages of lists, and writes that say what was seen.

mod activity;
mod description;
mod lists;
mod prompts;
mod tags;
