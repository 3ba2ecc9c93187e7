//! What connects a client to a library: what each is called, wants written where, and lacks. For the command and the page.
//!
//! Pure: gives texts. What each client wants stands in `clients`, what of a prompt arrives there in `compat`, its texts in Korean in `korean`; how its files are
//! written in `document`.

mod clients;
pub mod compat;
pub mod document;
mod korean;

use clap::ValueEnum;

use document::Block;

pub use clients::{guide, title};
pub use korean::korean;

/// The clients whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Visual Studio Code with GitHub Copilot.
    #[value(name = "vscode")]
    VsCode,
    /// Cursor.
    Cursor,
    /// Zed.
    Zed,
    /// Gemini CLI.
    GeminiCli,
    /// opencode.
    Opencode,
    /// Codex: CLI, IDE extension and app.
    Codex,
    /// Continue.
    Continue,
    /// goose.
    Goose,
    /// JetBrains AI Assistant and Junie.
    Jetbrains,
}

impl Client {
    /// All of them, in the order of lists.
    pub fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// What the command and the page call it, e.g. `claude-code`.
    pub fn id(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Which way of reaching the library to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// The client talks to the server itself.
    Http,
    /// The client starts `cuebook stdio`.
    Stdio,
    /// Both, for choosing.
    #[default]
    Both,
}

/// What a client shall be connected to. All texts are ready to be quoted, none is quoted yet.
#[derive(Debug, Clone)]
pub struct Target {
    /// What the client calls the server.
    pub name: String,
    /// The MCP endpoint.
    pub url: String,
    /// A library on disk that stdio serves; without it stdio leads to `url`.
    pub library: Option<String>,
    /// The `cuebook` to start for stdio.
    pub executable: String,
    /// Which ways to print.
    pub transport: Transport,
}

impl Target {
    /// Whether a way is wanted.
    pub fn wants(&self, transport: Transport) -> bool {
        self.transport == transport || self.transport == Transport::Both
    }

    /// What follows the executable's name.
    pub fn arguments(&self) -> Vec<String> {
        let (flag, value) = match &self.library {
            Some(library) => ("--library", library),
            None => ("--server", &self.url),
        };
        ["stdio", flag, value].map(str::to_owned).to_vec()
    }
}

/// Everything there is to say to someone who connects one client.
#[derive(Debug)]
pub struct Guide {
    /// The client's name as people know it.
    pub title: &'static str,
    /// What to do, one of these.
    pub ways: Vec<Way>,
    /// How a prompt is called up there.
    pub using: String,
    /// What the client does not do, or does otherwise than people expect.
    pub limits: Vec<String>,
}

/// One thing to do: a command to run or a piece of a file.
#[derive(Debug)]
pub struct Way {
    /// Which way it is.
    pub transport: Transport,
    /// What to do with the block, without the colon.
    pub what: String,
    /// Where the file is, by system.
    pub places: Vec<(&'static str, String)>,
    /// What to run or to write.
    pub block: Block,
}
