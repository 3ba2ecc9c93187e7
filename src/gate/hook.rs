//! The side that git runs: reads what git says, asks the server, prints what it answers.
//!
//! Source: `githooks(5)`; for proc-receive its own section there.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use super::wire::{Answer, Hook, Proposed, Question, Update};

/// Most refs of one push.
const MAX_REFS: usize = 10_000;
/// Most bytes of one packet's content.
const PACKET: usize = 65_516;

/// What git tells a hook by its environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `GIT_QUARANTINE_PATH`.
    pub quarantine: Option<PathBuf>,
    /// The push options.
    pub options: Vec<String>,
    /// Which push it is, where it came over HTTP.
    pub push: Option<String>,
}

/// Why a hook could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// git said something else than its documentation.
    #[error("git and the hook do not understand each other: {0}")]
    Protocol(&'static str),
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs a hook: `ask` brings the question to the gate. Returns whether git goes on.
pub fn run(
    hook: Hook,
    environment: &Environment,
    input: &mut impl BufRead,
    output: &mut impl Write,
    said: &mut impl Write,
    ask: impl FnOnce(Question) -> io::Result<Answer>,
) -> Result<bool, HookError> {
    let question = |updates, options| Question {
        hook,
        updates,
        options,
        quarantine: environment.quarantine.clone(),
        push: environment.push.clone(),
        peer: None,
        actor: None,
        here: false,
        deed: None,
    };
    let mut say = |lines: &[String]| -> io::Result<()> {
        for line in lines {
            writeln!(said, "{line}")?;
        }
        said.flush()
    };
    if hook == Hook::ProcReceive {
        let (updates, options) = proposals(input, output)?;
        let answer = ask(question(updates.clone(), options))?;
        say(&answer.lines)?;
        report(output, &updates, &answer)?;
        return Ok(true);
    }
    let updates = updates(input)?;
    let answer = ask(question(updates, environment.options.clone()))?;
    say(&answer.lines)?;
    Ok(answer.accepted)
}

/// `old new ref` lines.
fn updates(input: &mut impl BufRead) -> Result<Vec<Update>, HookError> {
    let mut out = Vec::new();
    for line in input.split(b'\n') {
        let line = String::from_utf8(line?)
            .map_err(|_| HookError::Protocol("the name of a ref is not UTF-8; rename it"))?;
        out.push(update(&line)?);
        if out.len() > MAX_REFS {
            return Err(HookError::Protocol("a push moves more than 10000 refs"));
        }
    }
    Ok(out)
}

fn update(line: &str) -> Result<Update, HookError> {
    let mut parts = line.splitn(3, ' ');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(old), Some(new), Some(name)) => Ok(Update {
            old: old.into(),
            new: new.into(),
            name: name.into(),
        }),
        _ => Err(HookError::Protocol(
            "a line of the hook's input is not `old new ref`",
        )),
    }
}

/// The conversation of proc-receive up to the commands and the push options.
fn proposals(
    input: &mut impl Read,
    output: &mut impl Write,
) -> Result<(Vec<Update>, Vec<String>), HookError> {
    let mut with_options = false;
    let mut versioned = false;
    while let Some(line) = packet(input)? {
        let (version, capabilities) = line.split_once('\0').unwrap_or((&line, ""));
        if version.trim() == "version=1" {
            versioned = true;
            with_options = capabilities.split_whitespace().any(|c| c == "push-options");
        }
    }
    if !versioned {
        return Err(HookError::Protocol("proc-receive speaks another version"));
    }
    let capabilities = if with_options { "\0push-options" } else { "" };
    write_packet(output, &format!("version=1{capabilities}\n"))?;
    output.write_all(b"0000")?;
    output.flush()?;
    let mut updates = Vec::new();
    while let Some(line) = packet(input)? {
        updates.push(update(line.trim_end())?);
        if updates.len() > MAX_REFS {
            return Err(HookError::Protocol("a push moves more than 10000 refs"));
        }
    }
    let mut options = Vec::new();
    if with_options {
        while let Some(line) = packet(input)? {
            options.push(line.trim_end_matches('\n').to_owned());
        }
    }
    Ok((updates, options))
}

/// What became of each command.
fn report(output: &mut impl Write, updates: &[Update], answer: &Answer) -> Result<(), HookError> {
    for update in updates {
        let found = answer.proposed.iter().find(|proposed| match proposed {
            Proposed::Written { pushed, .. } | Proposed::Refused { pushed, .. } => {
                *pushed == update.name
            }
        });
        match found {
            Some(Proposed::Written {
                name,
                old,
                new,
                forced,
                ..
            }) => {
                write_packet(output, &format!("ok {}\n", update.name))?;
                write_packet(output, &format!("option refname {name}\n"))?;
                if let Some(old) = old {
                    write_packet(output, &format!("option old-oid {old}\n"))?;
                }
                write_packet(output, &format!("option new-oid {new}\n"))?;
                if *forced {
                    write_packet(output, "option forced-update\n")?;
                }
            }
            Some(Proposed::Refused { reason, .. }) => {
                write_packet(
                    output,
                    &format!("ng {} {}\n", update.name, one_line(reason)),
                )?;
            }
            None => {
                let reason = answer.lines.first().map_or("refused", |line| line.as_str());
                write_packet(
                    output,
                    &format!("ng {} {}\n", update.name, one_line(reason)),
                )?;
            }
        }
    }
    output.write_all(b"0000")?;
    output.flush()?;
    Ok(())
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(400)
        .collect()
}

/// The content of the next packet; none for a flush.
fn packet(input: &mut impl Read) -> Result<Option<String>, HookError> {
    let mut digits = [0; 4];
    input.read_exact(&mut digits)?;
    let length = std::str::from_utf8(&digits)
        .ok()
        .and_then(|digits| usize::from_str_radix(digits, 16).ok())
        .ok_or(HookError::Protocol("a packet has no length"))?;
    match length {
        0 => Ok(None),
        4..=65_520 => {
            let mut content = vec![0; length - 4];
            input.read_exact(&mut content)?;
            Ok(Some(String::from_utf8_lossy(&content).into_owned()))
        }
        _ => Err(HookError::Protocol("a packet has an impossible length")),
    }
}

fn write_packet(output: &mut impl Write, content: &str) -> Result<(), HookError> {
    if content.len() > PACKET {
        return Err(HookError::Protocol("a line is too long"));
    }
    write!(output, "{:04x}{content}", content.len() + 4)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(lines: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            match line {
                Some(line) => write_packet(&mut out, line).unwrap(),
                None => out.extend_from_slice(b"0000"),
            }
        }
        out
    }

    fn proc_receive(
        input: &[u8],
        answer: Answer,
    ) -> (Result<bool, HookError>, String, Option<Question>) {
        let mut output = Vec::new();
        let mut asked = None;
        let result = run(
            Hook::ProcReceive,
            &Environment::default(),
            &mut &*input,
            &mut output,
            &mut Vec::new(),
            |question| {
                asked = Some(question);
                Ok(answer)
            },
        );
        (result, String::from_utf8(output).unwrap(), asked)
    }

    #[test]
    fn proc_receive_speaks_as_githooks_says() {
        let input = packets(&[
            Some("version=1\0push-options atomic\n"),
            None,
            Some("0 1 refs/for/main\n"),
            None,
            Some("topic=x y"),
            None,
        ]);
        let answer = Answer {
            accepted: true,
            lines: vec!["opened proposal 7".into()],
            proposed: vec![Proposed::Written {
                pushed: "refs/for/main".into(),
                name: "refs/proposals/7/head".into(),
                old: Some("2".into()),
                new: "1".into(),
                forced: true,
            }],
            ..Answer::default()
        };
        let (result, output, asked) = proc_receive(&input, answer);
        assert!(result.unwrap());
        assert_eq!(asked.unwrap().options, ["topic=x y"]);
        let expected = packets(&[
            Some("version=1\0push-options\n"),
            None,
            Some("ok refs/for/main\n"),
            Some("option refname refs/proposals/7/head\n"),
            Some("option old-oid 2\n"),
            Some("option new-oid 1\n"),
            Some("option forced-update\n"),
            None,
        ]);
        assert_eq!(output.as_bytes(), expected);
    }

    #[test]
    fn what_is_not_answered_is_refused() {
        let input = packets(&[Some("version=1\n"), None, Some("0 1 refs/for/main\n"), None]);
        let (result, output, _) = proc_receive(&input, Answer::refused(vec!["no\nserver".into()]));
        assert!(result.unwrap());
        assert!(output.contains("ng refs/for/main no server\n"), "{output}");
    }

    #[test]
    fn bad_input_is_an_error() {
        for input in [
            &b""[..],
            b"zzzz",
            b"ffff",
            b"0009version=2\n0000",
            b"0001",
            b"0000",
        ] {
            let (result, _, asked) = proc_receive(input, Answer::default());
            assert!(result.is_err() && asked.is_none(), "{input:?}");
        }
        let mut none = Vec::new();
        let result = run(
            Hook::PreReceive,
            &Environment::default(),
            &mut &b"a b\n"[..],
            &mut none,
            &mut Vec::new(),
            |_| Ok(Answer::default()),
        );
        assert!(matches!(result, Err(HookError::Protocol(_))));
    }
}
