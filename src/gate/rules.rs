//! What a push may do to which ref. Pure: names and facts in, a refusal or none out.

use crate::git::MAIN;
use crate::git::history::Advance;
use crate::git::pack::PROPOSE;
use crate::upstream::Closed;

/// What a ref is to the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The branch that is served.
    Main,
    /// `refs/for/<branch>`: opens a proposal.
    Propose(String),
    /// Another branch: kept, never served.
    Branch {
        /// Whether it may be neither rewound nor deleted.
        protected: bool,
    },
    /// A tag.
    Tag,
    /// A ref that only the server moves.
    Reserved,
    /// Anything else.
    Unknown,
}

/// What a ref is; `protected` are names of branches, a trailing `*` standing for any ending.
pub fn kind(name: &str, protected: &[String]) -> Kind {
    if name == MAIN {
        return Kind::Main;
    }
    if let Some(branch) = name
        .strip_prefix(PROPOSE)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        return Kind::Propose(branch.to_owned());
    }
    if let Some(branch) = name.strip_prefix("refs/heads/") {
        let protected = protected
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => branch.starts_with(start),
                None => branch == pattern,
            });
        return Kind::Branch { protected };
    }
    if name.starts_with("refs/tags/") {
        return Kind::Tag;
    }
    if name.starts_with("refs/proposals/")
        || name.starts_with("refs/cuebook/")
        || name.starts_with("refs/upstream/")
    {
        return Kind::Reserved;
    }
    Kind::Unknown
}

/// A refusal: what is refused, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is refused and why.
    pub message: String,
    /// The way that works.
    pub hint: String,
}

fn refused(message: impl Into<String>, hint: impl Into<String>) -> Refused {
    Refused {
        message: message.into(),
        hint: hint.into(),
    }
}

/// The branch a proposal is for, and the only one there is to propose to.
const TARGET: &str = "main";

/// How a change comes to a library that follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// By git.
    Pushed,
    /// Made here, a change of `labels.toml` alone.
    Label,
    /// Made here, before anything of the other library was there.
    TooEarly,
    /// Made here, any other change.
    Other,
}

/// What refuses a push to a library that follows another, or a change that is made in it.
pub fn by_upstream(kind: &Kind, closed: &Closed, made: Made) -> Result<(), Refused> {
    let Closed { url, branch, .. } = closed;
    match kind {
        Kind::Main if made == Made::Label => Ok(()),
        Kind::Main if made == Made::TooEarly => Err(refused(
            format!("this library follows {url}, and nothing of it is here yet"),
            "labels can be moved once it was fetched; /readyz says what keeps it",
        )),
        Kind::Main if made == Made::Other => Err(refused(
            format!("this library follows {url}: labels are moved here, all else is changed there"),
            format!("publish there: git push {url} HEAD:{branch}; to undo a change: git revert"),
        )),
        Kind::Main if closed.takes_proposals => Err(refused(
            format!("this library follows {url}, so main is not pushed to here"),
            "git push origin HEAD:refs/for/main gives your commit to it as a branch",
        )),
        Kind::Propose(_) if closed.takes_proposals => Ok(()),
        // what was kept here would be kept apart
        _ if closed.takes_proposals => Err(refused(
            format!("this library follows {url} and keeps no branches or tags of its own"),
            "git push origin HEAD:refs/for/main gives your commit to it as a branch",
        )),
        _ => Err(refused(
            format!("this library follows {url} and takes no pushes"),
            format!("publish there: git push {url} HEAD:{branch}"),
        )),
    }
}

/// What refuses an update by its name alone.
pub fn by_name(name: &str, kind: &Kind, deletes: bool) -> Result<(), Refused> {
    match kind {
        Kind::Main if deletes => Err(refused(
            "main is what is served and cannot be deleted",
            "to take prompts away, delete their files, commit and push",
        )),
        Kind::Branch { protected: true } if deletes => Err(refused(
            format!("{name} is protected and cannot be deleted"),
            "an operator can take it out of git.protected_branches",
        )),
        Kind::Propose(_) if deletes => Err(refused(
            format!("{name} cannot be deleted: it only takes proposals"),
            "git push origin HEAD:refs/for/main",
        )),
        Kind::Propose(branch) if branch != TARGET => Err(refused(
            format!("there is no branch {branch} to propose to"),
            "git push origin HEAD:refs/for/main",
        )),
        Kind::Reserved => Err(refused(
            format!("{name} is written by the server alone"),
            "to change a proposal, push to refs/for/main with -o topic=…, the topic it was opened with",
        )),
        Kind::Branch { .. } if !deletes && is_slip(name) => Err(refused(
            format!("{name} is not what was meant, is it?"),
            "git push origin HEAD:main publishes, git push origin HEAD:refs/for/main proposes",
        )),
        Kind::Unknown => Err(refused(
            format!("{name} is neither a branch nor a tag"),
            "git push origin HEAD:main publishes, git push origin HEAD:refs/for/main proposes",
        )),
        Kind::Main | Kind::Propose(_) | Kind::Branch { .. } | Kind::Tag => Ok(()),
    }
}

/// Names that a slip of the pen makes: they would be kept, and the one who pushes would believe to have published. One
/// below `main` would stand in the way of main itself.
fn is_slip(name: &str) -> bool {
    let branch = name
        .strip_prefix("refs/heads/")
        .unwrap_or(name)
        .to_ascii_lowercase();
    branch == "main"
        || branch == "head"
        || ["main/", "for/", "refs/", "origin/"]
            .iter()
            .any(|start| branch.starts_with(start))
}

/// What refuses a push with options that only mean something for a proposal: it would publish what was to be reviewed.
pub fn by_options(options: &[String], proposes: bool) -> Result<(), Refused> {
    let own = |option: &&String| {
        let key = option.split('=').next().unwrap_or_default();
        matches!(key, "topic" | "title" | "proposal")
    };
    match options.iter().find(own) {
        Some(option) if !proposes => Err(refused(
            format!(
                "-o {} belongs to a proposal, and this push publishes",
                option.split('=').next().unwrap_or_default()
            ),
            "git push -o … origin HEAD:refs/for/main proposes; without -o, git push publishes",
        )),
        _ => Ok(()),
    }
}

/// What refuses an update by what the object is: a branch names a commit, a tag leads to one. The commit, else.
pub fn by_object(
    name: &str,
    kind: &Kind,
    commit: Option<String>,
    object: &str,
) -> Result<String, Refused> {
    match commit {
        None => Err(refused(
            format!("what was pushed to {name} is no commit"),
            "push a commit, or a tag of one",
        )),
        Some(commit) if *kind != Kind::Tag && commit != object => Err(refused(
            format!("what was pushed to {name} is a tag, and a branch holds commits"),
            "push the tag's commit: git push origin 'TAG^{commit}:BRANCH'",
        )),
        Some(commit) => Ok(commit),
    }
}

/// What refuses an update of a ref that another push was quicker to move.
pub fn moved_meanwhile(name: &str) -> Refused {
    refused(
        format!(
            "another push moved {} meanwhile",
            name.strip_prefix("refs/heads/").unwrap_or(name)
        ),
        "git pull --rebase, then push",
    )
}

/// What refuses an update of an existing ref by how the new commit follows the old one.
pub fn by_history(name: &str, kind: &Kind, advance: Advance, old: &str) -> Result<(), Refused> {
    let old = old.get(..7).unwrap_or(old);
    match (kind, advance) {
        (Kind::Main, Advance::Rewrites) => Err(refused(
            format!("this push would take {old} and what came with it out of main (a force-push)"),
            "git pull --rebase, then push; to undo a published change: git revert",
        )),
        (Kind::Main, Advance::OtherParent) => Err(refused(
            format!(
                "the first-parent chain of this push leaves out {old}, the tip of main: main was merged into your \
                 branch, and version numbers count along first parents"
            ),
            "git pull --rebase, then push",
        )),
        (Kind::Branch { protected: true }, Advance::Rewrites) => Err(refused(
            format!("{name} is protected: this push would take {old} out of it (a force-push)"),
            "git pull --rebase, then push",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let protected = ["release/*".to_owned(), "stable".to_owned()];
        let check =
            |name: &str, expected: Kind| assert_eq!(kind(name, &protected), expected, "{name}");
        check("refs/heads/main", Kind::Main);
        check("refs/heads/main2", Kind::Branch { protected: false });
        check(
            "refs/heads/refs/heads/main",
            Kind::Branch { protected: false },
        );
        check("refs/heads/release/1", Kind::Branch { protected: true });
        check("refs/heads/stable", Kind::Branch { protected: true });
        check("refs/heads/stable2", Kind::Branch { protected: false });
        check("refs/for/main", Kind::Propose("main".into()));
        check("refs/forx", Kind::Unknown);
        check("refs/tags/v1", Kind::Tag);
        check("refs/proposals/1/head", Kind::Reserved);
        check("refs/cuebook/served", Kind::Reserved);
        check("refs/upstream/heads/main", Kind::Reserved);
        check("refs/notes/commits", Kind::Unknown);
        check("HEAD", Kind::Unknown);
    }

    #[test]
    fn names_and_deletions() {
        let check = |name: &str, deletes: bool, refused: bool| {
            let kind = kind(name, &["stable".to_owned()]);
            assert_eq!(
                by_name(name, &kind, deletes).is_err(),
                refused,
                "{name} {deletes}"
            );
        };
        for (name, update, deletion) in [
            ("refs/heads/main", false, true),
            ("refs/heads/wip", false, false),
            ("refs/heads/stable", false, true),
            ("refs/tags/v1", false, false),
            ("refs/for/main", false, true),
            ("refs/for/other", true, true),
            ("refs/heads/main/x", true, false),
            ("refs/heads/Main", true, false),
            ("refs/heads/HEAD", true, false),
            ("refs/heads/for/main", true, false),
            ("refs/heads/refs/for/main", true, false),
            ("refs/heads/mainline", false, false),
            ("refs/heads/format", false, false),
            ("refs/proposals/7/head", true, true),
            ("refs/cuebook/served", true, true),
            ("refs/notes/x", true, true),
        ] {
            check(name, false, update);
            check(name, true, deletion);
        }
    }

    #[test]
    fn histories() {
        let check = |name: &str, advance: Advance, refused: bool| {
            let kind = kind(name, &["stable".to_owned()]);
            assert_eq!(
                by_history(name, &kind, advance, "0123456789").is_err(),
                refused,
                "{name} {advance:?}"
            );
        };
        for (name, other, rewrites) in [
            ("refs/heads/main", true, true),
            ("refs/heads/stable", false, true),
            ("refs/heads/wip", false, false),
            ("refs/tags/v1", false, false),
        ] {
            check(name, Advance::FirstParent, false);
            check(name, Advance::OtherParent, other);
            check(name, Advance::Rewrites, rewrites);
        }
    }
}
