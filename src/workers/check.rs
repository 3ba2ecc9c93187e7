//! What the renders of one check may cost together, and whether anybody still waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Done, Renderer};
use crate::prompt::render::{RenderError, Rendered, ResolvedResources, Stopped};
use crate::prompt::{BoundArguments, Limits, Prompt};

/// The renders of one check. They are charged together, whichever prompt they are of.
#[derive(Debug)]
pub struct Check<'a> {
    renderer: &'a Renderer,
    /// None for what was checked once already.
    budget: Option<Duration>,
    cancel: CancellationToken,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    all: Duration,
    /// By the path of the prompt.
    each: HashMap<Arc<str>, Duration>,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        renderer: &'a Renderer,
        budget: Option<Duration>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            renderer,
            budget,
            cancel,
            spent: Mutex::default(),
        }
    }

    /// Renders as a check does; an error that is no verdict on the prompt when nobody waits any more, and one that names
    /// what was spent when that is all there was. Blocks.
    pub fn render(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
    ) -> Result<Rendered, RenderError> {
        if self.cancel.is_cancelled() {
            return Err(Stopped::GivenUp.into());
        }
        if let Some(over) = self.over() {
            return Err(over.into());
        }
        let Done { rendered, cpu } =
            self.renderer
                .render_for_build(prompt, bound, resources, limits, &self.cancel);
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.all += cpu;
        *spent.each.entry(prompt.path.clone()).or_default() += cpu;
        rendered
    }

    /// Whether nothing is left, so that a prompt that needs a render cannot pass.
    pub fn is_spent(&self) -> bool {
        self.over().is_some()
    }

    fn over(&self) -> Option<Stopped> {
        let budget = self.budget?;
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.all < budget {
            return None;
        }
        // of two alike the first by path, so that the same push is told the same
        let most = |a: &(&Arc<str>, &Duration), b: &(&Arc<str>, &Duration)| {
            a.1.cmp(b.1).then_with(|| b.0.cmp(a.0))
        };
        let (prompt, used) = spent.each.iter().max_by(most)?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Some(Stopped::Check {
            used_ms: millis(spent.all),
            limit_ms: millis(budget),
            prompt: prompt.to_string(),
            prompt_ms: millis(*used),
        })
    }
}
