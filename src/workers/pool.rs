//! The worker processes of a server: two lines with an end and a patience, and one thread for each worker.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::line::Line;
use super::process::Process;
use super::{Caller, Settings};
use crate::prompt::job::JobError;
use crate::prompt::render::Stopped;

/// How often a build that waits looks whether anybody still waits for it.
const LOOK: Duration = Duration::from_millis(20);

/// A job as it is given to a worker, and what an answer to it may be.
#[derive(Debug)]
pub(super) struct Task {
    /// The job as a frame.
    pub(super) frame: Vec<u8>,
    /// Texts that an answer must have.
    pub(super) texts: usize,
    /// Bytes that they may have together.
    pub(super) bytes: usize,
}

/// What came of a task.
#[derive(Debug)]
pub(super) struct Ran {
    /// CPU time that it took; none when it never began.
    pub(super) cpu: Duration,
    pub(super) texts: Result<Result<Vec<String>, JobError>, Stopped>,
}

impl Ran {
    fn never(stopped: Stopped) -> Self {
        Self {
            cpu: Duration::ZERO,
            texts: Err(stopped),
        }
    }
}

/// Told by the worker's thread when a task has run, whether or not anybody still waits for it.
pub(super) type After = Box<dyn FnOnce(&Ran) + Send>;

/// Workers of one server. They are started when they are first needed, and ended with this.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
    next: AtomicU64,
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
    first: Line<Waiting>,
    last: Line<Waiting>,
    /// Workers that are busy with what came last.
    busy_with_last: usize,
    /// Threads that have nothing to do.
    idle: usize,
    closed: bool,
}

impl Queue {
    fn line(&mut self, turn: Turn) -> &mut Line<Waiting> {
        match turn {
            Turn::First => &mut self.first,
            Turn::Last => &mut self.last,
        }
    }
}

struct Waiting {
    task: Task,
    wall: Duration,
    reply: Reply,
    after: Option<After>,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

enum Reply {
    Async(oneshot::Sender<Ran>),
    Blocking(mpsc::SyncSender<Ran>),
}

impl Reply {
    fn send(self, ran: Ran) {
        // whoever asked may have gone
        match self {
            Self::Async(sender) => drop(sender.send(ran)),
            Self::Blocking(sender) => drop(sender.send(ran)),
        }
    }
}

/// A place in a line; whoever leaves without having been served leaves it empty.
struct Place<'a> {
    shared: &'a Shared,
    turn: Turn,
    caller: Caller,
    id: u64,
    served: bool,
}

impl Place<'_> {
    /// Leaves the line; false when a worker has it already.
    fn leave(&mut self) -> bool {
        self.served = true;
        let mut queue = self.shared.lock();
        queue
            .line(self.turn)
            .remove(&self.caller, self.id)
            .is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.served {
            self.leave();
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
            next: AtomicU64::new(0),
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Renders for a request: waits for a worker no longer than a request may.
    pub(super) async fn run(
        &self,
        task: Task,
        caller: &Caller,
        turn: Turn,
        after: Option<After>,
    ) -> Ran {
        let settings = self.settings();
        let (sender, mut receiver) = oneshot::channel();
        let began = Instant::now();
        let patience = Duration::from_millis(settings.queue_wait_ms);
        let waiting = Waiting {
            task,
            wall: Duration::from_millis(settings.wall_ms),
            reply: Reply::Async(sender),
            after,
        };
        let limit = Some(settings.queue_length);
        let mut place = match self.enqueue(waiting, caller, turn, limit) {
            Ok(place) => place,
            Err(stopped) => return Ran::never(stopped),
        };
        let answered = match tokio::time::timeout(patience, &mut receiver).await {
            Ok(answered) => answered,
            Err(_) if place.leave() => {
                return Ran::never(Stopped::QueueWait {
                    waited_ms: millis(began.elapsed()),
                    limit_ms: settings.queue_wait_ms,
                });
            }
            // a worker has it: that has limits of its own
            Err(_) => receiver.await,
        };
        place.served = true;
        answered.unwrap_or_else(|_| Ran::never(gone()))
    }

    /// Renders for a build, which must not depend on how busy the machine is: waits as long as it takes, or until nobody
    /// wants it any more.
    pub(super) fn run_blocking(
        &self,
        task: Task,
        wall: Duration,
        cancel: &CancellationToken,
    ) -> Ran {
        let (sender, receiver) = mpsc::sync_channel(1);
        let waiting = Waiting {
            task,
            wall,
            reply: Reply::Blocking(sender),
            after: None,
        };
        let mut place = match self.enqueue(waiting, &Caller::builds(), Turn::Last, None) {
            Ok(place) => place,
            Err(stopped) => return Ran::never(stopped),
        };
        let ran = loop {
            match receiver.recv_timeout(LOOK) {
                Ok(ran) => break ran,
                Err(mpsc::RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    place.leave();
                    return Ran::never(Stopped::GivenUp);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break Ran::never(gone()),
            }
        };
        place.served = true;
        ran
    }

    fn enqueue(
        &self,
        waiting: Waiting,
        caller: &Caller,
        turn: Turn,
        length: Option<usize>,
    ) -> Result<Place<'_>, Stopped> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let builds = Caller::builds();
        let mut displaced = None;
        let mut queue = self.shared.lock();
        if queue.closed {
            return Err(gone());
        }
        let line = queue.line(turn);
        let count = line.len() - line.of(&builds);
        if let Some(limit) = length.filter(|limit| count >= *limit) {
            let full = Stopped::QueueFull {
                waiting: count,
                limit,
            };
            // who has put in the most makes room for who has put in less
            match line.make_room(caller, &builds) {
                Some(other) => displaced = Some((other, full)),
                None => return Err(full),
            }
        }
        line.push(caller.clone(), id, waiting);
        let short = queue.idle < queue.first.len() + queue.last.len();
        drop(queue);
        if let Some((other, full)) = displaced {
            other.reply.send(Ran::never(full));
        }
        let place = Place {
            shared: &self.shared,
            turn,
            caller: caller.clone(),
            id,
            served: false,
        };
        if short {
            self.add_thread()?;
        }
        self.shared.wake.notify_one();
        Ok(place)
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
        let mut waiting = Vec::new();
        {
            let mut queue = self.shared.lock();
            queue.closed = true;
            for turn in [Turn::First, Turn::Last] {
                waiting.extend(std::iter::from_fn(|| queue.line(turn).pop()));
            }
        }
        self.shared.wake.notify_all();
        for job in waiting {
            job.reply.send(Ran::never(gone()));
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread of one worker does. The thread also lives as long as its worker, whose death the kernel ties to it.
    fn work(&self) {
        let mut process = None;
        while let Some((waiting, turn)) = self.next() {
            let ran = self.one(&mut process, &waiting);
            if let Some(after) = waiting.after {
                after(&ran);
            }
            waiting.reply.send(ran);
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
            if let Some(job) = queue.first.pop() {
                return Some((job, Turn::First));
            }
            if queue.busy_with_last < most_with_last
                && let Some(job) = queue.last.pop()
            {
                queue.busy_with_last += 1;
                return Some((job, Turn::Last));
            }
            queue.idle += 1;
            queue = self
                .wake
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn one(&self, process: &mut Option<Process>, waiting: &Waiting) -> Ran {
        let settings = &self.settings;
        let idle = process
            .take()
            .and_then(|mut worker| worker.is_fit(settings).then_some(worker));
        let mut worker = match idle {
            Some(worker) => worker,
            None => match Process::start(settings, None) {
                Ok(worker) => worker,
                Err(why) => return Ran::never(Stopped::Unavailable(why)),
            },
        };
        let ran = worker.exchange(&waiting.task, settings, waiting.wall);
        if let Err(stopped) = &ran.texts {
            tracing::debug!(%stopped, "a worker is replaced");
        } else if worker.jobs < settings.worker_renders {
            *process = Some(worker);
        }
        ran
    }
}
