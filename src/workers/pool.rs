//! The worker processes of a server: a queue with an end and a patience, and one thread for each worker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Settings;
use super::frame::Answer;
use super::process::Process;
use crate::prompt::render::Stopped;

/// What a caller gets.
pub(super) type Outcome = Result<Answer, Stopped>;

/// Workers of one server. They are started when they are first needed, and ended with this.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// Who waits where: what may well be slow must not be in the way of what is known to be quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Takes any worker that is free.
    First,
    /// Waits until nothing else does, and leaves one worker free.
    Last,
}

#[derive(Debug, Default)]
struct Queue {
    first: VecDeque<Waiting>,
    last: VecDeque<Waiting>,
    /// Workers that are busy with what came last.
    busy_with_last: usize,
    /// Threads that have nothing to do.
    idle: usize,
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
    /// The job as a frame.
    job: Vec<u8>,
    wall: Duration,
    /// When it is to be given up if no worker has taken it.
    patience: Option<(Instant, Instant)>,
    reply: Reply,
}

#[derive(Debug)]
enum Reply {
    Async(oneshot::Sender<Outcome>),
    Blocking(mpsc::SyncSender<Outcome>),
}

impl Reply {
    fn send(self, outcome: Outcome) {
        // whoever asked may have gone
        match self {
            Self::Async(sender) => drop(sender.send(outcome)),
            Self::Blocking(sender) => drop(sender.send(outcome)),
        }
    }

    fn is_closed(&self) -> bool {
        match self {
            Self::Async(sender) => sender.is_closed(),
            Self::Blocking(_) => false,
        }
    }
}

impl Pool {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                queue: Mutex::default(),
                wake: Condvar::new(),
            }),
            threads: Mutex::default(),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Renders for a request: waits for a worker no longer than a request may.
    pub(super) async fn run(&self, job: Vec<u8>, turn: Turn) -> Outcome {
        let settings = self.settings();
        let (sender, receiver) = oneshot::channel();
        let now = Instant::now();
        let patience = Duration::from_millis(settings.queue_wait_ms);
        let wall = Duration::from_millis(settings.wall_ms);
        self.enqueue(
            Waiting {
                job,
                wall,
                patience: Some((now, now + patience)),
                reply: Reply::Async(sender),
            },
            turn,
            Some(settings.queue_length),
        )?;
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Renders for a build, which must not depend on how busy the machine is: waits as long as it takes.
    pub(super) fn run_blocking(&self, job: Vec<u8>, wall: Duration) -> Outcome {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.enqueue(
            Waiting {
                job,
                wall,
                patience: None,
                reply: Reply::Blocking(sender),
            },
            Turn::Last,
            None,
        )?;
        receiver.recv().unwrap_or_else(|_| Err(gone()))
    }

    fn enqueue(&self, job: Waiting, turn: Turn, length: Option<usize>) -> Result<(), Stopped> {
        let mut queue = self.shared.lock();
        let line = match turn {
            Turn::First => &mut queue.first,
            Turn::Last => &mut queue.last,
        };
        let waiting = line.len();
        if let Some(limit) = length.filter(|limit| waiting >= *limit) {
            return Err(Stopped::QueueFull { waiting, limit });
        }
        line.push_back(job);
        let short = queue.idle < queue.first.len() + queue.last.len();
        drop(queue);
        if short {
            self.add_thread()?;
        }
        self.shared.wake.notify_one();
        Ok(())
    }

    /// One more thread, as long as there may be one.
    fn add_thread(&self) -> Result<(), Stopped> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.len() >= self.settings().workers.max(1) {
            return Ok(());
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name("render".into())
            .spawn(move || shared.work());
        match thread {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => {
                return Err(Stopped::Unavailable(error.to_string()));
            }
            // those that run take it
            Err(_) => {}
        }
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let waiting = {
            let mut queue = self.shared.lock();
            queue.closed = true;
            let last = std::mem::take(&mut queue.last);
            std::mem::take(&mut queue.first).into_iter().chain(last)
        };
        self.shared.wake.notify_all();
        for job in waiting {
            job.reply.send(Err(gone()));
        }
        let threads = self
            .threads
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn gone() -> Stopped {
    Stopped::Unavailable("the server is stopping".into())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread of one worker does. The thread also lives as long as its worker, whose death the kernel ties to it.
    fn work(&self) {
        let mut process = None;
        while let Some((waiting, turn)) = self.next() {
            let outcome = self.one(&mut process, &waiting);
            waiting.reply.send(outcome);
            if turn == Turn::Last {
                self.lock().busy_with_last -= 1;
                self.wake.notify_one();
            }
        }
    }

    fn next(&self) -> Option<(Waiting, Turn)> {
        let most_with_last = self.settings.workers.saturating_sub(1).max(1);
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            let job = match queue.first.pop_front() {
                Some(job) => Some((job, Turn::First)),
                None if queue.busy_with_last < most_with_last => {
                    queue.last.pop_front().map(|job| (job, Turn::Last))
                }
                None => None,
            };
            let Some((job, turn)) = job else {
                queue.idle += 1;
                queue = self
                    .wake
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            let now = Instant::now();
            match job.patience {
                _ if job.reply.is_closed() => {}
                Some((since, until)) if now > until => {
                    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(0);
                    job.reply.send(Err(Stopped::QueueWait {
                        waited_ms: millis(now - since),
                        limit_ms: millis(until - since),
                    }));
                }
                _ => {
                    queue.busy_with_last += usize::from(turn == Turn::Last);
                    return Some((job, turn));
                }
            }
        }
    }

    fn one(&self, process: &mut Option<Process>, waiting: &Waiting) -> Outcome {
        let settings = &self.settings;
        let idle = process
            .take()
            .and_then(|mut worker| worker.is_alive().then_some(worker));
        let mut worker = match idle {
            Some(worker) => worker,
            None => Process::start(settings, None).map_err(Stopped::Unavailable)?,
        };
        let outcome = worker.exchange(&waiting.job, settings, waiting.wall);
        if let Err(stopped) = &outcome {
            tracing::debug!(%stopped, "a worker is replaced");
        } else if worker.jobs < settings.worker_renders {
            *process = Some(worker);
        }
        outcome
    }
}
