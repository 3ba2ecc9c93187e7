//! Where templates are rendered: in this process what is proven linear, everything else in worker processes.
//!
//! A worker is this program again, with nothing in its environment, no files, sockets or programs, little memory and
//! little time; it is given a [`Job`] over a pipe and gives back texts. Whatever a template does there ends the worker at
//! most, which becomes an error and is replaced. Knows prompts; knows nothing of catalogs, git, MCP or HTTP.

mod allocator;
mod budget;
mod caller;
mod check;
mod frame;
#[cfg(unix)]
mod line;
#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod suspects;
#[cfg(unix)]
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use self::allocator::{Allocator, use_small_pages};
pub use self::budget::{Budgets, Running, Spent};
pub use self::caller::Caller;
pub use self::check::Check;
pub use self::frame::Hello;
#[cfg(unix)]
pub use self::worker::run;
use crate::prompt::render::{RenderError, Rendered, ResolvedResources, Stopped};
use crate::prompt::{BoundArguments, Job, Limits, Prompt, render};

/// Time by the clock that a render of a build gets at least: a build decides what is published, and a machine that is
/// busy for a moment must not.
const PATIENT: Duration = Duration::from_secs(30);

/// How workers are started, and what each of them gets.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This program.
    pub executable: PathBuf,
    /// Workers at a time.
    pub workers: usize,
    /// Renders that one worker does before it is replaced.
    pub worker_renders: u32,
    /// Memory of one worker.
    pub memory_bytes: u64,
    /// CPU time of one render.
    pub cpu_ms: u64,
    /// Time by the clock of one render.
    pub wall_ms: u64,
    /// Renders that may wait for a worker.
    pub queue_length: usize,
    /// Time that one of them waits.
    pub queue_wait_ms: u64,
    /// CPU time of the renders of one check together.
    pub check_cpu_ms: u64,
    /// CPU time that the renders for one caller's requests may take of the workers in a minute.
    pub caller_cpu_ms_per_minute: u64,
    /// Whether workers may run where the kernel cannot shut them off, or templates without workers where there can be
    /// none.
    pub unsafe_rendering: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            executable: PathBuf::from("cuebook"),
            workers: cores.clamp(2, 8),
            worker_renders: 1000,
            memory_bytes: 192 * 1024 * 1024,
            cpu_ms: 100,
            wall_ms: 1000,
            queue_length: 64,
            queue_wait_ms: 2000,
            check_cpu_ms: 30_000,
            caller_cpu_ms_per_minute: 30_000,
            unsafe_rendering: false,
        }
    }
}

/// What a worker process is told when it is started.
#[derive(Debug, Clone, Copy)]
pub struct Restrictions {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// CPU time of each render, in milliseconds.
    pub cpu_ms: u64,
    /// Whether it may go on where the kernel has no seccomp filters.
    pub without_seccomp: bool,
    /// What it is to try when it is shut off, instead of taking work.
    pub probe: Option<Probe>,
}

/// Something a worker must not survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Probe {
    /// Opening a file.
    Open,
    /// Making a socket.
    Socket,
    /// Making another process.
    Process,
    /// Becoming another program.
    Program,
}

impl Probe {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Socket, Self::Process, Self::Program];
}

/// A render and the CPU time it took in a worker; no time where there was none.
#[derive(Debug, Clone)]
pub struct Done {
    /// The messages.
    pub rendered: Result<Rendered, RenderError>,
    /// CPU time, as far as it is known.
    pub cpu: Duration,
}

/// Renders prompts, each in its lane.
#[derive(Debug)]
pub struct Renderer {
    #[cfg(unix)]
    pool: pool::Pool,
    #[cfg(unix)]
    suspects: Arc<suspects::Suspects>,
    budgets: Arc<Budgets<Caller>>,
    #[cfg(not(unix))]
    settings: Settings,
}

impl Default for Renderer {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Renderer {
    /// Starts nothing yet: workers are started when a prompt needs one.
    pub fn new(settings: Settings) -> Self {
        Self {
            budgets: Arc::new(Budgets::new(settings.caller_cpu_ms_per_minute)),
            #[cfg(unix)]
            pool: pool::Pool::new(settings),
            #[cfg(unix)]
            suspects: Arc::default(),
            #[cfg(not(unix))]
            settings,
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        #[cfg(unix)]
        return self.pool.settings();
        #[cfg(not(unix))]
        &self.settings
    }

    /// Starts a worker, which proves that it is shut off, and others that try what a worker must not survive. What to do
    /// where they do is in the error. Blocks.
    pub fn prove(&self) -> Result<(), String> {
        const FLAG: &str = "`cuebook serve --unsafe-rendering` serves without that (unsafe_rendering = true for other \
                            commands): then a template that is published can do what this program can";
        #[cfg(unix)]
        return process::Process::start(self.settings(), None)
            .and_then(|_| process::probe(self.settings()))
            .map_err(|why| {
                format!("templates cannot be rendered safely on this machine: {why}. {FLAG}")
            });
        #[cfg(not(unix))]
        if self.settings.unsafe_rendering {
            Ok(())
        } else {
            Err(format!(
                "templates cannot be rendered safely on this system: it has no worker processes. {FLAG}"
            ))
        }
    }

    /// Renders for a request of a caller, whose CPU time in workers is counted, also when it goes away.
    pub async fn render(
        &self,
        caller: &Caller,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
    ) -> Result<Rendered, RenderError> {
        if !render::needs_worker(prompt, bound, resources, limits) {
            return render(prompt, bound, resources, limits);
        }
        #[cfg(unix)]
        {
            let now = Instant::now();
            let has_most = self
                .budgets
                .left(caller, now)
                .map_err(|spent| match spent {
                    Spent::Budget {
                        used_ms,
                        limit_ms,
                        wait,
                    } => Stopped::Budget {
                        used_ms,
                        limit_ms,
                        wait_seconds: wait.as_secs() + 1,
                    },
                    Spent::Running => Stopped::Unavailable(spent.to_string()),
                })?;
            let costly = self.suspects.has(&prompt.closure_hash, caller, now);
            // who has used half of a minute's waits behind those who have not
            let turn = if costly || !has_most {
                pool::Turn::Last
            } else {
                pool::Turn::First
            };
            let after: pool::After = {
                let (budgets, suspects) = (self.budgets.clone(), self.suspects.clone());
                let (closure, caller) = (prompt.closure_hash.clone(), caller.clone());
                Box::new(move |ran| {
                    let now = Instant::now();
                    budgets.charge(&caller, ran.cpu, now);
                    if is_costly(ran) {
                        suspects.add(closure, caller, now);
                    }
                })
            };
            let job = Job::new(prompt, bound, resources, limits);
            let ran = match task(&job) {
                Ok(task) => self.pool.run(task, caller, turn, Some(after)).await,
                Err(stopped) => return Err(stopped.into()),
            };
            done(prompt, resources, limits, ran).rendered
        }
        #[cfg(not(unix))]
        {
            let _ = caller;
            self.in_process(prompt, bound, resources, limits).rendered
        }
    }

    /// Renders in a worker, whatever the lane of the prompt, behind what is known to be quick. Whoever asks charges for it.
    pub async fn isolated(
        &self,
        caller: &Caller,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
    ) -> Done {
        #[cfg(unix)]
        {
            let job = Job::new(prompt, bound, resources, limits);
            let ran = match task(&job) {
                Ok(task) => self.pool.run(task, caller, pool::Turn::Last, None).await,
                Err(stopped) => pool::Ran {
                    cpu: Duration::ZERO,
                    texts: Err(stopped),
                },
            };
            done(prompt, resources, limits, ran)
        }
        #[cfg(not(unix))]
        {
            let _ = caller;
            self.in_process(prompt, bound, resources, limits)
        }
    }

    /// The renders of one check, which are on a budget, until it is cancelled.
    pub fn check(&self, cancel: CancellationToken) -> Check<'_> {
        let budget = Duration::from_millis(self.settings().check_cpu_ms);
        Check::new(self, Some(budget), cancel)
    }

    /// The renders of a check of what has passed one already, which are on no budget.
    pub fn check_again(&self) -> Check<'_> {
        Check::new(self, None, CancellationToken::new())
    }

    /// Renders for a build: blocks, waits as long as it takes, and tries once more where the machine was at fault.
    fn render_for_build(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Done {
        if !render::needs_worker(prompt, bound, resources, limits) {
            let began = thread_cpu_us();
            let rendered = render(prompt, bound, resources, limits);
            return Done {
                rendered,
                cpu: Duration::from_micros(thread_cpu_us().saturating_sub(began)),
            };
        }
        #[cfg(unix)]
        {
            let attempt = || {
                let job = Job::new(prompt, bound, resources, limits);
                let wall = Duration::from_millis(self.settings().wall_ms).max(PATIENT);
                let ran = match task(&job) {
                    Ok(task) => self.pool.run_blocking(task, wall, cancel),
                    Err(stopped) => pool::Ran {
                        cpu: Duration::ZERO,
                        texts: Err(stopped),
                    },
                };
                done(prompt, resources, limits, ran)
            };
            let first = attempt();
            match &first.rendered {
                Err(RenderError::Stopped(stopped))
                    if stopped.is_passing() && !cancel.is_cancelled() =>
                {
                    let again = attempt();
                    Done {
                        cpu: first.cpu + again.cpu,
                        ..again
                    }
                }
                _ => first,
            }
        }
        #[cfg(not(unix))]
        {
            let _ = cancel;
            self.in_process(prompt, bound, resources, limits)
        }
    }

    #[cfg(not(unix))]
    fn in_process(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
    ) -> Done {
        let rendered = match self.prove() {
            Ok(()) => render::render(prompt, bound, resources, limits),
            Err(why) => Err(Stopped::Unavailable(why).into()),
        };
        Done {
            rendered,
            cpu: Duration::ZERO,
        }
    }
}

/// CPU time of the calling thread, in microseconds, where it is known.
fn thread_cpu_us() -> u64 {
    #[cfg(unix)]
    return sandbox::thread_cpu_us();
    #[cfg(not(unix))]
    0
}

#[cfg(unix)]
fn task(job: &Job<'_>) -> Result<pool::Task, Stopped> {
    let frame =
        frame::json(frame::Kind::Job, job).map_err(|error| Stopped::Crashed(error.to_string()))?;
    Ok(pool::Task {
        frame,
        texts: job.texts(),
        bytes: job.texts_bytes(),
    })
}

/// Whether a render cost a worker as much as one can.
#[cfg(unix)]
fn is_costly(ran: &pool::Ran) -> bool {
    match &ran.texts {
        Ok(Ok(_)) => false,
        Ok(Err(error)) => matches!(error, crate::prompt::job::JobError::Output { .. }),
        Err(stopped) => stopped.is_costly(),
    }
}

#[cfg(unix)]
fn done(prompt: &Prompt, resources: &ResolvedResources, limits: &Limits, ran: pool::Ran) -> Done {
    Done {
        cpu: ran.cpu,
        rendered: match ran.texts {
            Ok(texts) => render::assemble(prompt, resources, limits, texts),
            Err(stopped) => Err(stopped.into()),
        },
    }
}
