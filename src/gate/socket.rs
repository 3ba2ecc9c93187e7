//! The server's side: a Unix socket on which hooks ask.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gate;
use super::wire::{Answer, MAX_LINE, Question};

/// The file of the data directory that says where the socket is.
pub const ADDRESS_FILE: &str = "hook.socket.path";
/// Longest path of a socket: `sun_path` has 108 bytes on Linux, 104 on macOS, the last one a zero.
const MAX_PATH: usize = 103;

/// Time for the question of a hook.
const ASKING: std::time::Duration = std::time::Duration::from_secs(10);

/// A bound socket; it is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// A folder of its own, where the data directory's path is too long for a socket.
    folder: Option<PathBuf>,
}

impl Socket {
    /// Binds the socket of a data directory, which the caller has locked, and writes down where it is.
    pub fn bind(data_dir: &Path, temporary: &Path) -> std::io::Result<Self> {
        let data_dir = data_dir.canonicalize()?;
        let mut path = data_dir.join("hook.socket");
        let mut folder = None;
        if path.as_os_str().len() > MAX_PATH {
            let name = format!(
                "cuebook-{:016x}",
                getrandom::u64().map_err(std::io::Error::other)?
            );
            let short = temporary.join(name);
            private_folder(&short)?;
            path = short.join("hook.socket");
            folder = Some(short);
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        private(&path)?;
        let written = data_dir.join("hook.socket.path.new");
        std::fs::write(&written, path.as_os_str().as_encoded_bytes())?;
        std::fs::rename(&written, data_dir.join(ADDRESS_FILE))?;
        Ok(Self {
            listener,
            path,
            folder,
        })
    }

    /// Answers hooks until it is cancelled; questions that are being answered then are finished.
    pub async fn serve(self, gate: Arc<Gate>, cancel: CancellationToken) {
        let running = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = cancel.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let gate = gate.clone();
                    running.spawn(async move {
                        if let Err(error) = answer(stream, &gate).await {
                            tracing::warn!(%error, "a hook could not be answered");
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "could not accept a hook");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
        running.close();
        running.wait().await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

async fn answer(stream: UnixStream, gate: &Arc<Gate>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read.take(MAX_LINE));
    let mut line = String::new();
    // a hook asks as soon as it is connected
    tokio::time::timeout(ASKING, read.read_line(&mut line))
        .await
        .map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))??;
    let answer = match serde_json::from_str::<Question>(&line) {
        Ok(question) => {
            let gone = CancellationToken::new();
            let answering = gate.answer(question, &gone);
            tokio::pin!(answering);
            tokio::select! {
                answer = &mut answering => answer,
                // a hook says no more, so that what ends here is the hook
                () = ended(read) => {
                    gone.cancel();
                    answering.await
                }
            }
        }
        Err(error) => Answer::refused(vec![format!(
            "refused: the hook and the server do not understand each other ({error}); restart the server"
        )]),
    };
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    write.write_all(&text).await?;
    write.shutdown().await
}

/// Waits until the other side is gone.
async fn ended(mut read: BufReader<tokio::io::Take<OwnedReadHalf>>) {
    read.get_mut().set_limit(1);
    let mut rest = [0];
    match read.read(&mut rest).await {
        Ok(0) | Err(_) => {}
        // more than a question is none of ours, and no reason to give up
        Ok(_) => std::future::pending().await,
    }
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// Whoever may connect may have a push accepted: the owner alone.
fn private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
}
