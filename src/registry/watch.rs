//! Notices what changes behind the server's back: file-system events, and a poll for what they miss.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::source::{Library, PARTS};
use super::{Refreshed, Registry};

/// How long events are gathered before a refresh: one notice a publish.
const GATHER: Duration = Duration::from_millis(100);
/// How often a repository's ref is read; it costs 0.05 ms.
const POLL_REF: Duration = Duration::from_millis(700);
/// How often a work tree's files are read where events work.
const POLL_FILES: Duration = Duration::from_secs(15);

impl Registry {
    /// Refreshes on every change until it is cancelled.
    pub async fn watch(self: Arc<Self>, cancel: CancellationToken) {
        let (events, mut woken) = mpsc::channel(1);
        let mut watched = Vec::new();
        let mut watcher: Option<notify::RecommendedWatcher> = None;
        let mut told = false;
        let mut failing: Option<String> = None;
        let rewatch = Arc::new(AtomicBool::new(false));
        loop {
            let present = folders(self.library());
            if rewatch.swap(false, Ordering::SeqCst) || watcher.is_none() || present != watched {
                watched = present;
                watcher = match watcher_of(self.library(), events.clone(), rewatch.clone()) {
                    Ok(watcher) => Some(watcher),
                    Err(error) => {
                        // a folder that is not there now is told by the refresh
                        if root(self.library()).exists() && !std::mem::replace(&mut told, true) {
                            tracing::warn!(%error, "file-system events are not available here; changes are found by polling");
                        }
                        None
                    }
                };
            }
            // also before the first event: for what changed before the watch began
            let registry = Arc::clone(&self);
            let done = tokio::task::spawn_blocking(move || registry.refresh()).await;
            let error = match done {
                Ok(Ok(Refreshed::Swapped | Refreshed::Unchanged)) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(error) => Some(error.to_string()),
            };
            // told once, however often it is tried again
            if error != failing {
                if let Some(error) = &error {
                    tracing::error!("{error}; what was served goes on");
                } else {
                    tracing::info!("the library can be read again");
                }
                failing = error;
            }
            let poll = match self.library() {
                Library::Bare(_) => POLL_REF,
                Library::WorkTree { .. } if watcher.is_none() => Duration::from_secs(1),
                Library::WorkTree { .. } => POLL_FILES,
            };
            let event = tokio::select! {
                () = cancel.cancelled() => return,
                event = woken.recv() => event.is_some(),
                () = tokio::time::sleep(poll) => false,
            };
            if event {
                // the end of a burst, not its beginning: an editor writes a file in several steps
                tokio::time::sleep(GATHER).await;
                while woken.try_recv().is_ok() {}
            }
        }
    }
}

fn root(library: &Library) -> &Path {
    match library {
        Library::Bare(repository) => repository.path(),
        Library::WorkTree { root, .. } => root,
    }
}

/// The watched folders that exist now, and which ones they are: a new one, or one that took the place of another, must
/// be watched too.
fn folders(library: &Library) -> Vec<(PathBuf, u64)> {
    let paths = match library {
        Library::Bare(repository) => vec![repository.path().join("refs")],
        Library::WorkTree { root, .. } => std::iter::once(root.clone())
            .chain(PARTS.iter().map(|part| root.join(part)))
            .collect(),
    };
    paths
        .into_iter()
        .filter_map(|path| {
            let metadata = std::fs::metadata(&path).ok()?;
            metadata.is_dir().then(|| (path, identity(&metadata)))
        })
        .collect()
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> u64 {
    0
}

/// Watches what can change a library: the refs of a bare repository, or the library's parts of a work tree.
///
/// A watch ends with its folder, and a folder made in its place may get the same inode: `rewatch` is set when one comes
/// or goes.
fn watcher_of(
    library: &Library,
    events: mpsc::Sender<()>,
    rewatch: Arc<AtomicBool>,
) -> notify::Result<notify::RecommendedWatcher> {
    let root = root(library);
    let root = root.canonicalize().unwrap_or_else(|_| root.into());
    let bare = matches!(library, Library::Bare(_));
    let base = root.clone();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let matters = if let Ok(event) = event {
            let replaced =
                comes_or_goes(event.kind) && event.paths.iter().any(|p| is_watched(&base, p, bare));
            if replaced {
                rewatch.store(true, Ordering::SeqCst);
            }
            !event.kind.is_access()
                && (replaced
                    || event.paths.is_empty()
                    || event.paths.iter().any(|p| matters(&base, p, bare)))
        } else {
            // events were lost, maybe those of a folder: look
            rewatch.store(true, Ordering::SeqCst);
            true
        };
        if matters {
            // full means that a wake-up waits already
            let _ = events.try_send(());
        }
    })?;
    if bare {
        watcher.watch(&root, RecursiveMode::NonRecursive)?;
        watcher.watch(&root.join("refs"), RecursiveMode::Recursive)?;
    } else {
        watcher.watch(&root, RecursiveMode::NonRecursive)?;
        for part in PARTS {
            let path = root.join(part);
            if path.is_dir()
                && let Err(error) = watcher.watch(&path, RecursiveMode::Recursive)
                // gone meanwhile: the root's watch tells when it is there again
                && path.is_dir()
            {
                return Err(error);
            }
        }
    }
    Ok(watcher)
}

fn comes_or_goes(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
    )
}

/// Whether a path is one of the watched folders themselves.
fn is_watched(base: &Path, path: &Path, bare: bool) -> bool {
    match path.strip_prefix(base) {
        Ok(inner) if inner.as_os_str().is_empty() => true,
        Ok(inner) if bare => inner == Path::new("refs"),
        Ok(inner) => PARTS.iter().any(|part| inner == Path::new(part)),
        Err(_) => false,
    }
}

fn matters(base: &Path, path: &Path, bare: bool) -> bool {
    let Ok(inner) = path.strip_prefix(base) else {
        return true;
    };
    let first = inner
        .components()
        .next()
        .map(|c| PathBuf::from(c.as_os_str()))
        .unwrap_or_default();
    if bare {
        let is_lock = path.extension().is_some_and(|e| e == "lock");
        return !is_lock
            && (first.starts_with("refs")
                || first.starts_with("packed-refs")
                || first.starts_with("HEAD"));
    }
    PARTS.iter().any(|part| first.as_os_str() == *part)
}
