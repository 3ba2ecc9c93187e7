//! One worker process as its server sees it: started, spoken to over its pipes with a deadline, ended and waited for.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{self, HEAD, Hello, Kind};
use super::pool::{Ran, Task};
use super::{Probe, Settings, sandbox};
use crate::prompt::render::Stopped;

/// Time from the start of a worker to its hello; a machine that is busy with other things may need it.
const START: Duration = Duration::from_secs(20);
/// Bytes that are made room for before they have come.
const AHEAD: usize = 64 * 1024;

/// A running worker. It is ended when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// CPU time it had used when it last answered, where the kernel says.
    used_us: Option<u64>,
    /// Jobs it has done.
    pub(super) jobs: u32,
}

/// Why a read or write did not come to its end.
enum Broken {
    /// The deadline passed.
    Late,
    /// The worker closed its side, or sent what is no frame.
    Gone,
}

impl Process {
    /// Starts a worker and hears what it found out about itself.
    pub(super) fn start(settings: &Settings, probe: Option<Probe>) -> Result<Self, String> {
        let program = settings.executable.display();
        let mut command = Command::new(&settings.executable);
        command
            .arg("render-worker")
            .arg(format!("--memory-bytes={}", settings.memory_bytes))
            .arg(format!("--cpu-ms={}", settings.cpu_ms));
        if settings.unsafe_rendering {
            command.arg("--without-seccomp");
        }
        if let Some(name) = probe.as_ref().and_then(clap::ValueEnum::to_possible_value) {
            command.arg("--probe").arg(name.get_name());
        }
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt as _;
            // a Ctrl-C at the server's terminal must not end the renders it waits for
            command.process_group(0);
        }
        let mut child = command
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{program}: no pipes"));
        };
        let mut process = Self {
            child,
            input,
            output,
            used_us: None,
            jobs: 0,
        };
        let pipes = rustix::io::ioctl_fionbio(&process.input, true)
            .and_then(|()| rustix::io::ioctl_fionbio(&process.output, true));
        pipes.map_err(|error| format!("{program}: {error}"))?;
        match process.read(Instant::now() + START, 0, 0) {
            Ok((Kind::Hello, body)) => {
                let hello: Hello = serde_json::from_slice(&body).unwrap_or_default();
                let proven = hello.refused && hello.seccomp && hello.no_new_privileges;
                if hello.environment == 0
                    && (proven || settings.unsafe_rendering || !cfg!(target_os = "linux"))
                {
                    process.used_us = process.cpu_us();
                    Ok(process)
                } else {
                    Err(format!("{program}: a worker is not shut off: {hello:?}"))
                }
            }
            Ok((Kind::Refusal, body)) => Err(String::from_utf8_lossy(&body).into_owned()),
            Ok(_) | Err(Broken::Gone) => Err(format!(
                "{program}: the worker ended before it was ready ({})",
                process.end()
            )),
            Err(Broken::Late) => Err(format!(
                "{program}: the worker was not ready in {} s",
                START.as_secs()
            )),
        }
    }

    /// Gives a job and waits for its answer. After an error the process is of no use any more.
    ///
    /// Nothing the worker says is taken on trust: what it may answer is known, and its CPU time is what the kernel counts.
    pub(super) fn exchange(&mut self, task: &Task, settings: &Settings, wall: Duration) -> Ran {
        self.jobs += 1;
        let before = self.cpu_us();
        let started = Instant::now();
        let deadline = started + wall;
        let answer = self
            .write(&task.frame, deadline)
            .and_then(|()| self.read(deadline, task.texts, task.bytes));
        let elapsed = started.elapsed();
        // before it is waited for: then nobody knows any more
        self.used_us = self.cpu_us();
        let measured = before.zip(self.used_us);
        let measured = measured.map(|(before, after)| after.saturating_sub(before));
        let number = |body: &[u8]| {
            <[u8; 8]>::try_from(body)
                .map(u64::from_le_bytes)
                .unwrap_or_default()
        };
        let mut claimed = Duration::from_millis(settings.cpu_ms);
        let texts = match answer {
            Ok((kind @ (Kind::Texts | Kind::Failed), body)) => {
                match frame::read_answer(kind, &body, task.texts, task.bytes) {
                    Ok((cpu_us, texts)) => {
                        claimed = Duration::from_micros(cpu_us);
                        Ok(texts)
                    }
                    Err(why) => Err(Stopped::Crashed(format!(
                        "its answer is not one to this job: {why}"
                    ))),
                }
            }
            Ok((Kind::Cpu, body)) => {
                // the two clocks are not quite one, and more than the whole time is none
                let used_ms = number(&body).min(millis(elapsed)).max(settings.cpu_ms);
                claimed = Duration::from_millis(used_ms);
                Err(Stopped::Cpu {
                    used_ms,
                    limit_ms: settings.cpu_ms,
                })
            }
            Ok((Kind::Memory, body)) => Err(Stopped::Memory {
                wanted: number(&body).max(settings.memory_bytes.saturating_add(1)),
                limit: settings.memory_bytes,
            }),
            Ok(_) | Err(Broken::Gone) => Err(Stopped::Crashed(self.end())),
            Err(Broken::Late) => {
                claimed = elapsed;
                Err(Stopped::Wall {
                    used_ms: millis(elapsed),
                    limit_ms: millis(wall),
                })
            }
        };
        let cpu = match measured {
            Some(us) if texts.is_ok() => Duration::from_micros(us),
            // one that has ended may be counted no more
            Some(us) => Duration::from_micros(us).max(match &texts {
                Err(Stopped::Cpu { .. }) => claimed,
                _ => Duration::ZERO,
            }),
            None => claimed.min(elapsed),
        };
        Ran { cpu, texts }
    }

    /// Whether it can take another job: it still runs (one that is idle may have been ended from outside, for want of
    /// memory), and it was idle while it had nothing to do.
    pub(super) fn is_fit(&mut self, settings: &Settings) -> bool {
        let since = self.used_us.zip(self.cpu_us());
        let busy_us = since.map_or(0, |(then, now)| now.saturating_sub(then));
        busy_us <= settings.cpu_ms.saturating_mul(1000) && matches!(self.child.try_wait(), Ok(None))
    }

    /// CPU time it has used, in microseconds, as the kernel counts it.
    fn cpu_us(&self) -> Option<u64> {
        sandbox::cpu_us_of(self.child.id())
    }

    /// Ends the process; how it ended, in words.
    fn end(&mut self) -> String {
        // gone already, most often: then it has ended by itself, and that is what is told
        let ended = match self.child.try_wait() {
            Ok(Some(status)) => Ok(status),
            _ => wait_a_little(&mut self.child).map_or_else(
                || {
                    let _ = self.child.kill();
                    self.child.wait()
                },
                Ok,
            ),
        };
        match ended {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => format!("signal {signal}"),
                (None, Some(code)) => format!("exit code {code}"),
                (None, None) => status.to_string(),
            },
            Err(error) => error.to_string(),
        }
    }

    fn write(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), Broken> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.input.write(rest) {
                Ok(0) => return Err(Broken::Gone),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready(&self.input, PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // it may have said why before it went
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// A frame; one that is longer than any that is expected is none.
    fn read(
        &mut self,
        deadline: Instant,
        texts: usize,
        bytes: usize,
    ) -> Result<(Kind, Vec<u8>), Broken> {
        let mut head = [0; HEAD];
        self.fill(&mut head, deadline)?;
        let (kind, length) = frame::head(head).ok_or(Broken::Gone)?;
        if length > frame::longest(kind, texts, bytes) {
            return Err(Broken::Gone);
        }
        let mut body = Vec::new();
        while body.len() < length {
            let at = body.len();
            body.resize((at + AHEAD).min(length), 0);
            self.fill(&mut body[at..], deadline)?;
        }
        Ok((kind, body))
    }

    fn fill(&mut self, bytes: &mut [u8], deadline: Instant) -> Result<(), Broken> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.output.read(&mut bytes[filled..]) {
                Ok(0) => return Err(Broken::Gone),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready(&self.output, PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Broken::Gone),
            }
        }
        Ok(())
    }
}

/// Lets workers try what none must survive.
pub(super) fn probe(settings: &Settings) -> Result<(), String> {
    if !cfg!(target_os = "linux") || settings.unsafe_rendering {
        return Ok(());
    }
    for probe in Probe::ALL {
        let mut worker = Process::start(settings, Some(probe))?;
        let silent = worker.read(Instant::now() + START, 0, 0).is_err();
        let ended = worker.end();
        if !silent || ended != format!("signal {}", libc::SIGSYS) {
            return Err(format!(
                "a worker that tried `{probe:?}` was not ended by the kernel ({ended})"
            ));
        }
    }
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process whose pipe has closed is all but gone; how it went is known a moment later.
fn wait_a_little(child: &mut Child) -> Option<std::process::ExitStatus> {
    for _ in 0..50 {
        std::thread::sleep(Duration::from_millis(2));
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
    }
    None
}

fn ready(pipe: &impl AsFd, flags: PollFlags, deadline: Instant) -> Result<(), Broken> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Broken::Late);
        }
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(pipe, flags)], Some(&left)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(_) => return Err(Broken::Gone),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
