//! Prompts as another commit has them, in this library: what `name@v3` and labels serve.

use std::sync::Arc;

use crate::prompt::Prompt;
use crate::prompt::closure::{self, Partials};
use crate::prompt::parse;
use crate::prompt::problem::{Problem, Severity};

use super::examples::RunExamples;
use super::prompts::check_prompt;
use super::tree::{Entry, EntryKind};
use super::work::withhold;
use super::{Catalog, library};

/// The files of one version of a prompt.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The prompt's stored bytes.
    pub prompt: Vec<u8>,
    /// The partials it includes, by path.
    pub partials: Vec<(Arc<str>, Vec<u8>)>,
}

impl Catalog {
    /// The version that a label gives a prompt; whether there is such a version is for the history to say.
    pub fn label(&self, label: &str, name: &str) -> Option<u64> {
        let labels = &self.parts.labels.as_ref()?.1;
        labels.get(label)?.get(name).map(|(number, _)| *number)
    }

    /// Whether `labels.toml` has a label.
    pub fn knows_label(&self, label: &str) -> bool {
        let labels = self.parts.labels.as_ref();
        labels.is_some_and(|labels| labels.1.contains_key(label))
    }

    /// Every label with the prompts it is on and their versions, sorted.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let labels = self.parts.labels.as_deref();
        labels.into_iter().flat_map(|labels| {
            labels.1.iter().flat_map(|(label, entries)| {
                entries
                    .iter()
                    .map(|(name, (number, _))| (label.as_str(), name.as_str(), *number))
            })
        })
    }

    /// What is wrong with the labels given how many versions each prompt has.
    pub fn check_label_versions(&self, latest: impl Fn(&str) -> u64) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(labels) = &self.parts.labels {
            library::check_label_versions(&labels.0, &labels.1, latest, &mut problems);
        }
        problems
    }

    /// The problem that a version a label is on does not pass.
    pub fn label_fails(&self, label: &str, name: &str, first: &Problem) -> Problem {
        let number = self.label(label, name).unwrap_or_default();
        let message = format!(
            "label `{label}` serves `{name}` v{number}, which does not pass the check: {}",
            first.one_line()
        );
        let hint = "put the label on a version that does, or bring back what it needs".to_owned();
        let labels = self.parts.labels.as_deref();
        let place = labels.and_then(|labels| {
            let (_, span) = labels.1.get(label)?.get(name)?;
            Some((&labels.0, span.clone()))
        });
        match place {
            Some((source, span)) => source.problem(
                Severity::Error,
                library::LABEL_FAILS,
                span,
                message,
                Some(hint),
            ),
            None => Problem::whole(
                Severity::Error,
                library::LABEL_FAILS,
                &"labels.toml".into(),
                message,
                Some(hint),
            ),
        }
    }

    /// A prompt with the files of another version, under its name and folder of today, checked against the resources and
    /// values of this library; every error when it does not pass.
    pub fn versioned(
        &self,
        path: &Arc<str>,
        files: &Files,
        run_examples: RunExamples<'_>,
    ) -> Result<Arc<Prompt>, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut partials = Partials::default();
        for (path, bytes) in &files.partials {
            let read = parse::partial(path, bytes, &self.limits, &mut problems);
            if let Some(mut partial) = read {
                closure::compile_partial(&partial, &mut problems);
                partial.sound &= withhold(path, bytes, &mut problems);
                partials.insert_mut(partial.name.clone(), Arc::new(partial));
            }
        }
        let entry = Entry {
            path: path.clone(),
            id: [0; 20],
            kind: EntryKind::File,
            size: Some(files.prompt.len() as u64),
        };
        let limit = self.limits.prompt_file_bytes;
        if files.prompt.len() > limit {
            problems.push(Problem::whole(
                Severity::Error,
                "file-size",
                path,
                format!(
                    "the file is {} bytes; at most {limit} are read (prompt_file_bytes)",
                    files.prompt.len()
                ),
                None,
            ));
            return Err(problems);
        }
        let (prompt, found) = check_prompt(&entry, &files.prompt, &partials, self, run_examples);
        problems.extend(found);
        let clean = withhold(path, &files.prompt, &mut problems);
        problems.retain(Problem::is_error);
        match prompt {
            Some(prompt) if clean && problems.is_empty() => Ok(prompt),
            _ => Err(problems),
        }
    }

    /// The same catalog with other prompts in the place of some, or without them.
    #[must_use]
    pub fn with_prompts(
        &self,
        others: impl IntoIterator<Item = (Arc<str>, Option<Arc<Prompt>>)>,
    ) -> Self {
        let mut out = self.clone();
        for (name, prompt) in others {
            if let Some(old) = out.by_name.get(&*name).cloned() {
                out.unlist(&old);
            }
            if let Some(prompt) = prompt {
                out.list_prompt(&prompt);
            }
        }
        out
    }

    /// A hash over what the check of a prompt rests on besides its own files: resources, families and values files.
    pub fn surroundings(&self) -> Arc<str> {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for (scheme, state) in &self.scheme_hashes {
            hash.update(scheme.as_bytes());
            hash.update(state.bytes());
        }
        for family in self.families() {
            hash.update([0]);
            hash.update(family.template.as_bytes());
        }
        let mut values: Vec<&Arc<str>> = self.values.keys().collect();
        values.sort();
        for name in values {
            hash.update([1]);
            hash.update(name.as_bytes());
        }
        parse::hex(&hash.finalize())
    }

    /// The label that is served by default, and whether prompts without it are hidden; none where latest is served.
    pub fn serves(&self) -> Option<(&str, bool)> {
        let label = self.library.serve.as_deref()?;
        Some((label, self.library.hide_unlabelled))
    }

    /// Labels that not everyone may move.
    pub fn protected_labels(&self) -> &[String] {
        &self.library.protected_labels
    }
}
