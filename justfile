# Short names for what is done often; `just` lists them.

[private]
default:
    @just --list --unsorted

# Does it compile?
check:
    cargo check --all-targets

# The tests that `cargo test` knows.
test *args:
    cargo test {{args}}

# Everything that must be so before a change is merged, without the real clients.
lint:
    scripts/test fmt clippy docs deny

# Put the formatting right.
fmt:
    cargo fmt

# Read the code's documentation.
docs:
    cargo doc --no-deps --document-private-items --open

# Measure the core.
bench *args:
    cargo bench {{args}}

# Cuebook beside a floor and other MCP servers, about 12 minutes; installs them below target/. `quick` only shows that it runs.
bench-peers *args:
    python3 benches/peers/run.py {{args}}

# Two minutes of hostile templates beside honest clients; fails when these feel it.
soak:
    cargo bench --bench soak

# A minute of fuzzing for each target; needs a nightly toolchain, and installs cargo-fuzz.
fuzz seconds="60":
    cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked
    cd fuzz && for target in $(cargo +nightly fuzz list); do cargo +nightly fuzz run "$target" -- -max_total_time={{seconds}} || exit 1; done

# Real MCP clients against a real server: all, or the ones named.
clients *names:
    cargo build
    tests/clients/run.sh target/debug/cuebook {{names}}

# The official conformance suite.
conformance:
    cargo build
    tests/conformance/run.sh target/debug/cuebook

# Known faults in dependencies; wants the network.
advisories:
    cargo deny check advisories

# What CI runs.
ci:
    scripts/test
