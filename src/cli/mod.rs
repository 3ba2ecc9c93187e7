//! The command line: what each command prints and how it talks to a client or a server.

pub mod connect;
pub mod endpoint;
pub mod report;
