//! What is served, opened: the data directory with its lock and its session key, or a work tree.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};

use tokio::runtime::Handle;

use super::Serve;
use crate::config::Config;
use crate::git::{self, Repository};
use crate::history::History;
use crate::records::Records;
use crate::registry::source::{Library, PARTS};
use crate::registry::{self, Registry};
use crate::starter::{self, Language};
use crate::store::Store;
use crate::versions;

/// What is served, opened.
pub(super) struct Opened {
    pub(super) registry: Registry,
    pub(super) library: PathBuf,
    pub(super) created: bool,
    pub(super) session_key: [u8; 32],
    /// Where there is one, pushes are taken.
    pub(super) data_dir: Option<PathBuf>,
    /// What was used, delivered and done, where there is a data directory.
    pub(super) records: Option<Arc<Records>>,
    /// The versions that the database held.
    pub(super) kept: Option<History>,
    pub(super) lock: Option<File>,
    /// Why nothing is written, where that is so.
    pub(super) read_only: Option<String>,
}

/// Opens what is to be served; a data directory is made, locked and tidied. Blocks, on a thread of the runtime that may.
pub(super) fn open(
    what: Serve,
    settings: registry::Settings,
    config: &Config,
) -> anyhow::Result<Opened> {
    match what {
        Serve::Watch(root) => {
            let library = Library::find(&root)?;
            if let Library::Bare(_) = library {
                bail!(
                    "{} is a bare repository: it has no files to watch; serve it with --data-dir",
                    root.display()
                );
            }
            Ok(Opened {
                registry: Registry::open(library, settings)?,
                library: root,
                created: false,
                session_key: random_key()?,
                data_dir: None,
                records: None,
                kept: None,
                lock: None,
                read_only: None,
            })
        }
        Serve::DataDir { path, starter } => {
            refuse_library(&path)?;
            std::fs::create_dir_all(&path)
                .with_context(|| format!("cannot make the data directory {}", path.display()))?;
            let library = path.join("library.git");
            let read_only = [&path, &library].into_iter().find(|at| is_read_only(at));
            if let Some(place) = read_only {
                let why = format!(
                    "{} is on a read-only file system, so the library is served as it is, and nothing is published, proposed, \
                     followed or recorded; mount it so that it can be written, and restart the server",
                    place.display()
                );
                return open_read_only(path, why, settings, config);
            }
            let lock = lock(&path)?;
            let created = !library.join("HEAD").exists();
            if created {
                create(&library, starter)?;
            }
            let swept = git::remove_stale(&library, crate::clock::unix_seconds())?;
            if swept.removed > 0 {
                tracing::warn!(
                    removed = swept.removed,
                    "removed locks and unfinished pushes that a killed process had left"
                );
            }
            if swept.kept > 0 {
                tracing::warn!(
                    kept = swept.kept,
                    "git is at work in {}; what it may need was kept, and is looked at again at the next start",
                    library.display()
                );
            }
            let repository = Repository::open(&library)?;
            if repository.read_ref(git::MAIN)?.is_none()
                && let Some(head) = repository.head_branch()?
            {
                bail!(
                    "{} has no main, and what is served is main; its branch is {head}: git -C {} branch -m {head} main",
                    library.display(),
                    crate::gate::install::quoted(&library)
                );
            }
            let settings = registry::Settings {
                remember: true,
                ..settings
            };
            // before the library is read: a label that is served needs the versions, and counting them can take long
            let (records, kept) = Handle::current().block_on(open_records(&path, config));
            let library_of = Library::Bare(repository);
            Ok(Opened {
                registry: Registry::open_from(library_of, settings, kept.clone())?,
                records: Some(records),
                kept,
                session_key: session_key(&path.join("session.key"))?,
                library,
                created,
                data_dir: Some(path),
                lock: Some(lock),
                read_only: None,
            })
        }
    }
}

/// Opens a data directory that cannot be written. Nothing is written then, so no lock is needed, and a server that can
/// write the same directory from another mount is not hindered.
fn open_read_only(
    path: PathBuf,
    why: String,
    settings: registry::Settings,
    config: &Config,
) -> anyhow::Result<Opened> {
    let library = path.join("library.git");
    if !library.join("HEAD").exists() {
        bail!(
            "{} is on a read-only file system and has no library yet, so there is nothing to serve; mount it so that it \
             can be written, or choose another --data-dir",
            path.display()
        );
    }
    tracing::error!("{why}");
    let repository = Repository::open(&library)?;
    Ok(Opened {
        registry: Registry::open(Library::Bare(repository), settings)?,
        library,
        created: false,
        // without the stored one, sessions end with this process
        session_key: stored_key(&path.join("session.key")).map_or_else(random_key, Ok)?,
        records: Some(Arc::new(Records::read_only(
            &path,
            why.clone(),
            config.records(),
        ))),
        kept: None,
        data_dir: Some(path),
        lock: None,
        read_only: Some(why),
    })
}

/// Whether a file system is mounted read-only. What merely has other permissions is not: that is an operator's slip.
#[cfg(unix)]
fn is_read_only(path: &Path) -> bool {
    use rustix::fs::StatVfsMountFlags;
    rustix::fs::statvfs(path).is_ok_and(|at| at.f_flag.contains(StatVfsMountFlags::RDONLY))
}

#[cfg(not(unix))]
fn is_read_only(_: &Path) -> bool {
    false
}

/// A library itself is no place for a data directory: its clone would get a second repository inside, and not be served.
fn refuse_library(path: &Path) -> anyhow::Result<()> {
    let has = |name: &str| path.join(name).exists();
    if has("library.git") {
        return Ok(());
    }
    let shown = path.display();
    if has("HEAD") && has("objects") {
        bail!(
            "{shown} is a library itself (a bare repository), not a data directory; move it to DIR/library.git and serve \
             it with --data-dir DIR, or choose another --data-dir"
        );
    }
    if let Some(part) = std::iter::once(".git").chain(PARTS).find(|part| has(part)) {
        bail!(
            "{shown} is a library itself (it holds {part}), not a data directory; serve it with --watch {shown}, or choose \
             another --data-dir"
        );
    }
    Ok(())
}

/// How long a lock is waited for: a hook looks whether it is held, and a child of a server that was killed holds it until
/// it has become git.
const LOCKING: std::time::Duration = std::time::Duration::from_secs(1);

/// One process for each data directory.
fn lock(path: &Path) -> anyhow::Result<File> {
    let file = path.join("lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&file)
        .with_context(|| {
            format!(
                "cannot write in the data directory {dir}: {} must be a file that the user who runs cuebook may write (chown -R \
                 that user {dir}, or chmod u+w the file)",
                file.display(),
                dir = path.display()
            )
        })?;
    let started = std::time::Instant::now();
    let mut locked = lock.try_lock();
    while matches!(locked, Err(std::fs::TryLockError::WouldBlock)) && started.elapsed() < LOCKING {
        std::thread::sleep(std::time::Duration::from_millis(20));
        locked = lock.try_lock();
    }
    match locked {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => {
            bail!(
                "another cuebook serves {}; stop it, or choose another --data-dir",
                path.display()
            )
        }
        Err(std::fs::TryLockError::Error(error)) => {
            Err(error).context("cannot lock the data directory")
        }
    }
}

/// Makes the bare repository under another name first, so that a failure leaves nothing half done.
fn create(library: &Path, starter: Option<Language>) -> anyhow::Result<()> {
    let temporary = library.with_extension("git.new");
    if temporary.exists() {
        std::fs::remove_dir_all(&temporary)?;
    }
    git::init(&temporary, true)?;
    if let Some(language) = starter {
        let files = starter::files(language);
        git::import_commit(
            &temporary,
            &files,
            language.commit_message(),
            crate::clock::unix_seconds(),
        )?;
    }
    std::fs::rename(&temporary, library).context("cannot put the new library in its place")?;
    Ok(())
}

fn random_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(key)
}

fn stored_key(path: &Path) -> Option<[u8; 32]> {
    std::fs::read(path).ok()?.try_into().ok()
}

/// The key that signs session ids; made once, readable by the owner alone.
fn session_key(path: &Path) -> anyhow::Result<[u8; 32]> {
    if let Some(key) = stored_key(path) {
        return Ok(key);
    }
    let key = random_key()?;
    let temporary = path.with_extension("key.new");
    let mut options = File::options();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options
        .open(&temporary)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    file.write_all(&key)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    Ok(key)
}

/// Opens the database and reads the versions it holds. What is served needs neither: without it nothing is proposed or
/// recorded, versions are counted from git, and the rest goes on.
async fn open_records(data_dir: &Path, config: &Config) -> (Arc<Records>, Option<History>) {
    let database = data_dir.join("cuebook.db");
    let opened = Store::open(&database).await;
    let mut kept = None;
    let store = match opened {
        Ok(store) => {
            if let Some(mended) = store.mended() {
                tracing::error!("{mended}");
            }
            match versions::load(&store).await {
                Ok(history) => kept = history,
                Err(error) => tracing::error!(%error, "the kept versions could not be read"),
            }
            Ok(store)
        }
        Err(error) => {
            tracing::error!(%error, path = %database.display(), "prompts are served and published, but nothing can be proposed or recorded");
            Err(format!("{}: {error}", database.display()))
        }
    };
    let records = Arc::new(Records::new(data_dir, store, config.records()));
    (records, kept)
}
