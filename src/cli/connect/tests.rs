use std::collections::BTreeMap;
use std::process::Command;

use saphyr_parser::{Event, Parser};
use serde_json::{Value, json};

use super::*;
use crate::connect::document::{Block, Kind};

fn target() -> Target {
    Target {
        name: "cuebook".to_owned(),
        url: "http://127.0.0.1:8400/mcp".to_owned(),
        library: None,
        executable: "/usr/local/bin/cuebook".to_owned(),
        transport: Transport::Both,
    }
}

/// Paths and names that break sloppy quoting, in all the formats.
fn nasty() -> Vec<Target> {
    let paths = [
        r"C:\Program Files\Cuebook\cuebook.exe",
        "/home/o'brien/my \"tools\"/cuebook",
        "/opt/$HOME/`id`/!x/cuebook",
        "/책/프롬프트 모음/cuebook",
        "/a: b/#c/{d}/[e], f/- g/%h%/cuebook",
        "/tab\there/new\nline/\u{7f}\u{1}\u{2028}/cuebook",
        r"C:\ends\with\",
    ];
    let mut targets = Vec::new();
    for path in paths {
        targets.push(Target {
            executable: path.to_owned(),
            ..target()
        });
        let library = Some(path.to_owned());
        targets.push(Target {
            library,
            transport: Transport::Stdio,
            ..target()
        });
    }
    for name in ["no", "7th", "on", "a-b_c", "null"] {
        targets.push(Target {
            name: name.to_owned(),
            ..target()
        });
    }
    targets
}

fn blocks(client: Client, target: &Target) -> Vec<Way> {
    connect::guide(client, target).ways
}

#[test]
fn every_client_is_pinned() {
    for client in Client::all() {
        insta::assert_snapshot!(client.id(), configuration(*client, &target()));
    }
}

#[test]
fn the_list_names_every_client() {
    let text = list();
    for client in Client::all() {
        assert!(
            text.contains(&format!("cuebook connect {} ", client.id())),
            "{text}"
        );
    }
}

#[test]
fn every_block_is_printed_and_reads_back() {
    for target in nasty().iter().chain([&target()]) {
        for client in Client::all() {
            let text = configuration(*client, target);
            let ways = blocks(*client, target);
            assert!(
                ways.iter().any(|way| way.transport == Transport::Stdio),
                "{client:?}"
            );
            for way in ways {
                let words = read_back(*client, &way.block);
                let expected = match way.transport {
                    Transport::Http => vec![target.url.clone()],
                    _ => [vec![target.executable.clone()], target.arguments()].concat(),
                };
                assert_eq!(words, expected, "{client:?}\n{}", way.block.text);
                let shown = text.contains(way.block.text.trim_end());
                let only = *client == Client::ClaudeDesktop;
                assert_eq!(
                    shown,
                    only || target.wants(way.transport),
                    "{client:?}\n{text}"
                );
            }
        }
    }
}

/// What the client would connect to: the address, or the program and its arguments.
fn read_back(client: Client, block: &Block) -> Vec<String> {
    let root = match block.kind {
        Kind::Json => serde_json::from_str(&block.text).unwrap(),
        Kind::Toml => toml::from_str(&block.text).unwrap(),
        Kind::Yaml => read_yaml(&block.text),
        Kind::Command => return read_command(&block.text),
    };
    let entry = only_entry(client, &root);
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    for key in ["url", "uri"] {
        if let Some(url) = entry.get(key) {
            return vec![url.as_str().unwrap().to_owned()];
        }
    }
    match (&entry["command"], &entry["cmd"], &entry["args"]) {
        (Value::String(program), _, arguments) | (_, Value::String(program), arguments) => {
            [vec![program.clone()], texts(arguments)].concat()
        }
        (whole, _, _) => texts(whole),
    }
}

/// The one server in a client's file.
fn only_entry(client: Client, root: &Value) -> Value {
    let outer = match client {
        Client::VsCode => "/servers",
        Client::Zed => "/context_servers",
        Client::Codex => "/mcp_servers",
        Client::Opencode if root.pointer("/mcp/servers").is_some() => "/mcp/servers",
        Client::Opencode => "/mcp",
        Client::Continue => return root["mcpServers"][0].clone(),
        Client::Goose => "/extensions",
        _ => "/mcpServers",
    };
    let servers = root.pointer(outer).unwrap().as_object().unwrap();
    assert_eq!(servers.len(), 1);
    servers.values().next().unwrap().clone()
}

/// Runs the command in a real shell with a function in the place of the client's program.
fn read_command(text: &str) -> Vec<String> {
    let (program, _) = text.split_once(' ').unwrap();
    let script = format!("{program}() {{ printf '%s\\0' \"$@\"; }}\n{text}\n");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{text}");
    let output = String::from_utf8(output.stdout).unwrap();
    let words: Vec<String> = output.split_terminator('\0').map(str::to_owned).collect();
    match words.iter().position(|word| word == "--") {
        Some(at) => words[at + 1..].to_vec(),
        None => vec![words.last().unwrap().clone()],
    }
}

/// Reads the YAML that is written here: maps, lists and scalars.
fn read_yaml(text: &str) -> Value {
    fn node<'a>(events: &mut impl Iterator<Item = Event<'a>>, first: Event<'a>) -> Value {
        match first {
            Event::Scalar(text, style, ..) => match (&*text, style) {
                ("true", saphyr_parser::ScalarStyle::Plain) => json!(true),
                (plain, saphyr_parser::ScalarStyle::Plain) if plain.parse::<u32>().is_ok() => {
                    json!(plain.parse::<u32>().unwrap())
                }
                (text, _) => json!(text),
            },
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match events.next().unwrap() {
                        Event::SequenceEnd => return Value::Array(items),
                        item => items.push(node(events, item)),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = serde_json::Map::new();
                loop {
                    match events.next().unwrap() {
                        Event::MappingEnd => return Value::Object(entries),
                        key => {
                            let key = node(events, key).as_str().unwrap().to_owned();
                            let first = events.next().unwrap();
                            entries.insert(key, node(events, first));
                        }
                    }
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    let mut events = Parser::new_from_str(text)
        .map(|event| event.unwrap().0)
        .filter(|event| !matches!(event, Event::StreamStart | Event::DocumentStart(_)));
    let first = events.next().unwrap();
    node(&mut events, first)
}

#[test]
fn names_that_yaml_reads_otherwise_are_quoted() {
    let target = Target {
        name: "no".to_owned(),
        ..target()
    };
    assert!(configuration(Client::Goose, &target).contains("  \"no\":\n"));
}

#[test]
fn one_transport_prints_one() {
    let http = configuration(
        Client::VsCode,
        &Target {
            transport: Transport::Http,
            ..target()
        },
    );
    assert!(
        http.contains("== HTTP") && !http.contains("== stdio"),
        "{http}"
    );
    let desktop = configuration(
        Client::ClaudeDesktop,
        &Target {
            transport: Transport::Http,
            ..target()
        },
    );
    assert!(desktop.contains("== stdio"), "{desktop}");
}

fn args(edit: impl FnOnce(&mut Args)) -> Args {
    let mut args = Args {
        client: Some(Client::Cursor),
        url: endpoint::DEFAULT.to_owned(),
        library: None,
        name: "cuebook".to_owned(),
        transport: Transport::Both,
    };
    edit(&mut args);
    args
}

#[test]
fn flags_become_a_target() {
    let executable = Path::new("bin/cuebook");
    let target =
        super::target(&args(|a| a.url = "cuebook.example".to_owned()), executable).unwrap();
    assert_eq!(target.url, "http://cuebook.example/mcp");
    assert!(Path::new(&target.executable).is_absolute());

    let target = super::target(&args(|a| a.library = Some("lib".into())), executable).unwrap();
    assert!(Path::new(target.library.as_deref().unwrap()).is_absolute());
    assert_eq!(target.transport, Transport::Stdio);

    for name in ["", "two words", "a.b", "한글", &"x".repeat(41)] {
        let error = super::target(&args(|a| a.name = name.to_owned()), executable).unwrap_err();
        assert!(
            error.to_string().contains("cannot name a server"),
            "{error}"
        );
    }
}

#[test]
fn run_prints() {
    let mut out = Vec::new();
    run(&args(|_| ()), Path::new("/bin/cuebook"), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().starts_with("Cursor\n"));
    let mut out = Vec::new();
    run(
        &args(|a| a.client = None),
        Path::new("/bin/cuebook"),
        &mut out,
    )
    .unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), list());
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_unicode_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff/cuebook"));
    assert!(super::target(&args(|_| ()), path).is_err());
}

#[test]
fn no_text_is_wider_than_a_terminal_by_much() {
    let mut widths = BTreeMap::new();
    for client in Client::all() {
        for line in configuration(*client, &target()).lines() {
            widths.insert(line.chars().count(), line.to_owned());
        }
    }
    let (widest, line) = widths.pop_last().unwrap();
    assert!(widest <= 120, "{widest}: {line}");
}
