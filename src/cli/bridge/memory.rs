//! What the bridge has served and can serve again while the server is away.
//!
//! Lists and the handshake also go into a small file, so that an editor started without the server shows
//! its commands. Rendered prompts never do: they may hold what nobody wants on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lru::LruCache;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::message::is_kept_on_disk;

/// The most lists that are remembered: every method, both eras, and pages.
const MAX_LISTS: usize = 64;
/// The most bytes that all remembered lists have together, in memory and on disk.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// The most rendered prompts that are remembered.
const MAX_PROMPTS: usize = 256;
/// The most bytes that all remembered prompts have together.
const MAX_PROMPT_BYTES: usize = 8 * 1024 * 1024;

/// A remembered result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// The JSON text of `result`.
    pub(super) result: String,
    /// When it was true, in seconds since 1970.
    pub(super) at: u64,
}

/// A list that this client has asked for, to be asked for again after an absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) params: Value,
    /// The result that the client has; nothing where it was told that there is none.
    pub(super) served: Option<String>,
}

/// Results by what was asked; see [`super::message::Message::key`].
#[derive(Debug)]
pub(super) struct Memory {
    lists: BTreeMap<String, Remembered>,
    asked: BTreeMap<String, Asked>,
    prompts: LruCache<String, Remembered>,
    prompt_bytes: usize,
    file: Option<PathBuf>,
    changed: bool,
}

/// The file, in the order in which it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    format: u32,
    replies: BTreeMap<String, Remembered>,
}

/// The only format there is; a file of another is ignored and replaced.
const FORMAT: u32 = 1;

impl Memory {
    /// Starts with what `file` holds; a file that cannot be used is as good as none.
    pub(super) fn open(file: Option<PathBuf>) -> Self {
        let lists = file.as_deref().map(load).unwrap_or_default();
        let prompts = LruCache::new(NonZeroUsize::new(MAX_PROMPTS).unwrap_or(NonZeroUsize::MIN));
        Self {
            lists,
            asked: BTreeMap::new(),
            prompts,
            prompt_bytes: 0,
            file,
            changed: false,
        }
    }

    /// Keeps the result of `method`, which has just been passed to the client.
    pub(super) fn keep(&mut self, method: &str, key: String, result: &str, at: u64) {
        let entry = Remembered {
            result: result.to_owned(),
            at,
        };
        if !is_kept_on_disk(method) {
            self.keep_prompt(key, entry);
            return;
        }
        let changed = self
            .lists
            .get(&key)
            .is_none_or(|old| old.result != entry.result);
        self.lists.insert(key, entry);
        self.changed |= changed;
        while self.lists.len() > MAX_LISTS || bytes(&self.lists) > MAX_LIST_BYTES {
            let oldest = self
                .lists
                .iter()
                .min_by_key(|(_, entry)| entry.at)
                .map(|(key, _)| key.clone());
            match oldest {
                Some(key) => self.lists.remove(&key),
                None => break,
            };
        }
    }

    fn keep_prompt(&mut self, key: String, entry: Remembered) {
        let size = |key: &str, entry: &Remembered| key.len() + entry.result.len();
        if size(&key, &entry) > MAX_PROMPT_BYTES {
            return;
        }
        self.prompt_bytes += size(&key, &entry);
        if let Some((key, old)) = self.prompts.push(key, entry) {
            self.prompt_bytes -= size(&key, &old);
        }
        while self.prompt_bytes > MAX_PROMPT_BYTES {
            match self.prompts.pop_lru() {
                Some((key, old)) => self.prompt_bytes -= size(&key, &old),
                None => break,
            }
        }
    }

    /// Notes that the client has asked for a list and what it was given.
    pub(super) fn note(&mut self, key: String, asked: Asked) {
        if self.asked.len() < MAX_LISTS || self.asked.contains_key(&key) {
            self.asked.insert(key, asked);
        }
    }

    /// Every list that the client has asked for.
    pub(super) fn asked(&self) -> Vec<(String, Asked)> {
        self.asked
            .iter()
            .map(|(key, asked)| (key.clone(), asked.clone()))
            .collect()
    }

    /// The last result for `key`.
    pub(super) fn find(&mut self, key: &str) -> Option<Remembered> {
        self.lists
            .get(key)
            .or_else(|| self.prompts.get(key))
            .cloned()
    }

    /// The newest handshake with whatever revision: a server may answer with another than was asked for.
    pub(super) fn find_handshake(&self) -> Option<Remembered> {
        let handshakes = self
            .lists
            .iter()
            .filter(|(key, _)| key.starts_with("initialize "));
        handshakes
            .max_by_key(|(_, entry)| entry.at)
            .map(|(_, entry)| entry.clone())
    }

    /// What has to be written, once after every change: the file and its lists.
    pub(super) fn take_changes(&mut self) -> Option<(PathBuf, BTreeMap<String, Remembered>)> {
        let file = self.file.clone()?;
        std::mem::take(&mut self.changed).then(|| (file, self.lists.clone()))
    }
}

fn bytes(lists: &BTreeMap<String, Remembered>) -> usize {
    lists
        .iter()
        .map(|(key, entry)| key.len() + entry.result.len())
        .sum()
}

/// The file for a server and a token: who may see what depends on the token.
pub(super) fn file_name(url: &str, token: Option<&str>) -> String {
    let mut hash = Sha256::new();
    hash.update(url.as_bytes());
    hash.update([0]);
    hash.update(token.unwrap_or_default().as_bytes());
    let name = hex(&hash.finalize()[..12]);
    format!("stdio-{name}.json")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

fn load(file: &Path) -> BTreeMap<String, Remembered> {
    match read(file) {
        Ok(stored) if stored.format == FORMAT && bytes(&stored.replies) <= MAX_LIST_BYTES => stored
            .replies
            .into_iter()
            // Whatever else is in the file: only JSON may reach the client.
            .filter(|(_, entry)| {
                serde_json::from_str::<Value>(&entry.result).is_ok_and(|value| value.is_object())
            })
            .take(MAX_LISTS)
            .collect(),
        Ok(_) => BTreeMap::new(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "the cached lists cannot be read; going on without");
            BTreeMap::new()
        }
    }
}

fn read(file: &Path) -> io::Result<Stored> {
    let mut text = Vec::new();
    let limit = 2 * MAX_LIST_BYTES as u64;
    fs::File::open(file)?.take(limit).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Writes the lists: all or nothing, readable by this user alone, keeping what other bridges of this user
/// have stored for the same server.
pub(super) fn save(file: &Path, lists: &BTreeMap<String, Remembered>) -> io::Result<()> {
    let mut replies = load(file);
    for (key, entry) in lists {
        let newer = replies.get(key).is_none_or(|stored| stored.at <= entry.at);
        if newer {
            replies.insert(key.clone(), entry.clone());
        }
    }
    if replies.len() > MAX_LISTS || bytes(&replies) > MAX_LIST_BYTES {
        replies.clone_from(lists);
    }
    let text = serde_json::to_vec(&Stored {
        format: FORMAT,
        replies,
    })?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        builder.mode(0o700);
        options.mode(0o600);
    }
    builder.create(folder)?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let suffix = hex(&random);
    let temporary = file.with_extension(format!("{suffix}.tmp"));
    let written = options
        .open(&temporary)
        .and_then(|mut out| out.write_all(&text).and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::open(None)
    }

    #[test]
    fn lists_and_prompts_are_found_again() {
        let mut memory = memory();
        memory.keep("prompts/list", "prompts/list a ".to_owned(), "{}", 1);
        memory.keep(
            "prompts/get",
            "prompts/get a [x]".to_owned(),
            r#"{"messages":[]}"#,
            2,
        );
        assert_eq!(memory.find("prompts/list a ").unwrap().result, "{}");
        assert_eq!(memory.find("prompts/get a [x]").unwrap().at, 2);
        assert_eq!(memory.find("prompts/get a [y]"), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = memory();
        let big = "x".repeat(MAX_PROMPT_BYTES / 4);
        for n in 0..100 {
            memory.keep("prompts/get", format!("prompts/get {n}"), &big, n);
            memory.keep("tools/list", format!("tools/list {n}"), &big, n);
            assert!(memory.prompt_bytes <= MAX_PROMPT_BYTES);
            assert!(bytes(&memory.lists) <= MAX_LIST_BYTES);
        }
        assert!(memory.find("prompts/get 99").is_some() && memory.find("prompts/get 1").is_none());
        assert!(memory.find("tools/list 99").is_some() && memory.find("tools/list 1").is_none());
        for n in 0..1000 {
            memory.keep("prompts/get", format!("prompts/get {n}"), "{}", n);
            memory.keep("tools/list", format!("tools/list {n}"), "{}", n);
        }
        assert_eq!(
            (memory.prompts.len(), memory.lists.len()),
            (MAX_PROMPTS, MAX_LISTS)
        );
        memory.keep(
            "prompts/get",
            "prompts/get big".to_owned(),
            &"x".repeat(MAX_PROMPT_BYTES),
            0,
        );
        assert!(memory.find("prompts/get big").is_none());
    }

    #[test]
    fn the_same_prompt_again_is_counted_once() {
        let mut memory = memory();
        for n in 0..10 {
            memory.keep("prompts/get", "prompts/get x".to_owned(), "{}", n);
        }
        assert_eq!(memory.prompt_bytes, "prompts/get x{}".len());
    }

    #[test]
    fn the_file_keeps_lists_and_no_prompts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder
            .path()
            .join("cuebook")
            .join(file_name("http://x/mcp", None));
        let mut memory = Memory::open(Some(file.clone()));
        assert!(memory.take_changes().is_none());
        memory.keep(
            "initialize",
            "initialize 2025-11-25".to_owned(),
            r#"{"a":1}"#,
            1,
        );
        memory.keep(
            "prompts/get",
            "prompts/get x".to_owned(),
            r#"{"secret":1}"#,
            1,
        );
        let (path, lists) = memory.take_changes().unwrap();
        save(&path, &lists).unwrap();
        assert!(memory.take_changes().is_none());

        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("secret"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        // Nothing else is left in the folder.
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        let again = Memory::open(Some(file));
        assert_eq!(again.find_handshake().unwrap().result, r#"{"a":1}"#);
    }

    #[test]
    fn bridges_of_one_server_share_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        let entry = |result: &str, at| Remembered {
            result: result.to_owned(),
            at,
        };
        save(
            &file,
            &BTreeMap::from([("tools/list a ".to_owned(), entry("{}", 5))]),
        )
        .unwrap();
        let mine = BTreeMap::from([
            ("tools/list a ".to_owned(), entry(r#"{"old":1}"#, 4)),
            ("tools/list b ".to_owned(), entry("{}", 4)),
        ]);
        save(&file, &mine).unwrap();
        let mut memory = Memory::open(Some(file));
        assert_eq!(memory.find("tools/list a ").unwrap().result, "{}");
        assert!(memory.find("tools/list b ").is_some());
    }

    #[test]
    fn a_bad_file_is_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        for text in ["", "{", "[]", r#"{"format":2,"replies":{}}"#, "\u{0}"] {
            fs::write(&file, text).unwrap();
            assert!(Memory::open(Some(file.clone())).lists.is_empty());
        }
        let evil = r#"{"format":1,"replies":{"tools/list a ":{"result":"1}\n{","at":1}}}"#;
        fs::write(&file, evil).unwrap();
        assert!(Memory::open(Some(file)).lists.is_empty());
        assert!(
            Memory::open(Some(folder.path().to_owned()))
                .lists
                .is_empty()
        );
    }

    #[test]
    fn the_file_depends_on_server_and_token() {
        let names = [
            file_name("http://x/mcp", None),
            file_name("http://y/mcp", None),
            file_name("http://x/mcp", Some("a")),
            file_name("http://x/mcp", Some("b")),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), 4);
        assert!(
            names.iter().all(|name| !name.contains(['/', ':'])),
            "{names:?}"
        );
    }
}
