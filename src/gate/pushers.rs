//! Pushes that are under way over HTTP, and who makes them. A hook says the name of its push, which nobody can guess, and
//! never the name of a person: whoever runs git by path can write any name into its environment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::access::secret::{self, NoRandom};
use crate::access::{Access, By, Denied};

/// Who makes which push.
#[derive(Debug)]
pub struct Pushers {
    access: Arc<Access>,
    under_way: Mutex<HashMap<String, By>>,
}

/// A push that is under way, until this is dropped.
#[derive(Debug)]
pub struct Push {
    pushers: Arc<Pushers>,
    id: String,
}

impl Push {
    /// What its hooks say, in the variable [`super::PUSH`].
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Push {
    fn drop(&mut self) {
        self.pushers.under_way().remove(&self.id);
    }
}

impl Pushers {
    /// Nobody yet.
    pub fn new(access: Arc<Access>) -> Self {
        Self {
            access,
            under_way: Mutex::default(),
        }
    }

    /// Somebody begins to push.
    pub fn begin(self: &Arc<Self>, by: By) -> Result<Push, NoRandom> {
        let id = secret::random()?;
        self.under_way().insert(id.clone(), by);
        Ok(Push {
            pushers: self.clone(),
            id,
        })
    }

    /// Who makes a push, with what they may do now; none where no such push is under way.
    pub(super) fn who(&self, id: &str) -> Option<(By, Result<(), Denied>)> {
        let mut by = self.under_way().get(id).cloned()?;
        match self.access.again(&by.actor, crate::clock::unix_millis()) {
            Ok(now) => {
                by.actor = now;
                Some((by, Ok(())))
            }
            Err(denied) => Some((by, Err(denied))),
        }
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashMap<String, By>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
