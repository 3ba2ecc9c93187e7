//! Where templates are rendered: in this process what is proven linear, everything else in worker processes.
//!
//! A worker is this program again, with nothing in its environment, no files, sockets or programs, little memory and
//! little time; it is given a [`Job`] over a pipe and gives back texts. Whatever a template does there ends the worker at
//! most, which becomes an error and is replaced. Knows prompts; knows nothing of catalogs, git, MCP or HTTP.

mod allocator;
mod budget;
mod frame;
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
use std::time::{Duration, Instant};

pub use self::allocator::Allocator;
pub use self::budget::{Budgets, Running, Spent};
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
    /// Rendered text of one prompt, which bounds what is read of a worker's answer.
    pub output_bytes: usize,
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
            output_bytes: Limits::default().output_bytes,
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
    /// Starting a program.
    Program,
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
    suspects: suspects::Suspects,
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
            #[cfg(unix)]
            pool: pool::Pool::new(settings),
            #[cfg(unix)]
            suspects: suspects::Suspects::default(),
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

    /// Renders for a request.
    pub async fn render(
        &self,
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
            let turn = if self.suspects.has(&prompt.closure_hash, Instant::now()) {
                pool::Turn::Last
            } else {
                pool::Turn::First
            };
            let done = self.in_worker(prompt, bound, resources, limits, turn).await;
            if let Err(error) = &done.rendered
                && error.is_costly()
            {
                self.suspects.add(&prompt.closure_hash, Instant::now());
            }
            done.rendered
        }
        #[cfg(not(unix))]
        self.in_process(prompt, bound, resources, limits).rendered
    }

    /// Renders in a worker, whatever the lane of the prompt, behind what is known to be quick.
    pub async fn isolated(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
    ) -> Done {
        #[cfg(unix)]
        return self
            .in_worker(prompt, bound, resources, limits, pool::Turn::Last)
            .await;
        #[cfg(not(unix))]
        self.in_process(prompt, bound, resources, limits)
    }

    #[cfg(unix)]
    async fn in_worker(
        &self,
        prompt: &Prompt,
        bound: &BoundArguments,
        resources: &ResolvedResources,
        limits: &Limits,
        turn: pool::Turn,
    ) -> Done {
        let job = Job::new(prompt, bound, resources, limits);
        let outcome = match frame::json(frame::Kind::Job, &job) {
            Ok(job) => self.pool.run(job, turn).await,
            Err(error) => Err(Stopped::Crashed(error.to_string())),
        };
        done(prompt, resources, limits, outcome)
    }

    /// Renders for a build: blocks, waits as long as it takes, and tries once more where the machine was at fault.
    pub fn render_for_build(
        &self,
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
            let attempt = || {
                let job = Job::new(prompt, bound, resources, limits);
                let outcome = match frame::json(frame::Kind::Job, &job) {
                    Ok(job) => {
                        let wall = Duration::from_millis(self.settings().wall_ms);
                        self.pool.run_blocking(job, wall.max(PATIENT))
                    }
                    Err(error) => Err(Stopped::Crashed(error.to_string())),
                };
                done(prompt, resources, limits, outcome).rendered
            };
            match attempt() {
                Err(RenderError::Stopped(stopped)) if stopped.is_passing() => attempt(),
                decided => decided,
            }
        }
        #[cfg(not(unix))]
        self.in_process(prompt, bound, resources, limits).rendered
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

#[cfg(unix)]
fn done(
    prompt: &Prompt,
    resources: &ResolvedResources,
    limits: &Limits,
    outcome: pool::Outcome,
) -> Done {
    match outcome {
        Ok(answer) => Done {
            rendered: render::assemble(prompt, resources, limits, answer.texts),
            cpu: Duration::from_micros(answer.cpu_us),
        },
        Err(stopped) => Done {
            cpu: match &stopped {
                Stopped::Cpu { used_ms, .. } | Stopped::Wall { used_ms, .. } => {
                    Duration::from_millis(*used_ms)
                }
                // how much is not known: as much as it may have been
                Stopped::Memory { .. } | Stopped::Crashed(_) => Duration::from_millis(100),
                _ => Duration::ZERO,
            },
            rendered: Err(stopped.into()),
        },
    }
}
