//! What a worker process can do, seen from outside.
#![cfg(target_os = "linux")]

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use crate::support::renderer;

fn worker(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(["render-worker", "--memory-bytes=100000000", "--cpu-ms=100"])
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The first frame of a worker: its kind and its text.
fn hello(child: &mut Child) -> (u8, String) {
    let output = child.stdout.as_mut().unwrap();
    let mut head = [0; 5];
    output.read_exact(&mut head).unwrap();
    let length = u32::from_le_bytes(head[1..].try_into().unwrap());
    let mut body = vec![0; length as usize];
    output.read_exact(&mut body).unwrap();
    (head[0], String::from_utf8(body).unwrap())
}

#[test]
fn a_worker_proves_that_it_is_shut_off_and_is() {
    let mut child = worker(&[]).spawn().unwrap();
    let (kind, text) = hello(&mut child);
    assert_eq!(
        (kind, text.as_str()),
        (
            b'h',
            r#"{"environment":0,"refused":true,"no_new_privileges":true,"seccomp":true}"#
        )
    );
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
    assert_eq!(read("environ"), "");
    let status = read("status");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"] {
        assert!(status.lines().any(|l| l == line), "{line}: {status}");
    }
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|l| l.starts_with(name)).unwrap();
        line[name.len()..]
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(limit("Max file size"), "0");
    assert_eq!(limit("Max core file size"), "0");
    assert_eq!(limit("Max open files"), "3");
    assert_ne!(limit("Max address space"), "unlimited");
    let files = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    assert_eq!(files.count(), 3);
    // its input ends, and so does it
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn opening_a_file_making_a_socket_a_process_and_becoming_a_program_end_it() {
    for probe in ["open", "socket", "process", "program"] {
        let mut child = worker(&["--probe", probe]).spawn().unwrap();
        assert_eq!(hello(&mut child).0, b'h');
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(31), "{probe}: {ended}");
    }
    assert_eq!(renderer().prove(), Ok(()));
}

#[test]
fn a_worker_with_an_environment_refuses_to_work() {
    let mut child = worker(&[]).env("SECRET", "x").spawn().unwrap();
    let (kind, text) = hello(&mut child);
    assert_eq!(
        (kind, text.as_str()),
        (b'r', "the environment holds 1 variables")
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_worker_goes_when_its_server_is_killed() {
    // a shell that starts a worker and waits, in the server's place
    let mut server = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!(
            "env -i {} render-worker --memory-bytes=100000000 --cpu-ms=100 <&0 & echo $!; wait",
            env!("CARGO_BIN_EXE_cuebook")
        ))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = server.stdout.as_mut().unwrap();
    let mut pid = String::new();
    let mut byte = [0];
    while output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        pid.push(char::from(byte[0]));
    }
    // the hello says that it has tied itself to whoever started it
    let mut first = [0];
    output.read_exact(&mut first).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    // gone, or a zombie until whoever inherits it looks
    let gone = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z ") || stat.contains(") X "))
    };
    let began = std::time::Instant::now();
    while !gone() {
        assert!(began.elapsed() < crate::support::PATIENCE, "{pid} lives on");
        std::thread::yield_now();
    }
}
