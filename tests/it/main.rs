//! The integration tests, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed; clippy's exemption covers test functions only"
)]

mod abuse;
mod access;
mod api;
mod architecture;
mod bridge;
mod cli;
mod docs;
mod format;
mod git;
mod history;
mod hostile;
mod http;
mod http_tls;
mod library;
mod mcp;
mod resources;
mod search;
mod security;
mod support;
mod upstream;
mod web;
