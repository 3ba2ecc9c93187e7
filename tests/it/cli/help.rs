//! `--help` teaches: every command, argument and option says what it is.

use super::*;

/// The commands of the program, with their own commands.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["serve"],
    &["stdio"],
    &["init"],
    &["check"],
    &["render"],
    &["hook"],
    &["hook", "install"],
    &["hook", "uninstall"],
    &["connect"],
    &["config"],
    &["config", "show"],
    &["search"],
    &["usage"],
    &["deliveries"],
    &["audit"],
    &["access"],
    &["access", "show"],
    &["access", "grant"],
    &["access", "revoke"],
    &["access", "add-person"],
    &["access", "add-service"],
    &["access", "disable"],
    &["access", "invite"],
    &["access", "groups"],
    &["token"],
    &["token", "create"],
    &["token", "list"],
    &["token", "revoke"],
    &["log"],
    &["diff"],
    &["revert"],
    &["promote"],
    &["verify"],
    &["reindex"],
];

/// Entries of the sections of a help text: what stands in the first column, and what is said of it.
fn entries(help: &str) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in help.lines() {
        if matches!(line, "Arguments:" | "Options:" | "Commands:") {
            inside = true;
            continue;
        }
        if !line.is_empty() && !line.starts_with(' ') {
            inside = false;
        }
        if !inside || line.trim().is_empty() {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let text = line.trim();
        if indent < 8 {
            let (name, meaning) = text.split_once("  ").unwrap_or((text, ""));
            out.push((name.to_owned(), meaning.trim().to_owned()));
        } else if let Some((_, meaning)) = out.last_mut() {
            meaning.push(' ');
            meaning.push_str(text);
        }
    }
    out
}

#[test]
fn every_command_argument_and_option_says_what_it_is() {
    let folder = Folder::new(&[]);
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let help = succeeds(folder.path(), &[*command, &[flag]].concat());
            let about = help.lines().next().unwrap_or_default();
            assert!(
                about.len() > 15 && !about.starts_with("Usage"),
                "{command:?} does not say what it does: {help}"
            );
            assert!(help.contains("Usage: cuebook"), "{help}");
            let entries = entries(&help);
            assert!(
                entries.iter().any(|(name, _)| name.contains("--help")),
                "{entries:?}"
            );
            for (name, meaning) in entries {
                assert!(
                    meaning.len() > 5,
                    "{command:?}: `{name}` is not explained: {help}"
                );
            }
        }
    }
}

#[test]
fn the_list_of_commands_is_the_one_tested_here() {
    let folder = Folder::new(&[]);
    let help = succeeds(folder.path(), &["--help"]);
    let listed: Vec<String> = entries(&help)
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with('-') && name != "help")
        .collect();
    let tested: Vec<&str> = COMMANDS
        .iter()
        .filter(|c| c.len() == 1)
        .map(|c| c[0])
        .collect();
    assert_eq!(listed, tested);
}

#[test]
fn examples_stand_where_they_help_most() {
    let folder = Folder::new(&[]);
    for (command, example) in [
        (&[][..], "cuebook serve"),
        (&["check"], "cuebook check --fix"),
        (&["render"], "cuebook render incident-triage"),
    ] {
        let help = succeeds(folder.path(), &[command, &["--help"]].concat());
        assert!(help.contains(example), "{help}");
    }
    // no example loses its indent
    let help = succeeds(folder.path(), &["render", "--help"]);
    assert!(
        help.contains("\n  cuebook render incident-triage"),
        "{help}"
    );
    let version = succeeds(folder.path(), &["--version"]);
    assert_eq!(version, format!("cuebook {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_misspelt_command_or_option_is_told_what_was_meant() {
    let folder = Folder::new(&[]);
    for (arguments, meant) in [
        (&["chek"][..], "check"),
        (&["serve", "--lisen", "x"], "--listen"),
        (&["check", "--format", "jsn"], "json"),
        (&["connect", "vscod"], "vscode"),
    ] {
        let error = fails(folder.path(), arguments, 2);
        assert!(error.contains(meant), "{error}");
    }
}
