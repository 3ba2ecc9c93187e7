//! What a push to `refs/for/main` does, decided from what is known. Pure.

use crate::prompt::problem::nearest;

/// Where a proposal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Under review.
    Open,
    /// Its head is in the branch it was for.
    Merged,
    /// Given up.
    Closed,
}

impl State {
    /// As it is stored: `open`, `merged` or `closed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Closed => "closed",
        }
    }

    /// Reads what is stored; what is no state is closed.
    pub fn parse(text: &str) -> Self {
        [Self::Open, Self::Merged]
            .into_iter()
            .find(|state| state.as_str() == text)
            .unwrap_or(Self::Closed)
    }
}

/// What may be said with `-o` beside a push to `refs/for/main`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `topic=…`: the name by which a later push finds the proposal.
    pub topic: Option<String>,
    /// `title=…`: what it is about; the subject of the commit where it is left out.
    pub title: Option<String>,
    /// `proposal=7`: the proposal to revise.
    pub proposal: Option<i64>,
}

/// Longest topic, in characters.
const TOPIC_CHARS: usize = 100;
/// Longest title, in characters; a longer one is cut.
const TITLE_CHARS: usize = 200;
/// The options there are.
const KEYS: [&str; 3] = ["topic", "title", "proposal"];

/// Why a push opens or revises nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An option that does not exist.
    #[error("no push option `{0}`{1}; there are topic=…, title=… and proposal=<number>")]
    UnknownOption(String, String),
    /// An option without a usable value.
    #[error("{0}")]
    BadOption(String),
    /// Everything that was pushed is in main.
    #[error("main has this commit already: there is nothing to propose")]
    Nothing,
    /// The proposal that was named is not open.
    #[error("proposal {0} is not open; leave -o proposal out to open a new one")]
    NotOpen(i64),
    /// It is somebody else's, and touches what the actor may not propose changes of.
    #[error(
        "proposal {0} is revised by its author, {1}, or by who may propose changes of all that it touches; push yours as \
         another: git push -o topic=<name> origin HEAD:refs/for/main"
    )]
    NotYours(i64, String),
    /// The topic is that of another open proposal.
    #[error("topic `{0}` is that of proposal {1}; choose another, or leave -o topic out")]
    TopicTaken(String, i64),
    /// The proposal has another head than the one that was revised.
    #[error("proposal {0} has moved on to {1}; look at what is new, then make the change again")]
    MovedOn(i64, String),
    /// The same commit is proposed already.
    #[error("proposal {0} has this commit already")]
    Same(i64),
}

impl Options {
    /// Reads push options as git gives them.
    pub fn parse(options: &[String]) -> Result<Self, Refusal> {
        let mut out = Self::default();
        for option in options {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let value = value.trim();
            let shown: String = key.chars().take(40).collect();
            if !KEYS.contains(&key) {
                let near = nearest(key, KEYS)
                    .map_or_else(String::new, |n| format!(" (did you mean `{n}`?)"));
                return Err(Refusal::UnknownOption(shown, near));
            }
            if value.is_empty() {
                return Err(Refusal::BadOption(format!("-o {shown}=… needs a value")));
            }
            match key {
                "topic" => {
                    if value.chars().count() > TOPIC_CHARS || value.contains(char::is_control) {
                        return Err(Refusal::BadOption(format!(
                            "a topic has at most {TOPIC_CHARS} characters, on one line"
                        )));
                    }
                    out.topic = Some(value.to_owned());
                }
                "title" => out.title = Some(title(value)),
                _ => {
                    let number = value.trim_start_matches('#').parse().map_err(|_| {
                        Refusal::BadOption("-o proposal=… takes the number of a proposal".into())
                    })?;
                    out.proposal = Some(number);
                }
            }
        }
        Ok(out)
    }
}

/// A title on one line, cut where it is too long.
pub fn title(text: &str) -> String {
    let line: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(TITLE_CHARS)
        .collect();
    if line.is_empty() {
        "Untitled".into()
    } else {
        line
    }
}

/// An open proposal, as far as the decision needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// Its number.
    pub number: i64,
    /// Its topic.
    pub topic: Option<String>,
    /// Its head.
    pub head: String,
}

/// What was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The commit.
    pub head: String,
    /// Whether main has it.
    pub in_main: bool,
    /// Numbers of the open proposals whose head it builds on, nearest first.
    pub builds_on: Vec<i64>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// A new proposal.
    Open,
    /// A new head, or a new title or topic, for this one.
    Revise(i64),
}

/// Decides what a push does: the proposal that is named, else the one with the topic, else the one with this head or on
/// whose head it builds, else a new one.
pub fn plan(open: &[Open], options: &Options, pushed: &Pushed) -> Result<Plan, Refusal> {
    if pushed.in_main {
        return Err(Refusal::Nothing);
    }
    let revise = |proposal: &Open| {
        let changes_words =
            options.title.is_some() || (options.topic.is_some() && options.topic != proposal.topic);
        if proposal.head == pushed.head && !changes_words {
            Err(Refusal::Same(proposal.number))
        } else {
            Ok(Plan::Revise(proposal.number))
        }
    };
    let of_topic = |topic: &String| open.iter().find(|p| p.topic.as_ref() == Some(topic));
    if let Some(number) = options.proposal {
        if let Some(topic) = &options.topic
            && let Some(other) = of_topic(topic).filter(|p| p.number != number)
        {
            return Err(Refusal::TopicTaken(topic.clone(), other.number));
        }
        let named = open.iter().find(|p| p.number == number);
        return named.map_or(Err(Refusal::NotOpen(number)), revise);
    }
    if let Some(topic) = &options.topic {
        let named = of_topic(topic);
        // a push whose answer was lost is repeated: the proposal is there, its topic may not be
        let same = || {
            open.iter()
                .find(|p| p.head == pushed.head && p.topic.is_none())
        };
        return named.or_else(same).map_or(Ok(Plan::Open), revise);
    }
    if let Some(same) = open.iter().find(|p| p.head == pushed.head) {
        return revise(same);
    }
    Ok(pushed
        .builds_on
        .first()
        .map_or(Plan::Open, |number| Plan::Revise(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(number: i64, topic: Option<&str>, head: &str) -> Open {
        Open {
            number,
            topic: topic.map(Into::into),
            head: head.into(),
        }
    }

    fn pushed(head: &str, builds_on: &[i64]) -> Pushed {
        Pushed {
            head: head.into(),
            in_main: false,
            builds_on: builds_on.into(),
        }
    }

    fn options(text: &[&str]) -> Result<Options, Refusal> {
        Options::parse(&text.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_push_finds_its_proposal() {
        let there = [
            open(1, Some("triage"), "a"),
            open(2, None, "b"),
            open(3, Some("x"), "c"),
        ];
        let check = |given: &[&str], push: Pushed, expected: Result<Plan, Refusal>| {
            assert_eq!(
                plan(&there, &options(given).unwrap(), &push),
                expected,
                "{given:?} {push:?}"
            );
        };
        check(&[], pushed("n", &[]), Ok(Plan::Open));
        check(&[], pushed("n", &[2, 1]), Ok(Plan::Revise(2)));
        check(&[], pushed("b", &[2]), Err(Refusal::Same(2)));
        check(&["title=New words"], pushed("b", &[2]), Ok(Plan::Revise(2)));
        check(&["topic=triage"], pushed("n", &[]), Ok(Plan::Revise(1)));
        check(&["topic=triage"], pushed("a", &[]), Err(Refusal::Same(1)));
        check(
            &["topic=triage", "title=New words"],
            pushed("a", &[]),
            Ok(Plan::Revise(1)),
        );
        check(
            &["topic=triage", "proposal=1"],
            pushed("n", &[]),
            Ok(Plan::Revise(1)),
        );
        check(
            &["topic=triage", "proposal=2"],
            pushed("n", &[]),
            Err(Refusal::TopicTaken("triage".into(), 1)),
        );
        check(&["topic=other"], pushed("n", &[2]), Ok(Plan::Open));
        check(&["topic=other"], pushed("b", &[]), Ok(Plan::Revise(2)));
        check(&["topic=other"], pushed("a", &[]), Ok(Plan::Open));
        check(&["proposal=3"], pushed("n", &[1]), Ok(Plan::Revise(3)));
        check(&["proposal=#3"], pushed("n", &[]), Ok(Plan::Revise(3)));
        check(&["proposal=9"], pushed("n", &[]), Err(Refusal::NotOpen(9)));
        let merged = Pushed {
            in_main: true,
            ..pushed("n", &[])
        };
        check(&["topic=triage"], merged, Err(Refusal::Nothing));
    }

    #[test]
    fn options_are_read_strictly() {
        assert!(
            matches!(options(&["topc=x"]), Err(Refusal::UnknownOption(_, near)) if near.contains("`topic`"))
        );
        for wrong in ["topic", "topic=", "title= ", "proposal=x", "topic=a\u{7}b"] {
            assert!(
                matches!(options(&[wrong]), Err(Refusal::BadOption(_))),
                "{wrong}"
            );
        }
        assert!(options(&[&format!("topic={}", "x".repeat(101))]).is_err());
        assert_eq!(
            options(&["title=장애 대응"]).unwrap().title.as_deref(),
            Some("장애 대응")
        );
        assert_eq!(title(" \n"), "Untitled");
        assert_eq!(title(&"가".repeat(300)).chars().count(), 200);
    }
}
