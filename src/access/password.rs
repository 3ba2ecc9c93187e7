//! Passwords: argon2id with the parameters that OWASP gives, off the async threads, few at a time.
//!
//! Source: OWASP Password Storage Cheat Sheet (m = 19 MiB, t = 2, p = 1), NIST SP 800-63B (length, no composition rules).

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use unicode_normalization::UnicodeNormalization as _;

/// Shortest password, in characters.
pub const MIN_CHARS: usize = 12;
/// Longest password, in bytes: what is hashed must not cost more because it is long.
const MAX_BYTES: usize = 1024;
/// Passwords that are hashed at once, 19 MiB each.
const AT_ONCE: usize = 2;
/// Passwords that wait for it; who comes then is told to come again.
const WAITING: usize = 32;
/// What is compared where nobody is known by the name, or has no password: as much work as for one that is.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IGlzIGhlcmU$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a text cannot be a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too few characters.
    #[error("a password has {MIN_CHARS} characters at the least; a few words make a good one")]
    Short,
    /// Too many bytes.
    #[error("a password has {MAX_BYTES} bytes at the most")]
    Long,
    /// It could not be hashed.
    #[error("the password could not be hashed; the server's log says more")]
    Failed,
}

/// Hands out the places at which passwords are hashed and compared.
#[derive(Debug)]
pub struct Passwords {
    queue: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            queue: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Passwords {
    /// Waits for a place; none where too many wait already.
    pub async fn place(&self) -> Option<Place> {
        let queued = self.queue.clone().try_acquire_owned().ok()?;
        let running = self.places.clone().acquire_owned().await.ok()?;
        Some(Place {
            _queued: queued,
            _running: running,
        })
    }
}

/// A place at which one password is hashed or compared. It is free again when that is done, whoever waits for it.
#[derive(Debug)]
pub struct Place {
    _queued: OwnedSemaphorePermit,
    _running: OwnedSemaphorePermit,
}

/// One spelling of what was typed, however the keyboard composes letters.
fn normal(password: &str) -> String {
    password.nfc().collect()
}

impl Place {
    /// What is kept of a password: a PHC string.
    pub async fn hash(self, password: &str) -> Result<String, PasswordError> {
        let password = normal(password);
        if password.chars().count() < MIN_CHARS {
            return Err(PasswordError::Short);
        }
        if password.len() > MAX_BYTES {
            return Err(PasswordError::Long);
        }
        self.run(move || {
            Argon2::default()
                .hash_password(password.as_bytes())
                .map(|hash| hash.to_string())
        })
        .await
        .and_then(|hashed| {
            hashed
                .inspect_err(|error| tracing::error!(%error, "a password could not be hashed"))
                .ok()
        })
        .ok_or(PasswordError::Failed)
    }

    /// Whether a password is the one that `kept` is of; without one it is not, after the same work.
    pub async fn is_right(self, password: &str, kept: Option<&str>) -> bool {
        let password = normal(password);
        if password.len() > MAX_BYTES {
            return false;
        }
        let known = kept.is_some();
        let kept = kept.unwrap_or(NOBODY).to_owned();
        let right = self
            .run(move || {
                Argon2::default()
                    .verify_password(password.as_bytes(), &*kept)
                    .is_ok()
            })
            .await;
        known && right == Some(true)
    }

    async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let run = move || {
            let done = work();
            drop(self);
            done
        };
        tokio::task::spawn_blocking(run).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_right_or_not() {
        let passwords = Passwords::default();
        let place = async || passwords.place().await.unwrap();
        let kept = place().await.hash("correct horse battery").await.unwrap();
        assert!(
            kept.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{kept}"
        );
        assert!(
            place()
                .await
                .is_right("correct horse battery", Some(&kept))
                .await
        );
        assert!(
            !place()
                .await
                .is_right("correct horse batterz", Some(&kept))
                .await
        );
        assert!(!place().await.is_right("correct horse battery", None).await);
        // the same letters, composed and not
        let kept = place().await.hash("비밀번호는 길게 쓰세요").await.unwrap();
        let apart: String = "비밀번호는 길게 쓰세요".nfd().collect();
        assert!(place().await.is_right(&apart, Some(&kept)).await);
        for (text, error) in [
            ("short", PasswordError::Short),
            ("열한글자비밀번호예요오", PasswordError::Short),
            (&*"x".repeat(1025), PasswordError::Long),
        ] {
            assert_eq!(place().await.hash(text).await, Err(error), "{text}");
        }
    }

    #[tokio::test]
    async fn who_comes_when_too_many_wait_is_sent_away() {
        use futures_util::FutureExt as _;
        let passwords = Passwords::default();
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(passwords.place().await.unwrap());
        }
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(passwords.place())).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        assert!(passwords.place().await.is_none());
        drop(waiting);
        drop(held);
        assert!(passwords.place().await.is_some());
    }

    #[test]
    fn nobodys_password_takes_the_work_of_a_real_one() {
        use argon2::Params;
        use argon2::password_hash::phc::PasswordHash;
        let nobody = PasswordHash::new(NOBODY).unwrap();
        let own = Argon2::default();
        let params = Params::try_from(&nobody).unwrap();
        assert_eq!(
            (params.m_cost(), params.t_cost(), params.p_cost()),
            (
                own.params().m_cost(),
                own.params().t_cost(),
                own.params().p_cost()
            )
        );
        assert_eq!(nobody.algorithm.as_str(), "argon2id");
        assert!(nobody.salt.is_some() && nobody.hash.is_some());
    }
}
