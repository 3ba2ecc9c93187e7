//! The token of forms: a page of another site can send a form here, but cannot know this.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of the proof that are kept.
const PROOF: usize = 16;

/// Makes tokens and checks them; the key is of this process.
#[derive(Clone)]
pub struct Csrf {
    key: [u8; 32],
}

impl std::fmt::Debug for Csrf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Csrf")
    }
}

impl Default for Csrf {
    fn default() -> Self {
        let mut key = [0; 32];
        // without randomness nothing is checked as good: see `proof`
        if getrandom::fill(&mut key).is_err() {
            key = [0; 32];
        }
        Self { key }
    }
}

impl Csrf {
    /// The token for a session (`local` where there is none). It looks another way each time, so that a compressed page
    /// tells nobody what it is.
    pub fn token(&self, session: &str) -> String {
        let proof = self.proof(session);
        let mut mask = [0; PROOF];
        if getrandom::fill(&mut mask).is_err() {
            return String::new();
        }
        let masked = proof.iter().zip(mask).map(|(proof, mask)| proof ^ mask);
        let bytes: Vec<u8> = mask.iter().copied().chain(masked).collect();
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Whether a form of this session's pages sent it.
    pub fn is_good(&self, session: &str, token: &str) -> bool {
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else {
            return false;
        };
        if bytes.len() != 2 * PROOF || self.key == [0; 32] {
            return false;
        }
        let (mask, masked) = bytes.split_at(PROOF);
        let proof = self.proof(session);
        let wrong = mask
            .iter()
            .zip(masked)
            .zip(proof)
            .fold(0, |wrong, ((mask, masked), proof)| {
                wrong | (mask ^ masked ^ proof)
            });
        wrong == 0
    }

    fn proof(&self, session: &str) -> [u8; PROOF] {
        let mut proof = [0; PROOF];
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) {
            mac.update(b"form\0");
            mac.update(session.as_bytes());
            let made = mac.finalize().into_bytes();
            proof.copy_from_slice(&made[..PROOF]);
        }
        proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_its_session_alone() {
        let csrf = Csrf::default();
        let token = csrf.token("a");
        assert!(csrf.is_good("a", &token));
        assert_ne!(token, csrf.token("a"), "it looks another way each time");
        assert!(!csrf.is_good("b", &token));
        assert!(!Csrf::default().is_good("a", &token));
        for wrong in ["", "AAAA", "!", &token[1..], &format!("{token}A")] {
            assert!(!csrf.is_good("a", wrong), "{wrong}");
        }
    }
}
