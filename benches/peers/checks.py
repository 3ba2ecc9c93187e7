#!/usr/bin/env python3
"""Shows that the harness starts, that what it serves is a clean library, and that a wrong answer would be noticed; measures nothing.

checks.py target/debug/cuebook
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import library
import report
from servers import NAMES

binary = Path(sys.argv[1]).resolve()
here = Path(__file__).resolve().parent


def told(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def the_harness_starts():
    assert "--only" in told([sys.executable, here / "run.py", "--help"])


def the_library_is_clean_and_one_prompt_is_for_the_workers():
    with tempfile.TemporaryDirectory() as folder:
        repository, tree = Path(folder) / "library.git", Path(folder) / "tree"
        library.bare(repository, library.with_worker(library.files(50, watched=3)))
        told(["git", "clone", "--quiet", repository, tree])
        said = told([binary, "check", tree])
        assert "51 prompts, 4 resources" in said and "1 prompt is rendered in worker" in said, said
        values = [f"{name}={value}" for name, value in library.ARGUMENTS.items()]
        for name in ("triage", "triage-loop"):
            text = told([binary, "render", "--library", tree, name, *values])
            assert library.rendered(library.prompts(2)[0]) in text, text


def a_wrong_answer_is_noticed():
    text = library.rendered(library.prompts(2)[0])
    right = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    assert library.check("get", right, 50) is None
    assert library.check("get-runbook", right, 50)
    right["messages"][0]["content"]["text"] = text + " "
    assert library.check("get", right, 50)
    values = [s for s in library.SERVICES if s.startswith(library.PREFIX)]
    assert library.check("complete", {"completion": {"values": values, "total": len(values)}}, 50) is None
    assert library.check("complete", {"completion": {"values": values[1:], "total": len(values)}}, 50)


def a_run_becomes_tables_and_a_plot():
    def cell(per_second):
        return {"requests": 100, "per_second": per_second, "p50_us": 100.0, "p99_us": 2e6 / per_second, "generator_busy": 0.5}

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, per_second in zip(NAMES, [100_000, 69_000, 30_000, 3000, 900, 600]):
            cells = {case: {str(n): cell(per_second) for n in (1, 16, 64)} for case in ("get", "list-50")}
            memory = {count: {"resident": 10_000_000, "anonymous": 4_000_000} for count in ("50", "1000")}
            rounds = [{"cold_s": {"50": 0.01, "1000": 0.02}, "memory": memory, "cells": cells}] * 3
            (folder / f"requests-{name}.json").write_text(json.dumps({"mode": None, "probe": {}, "rounds": rounds}))
        machine = dict.fromkeys(["date", "processor", "kernel", "python", "node", "rustc", "commit", "rmcp", "revision"], "x")
        machine |= {"plan": "full", "minutes": 1, "cores": 2, "memory_gb": 1, "python_packages": [], "npm": {}}
        (folder / "machine.json").write_text(json.dumps(machine))
        docs = folder / "docs"
        docs.mkdir()
        (docs / "benchmarks.md").write_text(f"before\n{report.BEGIN}\nwhat was there\n{report.END}\nafter\n")
        report.write(folder, docs)
        text = (docs / "benchmarks.md").read_text()
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "what was there" not in text
        assert "at least 70 % of the floor | 69 % | **missed** |" in text, text
        assert "at least 2.2 × rmcp | 2.3 × | met |" in text, text
        assert "not measured" in text
        assert (docs / "benchmarks-peers.svg").read_text().startswith("<svg")


for check in (the_harness_starts, the_library_is_clean_and_one_prompt_is_for_the_workers, a_wrong_answer_is_noticed, a_run_becomes_tables_and_a_plot):
    check()
    print("ok  ", check.__name__.replace("_", " "))
