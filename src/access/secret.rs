//! What is shown once and kept as a hash: tokens, the cookies of sessions, the code of the first admin.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Letters and digits, none of which looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// What every token of Cuebook begins with, so that scanners for leaked secrets find one.
pub const TOKEN_START: &str = "cbk_";
/// Characters of a token's prefix after that.
const PREFIX_CHARS: usize = 8;

/// A new secret, shown once.
pub struct Secret {
    /// The secret itself.
    pub text: String,
    /// The part of it that may be shown and stored.
    pub prefix: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// The system gives no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers: {0}")]
pub struct NoRandom(#[from] getrandom::Error);

/// A new token: `cbk_`, eight letters and digits by which it is known, `_`, and 256 random bits.
pub fn token() -> Result<Secret, NoRandom> {
    let mut id = [0; PREFIX_CHARS];
    getrandom::fill(&mut id)?;
    let id: String = id
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte % 32)]))
        .collect();
    let prefix = format!("{TOKEN_START}{id}");
    Ok(Secret {
        text: format!("{prefix}_{}", random()?),
        prefix,
    })
}

/// 256 random bits as text.
pub fn random() -> Result<String, NoRandom> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// What is kept of a secret. A fast hash is enough for 256 random bits, and nobody is helped by how long it takes to find
/// one in a table of hashes: what can be learned so is a hash, and no secret.
pub fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_prefix_and_never_the_same() {
        let (one, two) = (token().unwrap(), token().unwrap());
        assert!(one.text.starts_with(&format!("{}_", one.prefix)));
        assert_eq!(one.prefix.len(), TOKEN_START.len() + PREFIX_CHARS);
        assert_eq!(one.text.len(), one.prefix.len() + 1 + 43);
        assert_ne!(one.text, two.text);
        assert_ne!(hash(&one.text), hash(&two.text));
        assert!(!format!("{one:?}").contains(&one.text));
    }
}
