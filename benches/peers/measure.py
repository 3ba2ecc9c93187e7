"""What is measured: requests, streams, and what a publish costs."""

import http.client
import json
import os
import shutil
import statistics
import subprocess
import threading
import time
from pathlib import Path

import library
import prepare
from servers import GENERATOR_CORE, Client, Failed, Server, pinned

# Answers from which a median and a 99th percentile are taken, at least.
LEAST = 30
GIT = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_TERMINAL_PROMPT="0")


def load(*arguments):
    """One run of the load generator on its own core."""
    command = [str(prepare.program("load")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pinned(GENERATOR_CORE))
    if done.returncode:
        raise Failed(done.stderr.strip())
    return json.loads(done.stdout)


class Requests:
    """Cells of one running server: a case at a number of connections."""

    def __init__(self, server, most, folder):
        self.server, self.folder = server, Path(folder)
        self.asking = Client(server)
        self.clients = [self.asking]
        if self.asking.session:
            # as many sessions as connections: nobody shares one
            self.clients = [Client(server) for _ in range(most)]
            for client in self.clients:
                client.close()

    def cell(self, case, method, params, connections, warm, measured):
        body = self.asking.ask(case, method, params)
        expected = self.folder / f"{self.server.name}-{case}.body"
        expected.write_bytes(body)
        requests = self.folder / f"{self.server.name}.requests"
        requests.write_text(json.dumps([client.request(case, method, params) for client in self.clients[:connections]]))
        for _ in range(3):
            before, begun = self.server.cpu(), time.perf_counter()
            out = load("requests", f"127.0.0.1:{self.server.port}", connections, warm, measured, requests, expected)
            out["server_busy"] = (self.server.cpu() - before) / (time.perf_counter() - begun)
            if out["requests"] >= LEAST:
                break
            measured *= 4  # too few to say anything
        out["per_second"] = out["per_second"] or 0.0  # no answer in all that time
        return out

    def close(self):
        self.asking.close()


class Streams:
    """The process that holds and watches streams."""

    def __init__(self, server):
        command = [str(prepare.program("load")), "streams", f"127.0.0.1:{server.port}"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pinned(GENERATOR_CORE)
        )

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the stream reader ended; what it said is above")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def git(*words, folder=None, core=GENERATOR_CORE):
    done = subprocess.run(["git", *map(str, words)], cwd=folder, env=GIT, capture_output=True, text=True, preexec_fn=pinned(core))
    if done.returncode:
        raise Failed(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


class Author:
    """A clone whose commits are pushed, each of which changes one prompt."""

    def __init__(self, repository, folder):
        self.folder = Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        git("clone", "--quiet", "--bare", repository, self.folder)
        self.number = 0

    def commit(self, tree=None):
        self.number += 1
        prompt = library.prompts(2)[0]
        tree = tree or {"prompts/team-000/triage.md": library.markdown(prompt) + f"Change {self.number}.\n"}
        library.commit(self.folder, tree, f"Change {self.number}")

    def push(self, to):
        begun = time.perf_counter()
        git("push", "--quiet", to, "main:main", folder=self.folder)
        return time.perf_counter() - begun


def tell(server, streams, author=None, most_ms=60_000):
    """One change told to all: milliseconds from the ref having moved (Cuebook) or the notify call to the first and the last."""
    if author:
        author.commit()
    streams.do("arm")
    out = {}
    if author:
        out["push_ms"] = author.push(f"http://127.0.0.1:{server.port}/library.git") * 1e3
        begun = (server.data / "library.git/refs/heads/main").stat().st_mtime_ns
    else:
        begun = time.time_ns()
        threading.Thread(target=quietly, args=(server.notify,), daemon=True).start()
    seen = streams.do("wait", most_ms)
    out |= {"open": seen["open"], "told": seen["told"], "notices": seen["notices"]}
    if seen["told"]:
        out["first_ms"] = (int(seen["first_ns"]) - begun) / 1e6
        out["last_ms"] = (int(seen["last_ns"]) - begun) / 1e6
    return out


def quietly(act):
    try:
        act()
    except Exception:  # the server may be ended while it still tells; what was told is counted elsewhere
        pass


def tells(server, streams, count, author):
    out = []
    for _ in range(count):
        out.append(tell(server, streams, author, most_ms=20_000))
        if out[-1]["told"] < out[-1]["open"]:
            break  # it will not be quicker the next time
    return out


def unread(server, port):
    """Bytes that the server's socket holds for one connection."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        local, remote = (int(word.split(":")[1], 16) for word in words[1:3])
        if local == server.port and remote == port:
            return int(words[4].split(":")[0], 16)
    return None


def streams(make, folder, plan):
    """Memory and telling with open streams, then the same with one that is stuck."""
    out = {"levels": []}
    with make() as server:
        author = Author(server.data / "library.git", Path(folder) / "author.git") if server.name == "cuebook" else None
        server.rest(10, strict=False, quiet=3)
        out["idle"] = server.memory()
        watching = Streams(server)
        for count in plan["streams"]:
            opened = watching.do("open", count, 64, plan["open_seconds"])
            server.rest(plan["rest_seconds"], strict=False)
            level = {"asked": count, "opened": opened, "memory": server.memory()}
            level["per_stream"] = (level["memory"]["resident"] - out["idle"]["resident"]) / max(1, opened["open"])
            level["tells"] = tells(server, watching, plan["tells"], author)
            out["levels"].append(level)
            if opened["open"] < count:
                break
        watching.close()
    with make() as server:
        author = Author(server.data / "library.git", Path(folder) / "author.git") if server.name == "cuebook" else None
        server.rest(10, strict=False, quiet=3)
        watching = Streams(server)
        prefix, subscribed = (f"watched://{library.WATCHED_NAME}", library.WATCHED) if author else ("-", 0)
        port = watching.do("stuck", prefix, subscribed)["port"]
        if author:
            changed = {f"resources/watched/{library.WATCHED_NAME}{n}.md": f"Number {n}, changed.\n" for n in range(library.WATCHED)}
            author.commit(changed)
            author.push(f"http://127.0.0.1:{server.port}/library.git")
        else:
            fill(server)
        # what takes minutes to open is not opened a second time
        count = plan["streams"][-1] if server.name in ("floor", "cuebook", "rmcp") else plan["streams"][0]
        opened = watching.do("open", count, 64, plan["open_seconds"])
        out["stuck"] = {"asked": count, "opened": opened, "unread": unread(server, port)}
        out["stuck"]["tells"] = tells(server, watching, plan["tells"], author)
        out["stuck"]["unread_after"] = unread(server, port)
        watching.close()
    return out


def fill(server):
    """Has it tell so much that the one listener, which does not read, cannot hold more."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=1)
    end = time.monotonic() + 5
    for _ in range(4000):
        try:
            client.request("POST", "/notify")
            client.getresponse().read()
        except TimeoutError:
            break  # it waits for that one
        if time.monotonic() > end:
            break
    client.close()


def publish(binary, folder, sizes, pushes):
    """What `git push` of one changed prompt costs, by the size of the library; beside it a push without Cuebook."""
    out = {}
    for size in sizes:
        data = Path(folder) / f"data-{size}"
        plain = Path(folder) / "plain.git"
        shutil.rmtree(plain, ignore_errors=True)
        with Server("cuebook", folder, size, binary=binary, listed=False) as server:
            server.rest(60, strict=False, quiet=6)
            repository = data / "library.git"
            author = Author(repository, Path(folder) / "author.git")
            git("clone", "--quiet", "--bare", repository, plain)
            row = {"plain_ms": [], "path_ms": [], "http_ms": []}
            for _ in range(pushes):
                for key, to in (("path_ms", repository), ("http_ms", f"http://127.0.0.1:{server.port}/library.git")):
                    author.commit()
                    row[key].append(author.push(to) * 1e3)
                    row["plain_ms"].append(author.push(plain) * 1e3)
        out[str(size)] = row
    return out


def median(values):
    return statistics.median(values) if values else None
