//! What reviews mean and whether a proposal may be merged, decided from what is known. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::state::State;
use crate::catalog::policy::Approval;

/// What a reviewer says of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be merged.
    Approve,
    /// It may not, as it is.
    RequestChanges,
}

impl Verdict {
    /// As it is stored and asked for: `approve` or `request-changes`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::RequestChanges => "request-changes",
        }
    }

    /// Reads what `as_str` writes.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Approve, Self::RequestChanges]
            .into_iter()
            .find(|verdict| verdict.as_str() == text)
    }
}

/// A verdict that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// By whom.
    pub reviewer: String,
    /// The groups the reviewer was in.
    pub groups: Vec<String>,
    /// What they said.
    pub verdict: Verdict,
    /// The head that they judged; of any other it says nothing.
    pub head: String,
}

/// Who has a part in a proposal: who opened it, pushed to it, or wrote a commit of it. Their approval does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authors {
    /// Names of actors, and of commits' authors.
    pub names: BTreeSet<String>,
    /// Addresses of commits' authors.
    pub addresses: BTreeSet<String>,
}

impl Authors {
    /// Whether an actor of this name is one of them; commits made here carry `<name>@localhost`.
    pub fn has(&self, name: &str) -> bool {
        let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        let address = format!("{name}@localhost");
        self.names.iter().any(|known| same(known, name))
            || self
                .addresses
                .iter()
                .any(|known| same(known, &address) || same(known, name))
    }

    /// Whether commits carry this address.
    pub fn has_address(&self, address: &str) -> bool {
        let address = address.to_lowercase();
        self.addresses
            .iter()
            .any(|known| known.to_lowercase() == address)
    }
}

/// The newest verdict of each reviewer on a head; `given` is oldest first.
pub fn standing<'a>(given: &'a [Given], head: &str) -> BTreeMap<&'a str, &'a Given> {
    let on_it = given.iter().filter(|given| given.head == head);
    on_it.map(|given| (&*given.reviewer, given)).collect()
}

/// An approval rule that a proposal falls under, and how far it is met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needed {
    /// Paths that it covers.
    pub paths: Vec<String>,
    /// How many must approve.
    pub required: u32,
    /// Whose approval counts; anybody's who may review where it is empty.
    pub reviewers: Vec<String>,
    /// Who has approved this head and counts, sorted.
    pub have: Vec<String>,
}

impl Needed {
    /// Whether enough have approved.
    pub fn is_met(&self) -> bool {
        u32::try_from(self.have.len()).unwrap_or(u32::MAX) >= self.required
    }
}

/// Whether a rule counts the approval of somebody.
fn counts(reviewers: &[String], given: &Given) -> bool {
    reviewers.is_empty()
        || reviewers
            .iter()
            .any(|reviewer| match reviewer.strip_prefix("group:") {
                Some(group) => given.groups.iter().any(|known| known == group),
                None => *reviewer == given.reviewer,
            })
}

/// The rules that touched paths fall under, with the approvals of a head that count.
pub fn needed(
    rules: &[Approval],
    touched: &BTreeSet<String>,
    given: &[Given],
    head: &str,
    authors: &Authors,
) -> Vec<Needed> {
    let standing = standing(given, head);
    let covered = |rule: &Approval| -> Vec<String> {
        touched
            .iter()
            .filter(|path| rule.covers(path))
            .cloned()
            .collect()
    };
    let under = rules.iter().map(|rule| (rule, covered(rule)));
    under
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(rule, paths)| Needed {
            paths,
            required: rule.required,
            reviewers: rule.reviewers.clone(),
            have: standing
                .values()
                .filter(|given| given.verdict == Verdict::Approve)
                .filter(|given| !authors.has(&given.reviewer) && counts(&rule.reviewers, given))
                .map(|given| given.reviewer.clone())
                .collect(),
        })
        .collect()
}

/// Why somebody may not give a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReviewRefusal {
    /// It is not open.
    #[error("proposal {0} is {1}; only open proposals are reviewed")]
    NotOpen(i64, &'static str),
    /// It has another head than the one that was judged.
    #[error("proposal {number} has moved on to {head}; look at what is new, then review that head")]
    Moved {
        /// Its number.
        number: i64,
        /// Its head now.
        head: String,
    },
    /// Whose own it is.
    #[error(
        "you have a part in proposal {0}, and nobody approves their own work; somebody else has to"
    )]
    Own(i64),
}

/// Whether a verdict on a head can be taken.
pub fn decide_review(
    number: i64,
    state: State,
    head: &str,
    judged: &str,
    verdict: Verdict,
    own: bool,
) -> Result<(), ReviewRefusal> {
    if state != State::Open {
        return Err(ReviewRefusal::NotOpen(number, state.as_str()));
    }
    if head != judged {
        return Err(ReviewRefusal::Moved {
            number,
            head: head.to_owned(),
        });
    }
    if own && verdict == Verdict::Approve {
        return Err(ReviewRefusal::Own(number));
    }
    Ok(())
}

/// What is known when somebody wants to merge.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The proposal's number.
    pub number: i64,
    /// Where it stands.
    pub state: State,
    /// Its head.
    pub head: &'a str,
    /// The head that whoever merges has seen; none where they only ask whether they may.
    pub seen: Option<&'a str>,
    /// Every verdict, oldest first.
    pub given: &'a [Given],
    /// The rules of the main that is left.
    pub rules: &'a [Approval],
    /// Every path that the merge brings.
    pub touched: &'a BTreeSet<String>,
    /// Who has a part in it.
    pub authors: &'a Authors,
    /// Paths that whoever merges may not publish.
    pub forbidden: Vec<String>,
    /// Files that main has changed as well.
    pub conflicts: Vec<String>,
    /// Whether main has all of it.
    pub in_main: bool,
}

/// A merge that may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergePlan {
    /// Who has approved this head and has no part in it, sorted.
    pub approved_by: Vec<String>,
}

/// Why a proposal is not merged: a line for people each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeRefusal {
    /// It is merged already.
    #[error("proposal {0} is merged")]
    Merged(i64),
    /// It is closed.
    #[error("proposal {0} is closed; reopen it first")]
    Closed(i64),
    /// It has another head than the one that was seen.
    #[error("proposal {number} has moved on to {head}; look at what is new, then merge that head")]
    Moved {
        /// Its number.
        number: i64,
        /// Its head now.
        head: String,
    },
    /// Main has it all.
    #[error("main has all of proposal {0} already; close it")]
    InMain(i64),
    /// Not enough have approved.
    #[error("{}", approvals(.0))]
    Approvals(Needed),
    /// A reviewer has asked for changes of this head.
    #[error("{0} asked for changes; revise the proposal, or let them approve it")]
    ChangesRequested(String),
    /// The actor may not publish these paths.
    #[error("you may not publish {}; somebody who may has to merge", named(.0))]
    Forbidden(Vec<String>),
    /// Both sides have changed the same.
    #[error("main has changed {} as well; resolve the conflicts, or rebase: git rebase origin/main", named(.0))]
    Conflicts(Vec<String>),
}

impl MergeRefusal {
    /// One word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Merged(_) => "merged",
            Self::Closed(_) => "closed",
            Self::Moved { .. } => "moved",
            Self::InMain(_) => "in-main",
            Self::Approvals(_) => "approvals",
            Self::ChangesRequested(_) => "changes-requested",
            Self::Forbidden(_) => "forbidden",
            Self::Conflicts(_) => "conflicts",
        }
    }
}

/// Names in a line, the first three and how many more.
pub fn named(all: &[String]) -> String {
    let shown = all.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(3) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn approvals(needed: &Needed) -> String {
    let who = if needed.reviewers.is_empty() {
        "anybody who may review them and has no part in the proposal".to_owned()
    } else {
        needed.reviewers.join(", ")
    };
    format!(
        "{} {} {} {} of the newest revision and {} {}; {who} can approve",
        named(&needed.paths),
        if needed.paths.len() == 1 {
            "takes"
        } else {
            "take"
        },
        needed.required,
        if needed.required == 1 {
            "approval"
        } else {
            "approvals"
        },
        if needed.paths.len() == 1 {
            "has"
        } else {
            "have"
        },
        needed.have.len(),
    )
}

/// Whether a proposal may be merged; every reason why not, otherwise.
pub fn decide_merge(facts: &Facts<'_>) -> Result<MergePlan, Vec<MergeRefusal>> {
    match facts.state {
        State::Merged => return Err(vec![MergeRefusal::Merged(facts.number)]),
        State::Closed => return Err(vec![MergeRefusal::Closed(facts.number)]),
        State::Open => {}
    }
    if facts.seen.is_some_and(|seen| seen != facts.head) {
        return Err(vec![MergeRefusal::Moved {
            number: facts.number,
            head: facts.head.to_owned(),
        }]);
    }
    if facts.in_main {
        return Err(vec![MergeRefusal::InMain(facts.number)]);
    }
    let mut refusals = Vec::new();
    if !facts.conflicts.is_empty() {
        refusals.push(MergeRefusal::Conflicts(facts.conflicts.clone()));
    }
    let standing = standing(facts.given, facts.head);
    for given in standing.values() {
        if given.verdict == Verdict::RequestChanges {
            refusals.push(MergeRefusal::ChangesRequested(given.reviewer.clone()));
        }
    }
    let needed = needed(
        facts.rules,
        facts.touched,
        facts.given,
        facts.head,
        facts.authors,
    );
    let missing = needed.into_iter().filter(|needed| !needed.is_met());
    refusals.extend(missing.map(MergeRefusal::Approvals));
    if !facts.forbidden.is_empty() {
        refusals.push(MergeRefusal::Forbidden(facts.forbidden.clone()));
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    Ok(MergePlan {
        approved_by: approving(facts.given, facts.head, facts.authors),
    })
}

/// Who has approved a head and has no part in it, sorted.
pub fn approving(given: &[Given], head: &str, authors: &Authors) -> Vec<String> {
    let standing = standing(given, head);
    let approving = standing
        .values()
        .filter(|given| given.verdict == Verdict::Approve && !authors.has(&given.reviewer));
    approving.map(|given| given.reviewer.clone()).collect()
}

/// The message of the commit that merges a proposal.
pub fn merge_message(number: i64, title: &str, body: &str, approved_by: &[String]) -> String {
    // a line of somebody's words is no trailer of ours
    let mut out = format!("Merge proposal {number}: {title}\n");
    let body = body.trim();
    if !body.is_empty() {
        out.push('\n');
        out.push_str(body);
        out.push('\n');
    }
    out.push_str(&format!("\nProposal: {number}\n"));
    for name in approved_by {
        out.push_str(&format!("Approved-by: {name}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::policy::PathPattern;

    fn rule(path: &str, required: u32, reviewers: &[&str]) -> Approval {
        Approval {
            paths: vec![PathPattern::parse(path).unwrap()],
            required,
            reviewers: reviewers.iter().map(ToString::to_string).collect(),
            rollback: false,
        }
    }

    fn given(reviewer: &str, verdict: Verdict, head: &str) -> Given {
        Given {
            reviewer: reviewer.into(),
            groups: vec![format!("{reviewer}s")],
            verdict,
            head: head.into(),
        }
    }

    fn codes(facts: &Facts<'_>) -> Vec<&'static str> {
        decide_merge(facts)
            .err()
            .unwrap_or_default()
            .iter()
            .map(MergeRefusal::code)
            .collect()
    }

    const A: Verdict = Verdict::Approve;
    const R: Verdict = Verdict::RequestChanges;

    #[test]
    fn a_merge_is_decided() {
        let authors = Authors {
            names: BTreeSet::from(["ann".into()]),
            addresses: BTreeSet::from(["Bob@localhost".into()]),
        };
        let touched = BTreeSet::from(["prompts/sre/a.md".to_owned()]);
        let sre = [rule("prompts/sre/**", 1, &[])];
        let check = |rules: &[Approval], given: &[Given], expected: &[&str]| {
            let facts = Facts {
                number: 7,
                state: State::Open,
                head: "new",
                seen: Some("new"),
                given,
                rules,
                touched: &touched,
                authors: &authors,
                forbidden: Vec::new(),
                conflicts: Vec::new(),
                in_main: false,
            };
            assert_eq!(codes(&facts), expected, "{rules:?} {given:?}");
        };
        check(&[], &[], &[]);
        check(&[rule("prompts/review/**", 1, &[])], &[], &[]);
        check(&sre, &[], &["approvals"]);
        check(&sre, &[given("mina", A, "new")], &[]);
        // of another head, of an author, of the author of a commit
        check(&sre, &[given("mina", A, "old")], &["approvals"]);
        check(&sre, &[given("ann", A, "new")], &["approvals"]);
        check(&sre, &[given("bob", A, "new")], &["approvals"]);
        // changed their mind, both ways
        check(
            &sre,
            &[given("mina", A, "new"), given("mina", R, "new")],
            &["changes-requested", "approvals"],
        );
        check(
            &sre,
            &[given("mina", R, "new"), given("mina", A, "new")],
            &[],
        );
        // asked for changes of what is there no more
        check(&[], &[given("mina", R, "old")], &[]);
        check(&[], &[given("mina", R, "new")], &["changes-requested"]);
        // two, and who
        let two = [rule("**", 2, &["group:minas", "joon"])];
        check(
            &two,
            &[given("mina", A, "new"), given("x", A, "new")],
            &["approvals"],
        );
        check(
            &two,
            &[given("mina", A, "new"), given("joon", A, "new")],
            &[],
        );
        check(
            &two,
            &[given("mina", A, "new"), given("mina", A, "new")],
            &["approvals"],
        );
    }

    #[test]
    fn what_keeps_it_from_being_merged_at_all() {
        let (touched, authors) = (BTreeSet::new(), Authors::default());
        let facts = Facts {
            number: 7,
            state: State::Open,
            head: "new",
            seen: None,
            given: &[],
            rules: &[],
            touched: &touched,
            authors: &authors,
            forbidden: Vec::new(),
            conflicts: Vec::new(),
            in_main: false,
        };
        let check = |facts: Facts<'_>, expected: &[&str]| assert_eq!(codes(&facts), expected);
        check(facts.clone(), &[]);
        check(
            Facts {
                state: State::Merged,
                ..facts.clone()
            },
            &["merged"],
        );
        check(
            Facts {
                state: State::Closed,
                ..facts.clone()
            },
            &["closed"],
        );
        check(
            Facts {
                seen: Some("old"),
                ..facts.clone()
            },
            &["moved"],
        );
        check(
            Facts {
                in_main: true,
                ..facts.clone()
            },
            &["in-main"],
        );
        check(
            Facts {
                conflicts: vec!["a".into()],
                ..facts.clone()
            },
            &["conflicts"],
        );
        check(
            Facts {
                forbidden: vec!["a".into()],
                ..facts
            },
            &["forbidden"],
        );
    }

    #[test]
    fn a_review_is_taken_or_not() {
        let check = |state, judged: &str, verdict, own, expected: bool| {
            let taken = decide_review(7, state, "head", judged, verdict, own);
            assert_eq!(
                taken.is_ok(),
                expected,
                "{state:?} {judged} {verdict:?} {own}"
            );
        };
        check(State::Open, "head", A, false, true);
        check(State::Open, "head", A, true, false);
        check(State::Open, "head", R, true, true);
        check(State::Open, "old", R, false, false);
        check(State::Merged, "head", A, false, false);
        check(State::Closed, "head", R, false, false);
    }

    #[test]
    fn a_message_has_its_trailers_last() {
        let text = merge_message(7, "Shorter", "Because.\n", &["mina".into()]);
        assert_eq!(
            text,
            "Merge proposal 7: Shorter\n\nBecause.\n\nProposal: 7\nApproved-by: mina\n"
        );
        let forged = merge_message(7, "x", "y\n\nProposal: 8", &[]);
        assert_eq!(crate::git::merge::trailer(&forged, "Proposal"), Some("7"));
    }

    proptest! {
        /// Nothing that authors say, and nothing said of another head, ever lets a proposal through.
        #[test]
        fn no_one_lets_their_own_work_through(
            said in proptest::collection::vec((0..4usize, any::<bool>(), 0..3usize), 0..12),
            required in 1..4u32,
        ) {
            let names = ["ann", "bob", "mina", "joon"];
            let heads = ["new", "old", "older"];
            let given: Vec<Given> = said
                .iter()
                .map(|(who, yes, head)| given(names[*who], if *yes { A } else { R }, heads[*head]))
                .collect();
            let authors = Authors {
                names: BTreeSet::from(["ann".into(), "bob".into()]),
                addresses: BTreeSet::new(),
            };
            let touched = BTreeSet::from(["x".to_owned()]);
            let rules = [rule("x", required, &[])];
            let facts = Facts {
                number: 1,
                state: State::Open,
                head: "new",
                seen: Some("new"),
                given: &given,
                rules: &rules,
                touched: &touched,
                authors: &authors,
                forbidden: Vec::new(),
                conflicts: Vec::new(),
                in_main: false,
            };
            // by the plain rule: the last word of each on the new head
            let last = |who: &str| {
                given.iter().rev().find(|g| g.reviewer == who && g.head == "new").map(|g| g.verdict)
            };
            let strangers = ["mina", "joon"];
            let approving = strangers.iter().filter(|who| last(who) == Some(A)).count();
            let refused = names.iter().any(|who| last(who) == Some(R));
            let expected = approving >= required as usize && !refused;
            prop_assert_eq!(decide_merge(&facts).is_ok(), expected);
        }
    }
}
