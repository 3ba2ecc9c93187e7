"""What is served: one library, as a git repository for Cuebook and as data for the others, and the answers it must give."""

import json
import subprocess
from pathlib import Path

SERVICES = [f"{team}-{kind}" for team in ("payments", "orders", "search", "billing", "login", "mail", "stock", "media")
            for kind in ("api", "worker", "db", "cache", "gateway", "cron", "events", "admin", "web", "proxy",
                         "index", "queue", "sync", "batch", "edge", "auth", "config", "report", "export", "import")]
PREFIX = "payments-"
ARGUMENTS = {"ticket": "INC-9942", "service": "payments-api", "severity": "CRITICAL"}
DECLARED = [
    {"name": "ticket", "description": "Ticket, like INC-9942", "required": True},
    {"name": "service", "description": "Service the alert fired for", "required": False},
    {"name": "severity", "description": "CRITICAL, HIGH, MEDIUM or LOW", "required": False},
]
RUNBOOK_URI = "runbook://payments-api"
# Resources that one stuck reader is subscribed to, so that one publish has more to tell it than it can hold.
WATCHED = 900
WATCHED_NAME = "kept-under-watch-" * 10 + "w"


def template(number):
    """A template of 2 KB: text and what is put into it, in turn."""
    lines = [f"Incident {number}: ", ("ticket",), " is ", ("severity",), " for ", ("service",), ".\n\n"]
    steps = ["Say what users see, since when, and how many are concerned, before any cause is named.",
             "List what was deployed or configured in the last hour, with who did it and how it is undone.",
             "Compare error rate, latency and saturation with the same hour of yesterday and last week.",
             "Name each dependency that was ruled out, and the graph or the log line that rules it out.",
             "Write down every command that changes something, and wait for a yes before it is run."]
    size, line = sum(len(part) for part in lines if isinstance(part, str)), 0
    while size < 2000:
        text = f"{line + 1}. {steps[line % len(steps)]} "
        if line % 3 == 0:
            lines += [text, "Look at the dashboards of ", ("service",), " first.\n"]
            size += len(text) + 36
        else:
            lines += [text.rstrip() + "\n"]
            size += len(text)
        line += 1
    return [{"arg": part[0]} if isinstance(part, tuple) else {"text": part} for part in merged(lines)]


def merged(parts):
    out = []
    for part in parts:
        if out and isinstance(part, str) and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return out


def runbook():
    """20 KB of a runbook."""
    head = "# payments-api\n\nOwner: team payments. Pager: payments-oncall.\n"
    step = "\n## Step {n}\n\nCheck the connection pool of `payments-db`; when more than 90 % is in use, look for \"idle in transaction\" first.\n"
    text, n = head, 1
    while len(text) < 20_000:
        text += step.format(n=n)
        n += 1
    return text


def prompts(count):
    """The prompts of a library of so many: two that are measured, the rest that a list has to have."""
    out = [{"name": "triage", "runbook": False, "parts": template(0)},
           {"name": "triage-runbook", "runbook": True, "parts": template(0)}]
    out += [{"name": f"p{n:05}", "runbook": False, "parts": template(n)} for n in range(2, count)]
    for n, prompt in enumerate(out):
        prompt["description"] = f"First response to an incident, with what team {n} looks at first"
        prompt["arguments"] = DECLARED
    return out


def rendered(prompt):
    """The text that everybody must give for the measured call."""
    return "".join(part.get("text") or ARGUMENTS[part["arg"]] for part in prompt["parts"])


def markdown(prompt, worker=False):
    """A prompt as a file of a Cuebook library. In the worker lane the same text is made by a loop that is not known to end
    soon until it is run."""
    body = "".join(part["text"] if "text" in part else "{{ " + part["arg"] + " }}" for part in prompt["parts"])
    if worker:
        body = "{% for part in range(end=1) %}" + body + "{% endfor %}"
    bound = 'resources:\n  - name: runbook\n    uri: "runbook://{{ service }}"\n    required: false\n' if prompt["runbook"] else ""
    return (
        f"---\ndescription: {prompt['description']}\narguments:\n"
        f"  - name: ticket\n    description: {DECLARED[0]['description']}\n    required: true\n"
        f"  - name: service\n    description: {DECLARED[1]['description']}\n    values: {{ file: \"services.txt\" }}\n"
        f"  - name: severity\n    description: {DECLARED[2]['description']}\n    default: HIGH\n"
        f"{bound}---\n{body}"
    )


def files(count, watched=0):
    """Path to text of a Cuebook library; prompts in folders of a hundred."""
    out = {"values/services.txt": "".join(f"{s}\n" for s in SERVICES),
           "resources/runbook/payments-api.md": runbook()}
    for n, prompt in enumerate(prompts(count)):
        out[f"prompts/team-{n // 100:03}/{prompt['name']}.md"] = markdown(prompt)
    for n in range(watched):
        out[f"resources/watched/{WATCHED_NAME}{n}.md"] = f"Number {n}.\n"
    return out


def with_worker(tree):
    """The same library with one prompt more, whose text is made in a worker."""
    tree["prompts/worker/triage-loop.md"] = markdown(prompts(2)[0] | {"description": "In a worker"}, worker=True)
    return tree


def data(count, path):
    """The library as the other servers read it."""
    book = {"uri": RUNBOOK_URI, "mimeType": "text/markdown", "text": runbook()}
    out = {"prompts": prompts(count), "runbooks": {"payments-api": book}, "services": SERVICES}
    Path(path).write_text(json.dumps(out))


def commit(repository, tree, message="A change"):
    """Writes files as a commit on main of a bare repository."""
    parent = subprocess.run(["git", "rev-parse", "-q", "--verify", "refs/heads/main"], cwd=repository, capture_output=True, text=True)
    stream = [f"commit refs/heads/main\ncommitter Bench <bench@localhost> 1700000000 +0000\ndata {len(message)}\n{message}\n".encode()]
    if parent.returncode == 0:
        stream.append(f"from {parent.stdout.strip()}\n".encode())
    for path, text in tree.items():
        content = text.encode()
        stream.append(f"M 100644 inline {path}\ndata {len(content)}\n".encode() + content + b"\n")
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository, input=b"".join(stream), check=True)


def bare(path, tree):
    """A bare repository with one commit."""
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(path)], check=True)
    commit(path, tree)


def cases(count):
    """What is asked: name to method and params."""
    arguments = {"name": "service", "value": PREFIX}
    if count > 50:
        return {f"list-{count}": ("prompts/list", {})}
    return {
        f"list-{count}": ("prompts/list", {}),
        "get": ("prompts/get", {"name": "triage", "arguments": ARGUMENTS}),
        "get-runbook": ("prompts/get", {"name": "triage-runbook", "arguments": ARGUMENTS}),
        "complete": ("completion/complete", {"ref": {"type": "ref/prompt", "name": "triage"}, "argument": arguments}),
    }


WORKER_CASE = {"get-worker": ("prompts/get", {"name": "triage-loop", "arguments": ARGUMENTS})}


def check(case, result, count):
    """Says what is wrong with an answer, or nothing."""
    if case.startswith("list"):
        want = {p["name"]: p for p in prompts(count)}
        got = {p["name"]: p for p in result["prompts"]}
        got.pop("triage-loop", None)
        if set(want) != set(got):
            return f"{len(got)} prompts where {len(want)} are"
        for name, prompt in want.items():
            if got[name].get("description") != prompt["description"]:
                return f"the description of {name} is {got[name].get('description')!r}"
            names = [(a["name"], a["description"], bool(a.get("required"))) for a in got[name]["arguments"]]
            if names != [(a["name"], a["description"], a["required"]) for a in DECLARED]:
                return f"the arguments of {name} are {names}"
        if result.get("nextCursor"):
            return "the list goes on on another page"
        return None
    if case == "complete":
        values = result["completion"]["values"]
        want = [s for s in SERVICES if s.startswith(PREFIX)]
        return None if values == want and result["completion"]["total"] == len(want) else f"the values are {values}"
    messages = result["messages"]
    texts = [m["content"].get("text") for m in messages]
    if texts[0] != rendered(prompts(2)[0]):
        return f"the text is {texts[0]!r}"
    if case == "get-runbook":
        if len(messages) != 2 or messages[1]["content"]["resource"]["text"] != runbook():
            return "the runbook is not embedded as it is"
        if messages[1]["content"]["resource"]["uri"] != RUNBOOK_URI:
            return f"the runbook is {messages[1]['content']['resource']['uri']}"
    elif len(messages) != 1:
        return f"{len(messages)} messages"
    return None
