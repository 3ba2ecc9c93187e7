"""Sends what schemathesis makes of the API's own description to a real server with access control.

Fails on an answer that is a fault of the server, or that is not in the description: another status, another content
type, another shape. Every operation is asked, one after another, as the only admin, whom nobody can disable. Should the
token be revoked on the way, this fails at the end, since every answer after that would have said nothing.

    run.py PATH/TO/cuebook
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
PROMPT = "incident-triage"
# Seconds for all of schemathesis; it takes less than half of it.
LONGEST = 300

cuebook = sys.argv[1]
here = Path(__file__).parent


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(url, token=None, body=None):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as answer:
        return answer.read()


def started(server, url):
    for _ in range(300):
        if server.poll() is not None:
            sys.exit(f"the server ended with {server.returncode}")
        try:
            ask(f"{url}/readyz")
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not answer")


def command(*arguments):
    return subprocess.run([cuebook, *arguments], check=True, capture_output=True, text=True).stdout


def written(url, token):
    """What the description's examples name: a prompt of more than one version, a label, a person, a proposal and a comment."""
    path = f"prompts/sre/{PROMPT}.md"
    text = "---\ndescription: Triage\narguments:\n  - name: service\n    values: [search]\n---\nLook at {{ service }}%s.\n"
    tip = json.loads(ask(f"{url}/readyz", token))["tip"]
    for more in ("", " twice"):
        change = {"base": tip, "message": f"Look{more}", "files": {path: text % more}}
        tip = json.loads(ask(f"{url}/api/v1/changes", token, change))["commit"]
    label = {"label": "production", "version": "v1", "reason": "to have one"}
    tip = json.loads(ask(f"{url}/api/v1/prompts/{PROMPT}/label", token, label))["commit"]
    ask(f"{url}/api/v1/access/people", token, {"name": "ann"})
    proposal = {"title": "Look more", "base": tip, "files": {path: text % " often"}}
    ask(f"{url}/api/v1/proposals", token, proposal)
    ask(f"{url}/api/v1/proposals/1/comments", token, {"message": "Why?"})


def checked(url, token):
    program = Path(sys.executable).with_name("schemathesis")
    arguments = ["--config-file", here / "schemathesis.toml", "--no-color", "run", f"{url}/api/v1/openapi.json"]
    arguments += ["--header", f"Authorization: Bearer {token}", "--checks", CHECKS]
    arguments += ["--phases", "examples,coverage,fuzzing", "--mode", "all", "--max-examples", "12", "--workers", "1"]
    arguments += ["--seed", "7", "--generation-deterministic"]
    arguments += ["--request-timeout", "20", "--continue-on-failure"]
    return subprocess.run([program, *arguments], timeout=LONGEST).returncode


with tempfile.TemporaryDirectory(prefix="cuebook-api-") as folder:
    os.environ["CUEBOOK_DATA_DIR"] = f"{folder}/data"
    os.environ["CUEBOOK_ACCESS_ENABLED"] = "true"
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    log = Path(folder, "log")
    with log.open("wb") as out:
        server = subprocess.Popen([cuebook, "serve", "--listen", f"127.0.0.1:{port}"], stdout=out, stderr=out)
    try:
        started(server, url)
        command("access", "add-person", "root", "--admin")
        # the first line is the token
        token = command("token", "create", "root", "--label", "api").splitlines()[0]
        written(url, token)
        failed = checked(url, token)
        try:
            ask(f"{url}/api/v1/access/me", token)
        except urllib.error.HTTPError as error:
            sys.exit(f"the token of this run lets nobody in any more ({error}): what came after was not looked at")
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.url}: {error}: {error.read().decode()}")
    finally:
        server.terminate()
        server.wait()
        wrong = [line for line in log.read_text(errors="replace").splitlines() if " ERROR " in line]
        if wrong:
            print(*wrong[:20], sep="\n", file=sys.stderr)
sys.exit(failed)
