//! The `cuebook` command: parses, starts telemetry, runs one command.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cuebook::cli::main()
}
