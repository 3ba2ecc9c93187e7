//! The check of a revision as every command and the server run it: a build whose examples are rendered in their lanes.

use std::io;

use crate::catalog::build::{Built, build};
use crate::catalog::{Catalog, Revision, Tree, Update, examples, update};
use crate::prompt::parse::PromptFile;
use crate::prompt::{Limits, Problem, Prompt};
use crate::workers::Renderer;

use super::Settings;

/// Builds the catalog of a revision; its examples are rendered in the lanes of their prompts. Blocks.
pub fn check(
    tree: &dyn Tree,
    revision: Revision,
    limits: &Limits,
    previous: Option<&Catalog>,
    renderer: &Renderer,
) -> io::Result<Built> {
    build(tree, revision, limits, previous, &run(renderer))
}

impl Settings {
    /// The same check from the catalog before, with these settings.
    pub(super) fn update(
        &self,
        tree: &dyn Tree,
        revision: Revision,
        previous: Option<&Catalog>,
    ) -> io::Result<Update> {
        update(tree, revision, &self.limits, previous, &run(&self.renderer))
    }
}

/// How examples are run: with a renderer.
pub(super) fn run(
    renderer: &Renderer,
) -> impl Fn(&Prompt, &PromptFile, &Catalog) -> Vec<Problem> + Sync {
    |prompt, file, catalog| {
        let render = &|p: &_, b: &_, r: &_, l: &_| renderer.render_for_build(p, b, r, l);
        examples::run_with(render, prompt, file, catalog)
    }
}
