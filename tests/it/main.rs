//! The integration tests, in one binary.

mod mcp;
mod support;
