//! Commits and refs as a push needs them: how one commit follows another, which refs there are, moving several at once.

use std::collections::HashSet;
use std::path::Path;

use super::process::{git_with, run};
use super::{GitError, Repository, SERVER_EMAIL};

/// How a new tip follows an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// The old tip is on the new one's first-parent chain.
    FirstParent,
    /// The old tip is an ancestor, but not by first parents: somebody merged main into a branch of theirs.
    OtherParent,
    /// The old tip is no ancestor.
    Rewrites,
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The author's name.
    pub author: String,
    /// The author's address.
    pub email: String,
    /// The committer's address.
    pub committer_email: String,
    /// The first line of the message.
    pub subject: String,
    /// The whole message.
    pub message: String,
    /// How many parents it has.
    pub parents: usize,
    /// When it was committed, in seconds since 1970.
    pub seconds: i64,
}

/// A commit that one has and another does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// The commit.
    pub id: String,
    /// Its parents, the first one first.
    pub parents: Vec<String>,
    /// Whether it is on the first-parent chain of the tip.
    pub first_line: bool,
}

/// A ref to be moved, if it still is where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefEdit {
    /// The full name, e.g. `refs/proposals/7/head`.
    pub name: String,
    /// Where it goes.
    pub new: String,
    /// Where it must be now; none where there must be none.
    pub old: Option<String>,
}

impl Repository {
    /// How `new` follows `old`.
    pub fn advance(&self, old: &str, new: &str) -> Result<Advance, GitError> {
        let repository = self.library()?;
        let (old, new) = (git2::Oid::from_str(old)?, git2::Oid::from_str(new)?);
        if old == new {
            return Ok(Advance::FirstParent);
        }
        if !repository.graph_descendant_of(new, old)? {
            return Ok(Advance::Rewrites);
        }
        // only what is new is walked: the chain leaves it at the old tip, or somewhere in the old history
        let mut added = HashSet::new();
        let mut walk = repository.revwalk()?;
        walk.push(new)?;
        walk.hide(old)?;
        for id in walk {
            added.insert(id?);
        }
        let mut at = new;
        while added.contains(&at) {
            match repository.find_commit(at)?.parent_id(0) {
                Ok(parent) => at = parent,
                Err(_) => return Ok(Advance::OtherParent),
            }
        }
        Ok(if at == old {
            Advance::FirstParent
        } else {
            Advance::OtherParent
        })
    }

    /// The commit that an object id names, through tags; none where it names something else.
    pub fn commit_of(&self, id: &str) -> Result<Option<String>, GitError> {
        let repository = self.library()?;
        let object = repository.find_object(git2::Oid::from_str(id)?, None)?;
        Ok(object
            .peel_to_commit()
            .ok()
            .map(|commit| commit.id().to_string()))
    }

    /// What a commit says of itself.
    pub fn facts(&self, commit: &str) -> Result<Facts, GitError> {
        let repository = self.library()?;
        let commit = repository.find_commit(git2::Oid::from_str(commit)?)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let message = text(commit.message_bytes());
        Ok(Facts {
            author: text(commit.author().name_bytes()),
            email: text(commit.author().email_bytes()),
            committer_email: text(commit.committer().email_bytes()),
            subject: message.lines().next().unwrap_or_default().trim().to_owned(),
            message,
            parents: commit.parent_count(),
            seconds: commit.time().seconds(),
        })
    }

    /// Commits that no ref has yet and `tip` would bring, newest first and at most so many, each with its first parent.
    pub fn brought(
        &self,
        tip: &str,
        most: usize,
    ) -> Result<Vec<(String, Option<String>)>, GitError> {
        let repository = self.library()?;
        let mut walk = repository.revwalk()?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::TIME)?;
        walk.push(git2::Oid::from_str(tip)?)?;
        for pattern in ["refs/heads/*", "refs/tags/*", "refs/proposals/*"] {
            walk.hide_glob(pattern)?;
        }
        walk.take(most)
            .map(|id| {
                let commit = repository.find_commit(id?)?;
                let parent = commit.parent_id(0).ok().map(|id| id.to_string());
                Ok((commit.id().to_string(), parent))
            })
            .collect()
    }

    /// Commits that `tip` has and `base` does not, newest first and at most so many; all of them without a base.
    pub fn beyond(
        &self,
        tip: &str,
        base: Option<&str>,
        most: usize,
    ) -> Result<Vec<String>, GitError> {
        let repository = self.library()?;
        let mut walk = repository.revwalk()?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::TIME)?;
        walk.push(git2::Oid::from_str(tip)?)?;
        if let Some(base) = base {
            walk.hide(git2::Oid::from_str(base)?)?;
        }
        walk.take(most).map(|id| Ok(id?.to_string())).collect()
    }

    /// The same with their parents.
    pub fn commits_beyond(
        &self,
        tip: &str,
        base: Option<&str>,
        most: usize,
    ) -> Result<Vec<Beyond>, GitError> {
        let ids = self.beyond(tip, base, most)?;
        let repository = self.library()?;
        let mut line = Some(tip.to_owned());
        ids.into_iter()
            .map(|id| {
                let commit = repository.find_commit(git2::Oid::from_str(&id)?)?;
                let parents: Vec<String> = commit.parent_ids().map(|id| id.to_string()).collect();
                let first_line = line.as_ref() == Some(&id);
                if first_line {
                    line = parents.first().cloned();
                }
                Ok(Beyond {
                    id,
                    parents,
                    first_line,
                })
            })
            .collect()
    }

    /// The second parent of a commit; none where it is no merge.
    pub fn second_parent(&self, commit: &str) -> Result<Option<String>, GitError> {
        let repository = self.library()?;
        let commit = repository.find_commit(git2::Oid::from_str(commit)?)?;
        Ok(commit.parent_id(1).ok().map(|id| id.to_string()))
    }

    /// Paths of files that differ between two commits, in their order and at most so many.
    pub fn differing(&self, old: &str, new: &str, most: usize) -> Result<Vec<String>, GitError> {
        let repository = self.library()?;
        let tree = |commit: &str| repository.find_commit(git2::Oid::from_str(commit)?)?.tree();
        let diff = repository.diff_tree_to_tree(Some(&tree(old)?), Some(&tree(new)?), None)?;
        let paths = diff.deltas().take(most).map(|delta| {
            let path = delta.new_file().path().unwrap_or(Path::new(""));
            path.to_string_lossy().into_owned()
        });
        Ok(paths.collect())
    }

    /// Paths of files that a commit changes against where it left `tip`, in their order and at most so many.
    pub fn changed_since(
        &self,
        tip: &str,
        head: &str,
        most: usize,
    ) -> Result<Vec<String>, GitError> {
        let base = {
            let repository = self.library()?;
            match repository.merge_base(git2::Oid::from_str(tip)?, git2::Oid::from_str(head)?) {
                Ok(base) => base.to_string(),
                Err(error) if error.code() == git2::ErrorCode::NotFound => tip.to_owned(),
                Err(error) => return Err(error.into()),
            }
        };
        self.differing(&base, head, most)
    }

    /// Names of the refs below a prefix whose commits `tip` has.
    pub fn merged(&self, tip: &str, prefix: &str) -> Result<HashSet<String>, GitError> {
        let mut command = git_with(self.path(), &[]);
        command.args([
            "for-each-ref",
            "--format=%(refname)",
            &format!("--merged={tip}"),
            prefix,
        ]);
        let names = run(command, "for-each-ref", b"")?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// The branch that HEAD names, when it has a commit; `master` in a repository made by an older git.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        match self.library()?.head() {
            Ok(head) => Ok(head.shorthand().ok().map(str::to_owned)),
            Err(error)
                if matches!(
                    error.code(),
                    git2::ErrorCode::UnbornBranch | git2::ErrorCode::NotFound
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// How many commits `one` has that `other` does not.
    pub fn ahead(&self, one: &str, other: &str) -> Result<usize, GitError> {
        let repository = self.library()?;
        let (ahead, _) = repository
            .graph_ahead_behind(git2::Oid::from_str(one)?, git2::Oid::from_str(other)?)?;
        Ok(ahead)
    }

    /// Whether two commits have an ancestor in common.
    pub fn related(&self, one: &str, other: &str) -> Result<bool, GitError> {
        let repository = self.library()?;
        match repository.merge_base(git2::Oid::from_str(one)?, git2::Oid::from_str(other)?) {
            Ok(_) => Ok(true),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The refs below a prefix with what they point to, by name.
    pub fn refs(&self, prefix: &str) -> Result<Vec<(String, String)>, GitError> {
        let repository = self.library()?;
        let mut out = Vec::new();
        for reference in repository.references_glob(&format!("{prefix}*"))? {
            let reference = reference?;
            if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                out.push((name.to_owned(), id.to_string()));
            }
        }
        out.sort();
        Ok(out)
    }

    /// Writes settings into the repository's own configuration, where they are not there already.
    pub fn configure(&self, settings: &[(&'static str, String)]) -> Result<(), GitError> {
        let repository = self.library()?;
        let mut config = repository.config()?.open_level(git2::ConfigLevel::Local)?;
        for (key, value) in settings {
            if config.get_string(key).ok().as_ref() != Some(value) {
                config.set_str(key, value)?;
            }
        }
        Ok(())
    }

    /// Moves refs, all or none, each only from where it is said to be; written to disk when it returns.
    pub fn move_refs(&self, edits: &[RefEdit], reason: &str) -> Result<(), GitError> {
        let mut input = String::from("start\n");
        for edit in edits {
            let old = edit.old.as_deref().unwrap_or(NOTHING);
            input.push_str(&format!("update {} {} {old}\n", edit.name, edit.new));
        }
        input.push_str("prepare\ncommit\n");
        let mut command = git_with(self.path(), &[("core.logAllRefUpdates", "true")]);
        command
            .args(["update-ref", "-m", reason, "--stdin"])
            .env("GIT_COMMITTER_NAME", "Cuebook")
            .env("GIT_COMMITTER_EMAIL", SERVER_EMAIL);
        match run(command, "update-ref", input.as_bytes()) {
            Ok(_) => Ok(()),
            Err(GitError::Process { message, .. })
                if message.contains("cannot lock ref")
                    || message.contains("reference already exists") =>
            {
                let names: Vec<&str> = edits.iter().map(|edit| &*edit.name).collect();
                Err(GitError::Moved(names.join(", ")))
            }
            Err(error) => Err(error),
        }
    }
}

/// The object id that stands for no object.
pub const NOTHING: &str = "0000000000000000000000000000000000000000";
