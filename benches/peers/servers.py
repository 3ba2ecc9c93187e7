"""How each server is started, and what can be seen of its process."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import library
import prepare

SERVER_CORE = 0
GENERATOR_CORE = 1
REVISION = "2025-11-25"
# Documented ways to run each of the others; the first is the default, and the one that holds streams.
MODES = {
    "rmcp": ["stateful", "stateless-json"],
    "typescript": ["stateful", "stateful-json", "stateless-json"],
    "python": ["stateful", "stateful-json", "stateless-json"],
    "fastmcp": ["stateful", "stateful-json", "stateless-json"],
}
NAMES = ["floor", "cuebook", *MODES]
TITLES = {
    "floor": "floor: bare axum handler",
    "cuebook": "Cuebook",
    "rmcp": "rmcp",
    "typescript": "TypeScript SDK",
    "python": "Python SDK",
    "fastmcp": "FastMCP",
}


class Failed(Exception):
    """What went wrong with a server."""


def pinned(core):
    return lambda: os.sched_setaffinity(0, {core})


def free_port():
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Server:
    """A running server; ended when the `with` ends."""

    def __init__(self, name, folder, count, mode=None, binary=None, answers=None, kind="data", listed=True):
        self.name, self.count, self.mode, self.folder, self.listed = name, count, mode, Path(folder), listed
        self.port = free_port()
        data = self.folder / f"library-{count}.json"
        port = str(self.port)
        address = f"127.0.0.1:{port}"
        if name == "cuebook":
            self.data = self.folder / f"{kind}-{count}"
            command = [binary, "serve", "--data-dir", self.data, "--listen", address]
        elif name == "floor":
            command = [prepare.program("floor"), address, answers]
        elif name == "rmcp":
            command = [prepare.program("rmcp_server"), address, data, mode]
        elif name == "typescript":
            command = [prepare.node(), prepare.TARGET / "npm/typescript.mjs", port, data, mode]
        else:
            file = {"python": "python_sdk.py", "fastmcp": "fastmcp_server.py"}[name]
            command = [prepare.VENV / "bin/python", prepare.HERE / "servers" / file, port, data, mode]
        self.command = [str(word) for word in command]

    def __enter__(self):
        self.log = open(self.folder / f"{self.name}-{self.mode or 'default'}.log", "ab")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CUEBOOK_", "FASTMCP_", "RUST_"))}
        # as Cuebook does by itself: huge pages would double what the others that use this allocator hold
        environment["MIMALLOC_ALLOW_THP"] = "0"
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=self.log, preexec_fn=pinned(SERVER_CORE), env=environment, cwd=self.folder,
        )
        try:
            self.first_answer(begun)
        except BaseException:
            self.__exit__()
            raise
        return self

    def first_answer(self, begun):
        """Asks until there is an answer; `cold` is the seconds from the start of the process to it."""
        while True:
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended with {self.process.returncode}: see {self.log.name}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=30).close()
                break
            except ConnectionRefusedError:
                if time.perf_counter() - begun > 120:
                    raise Failed(f"{self.name} does not listen: see {self.log.name}") from None
                time.sleep(0.001)
        client = Client(self)
        if self.listed:
            case, (method, params) = next(iter(library.cases(self.count).items()))
            client.ask(case, method, params)
        self.cold = time.perf_counter() - begun
        client.close()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()

    def processes(self):
        """The process and what it started."""
        out, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            out.append(pid)
            try:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    queue += [int(child) for child in (task / "children").read_text().split()]
            except FileNotFoundError:
                pass
        return out

    def cpu(self):
        """Seconds that its threads were on a processor."""
        total = 0
        for pid in self.processes():
            try:
                for task in Path(f"/proc/{pid}/task").iterdir():
                    total += int((task / "schedstat").read_text().split()[0])
            except FileNotFoundError:
                pass
        return total / 1e9

    def rest(self, most=30.0, strict=True, quiet=1):
        """Waits until it does nothing: less than 1 % of a core for `quiet` half seconds, one after the other. Some never do
        where many listen; Cuebook first counts versions and then makes the index of its search."""
        end, rested = time.monotonic() + most, 0
        while time.monotonic() < end:
            before = self.cpu()
            time.sleep(0.5)
            rested = rested + 1 if self.cpu() - before < 0.005 else 0
            if rested >= quiet:
                return
        if strict:
            raise Failed(f"{self.name} does not come to rest in {most:.0f} s")

    def memory(self):
        """Resident bytes: all, and of it what is backed by no file."""
        resident = anonymous = 0
        for pid in self.processes():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except FileNotFoundError:
                continue
            fields = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
            resident += int(fields.get("VmRSS", ["0"])[0]) * 1024
            anonymous += int(fields.get("RssAnon", ["0"])[0]) * 1024
        return {"resident": resident, "anonymous": anonymous}

    def notify(self):
        """Has it tell everybody, by the hook that only this harness knows."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        client.request("POST", "/notify")
        client.getresponse().read()
        client.close()


class Client:
    """A plain client: a session where the server makes one, requests as bytes, answers as JSON."""

    def __init__(self, server):
        self.server = server
        self.http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.session = None
        if server.name == "floor":
            return
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "peers", "version": "1"}}}
        reply, _ = self.post(json.dumps(body))
        self.session = reply.getheader("mcp-session-id")
        self.post('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def headers(self):
        out = {"Host": f"127.0.0.1:{self.server.port}", "MCP-Protocol-Version": REVISION, "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"}
        return out | ({"Mcp-Session-Id": self.session} if self.session else {})

    def post(self, body, path="/mcp"):
        for last in (False, True):
            try:
                self.http.request("POST", path, body=body, headers=self.headers())
                reply = self.http.getresponse()
                break
            except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
                # some close a connection that was idle for 5 s
                self.http.close()
                if last:
                    raise
        content = reply.read()
        if reply.status not in (200, 202):
            raise Failed(f"{self.server.name} answered {reply.status}: {content[:300]!r}")
        return reply, content

    def path(self, case):
        return f"/bytes/{case}" if self.server.name == "floor" else "/mcp"

    def ask(self, case, method, params):
        """The answer's body as it came, once it is found right."""
        _, body = self.post(request_body(method, params), self.path(case))
        message = json.loads(last_data(body))
        if "result" not in message:
            raise Failed(f"{self.server.name} answered {case} with {body[:300]!r}")
        wrong = library.check(case, message["result"], self.server.count)
        if wrong:
            raise Failed(f"{self.server.name} answered {case} otherwise than the rest: {wrong}")
        return body

    def request(self, case, method, params):
        """The bytes of a request, for the load generator."""
        body = request_body(method, params)
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers().items())
        return f"POST {self.path(case)} HTTP/1.1\r\n{head}Content-Length: {len(body.encode())}\r\n\r\n{body}"

    def close(self):
        self.http.close()


def request_body(method, params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params else {})
    return json.dumps(message, separators=(",", ":"))


def last_data(body):
    """The JSON of an answer, which may have come as an event."""
    if body.lstrip().startswith(b"{"):
        return body
    events = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
    return next(event for event in reversed(events) if event)
