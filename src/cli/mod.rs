//! The command line: what each command prints and how it talks to a client or a server.

pub mod report;
