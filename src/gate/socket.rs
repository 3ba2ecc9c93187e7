//! The server's side: a Unix socket on which hooks ask.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gate;
use super::wire::{Answer, MAX_LINE, Question};
use crate::socket::Socket;

/// The name of the socket.
pub const NAME: &str = "hook";

/// Time for the question of a hook.
const ASKING: std::time::Duration = std::time::Duration::from_secs(10);

/// Answers hooks until it is cancelled; questions that are being answered then are finished.
pub async fn serve(socket: Socket, gate: Arc<Gate>, cancel: CancellationToken) {
    let running = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = cancel.cancelled() => break,
            accepted = socket.listener().accept() => accepted,
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
