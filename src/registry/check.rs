//! The check of a revision as every command and the server run it: a build whose examples are rendered in their lanes.

use std::io;

use tokio_util::sync::CancellationToken;

use crate::catalog::build::{Built, build};
use crate::catalog::{Catalog, Revision, Tree, Update, examples, update};
use crate::prompt::parse::PromptFile;
use crate::prompt::{Limits, Problem, Prompt};
use crate::workers::{Check, Renderer};

use super::Settings;

/// Builds the catalog of a revision; its examples are rendered in the lanes of their prompts. Blocks.
pub fn check(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
    renderer: &Renderer,
) -> io::Result<Built> {
    let check = renderer.check(CancellationToken::new());
    build(tree, revision, limits, previous, &run(&check))
}

impl Settings {
    /// The same check from the catalog before, with these settings; `check` says what its renders may cost.
    pub(super) fn update(
        &self,
        tree: &dyn Tree,
        revision: Revision,
        previous: Option<&Catalog>,
        check: &Check<'_>,
    ) -> io::Result<Update> {
        update(tree, revision, &self.limits, previous, &run(check))
    }
}

/// How examples are run: in their lanes, on the budget of the check.
pub(super) fn run(
    check: &Check<'_>,
) -> impl Fn(&Prompt, &PromptFile, &Catalog) -> Vec<Problem> + Sync {
    |prompt, file, catalog| {
        let render = &|p: &_, b: &_, r: &_, l: &_| check.render(p, b, r, l);
        examples::run_with(render, prompt, file, catalog)
    }
}
