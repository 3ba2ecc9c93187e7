//! What a killed process has left in a repository, and whether a living one still needs it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long git processes that still run are waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Age from which something is left over although git runs there, in seconds: no push pauses so long.
const OLD_BESIDE_GIT: u64 = 3600;
/// The same where nobody can say whether git runs.
const OLD: u64 = 60;

/// What a sweep did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Files and folders that were removed.
    pub removed: usize,
    /// What was kept, because a git process that runs may need it.
    pub kept: usize,
}

/// Removes locks and half-received objects that a killed process left behind. Only for whoever holds the data
/// directory's lock. A git process that outlived its server is waited for; what it may still need stays.
pub fn remove_stale(repository: &Path, now_seconds: u64) -> std::io::Result<Swept> {
    remove_within(repository, now_seconds, PATIENCE)
}

fn remove_within(
    repository: &Path,
    now_seconds: u64,
    patience: Duration,
) -> std::io::Result<Swept> {
    let repository = repository.canonicalize()?;
    let started = Instant::now();
    loop {
        // first what is there, then who runs: what is listed here and used by nobody then is used by nobody later
        let found = leftovers(&repository)?;
        if found.is_empty() {
            return Ok(Swept::default());
        }
        let least = match at_work(&repository) {
            Some(false) => 0,
            Some(true) if started.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            Some(true) => OLD_BESIDE_GIT,
            None => OLD,
        };
        let mut swept = Swept::default();
        for path in found {
            if least > 0 && now_seconds.saturating_sub(written(&path)) < least {
                swept.kept += 1;
                continue;
            }
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            match removed {
                Ok(()) => swept.removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        return Ok(swept);
    }
}

/// Removes the folders of pushes that have ended without being accepted, when no git is seen to run in the repository: a
/// receive-pack that dies while its child still writes cannot remove them itself. May be called while serving; with the
/// time now, in seconds since 1970, what was written in the last minute stays, for a push from another container is not
/// seen.
pub fn remove_unfinished(repository: &Path, now_seconds: Option<u64>) -> std::io::Result<usize> {
    let repository = repository.canonicalize()?;
    let found = unfinished(&repository)?;
    if found.is_empty() || at_work(&repository) != Some(false) {
        return Ok(0);
    }
    let mut removed = 0;
    for path in &found {
        if now_seconds.is_some_and(|now| now.saturating_sub(written(path)) < OLD) {
            continue;
        }
        match std::fs::remove_dir_all(path) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

/// Folders of pushes that are not accepted yet, or never were.
fn unfinished(repository: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in entries(&repository.join("objects"))? {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("tmp_objdir-incoming-")
        {
            out.push(entry.path());
        }
    }
    Ok(out)
}

/// Locks of refs and of the repository's own files, and folders of unfinished pushes.
fn leftovers(repository: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut folders = vec![repository.join("refs")];
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder)? {
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if is_lock(&entry.path()) {
                out.push(entry.path());
            }
        }
    }
    for entry in entries(repository)? {
        // git makes packed-refs.new only where there is none
        if is_lock(&entry.path()) || entry.file_name() == "packed-refs.new" {
            out.push(entry.path());
        }
    }
    out.extend(unfinished(repository)?);
    Ok(out)
}

/// The entries of a folder; none where it has just gone.
fn entries(folder: &Path) -> std::io::Result<Vec<std::fs::DirEntry>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "lock")
}

/// When anything in it was last written, in seconds since 1970; the far future where that cannot be said.
fn written(path: &Path) -> u64 {
    let mut newest = 0;
    let mut paths = vec![path.to_path_buf()];
    while let Some(path) = paths.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let modified = metadata.modified().ok();
        let seconds = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        newest = newest.max(seconds.map_or(u64::MAX, |seconds| seconds.as_secs()));
        if metadata.is_dir() {
            paths.extend(
                entries(&path)
                    .unwrap_or_default()
                    .iter()
                    .map(std::fs::DirEntry::path),
            );
        }
    }
    newest
}

/// Whether a process that may write works in the repository; none where nobody can say.
#[cfg(target_os = "linux")]
fn at_work(repository: &Path) -> Option<bool> {
    let me = std::process::id().to_string();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let is_process = name
            .to_str()
            .is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()) && name != me);
        // a process of somebody else cannot be looked at, and cannot write here
        let works_here = is_process
            && std::fs::read_link(entry.path().join("cwd"))
                .is_ok_and(|folder| folder.starts_with(repository));
        if works_here && !only_reads(&entry.path()) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(not(target_os = "linux"))]
fn at_work(_: &Path) -> Option<bool> {
    None
}

/// Whether a process is one of a clone or fetch, which locks nothing and may last long.
#[cfg(target_os = "linux")]
fn only_reads(process: &Path) -> bool {
    let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let mut words = command.split('\0');
    words.any(|word| matches!(word, "upload-pack" | "git-upload-pack" | "pack-objects"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like a repository, with one thing of each kind that a killed process leaves, and files that stay.
    fn repository() -> (tempfile::TempDir, Vec<&'static str>, Vec<&'static str>) {
        let folder = tempfile::tempdir().unwrap();
        let stale = vec![
            "refs/heads/main.lock",
            "refs/proposals/1/head.lock",
            "packed-refs.lock",
            "packed-refs.new",
            "HEAD.lock",
            "config.lock",
            "objects/tmp_objdir-incoming-x",
        ];
        let stays = vec![
            "refs/heads/main",
            "packed-refs",
            "HEAD",
            "objects/pack/p.pack",
        ];
        for path in stale.iter().chain(&stays) {
            let path = folder.path().join(path);
            let path = if path.to_string_lossy().contains("incoming") {
                path.join("pack/tmp_pack")
            } else {
                path
            };
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        (folder, stale, stays)
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let (folder, stale, stays) = repository();
        let there = |path: &&str| folder.path().join(path).exists();
        if cfg!(target_os = "linux") {
            let swept = remove_stale(folder.path(), written(folder.path())).unwrap();
            assert_eq!((swept.removed, swept.kept), (stale.len(), 0));
            assert!(!stale.iter().any(there));
        }
        assert!(stays.iter().all(there));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_still_works_there_is_waited_for() {
        let (folder, stale, _) = repository();
        let mut writer = std::process::Command::new("sh")
            .args(["-c", "read line; rm ../refs/heads/main.lock"])
            .stdin(std::process::Stdio::piped())
            .current_dir(folder.path().join("objects"))
            .spawn()
            .unwrap();
        let repository = folder.path().canonicalize().unwrap();
        let now = written(&repository);
        assert_eq!(at_work(&repository), Some(true));
        assert_eq!(remove_unfinished(&repository, None).unwrap(), 0);
        let kept = remove_within(&repository, now, Duration::ZERO).unwrap();
        assert_eq!((kept.removed, kept.kept), (0, stale.len()));
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let old = std::fs::File::options()
            .write(true)
            .open(repository.join("HEAD.lock"))
            .unwrap();
        old.set_modified(long_ago).unwrap();
        let kept = remove_within(&repository, now, Duration::ZERO).unwrap();
        assert_eq!(
            (kept.removed, kept.kept),
            (1, stale.len() - 1),
            "nobody holds a lock for so long"
        );

        let path = repository.clone();
        let sweeping = std::thread::spawn(move || remove_stale(&path, now).unwrap());
        drop(writer.stdin.take());
        writer.wait().unwrap();
        // the process has removed its lock itself
        assert_eq!(
            sweeping.join().unwrap(),
            Swept {
                removed: stale.len() - 2,
                kept: 0
            }
        );
        assert_eq!(at_work(&repository), Some(false));
        std::fs::create_dir_all(repository.join("objects/tmp_objdir-incoming-y/pack")).unwrap();
        std::fs::write(repository.join("HEAD.lock"), "x").unwrap();
        assert_eq!(
            remove_unfinished(&repository, Some(written(&repository))).unwrap(),
            0
        );
        assert_eq!(remove_unfinished(&repository, None).unwrap(), 1);
        assert!(
            repository.join("HEAD.lock").exists(),
            "the server itself may hold a lock"
        );
    }
}
