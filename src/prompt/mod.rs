//! The library format: names, arguments, messages, front matter, markers, templates, problems.
//!
//! Pure: takes bytes and gives values. Knows no tokio, axum, sqlx, git2 or rmcp, reads no clock,
//! no environment and no file.

pub mod argument;
pub mod bind;
pub mod closure;
mod engine;
pub mod foreign;
pub mod front_matter;
mod includes;
pub mod job;
pub mod lane;
pub mod limits;
pub mod lint;
pub mod markers;
pub mod message;
pub mod name;
pub mod parse;
pub mod problem;
pub mod render;
pub mod resource;
pub mod scan;
pub mod secrets;
pub mod selector;
pub mod source;
mod variables;
pub mod visible;
pub mod yaml;

pub use argument::{Argument, Completable, Example, ResourceBinding};
pub use bind::{BindError, BoundArguments};
pub use closure::Prompt;
pub use engine::{TESTS, filter_names};
pub use job::Job;
pub use lane::Lane;
pub use limits::Limits;
pub use message::{Content, Embed, Message, Role};
pub use name::PromptName;
pub use problem::{Problem, Severity};
pub use render::{RenderError, Rendered, ResolvedResources, render};
pub use resource::{Resource, ResourceBody};
pub use selector::{At, Selector};
