//! Legacy sessions: signed, self-describing ids, and the little that is kept in memory about them.
//!
//! An id says who was initialised, when and in which revision, and is signed with the data
//! directory's key, so that it survives a restart with no store. Memory holds only what an id
//! cannot: when it was last used, what it subscribed to, what it was told, and that it was ended.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use lru::LruCache;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use super::clients::Client;
use super::notices::{Subscriptions, Told};
use super::revision::Revision;
use crate::access::{Actor, Kind};
use crate::clock::unix_seconds;

/// How long an id stays good without being used.
pub const IDLE: Duration = Duration::from_hours(24);
/// Sessions about which anything is kept; the one used longest ago goes first.
const KEPT: usize = 50_000;
/// Ended ids that are remembered.
const ENDED: usize = 100_000;
/// Longest text that can be an id.
const MAX_TEXT: usize = 400;

const FORMAT: u8 = 1;
const NONCE: usize = 12;
const TAG: usize = 16;
/// Format, revision, seconds, nonce, length of the client's name.
const HEAD: usize = 1 + 1 + 8 + NONCE + 1;

type Nonce = [u8; NONCE];

/// What an id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The revision that was agreed on.
    pub revision: Revision,
    /// Who initialised it.
    pub client: Client,
    issued: u64,
    nonce: Nonce,
}

/// A session that is in use.
#[derive(Debug, Clone)]
pub struct Session {
    /// What its id says.
    pub identity: Identity,
    /// What is kept about it.
    pub state: Arc<Mutex<State>>,
}

impl Session {
    /// The session of a pipe, which lasts as long as the pipe and needs no id.
    pub fn of_a_pipe(revision: Revision, client: Client, told: Told) -> Self {
        let identity = Identity {
            revision,
            client,
            issued: 0,
            nonce: Nonce::default(),
        };
        Self {
            identity,
            state: Arc::new(Mutex::new(State::new(told))),
        }
    }
}

/// What is kept about a session.
#[derive(Debug)]
pub struct State {
    used: Instant,
    /// Of what it has heard everything: what changed since is still owed.
    pub told: Told,
    /// Subscribed URIs, as they were written, with the hash that was last told; none for no content.
    pub subscriptions: Subscriptions,
    /// Its open streams, newest last; only that one carries notices.
    pub streams: Vec<u64>,
    /// Ends its streams; none until it has one.
    over: Option<CancellationToken>,
}

impl State {
    /// A state that has heard everything up to there.
    pub fn new(told: Told) -> Self {
        Self {
            used: Instant::now(),
            told,
            subscriptions: Subscriptions::new(),
            streams: Vec::new(),
            over: None,
        }
    }

    /// What a stream waits for, lest it outlive the session.
    pub fn over(&mut self) -> CancellationToken {
        self.over.get_or_insert_default().clone()
    }

    /// Counts as use: an id is good for [`IDLE`] from now.
    pub fn touch(&mut self) {
        self.used = Instant::now();
    }
}

/// Locks a state; a panic of another holder leaves nothing half-written in it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives out ids, knows them again, and keeps what must be kept.
#[derive(Debug)]
pub struct Sessions {
    key: [u8; 32],
    started: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    states: LruCache<Nonce, Arc<Mutex<State>>>,
    ended: HashSet<Nonce>,
    ended_order: VecDeque<Nonce>,
}

impl Kept {
    fn keep(&mut self, nonce: Nonce, state: State) -> Arc<Mutex<State>> {
        let state = Arc::new(Mutex::new(state));
        self.states.push(nonce, state.clone());
        if self.states.len() > KEPT
            && let Some((nonce, oldest)) = self.states.pop_lru()
            // A stream holds it: it is in use, whatever its age.
            && Arc::strong_count(&oldest) > 1
        {
            self.states.push(nonce, oldest);
        }
        state
    }
}

impl Sessions {
    /// With the key that signs ids.
    pub fn new(key: [u8; 32]) -> Self {
        Self {
            key,
            started: unix_seconds(),
            kept: Mutex::new(Kept {
                states: LruCache::unbounded(),
                ended: HashSet::new(),
                ended_order: VecDeque::new(),
            }),
        }
    }

    /// A new id for a client, which is good for its actor alone; `told` is what it is about to see.
    pub fn issue(
        &self,
        actor: &Actor,
        revision: Revision,
        client: &Client,
        told: Told,
    ) -> Result<String, getrandom::Error> {
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce)?;
        let identity = Identity {
            revision,
            client: client.clone(),
            issued: unix_seconds(),
            nonce,
        };
        lock(&self.kept).keep(nonce, State::new(told));
        Ok(self.sign(actor, &identity))
    }

    /// The session of an id: none when it is malformed, not ours, another actor's, idle for too long or ended.
    pub fn resume(&self, actor: &Actor, id: &str) -> Option<Session> {
        let identity = self.verify(actor, id)?;
        let mut kept = lock(&self.kept);
        if kept.ended.contains(&identity.nonce) {
            return None;
        }
        if let Some(state) = kept.states.get(&identity.nonce) {
            let state = state.clone();
            drop(kept);
            let mut inside = lock(&state);
            if inside.used.elapsed() > IDLE && inside.streams.is_empty() {
                return None;
            }
            inside.touch();
            drop(inside);
            return Some(Session { identity, state });
        }
        // Nothing is known: it may have been in use until this process began.
        let last = identity.issued.max(self.started);
        if unix_seconds().saturating_sub(last) > IDLE.as_secs() {
            return None;
        }
        // Nor what it was told: it is owed one notice.
        let state = kept.keep(identity.nonce, State::new(Told::default()));
        drop(kept);
        Some(Session { identity, state })
    }

    /// Ends a session: its id is unknown from now on, and its streams close.
    pub fn end(&self, session: &Session) {
        let nonce = session.identity.nonce;
        let mut kept = lock(&self.kept);
        kept.states.pop(&nonce);
        if kept.ended.insert(nonce) {
            kept.ended_order.push_back(nonce);
        }
        if kept.ended_order.len() > ENDED
            && let Some(oldest) = kept.ended_order.pop_front()
        {
            kept.ended.remove(&oldest);
        }
        drop(kept);
        let over = lock(&session.state).over.take();
        if let Some(over) = over {
            over.cancel();
        }
    }

    /// Whether a session was ended.
    pub fn is_ended(&self, session: &Session) -> bool {
        lock(&self.kept).ended.contains(&session.identity.nonce)
    }

    fn mac(&self, actor: &Actor, bytes: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        if actor.kind() == Kind::Local {
            mac.update(b"cuebook mcp session\0");
        } else {
            // an id says nothing of whose it is, and is none of ours where it is another's
            mac.update(b"cuebook mcp session of\0");
            mac.update(actor.name.as_bytes());
            mac.update(b"\0");
        }
        mac.update(bytes);
        Some(mac)
    }

    fn sign(&self, actor: &Actor, identity: &Identity) -> String {
        let name = identity.client.name.as_bytes();
        let version = identity.client.version.as_bytes();
        let mut bytes = Vec::with_capacity(HEAD + name.len() + version.len() + TAG);
        bytes.push(FORMAT);
        bytes.push(identity.revision as u8);
        bytes.extend_from_slice(&identity.issued.to_be_bytes());
        bytes.extend_from_slice(&identity.nonce);
        // A client's name is cut to 64 bytes when it is read.
        bytes.push(u8::try_from(name.len()).unwrap_or(0));
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(version);
        if let Some(mac) = self.mac(actor, &bytes) {
            bytes.extend_from_slice(&mac.finalize().into_bytes()[..TAG]);
        }
        URL_SAFE_NO_PAD.encode(&bytes)
    }

    fn verify(&self, actor: &Actor, id: &str) -> Option<Identity> {
        if id.len() > MAX_TEXT {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(id).ok()?;
        let (signed, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG)?)?;
        self.mac(actor, signed)?.verify_truncated_left(tag).ok()?;
        let (head, rest) = signed.split_at_checked(HEAD)?;
        if head[0] != FORMAT {
            return None;
        }
        let revision = Revision::ALL
            .into_iter()
            .find(|revision| *revision as u8 == head[1])?;
        let issued = u64::from_be_bytes(head[2..10].try_into().ok()?);
        let nonce = head[10..10 + NONCE].try_into().ok()?;
        let (name, version) = rest.split_at_checked(usize::from(head[HEAD - 1]))?;
        let client = Client::new(
            std::str::from_utf8(name).ok()?,
            std::str::from_utf8(version).ok()?,
        );
        Some(Identity {
            revision,
            client,
            issued,
            nonce,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(generation: u64) -> Told {
        Told {
            generation,
            seen: None,
        }
    }

    #[test]
    fn an_id_is_good_for_its_actor_alone() {
        let sessions = sessions();
        let actors = [
            Actor::local(),
            Actor::named("kim"),
            Actor::named("kim2"),
            Actor::named("local"),
            Actor::named(""),
        ];
        for (n, actor) in actors.iter().enumerate() {
            let id = sessions
                .issue(
                    actor,
                    Revision::V2025_11_25,
                    &Client::new("x", "1"),
                    told(1),
                )
                .unwrap();
            for (m, other) in actors.iter().enumerate() {
                let known = sessions.resume(other, &id).is_some();
                assert_eq!(known, n == m, "{actor} {other}");
            }
        }
    }

    fn sessions() -> Sessions {
        Sessions::new([7; 32])
    }

    #[test]
    fn an_id_says_who_and_survives_a_restart() {
        let client = Client::new("클라이언트", "1.2.3");
        let id = sessions()
            .issue(&Actor::local(), Revision::V2025_06_18, &client, told(3))
            .unwrap();
        assert!(id.bytes().all(|b| (0x21..=0x7e).contains(&b)));
        let session = sessions().resume(&Actor::local(), &id).unwrap();
        assert_eq!(session.identity.revision, Revision::V2025_06_18);
        assert_eq!(session.identity.client, client);
        assert_eq!(lock(&session.state).told, Told::default());
    }

    #[test]
    fn what_it_was_told_is_kept() {
        let sessions = sessions();
        let id = sessions
            .issue(
                &Actor::local(),
                Revision::V2025_06_18,
                &Client::default(),
                told(3),
            )
            .unwrap();
        assert_eq!(
            lock(&sessions.resume(&Actor::local(), &id).unwrap().state).told,
            told(3)
        );
    }

    #[test]
    fn nothing_else_is_an_id() {
        let sessions = sessions();
        let id = sessions
            .issue(
                &Actor::local(),
                Revision::V2025_11_25,
                &Client::new("x", "1"),
                told(1),
            )
            .unwrap();
        assert!(
            Sessions::new([8; 32])
                .resume(&Actor::local(), &id)
                .is_none()
        );
        for at in 0..id.len() {
            let mut changed = id.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character may hold bits that do not count; such a text is refused as base64.
            assert!(sessions.resume(&Actor::local(), &changed).is_none(), "{at}");
        }
        for other in ["", "x", "한글", &"A".repeat(1000), &id[1..]] {
            assert!(sessions.resume(&Actor::local(), other).is_none(), "{other}");
        }
    }

    #[test]
    fn an_id_is_good_for_a_day_after_its_last_use() {
        let sessions = sessions();
        let id = sessions
            .issue(
                &Actor::local(),
                Revision::V2025_11_25,
                &Client::default(),
                told(1),
            )
            .unwrap();
        let state = sessions.resume(&Actor::local(), &id).unwrap().state;
        let age = |hours| {
            let ago = Duration::from_hours(hours);
            lock(&state).used = Instant::now().checked_sub(ago).unwrap();
        };
        age(23);
        assert!(sessions.resume(&Actor::local(), &id).is_some());
        age(23);
        assert!(
            sessions.resume(&Actor::local(), &id).is_some(),
            "the use before counted"
        );
        age(25);
        lock(&state).streams.push(1);
        assert!(
            sessions.resume(&Actor::local(), &id).is_some(),
            "an open stream is use"
        );
        age(25);
        lock(&state).streams.clear();
        assert!(sessions.resume(&Actor::local(), &id).is_none());
    }

    #[test]
    fn an_old_id_is_good_for_a_day_after_a_restart() {
        let mut sessions = sessions();
        let identity = Identity {
            revision: Revision::V2025_06_18,
            client: Client::default(),
            issued: unix_seconds() - 7 * 86_400,
            nonce: [1; NONCE],
        };
        let id = sessions.sign(&Actor::local(), &identity);
        assert!(sessions.resume(&Actor::local(), &id).is_some());
        sessions = Sessions {
            started: unix_seconds() - 25 * 3600,
            ..self::sessions()
        };
        assert!(sessions.resume(&Actor::local(), &id).is_none());
    }

    #[test]
    fn an_ended_id_is_unknown() {
        let sessions = sessions();
        let id = sessions
            .issue(
                &Actor::local(),
                Revision::V2025_11_25,
                &Client::default(),
                told(1),
            )
            .unwrap();
        let session = sessions.resume(&Actor::local(), &id).unwrap();
        sessions.end(&session);
        assert!(sessions.is_ended(&session));
        assert!(sessions.resume(&Actor::local(), &id).is_none());
    }
}
