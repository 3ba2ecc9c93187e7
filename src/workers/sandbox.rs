//! What a worker takes from itself before it reads a template: files, sockets, programs, privileges, memory, time.
#![allow(
    unsafe_code,
    reason = "a CPU timer, its signal handler and an exit without ceremony have no safe form"
)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::frame::{HEAD, Hello, Kind};
use super::{Probe, Restrictions};

/// Exit code of a worker that wanted too much memory.
pub(super) const OVER_MEMORY: i32 = 120;
/// Exit code of a worker that used up its CPU time.
pub(super) const OVER_CPU: i32 = 121;

/// Address space beyond the memory limit: the allocator reserves in large pieces that it does not touch.
const RESERVED_BYTES: u64 = 3 * 1024 * 1024 * 1024;

/// CPU time at which the job began, in microseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Shuts this process off, and proves it.
pub(super) fn enter(restrictions: &Restrictions) -> Result<Hello, String> {
    let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
    let at_most = |resource, value: u64| {
        setrlimit(
            resource,
            Rlimit {
                current: Some(value),
                maximum: Some(value),
            },
        )
    };
    #[cfg(target_os = "linux")]
    linux::close_others().map_err(|error| format!("close_range: {error}"))?;
    // the server comes first where CPU time is short
    let _ = rustix::process::nice(5);
    at_most(Resource::Core, 0).map_err(told("RLIMIT_CORE"))?;
    at_most(Resource::Fsize, 0).map_err(told("RLIMIT_FSIZE"))?;
    at_most(Resource::Nofile, 3).map_err(told("RLIMIT_NOFILE"))?;
    // macOS has no such limit that holds; the allocator counts there too
    #[cfg(target_os = "linux")]
    at_most(
        Resource::As,
        restrictions.memory_bytes.saturating_add(RESERVED_BYTES),
    )
    .map_err(told("RLIMIT_AS"))?;
    #[cfg(not(target_os = "linux"))]
    let _ = RESERVED_BYTES;
    catch_cpu_signal();
    // what the allocator looks up in files when it first needs a large piece is looked up now
    for bytes in [1 << 20, 1 << 26] {
        drop(std::hint::black_box(Vec::<u8>::with_capacity(bytes)));
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "what is looked for is that there is none"
    )]
    let environment = std::env::vars_os().count();
    // macOS puts one in itself
    let environment = if cfg!(target_os = "linux") {
        environment
    } else {
        0
    };
    if environment > 0 {
        return Err(format!("the environment holds {environment} variables"));
    }
    let mut hello = Hello {
        environment,
        ..Hello::default()
    };
    #[cfg(target_os = "linux")]
    linux::enter(restrictions, &mut hello)?;
    #[cfg(not(target_os = "linux"))]
    let _ = restrictions;
    Ok(hello)
}

/// Does what a worker must not survive; the calls themselves, so that nothing on the way to them is what is refused.
pub(super) fn attempt(probe: Probe) -> std::io::Result<()> {
    match probe {
        Probe::Open => std::fs::File::open("/").map(drop),
        Probe::Socket => std::os::unix::net::UnixDatagram::unbound().map(drop),
        Probe::Process => {
            // SAFETY: the child, should there be one, only exits
            match unsafe { libc::fork() } {
                -1 => Err(std::io::Error::last_os_error()),
                0 => unsafe { libc::_exit(0) },
                _ => Ok(()),
            }
        }
        Probe::Program => {
            let (path, none) = (c"/proc/self/exe", [std::ptr::null()]);
            // SAFETY: a path that ends with a zero, and two lists that end with a null pointer; when it succeeds, which it
            // must not, this process says no hello
            unsafe {
                libc::execve(path.as_ptr(), none.as_ptr(), none.as_ptr());
            }
            Err(std::io::Error::last_os_error())
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    use super::super::{Hello, Probe, Restrictions};
    use super::attempt;

    pub(super) fn enter(restrictions: &Restrictions, hello: &mut Hello) -> Result<(), String> {
        let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(told("PR_SET_PDEATHSIG"))?;
        rustix::thread::set_no_new_privs(true).map_err(told("PR_SET_NO_NEW_PRIVS"))?;
        hello.no_new_privileges = rustix::thread::no_new_privs().unwrap_or_default();
        match shut(hello) {
            Ok(()) => Ok(()),
            Err(_) if restrictions.without_seccomp => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Closes what stands above the three pipes: this process has opened nothing, it came from whoever started its server.
    pub(super) fn close_others() -> std::io::Result<()> {
        // SAFETY: nothing in this process uses a file descriptor above its three pipes
        let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
        if closed == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOSYS) {
            return Err(error);
        }
        // a kernel before 5.9: one by one
        let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|number| *number > 2)
            .collect();
        for number in open {
            // SAFETY: as above; the folder's own is closed already, which is an error that says nothing
            unsafe {
                libc::close(number);
            }
        }
        Ok(())
    }

    /// First a filter that refuses, under which what must not be possible is tried; then the same one that kills.
    fn shut(hello: &mut Hello) -> Result<(), String> {
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        // the first one still lets the second be set
        let refusing = filter(refuse, &[libc::SYS_prctl, libc::SYS_seccomp])?;
        let killing = filter(SeccompAction::KillProcess, &[])?;
        let apply = |program: &BpfProgram| {
            seccompiler::apply_filter(program)
                .map_err(|error| format!("seccomp filters cannot be set here: {error}"))
        };
        apply(&refusing)?;
        let refused = |error: std::io::Error| error.raw_os_error() == Some(libc::EPERM);
        for probe in Probe::ALL {
            if !attempt(probe).err().is_some_and(refused) {
                return Err(format!(
                    "a worker was not refused what it tried ({probe:?})"
                ));
            }
        }
        hello.refused = true;
        apply(&killing)?;
        hello.seccomp = true;
        Ok(())
    }

    /// The calls a worker needs: its two pipes, memory, its timer, its end.
    fn filter(otherwise: SeccompAction, also: &[i64]) -> Result<BpfProgram, String> {
        let fault = |error: seccompiler::BackendError| error.to_string();
        let no_program_text = || -> Result<Vec<SeccompRule>, String> {
            let condition = SeccompCondition::new(
                2,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::MaskedEq(u64::from(libc::PROT_EXEC.unsigned_abs())),
                0,
            )
            .map_err(fault)?;
            Ok(vec![SeccompRule::new(vec![condition]).map_err(fault)?])
        };
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_brk,
            libc::SYS_futex,
            libc::SYS_sched_yield,
            libc::SYS_getrandom,
            libc::SYS_getcpu,
            libc::SYS_clock_gettime,
            libc::SYS_setitimer,
            libc::SYS_rt_sigreturn,
            libc::SYS_rt_sigprocmask,
            libc::SYS_sigaltstack,
            libc::SYS_restart_syscall,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ]
        .iter()
        .chain(also)
        .map(|call| (*call, Vec::new()))
        .collect();
        // the allocator gives its memory a name
        let naming = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            u64::from(libc::PR_SET_VMA.unsigned_abs()),
        )
        .map_err(fault)?;
        rules
            .entry(libc::SYS_prctl)
            .or_insert(vec![SeccompRule::new(vec![naming]).map_err(fault)?]);
        rules.insert(libc::SYS_mmap, no_program_text()?);
        rules.insert(libc::SYS_mprotect, no_program_text()?);
        let arch = std::env::consts::ARCH.try_into().map_err(|_| {
            format!(
                "seccomp filters are not known for {}",
                std::env::consts::ARCH
            )
        })?;
        SeccompFilter::new(rules, otherwise, SeccompAction::Allow, arch)
            .map_err(fault)?
            .try_into()
            .map_err(fault)
    }
}

/// A limit on the CPU time of one job.
pub(super) struct CpuTimer {
    began_us: u64,
}

impl CpuTimer {
    /// From now on so many milliseconds, after which the process tells and ends.
    pub(super) fn start(limit_ms: u64) -> Self {
        let began_us = cpu_us();
        BEGAN.store(began_us, Relaxed);
        set_timer(limit_ms);
        Self { began_us }
    }

    /// Ends the limit; microseconds used.
    pub(super) fn stop(self) -> u64 {
        set_timer(0);
        cpu_us().saturating_sub(self.began_us)
    }
}

fn set_timer(milliseconds: u64) {
    let seconds = i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    let value = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: seconds,
            tv_usec: (milliseconds % 1000 * 1000).try_into().unwrap_or_default(),
        },
    };
    // SAFETY: `value` lives through the call, and no old value is asked for
    unsafe {
        libc::setitimer(libc::ITIMER_PROF, &raw const value, std::ptr::null_mut());
    }
}

/// CPU time of this process, in microseconds.
fn cpu_us() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// CPU time of the calling thread, in microseconds.
pub(super) fn thread_cpu_us() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// CPU time of another process of this user, in microseconds, until it has been waited for; none where the kernel does
/// not say.
#[cfg(target_os = "linux")]
pub(super) fn cpu_us_of(process: u32) -> Option<u64> {
    let process = libc::pid_t::try_from(process).ok()?;
    let mut clock = 0;
    // SAFETY: `clock` lives through the call
    let found = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) };
    (found == 0).then(|| read_clock(clock)).flatten()
}

/// Not known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn cpu_us_of(_: u32) -> Option<u64> {
    None
}

fn read_clock(clock: libc::clockid_t) -> Option<u64> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` lives through the call
    let read = unsafe { libc::clock_gettime(clock, &raw mut now) };
    let whole = u64::try_from(now.tv_sec).ok()?;
    let rest = u64::try_from(now.tv_nsec).ok()?;
    (read == 0).then_some(whole * 1_000_000 + rest / 1000)
}

fn catch_cpu_signal() {
    extern "C" fn over(_: libc::c_int) {
        let used = cpu_us().saturating_sub(BEGAN.load(Relaxed));
        end(Kind::Cpu, used / 1000, OVER_CPU);
    }
    let handler: extern "C" fn(libc::c_int) = over;
    // SAFETY: the handler only reads a clock, writes to a pipe and exits, all of which a handler may do; an all-zero
    // `sigaction` is a valid one
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGPROF, &raw const action, std::ptr::null_mut());
    }
}

/// Tells what was wanted and ends; called by the allocator, so that it allocates nothing.
pub(super) fn end_over_memory(wanted: u64) -> ! {
    set_timer(0);
    end(Kind::Memory, wanted, OVER_MEMORY)
}

fn end(kind: Kind, number: u64, code: i32) -> ! {
    let mut frame = [0; HEAD + 8];
    frame[0] = kind.byte();
    frame[1] = 8;
    frame[HEAD..].copy_from_slice(&number.to_le_bytes());
    // SAFETY: `frame` lives through the call; 13 bytes fit into a pipe at once or are lost with the process
    unsafe {
        libc::write(1, frame.as_ptr().cast(), frame.len());
        libc::_exit(code)
    }
}
