#!/usr/bin/env python3
"""Measures Cuebook beside a floor and beside other MCP servers: same prompts, same bytes rendered, one run.

Server and load generator have a core each. Results go to target/peers/runs/RUN, a file for each server, so that a run may be
gone on with (`--run RUN --only cuebook`); `--write` puts the tables and the plot into docs/.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import library
import measure
import prepare
import report
from servers import MODES, NAMES, REVISION, Failed, Server

FULL = {
    "rounds": 3, "connections": [1, 16, 64], "warm_ms": 100, "ms": 600, "probe_ms": 800, "streams": [1000, 10_000], "open_seconds": 40,
    "rest_seconds": 3, "tells": 5, "sizes": [100, 1000, 10_000], "pushes": 10, "lists": [50, 1000],
}
QUICK = FULL | {
    "rounds": 1, "warm_ms": 50, "ms": 200, "probe_ms": 200, "streams": [100, 300], "open_seconds": 20, "rest_seconds": 1, "tells": 2,
    "sizes": [100, 300], "pushes": 2, "lists": [50, 1000],
}
PARTS = ["requests", "streams", "publish"]


class Run:
    """One run: its plan, its folder, and what was found so far."""

    def __init__(self, name, plan, binary):
        self.plan, self.binary, self.name = plan, binary, name
        self.results = prepare.TARGET / "runs" / name
        self.results.mkdir(parents=True, exist_ok=True)
        self.work = prepare.TARGET / "work"
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.answers = self.results / "answers"
        self.answers.mkdir(exist_ok=True)
        for count in plan["lists"]:
            library.data(count, self.work / f"library-{count}.json")
            self.library("data", count, library.files(count))
        self.library("worker", 50, library.with_worker(library.files(50)))
        self.library("streams", 50, library.files(50, watched=library.WATCHED))

    def library(self, kind, count, tree):
        data = self.work / f"{kind}-{count}"
        data.mkdir()
        library.bare(data / "library.git", tree)
        if count > 500:
            # all on one page, as the others have it
            (data / "config.toml").write_text(f"[mcp]\npage_size = {count}\n")

    def server(self, name, count, mode=None, kind="data"):
        return Server(name, self.work, count, mode=mode, binary=self.binary, answers=self.answers, kind=kind)

    def save(self, name, value):
        (self.results / f"{name}.json").write_text(json.dumps(value, indent=1))

    def saved(self, name):
        path = self.results / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None


def say(text):
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def answers_of_the_floor(run):
    """The floor returns what Cuebook returns, byte for byte."""
    for count in run.plan["lists"]:
        with run.server("cuebook", count) as server:
            requests = measure.Requests(server, 1, run.work)
            for case, (method, params) in library.cases(count).items():
                (run.answers / f"{case}.json").write_bytes(requests.asking.ask(case, method, params))
            requests.close()


def probe(run, name):
    """The quickest documented way to run a server, by `prompts/get` at 16 connections."""
    seen = {}
    for mode in MODES.get(name, [None]):
        with run.server(name, 50, mode) as server:
            server.rest(5, strict=False)
            requests = measure.Requests(server, 16, run.work)
            cell = requests.cell("get", *library.cases(50)["get"], 16, run.plan["warm_ms"], run.plan["probe_ms"])
            requests.close()
        seen[mode] = cell["per_second"]
        say(f"{name} {mode}: {cell['per_second']:,.0f} requests a second")
    return max(seen, key=seen.get), seen


def round_of_requests(run, name, mode):
    plan, out = run.plan, {"cold_s": {}, "memory": {}, "cells": {}}
    for count in plan["lists"]:
        with run.server(name, count, mode) as server:
            out["cold_s"][count] = server.cold
            server.rest(20, strict=False, quiet=3)
            out["memory"][count] = server.memory()
            requests = measure.Requests(server, max(plan["connections"]), run.work)
            measured(requests, library.cases(count), plan, out)
    if name == "cuebook":
        # apart: a library with such a prompt keeps a worker ready, and the others have nothing like it
        with run.server(name, 50, kind="worker") as server:
            server.rest(20, strict=False, quiet=3)
            measured(measure.Requests(server, max(plan["connections"]), run.work), library.WORKER_CASE, plan, out)
    at = str(max(plan["connections"]))
    say(f"{name}: " + ", ".join(f"{case} {cells[at]['per_second']:,.0f}/s" for case, cells in out["cells"].items()))
    return out


def measured(requests, cases, plan, out):
    """Each case at each number of connections."""
    for case, (method, params) in cases.items():
        for connections in plan["connections"]:
            cell = requests.cell(case, method, params, connections, plan["warm_ms"], plan["ms"])
            out["cells"].setdefault(case, {})[str(connections)] = cell
    requests.close()


def requests(run, names):
    say("requests: what the floor returns")
    answers_of_the_floor(run)
    modes, found = {}, {}
    for name in names:
        mode, seen = probe(run, name) if name in MODES else (None, {})
        modes[name] = mode
        found[name] = {"mode": mode, "probe": seen, "rounds": []}
    for number in range(run.plan["rounds"]):
        say(f"requests: round {number + 1}")
        for name in names:
            try:
                found[name]["rounds"].append(round_of_requests(run, name, modes[name]))
            except (Failed, OSError) as error:
                # the others are still worth measuring
                say(f"{name}: {error}")
                found[name].setdefault("failed", []).append(str(error))
            run.save(f"requests-{name}", found[name])


def streams(run, names):
    if "floor" in names and not any(run.answers.iterdir()):
        answers_of_the_floor(run)
    for name in names:
        # sessions are what holds a stream: the first mode
        mode = MODES.get(name, [None])[0]
        kind = "streams" if name == "cuebook" else "data"
        say(f"streams: {name}")
        try:
            out = measure.streams(lambda: run.server(name, 50, mode, kind), run.work, run.plan)
        except (Failed, OSError) as error:
            say(f"{name}: {error}")
            continue
        run.save(f"streams-{name}", out)
        for level in out["levels"]:
            last = measure.median([t["last_ms"] for t in level["tells"] if t["told"] == t["open"]])
            told = f"the last told after {last:.1f} ms" if last else "not all told"
            say(f"{name}: {level['opened']['open']} streams, {level['per_stream'] / 1024:.1f} KB each, {told}")


def publish(run):
    say("publish: libraries")
    for size in run.plan["sizes"]:
        if not (run.work / f"data-{size}").exists():
            run.library("data", size, library.files(size))
    out = measure.publish(run.binary, run.work, run.plan["sizes"], run.plan["pushes"])
    run.save("publish", out)
    for size, row in out.items():
        say(f"publish at {size}: " + ", ".join(f"{key} {measure.median(values):.1f}" for key, values in row.items()))


def machine(run, mode):
    processor = next((l.split(":")[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "?")

    def version(*command):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True).stdout.strip()

    pinned = [line for line in (prepare.HERE / "servers/requirements.txt").read_text().splitlines() if "==" in line]
    return {
        "run": run.name, "date": time.strftime("%Y-%m-%d"), "plan": mode, "processor": processor, "cores": os.cpu_count(),
        "kernel": platform.release(), "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(), "node": version(prepare.node(), "--version"), "rustc": version("rustc", "--version"),
        "git": version("git", "--version"), "cuebook": version(run.binary, "--version"),
        "commit": version("git", "-C", prepare.ROOT, "rev-parse", "--short", "HEAD"), "python_packages": pinned[:5],
        "npm": json.loads((prepare.HERE / "servers/package.json").read_text())["dependencies"], "rmcp": "3.11.0",
        "load_before": os.getloadavg()[0], "revision": REVISION,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", nargs="?", choices=["full", "quick", "report"], default="full",
                        help="quick: seconds each, to see that everything runs; report: only write what a run found")
    parser.add_argument("--only", help=f"servers, with commas: {','.join(NAMES)}")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"what is measured, with commas: {','.join(PARTS)}")
    parser.add_argument("--run", help="a run to go on with, or a name for a new one")
    parser.add_argument("--binary", help="a release build of cuebook; one is built where none is named")
    parser.add_argument("--write", action="store_true", help="put tables and plot into docs/")
    words = parser.parse_args()
    names = words.only.split(",") if words.only else NAMES
    parts = words.parts.split(",")
    for word, known in [(name, NAMES) for name in names] + [(part, PARTS) for part in parts]:
        if word not in known:
            parser.error(f"{word} is not one of {', '.join(known)}")
    if len(os.sched_getaffinity(0)) < 2:
        parser.error("server and generator need a core each, and here is one: run it where there are two")
    name = words.run or time.strftime("%Y%m%d-%H%M%S")
    if words.plan != "report":
        binary = prepare.everything(words.binary)
        begun = time.monotonic()
        run = Run(name, FULL if words.plan == "full" else QUICK, binary)
        before = run.saved("machine")
        facts = machine(run, words.plan)
        facts["minutes"] = (before or {}).get("minutes", 0)
        if "requests" in parts:
            requests(run, names)
        if "streams" in parts:
            streams(run, names)
        if "publish" in parts and "cuebook" in names:
            publish(run)
        facts["minutes"] += (time.monotonic() - begun) / 60
        run.save("machine", facts)
        say(f"run {name}: {facts['minutes']:.1f} minutes in all")
    report.write(prepare.TARGET / "runs" / name, prepare.ROOT / "docs" if words.write else None)


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(f"bench-peers: {error}")
