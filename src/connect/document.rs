//! Writes small configuration files: JSON, YAML and TOML from one tree, and shell commands.
//!
//! Every string is quoted, so that a Windows path, a quote or a `:` in a name survives.

use std::fmt::Write;

/// What a block is, so that its quoting can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A shell command.
    Command,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// TOML.
    Toml,
}

/// Something to copy: a command or a piece of a file.
#[derive(Debug)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// The text.
    pub text: String,
}

/// A tree of configuration; maps keep the order in which they are written.
#[derive(Debug, Clone)]
pub enum Node {
    /// A string.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Number(u32),
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in order.
    Map(Vec<(String, Node)>),
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Node {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<bool> for Node {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u32> for Node {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl From<Vec<String>> for Node {
    fn from(texts: Vec<String>) -> Self {
        Self::List(texts.into_iter().map(Self::Text).collect())
    }
}

impl<K: Into<String>, const N: usize> From<[(K, Node); N]> for Node {
    fn from(entries: [(K, Node); N]) -> Self {
        Self::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }
}

/// A command line: `words` quoted for the shells people paste into.
pub fn command(words: &[&str]) -> Block {
    let words: Vec<String> = words.iter().map(|word| shell(word)).collect();
    Block {
        kind: Kind::Command,
        text: words.join(" "),
    }
}

/// A JSON document.
pub fn json(root: &Node) -> Block {
    let mut text = String::new();
    write_json(&mut text, root, 0);
    text.push('\n');
    Block {
        kind: Kind::Json,
        text,
    }
}

/// A YAML document; `root` is a map.
pub fn yaml(root: &Node) -> Block {
    let mut text = String::new();
    write_yaml(&mut text, root, 0);
    Block {
        kind: Kind::Yaml,
        text,
    }
}

/// A TOML table `[header.name]` with plain values; `root` is a map.
pub fn toml(header: &str, name: &str, root: &Node) -> Block {
    let mut text = format!("[{header}.{}]\n", key(name));
    if let Node::Map(entries) = root {
        for (name, value) in entries {
            let _ = writeln!(text, "{} = {}", key(name), inline(value));
        }
    }
    Block {
        kind: Kind::Toml,
        text,
    }
}

/// A double-quoted string that JSON, YAML 1.2 and TOML all read alike.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Line and paragraph separators and the BOM: unprintable in YAML.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key of YAML or TOML: bare where that is safe in both.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    // A few words that YAML 1.1 reads as something else than text.
    let word = matches!(
        name.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if starts && !word && name.chars().all(bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// A value on one line, as JSON, TOML and flow YAML write it.
fn inline(value: &Node) -> String {
    match value {
        Node::Text(text) => quoted(text),
        Node::Flag(flag) => flag.to_string(),
        Node::Number(number) => number.to_string(),
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Node::Map(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(name, value)| format!("{}: {}", quoted(name), inline(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

fn write_json(out: &mut String, node: &Node, depth: usize) {
    let Node::Map(entries) = node else {
        out.push_str(&inline(node));
        return;
    };
    if entries.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{\n");
    for (index, (name, value)) in entries.iter().enumerate() {
        let _ = write!(out, "{}{}: ", "  ".repeat(depth + 1), quoted(name));
        write_json(out, value, depth + 1);
        out.push_str(if index + 1 < entries.len() {
            ",\n"
        } else {
            "\n"
        });
    }
    out.push_str(&"  ".repeat(depth));
    out.push('}');
}

fn write_yaml(out: &mut String, node: &Node, depth: usize) {
    let Node::Map(entries) = node else { return };
    for (name, value) in entries {
        let _ = write!(out, "{}{}:", "  ".repeat(depth), key(name));
        match value {
            Node::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                write_yaml(out, value, depth + 1);
            }
            Node::List(items) if items.iter().any(|item| matches!(item, Node::Map(_))) => {
                out.push('\n');
                for item in items {
                    let mut block = String::new();
                    write_yaml(&mut block, item, depth + 2);
                    // The dash takes the place of the first line's last two blanks.
                    let dash = "  ".repeat(depth + 1) + "- ";
                    out.push_str(&block.replacen(&"  ".repeat(depth + 2), &dash, 1));
                }
            }
            value => {
                let _ = writeln!(out, " {}", inline(value));
            }
        }
    }
}

/// Quotes a word so that POSIX shells, PowerShell and cmd read it alike where they can.
///
/// Double quotes hold blanks and backslashes in all of them; what they would expand goes into single
/// quotes, which POSIX shells and PowerShell know.
pub fn shell(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    let expands =
        word.contains(['"', '$', '`', '!']) || word.contains("\\\\") || word.ends_with('\\');
    if expands {
        format!("'{}'", word.replace('\'', r"'\''"))
    } else {
        format!("\"{word}\"")
    }
}
