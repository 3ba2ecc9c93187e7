//! Cuebook: a team's prompt registry.
//!
//! Prompts live in a git repository, are served to every IDE as slash commands over the Model Context
//! Protocol, and are published with `git push`. See `ARCHITECTURE.md` for the code map.

pub mod access;
pub mod activity;
pub mod api;
pub mod catalog;
pub mod cli;
pub mod clock;
pub mod config;
pub mod connect;
pub mod gate;
pub mod git;
pub mod git_http;
pub mod history;
pub mod http;
pub mod identity;
pub mod mcp;
pub mod prompt;
pub mod proposals;
pub mod records;
pub mod registry;
pub mod router;
pub mod search;
pub mod server;
#[cfg(unix)]
pub mod socket;
pub mod starter;
pub mod store;
pub mod telemetry;
pub mod upstream;
pub mod versions;
pub mod web;
pub mod webhooks;
pub mod workers;
