//! The integration tests, in one binary.

mod bridge;
mod docs;
