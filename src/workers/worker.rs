//! The other side: what a worker process does from its start to its end.

use std::io::{Read as _, Write as _};

use super::frame::{self, HEAD, Kind};
use super::{Restrictions, allocator, sandbox};
use crate::prompt::Job;

/// Runs this process as a worker until its input ends. Nothing else may have been started in it before.
pub fn run(restrictions: &Restrictions) -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let hello = match sandbox::enter(restrictions) {
        Ok(hello) => frame::json(Kind::Hello, &hello)?,
        Err(why) => frame::frame(Kind::Refusal, why.as_bytes()),
    };
    output.write_all(&hello)?;
    output.flush()?;
    if let Some(probe) = restrictions.probe {
        return sandbox::attempt(probe);
    }
    allocator::limit(restrictions.memory_bytes);
    loop {
        let mut head = [0; HEAD];
        if input.read_exact(&mut head).is_err() {
            return Ok(());
        }
        let Some((Kind::Job, length)) = frame::head(head) else {
            return Err(std::io::ErrorKind::InvalidData.into());
        };
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let job: Job<'static> = serde_json::from_slice(&body)?;
        drop(body);
        let timer = sandbox::CpuTimer::start(restrictions.cpu_ms);
        let texts = job.run();
        let cpu_us = timer.stop();
        let answer = frame::answer(&texts, cpu_us)?;
        output.write_all(&answer)?;
        output.flush()?;
    }
}
