//! MCP over real sockets and pipes.

mod bad_input;
mod completion;
mod guard;
mod interop;
mod lifecycle;
mod lists;
mod logging;
mod names;
mod notices;
mod prompts;
mod resources;
mod sessions;
mod stdio;
mod tools;
mod versions;
