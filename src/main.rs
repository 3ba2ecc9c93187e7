//! The `cuebook` command: parses, starts telemetry, runs one command.

#[global_allocator]
static ALLOCATOR: cuebook::workers::Allocator = cuebook::workers::Allocator;

fn main() -> std::process::ExitCode {
    cuebook::workers::use_small_pages();
    cuebook::cli::main()
}
