//! What each client wants written where, how a prompt is called up in it, and what it does not do.
//!
//! Checked against the clients' documentation and, for Claude Code, Gemini CLI and opencode, against the
//! programs themselves. A test pins every text; correct both together.

use super::document::{Block, Node, command, json, toml, yaml};
use super::{Client, Guide, Target, Transport, Way};

/// The client's name as people know it.
pub fn title(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => "Claude Code",
        Client::ClaudeDesktop => "Claude Desktop",
        Client::VsCode => "Visual Studio Code (GitHub Copilot)",
        Client::Cursor => "Cursor",
        Client::Zed => "Zed",
        Client::GeminiCli => "Gemini CLI",
        Client::Opencode => "opencode",
        Client::Codex => "Codex (CLI, IDE extension, app)",
        Client::Continue => "Continue",
        Client::Goose => "goose",
        Client::Jetbrains => "JetBrains AI Assistant and Junie",
    }
}

/// Everything to print for `client`.
pub fn guide(client: Client, target: &Target) -> Guide {
    let (ways, using, limits) = match client {
        Client::ClaudeCode => claude_code(target),
        Client::ClaudeDesktop => claude_desktop(target),
        Client::VsCode => vscode(target),
        Client::Cursor => cursor(target),
        Client::Zed => zed(target),
        Client::GeminiCli => gemini_cli(target),
        Client::Opencode => opencode(target),
        Client::Codex => codex(target),
        Client::Continue => continue_(target),
        Client::Goose => goose(target),
        Client::Jetbrains => jetbrains(target),
    };
    let limits = limits.iter().map(|&limit| limit.to_owned()).collect();
    Guide {
        title: title(client),
        ways,
        using,
        limits,
    }
}

type Parts = (Vec<Way>, String, &'static [&'static str]);

fn http(what: &str, places: Places, block: Block) -> Way {
    way(Transport::Http, what, places, block)
}

fn stdio(what: &str, places: Places, block: Block) -> Way {
    way(Transport::Stdio, what, places, block)
}

type Places<'a> = &'a [(&'static str, &'static str)];

fn way(transport: Transport, what: &str, places: Places, block: Block) -> Way {
    let places = places
        .iter()
        .map(|&(system, path)| (system, path.to_owned()))
        .collect();
    Way {
        transport,
        what: what.to_owned(),
        places,
        block,
    }
}

/// `{ outer: { name: entry } }`, the shape that nearly every client has settled on.
fn under(outer: &str, target: &Target, entry: Node) -> Node {
    Node::from([(outer, Node::from([(target.name.as_str(), entry)]))])
}

/// `command` and `args`, as most clients write a program to start.
fn program(target: &Target) -> Node {
    Node::from([
        ("command", Node::from(&target.executable)),
        ("args", Node::from(target.arguments())),
    ])
}

/// `words`, then the command that starts stdio.
fn command_with_program(words: &[&str], target: &Target) -> Block {
    let arguments = target.arguments();
    let mut all = words.to_vec();
    all.push(&target.executable);
    all.extend(arguments.iter().map(String::as_str));
    command(&all)
}

fn claude_code(target: &Target) -> Parts {
    let name = target.name.as_str();
    let once = "Run once, for all your projects";
    let shared = "Or share it with everyone who clones a project, in .mcp.json at its root";
    let entry = Node::from([
        ("type", Node::from("http")),
        ("url", Node::from(&target.url)),
    ]);
    let add = ["claude", "mcp", "add", "--scope", "user"];
    let ways = vec![
        http(
            once,
            &[],
            command(&[&add[..], &["--transport", "http", name, &target.url]].concat()),
        ),
        http(shared, &[], json(&under("mcpServers", target, entry))),
        stdio(
            once,
            &[],
            command_with_program(&[&add[..], &[name, "--"]].concat(), target),
        ),
        stdio(
            shared,
            &[],
            json(&under("mcpServers", target, program(target))),
        ),
    ];
    let using = format!(
        "Type / and choose, or write the arguments behind the name in their order:\n\n  \
         /mcp__{name}__incident-triage INC-9942 payments\n\n\
         `/mcp` shows whether the server is connected."
    );
    let limits: &[&str] = &[
        "Arguments are split at blanks, and quotes do not hold them together: a value is one word.",
        "Values are not completed while you type, and a prompt's title is not shown.",
        "Assistant messages of a prompt arrive as user messages; attached resources arrive as text.",
    ];
    (ways, using, limits)
}

fn claude_desktop(target: &Target) -> Parts {
    let what = "Settings > Developer > Edit Config opens this file; restart Claude afterwards";
    let places = [
        (
            "macOS",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("Windows", r"%APPDATA%\Claude\claude_desktop_config.json"),
        ("Linux", "~/.config/Claude/claude_desktop_config.json"),
    ];
    let ways = vec![stdio(
        what,
        &places,
        json(&under("mcpServers", target, program(target))),
    )];
    let using = format!(
        "Click + in the message box, choose {} and then the prompt. A form asks for its arguments.",
        target.name
    );
    let limits: &[&str] = &[
        "The file takes only programs to start, so cuebook bridges to the server.",
        "A custom connector (Settings > Connectors) is called from Anthropic's servers, so it reaches a\n  \
         public https address only, never one on your machine or in your network.",
    ];
    (ways, using, limits)
}

fn vscode(target: &Target) -> Parts {
    let what =
        "In .vscode/mcp.json of a workspace, or for all of them (MCP: Open User Configuration) in";
    let places = [
        ("macOS", "~/Library/Application Support/Code/User/mcp.json"),
        ("Linux", "~/.config/Code/User/mcp.json"),
        ("Windows", r"%APPDATA%\Code\User\mcp.json"),
    ];
    let url = Node::from([
        ("type", Node::from("http")),
        ("url", Node::from(&target.url)),
    ]);
    let start = Node::from([
        ("type", Node::from("stdio")),
        ("command", Node::from(&target.executable)),
        ("args", Node::from(target.arguments())),
    ]);
    let ways = vec![
        http(what, &places, json(&under("servers", target, url))),
        stdio(what, &places, json(&under("servers", target, start))),
    ];
    let using = format!(
        "In the chat, type / and choose:\n\n  /mcp.{}.incident-triage\n\n\
         Arguments are asked for one by one, and completed as you type.",
        target.name
    );
    let limits: &[&str] = &[
        "It drops audio and links, so Cuebook sends a line of text with the address instead.",
        "After an error of the server's notification stream the list is not refreshed until a restart\n  \
         (MCP: List Servers > Restart).",
    ];
    (ways, using, limits)
}

fn cursor(target: &Target) -> Parts {
    let what = "In .cursor/mcp.json of a project, or for all of them in";
    let places = [
        ("macOS, Linux", "~/.cursor/mcp.json"),
        ("Windows", r"%USERPROFILE%\.cursor\mcp.json"),
    ];
    let entry = Node::from([("url", Node::from(&target.url))]);
    let ways = vec![
        http(what, &places, json(&under("mcpServers", target, entry))),
        stdio(
            what,
            &places,
            json(&under("mcpServers", target, program(target))),
        ),
    ];
    let using = "In the chat, type / and choose incident-triage. Settings > MCP shows whether the server is connected.";
    (ways, using.to_owned(), &[])
}

fn zed(target: &Target) -> Parts {
    let what = "In the settings (zed: open settings file)";
    let places = [
        ("macOS, Linux", "~/.config/zed/settings.json"),
        ("Windows", r"%APPDATA%\Zed\settings.json"),
    ];
    let entry = Node::from([("url", Node::from(&target.url))]);
    let start = Node::from([
        ("command", Node::from(&target.executable)),
        ("args", Node::from(target.arguments())),
        ("env", Node::Map(Vec::new())),
    ]);
    let ways = vec![
        http(
            what,
            &places,
            json(&under("context_servers", target, entry)),
        ),
        stdio(
            what,
            &places,
            json(&under("context_servers", target, start)),
        ),
    ];
    let using = "In the agent panel, type / and choose a prompt; the value of its one argument follows.\n\n\
        For a prompt with more arguments, ask the agent:\n\n  \
        Use get_prompt for incident-triage with ticketId INC-9942, and do what it says.";
    let limits: &[&str] = &[
        "Prompts with more than one argument are not shown, which most of the starter prompts have.",
        "It does not open attached resources, so Cuebook puts them into the text.",
        "A changed list of prompts is seen after the server is restarted in the agent panel's settings.",
    ];
    (ways, using.to_owned(), limits)
}

fn gemini_cli(target: &Target) -> Parts {
    let once = "Run once, for all your projects";
    let what = "In .gemini/settings.json of a project, or for all of them in";
    let places = [
        ("macOS, Linux", "~/.gemini/settings.json"),
        ("Windows", r"%USERPROFILE%\.gemini\settings.json"),
    ];
    let entry = Node::from([
        ("url", Node::from(&target.url)),
        ("type", Node::from("http")),
    ]);
    let add = [
        "gemini",
        "mcp",
        "add",
        "--scope",
        "user",
        "--transport",
        "http",
        &target.name,
        &target.url,
    ];
    let ways = vec![
        http(once, &[], command(&add)),
        http(
            &format!("Or {}", lower(what)),
            &places,
            json(&under("mcpServers", target, entry)),
        ),
        stdio(
            what,
            &places,
            json(&under("mcpServers", target, program(target))),
        ),
    ];
    let using = "Type / and choose; name the arguments, or write them in their order:\n\n  \
        /incident-triage --ticketId=\"INC-9942\" --service=\"payments\"\n\n\
        `/mcp` shows whether the server is connected.";
    let limits: &[&str] = &[
        "It starts no server in a folder that it was not told to trust.",
        "It reads one text, so Cuebook puts a prompt's messages and attached resources into one.",
        "Where one argument is required, the whole rest of the line is its value.",
    ];
    (ways, using.to_owned(), limits)
}

fn opencode(target: &Target) -> Parts {
    let name = target.name.as_str();
    let what = "In opencode.json of a project, or for all of them in";
    let two = "opencode 2 wants the same entry one level deeper, under mcp.servers";
    let places = [
        ("macOS, Linux", "~/.config/opencode/opencode.json"),
        ("Windows", r"%USERPROFILE%\.config\opencode\opencode.json"),
    ];
    let remote = Node::from([
        ("type", Node::from("remote")),
        ("url", Node::from(&target.url)),
    ]);
    let mut words = vec![target.executable.clone()];
    words.extend(target.arguments());
    let local = Node::from([
        ("type", Node::from("local")),
        ("command", Node::from(words)),
    ]);
    let deeper = |entry: Node| Node::from([("mcp", under("servers", target, entry))]);
    let ways = vec![
        http(
            "Run once in a project",
            &[],
            command(&["opencode", "mcp", "add", name, "--url", &target.url]),
        ),
        http(
            &format!("Or {}", lower(what)),
            &places,
            json(&under("mcp", target, remote.clone())),
        ),
        http(two, &[], json(&deeper(remote))),
        stdio(what, &places, json(&under("mcp", target, local.clone()))),
        stdio(two, &[], json(&deeper(local))),
    ];
    let using = format!(
        "Type / and choose, or write the arguments behind the name in their order:\n\n  \
         /{name}:incident-triage INC-9942 payments"
    );
    let limits: &[&str] = &[
        "It renders every prompt once at its start, with $1, $2 … for the arguments, and puts your values in\n  \
         afterwards: text that depends on a value (`{% if %}`) is decided by the placeholder.",
        "It runs !`commands` and reads @files that stand in a prompt. Cuebook makes them inert in argument\n  \
         values; `cuebook check` warns of those in a prompt itself.",
    ];
    (ways, using, limits)
}

fn codex(target: &Target) -> Parts {
    let name = target.name.as_str();
    let once = "Run once";
    let what = "Or in .codex/config.toml of a trusted project, or for all of them in";
    let places = [
        ("macOS, Linux", "~/.codex/config.toml"),
        ("Windows", r"%USERPROFILE%\.codex\config.toml"),
    ];
    let entry = Node::from([("url", Node::from(&target.url))]);
    let ways = vec![
        http(
            once,
            &[],
            command(&["codex", "mcp", "add", name, "--url", &target.url]),
        ),
        http(what, &places, toml("mcp_servers", name, &entry)),
        stdio(
            once,
            &[],
            command_with_program(&["codex", "mcp", "add", name, "--"], target),
        ),
        stdio(what, &places, toml("mcp_servers", name, &program(target))),
    ];
    (
        ways,
        as_tool(name),
        &["It shows no MCP prompts, so there are no slash commands; the tools give the same text."],
    )
}

fn continue_(target: &Target) -> Parts {
    let what = format!(
        "In a workspace, as the file .continue/mcpServers/{}.yaml",
        target.name
    );
    let file = |mut entry: Vec<(String, Node)>| {
        entry.insert(0, ("name".to_owned(), Node::from(&target.name)));
        yaml(&Node::from([
            ("name", Node::from(&target.name)),
            ("version", Node::from("0.0.1")),
            ("schema", Node::from("v1")),
            ("mcpServers", Node::List(vec![Node::Map(entry)])),
        ]))
    };
    let url = vec![
        ("type".to_owned(), Node::from("streamable-http")),
        ("url".to_owned(), Node::from(&target.url)),
    ];
    let start = vec![
        ("type".to_owned(), Node::from("stdio")),
        ("command".to_owned(), Node::from(&target.executable)),
        ("args".to_owned(), Node::from(target.arguments())),
    ];
    let ways = vec![http(&what, &[], file(url)), stdio(&what, &[], file(start))];
    let using = "In agent mode, type / and choose incident-triage.\n\n\
        To have it in every workspace, put the mcpServers part into ~/.continue/config.yaml\n\
        (on Windows %USERPROFILE%\\.continue\\config.yaml).";
    let limits: &[&str] = &[
        "Arguments you leave out are sent as empty text, which Cuebook takes as absent.",
        "It reads text only, so Cuebook puts attached resources into the text.",
    ];
    (ways, using.to_owned(), limits)
}

fn goose(target: &Target) -> Parts {
    let name = target.name.as_str();
    let what = "Under extensions in";
    let places = [
        ("macOS, Linux", "~/.config/goose/config.yaml"),
        ("Windows", r"%APPDATA%\Block\goose\config\config.yaml"),
    ];
    let head = |kind: &str| {
        vec![
            ("enabled".to_owned(), Node::from(true)),
            ("type".to_owned(), Node::from(kind)),
            ("name".to_owned(), Node::from(name)),
            ("description".to_owned(), Node::from("The team's prompts")),
        ]
    };
    let file = |mut entry: Vec<(String, Node)>| {
        entry.push(("timeout".to_owned(), Node::from(300)));
        yaml(&under("extensions", target, Node::Map(entry)))
    };
    let mut url = head("streamable_http");
    url.push(("uri".to_owned(), Node::from(&target.url)));
    let mut start = head("stdio");
    start.push(("cmd".to_owned(), Node::from(&target.executable)));
    start.push(("args".to_owned(), Node::from(target.arguments())));
    let ways = vec![
        http(what, &places, file(url)),
        stdio(what, &places, file(start)),
    ];
    let using = format!(
        "In a session:\n\n  /prompts --extension {name}\n  /prompt incident-triage ticketId=INC-9942 service=payments"
    );
    (
        ways,
        using,
        &["Arguments are written key=value; a value with blanks goes in quotes."],
    )
}

fn jetbrains(target: &Target) -> Parts {
    let what = "Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON";
    let junie = "For Junie, which starts programs only, in .junie/mcp/mcp.json of a project, or for all of them in";
    let places = [
        ("macOS, Linux", "~/.junie/mcp/mcp.json"),
        ("Windows", r"%USERPROFILE%\.junie\mcp\mcp.json"),
    ];
    let entry = Node::from([("url", Node::from(&target.url))]);
    let start = || json(&under("mcpServers", target, program(target)));
    let ways = vec![
        http(what, &[], json(&under("mcpServers", target, entry))),
        stdio(what, &[], start()),
        stdio(junie, &places, start()),
    ];
    let limits: &[&str] = &[
        "Both use a server's tools; prompts do not appear as slash commands.",
        "Older versions of AI Assistant start programs only: use stdio there.",
    ];
    (ways, as_tool(&target.name), limits)
}

/// How to use prompts where there are only tools.
fn as_tool(name: &str) -> String {
    format!(
        "Ask for a prompt by name; the client then calls Cuebook's tools (list_prompts, search_prompts, get_prompt):\n\n  \
         Use {name}'s get_prompt for incident-triage with ticketId INC-9942, and do what it says."
    )
}

fn lower(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}
