"""What a run found: tables for docs/benchmarks.md, the aims, and the plot."""

import json
import statistics
from pathlib import Path

from servers import NAMES, TITLES

BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
CASES = {
    "get": "`prompts/get`, 2 KB",
    "get-runbook": "`prompts/get`, 2 KB and a runbook of 20 KB",
    "list-50": "`prompts/list`, 50 prompts",
    "list-1000": "`prompts/list`, 1,000 prompts",
    "complete": "`completion/complete`",
}
MODE_NAMES = {"stateful": "sessions, answers as events (its default)", "stateful-json": "sessions, answers as JSON",
              "stateless-json": "no sessions, answers as JSON"}


class Found:
    """The files of a run."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.machine = self.load("machine")
        self.requests = {name: self.load(f"requests-{name}") for name in NAMES}
        self.streams = {name: self.load(f"streams-{name}") for name in NAMES}
        self.publish = self.load("publish")

    def load(self, name):
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def cells(self, name, case, connections):
        rounds = (self.requests.get(name) or {}).get("rounds", [])
        found = [r["cells"].get(case, {}).get(str(connections)) for r in rounds]
        return [cell for cell in found if cell and cell["requests"]]

    def value(self, name, case, connections, key):
        """The median of the rounds, or nothing where it was not measured."""
        cells = self.cells(name, case, connections)
        return statistics.median(c[key] for c in cells) if cells else None

    def ratio(self, case, key="per_second", over="floor", connections=64, name="cuebook"):
        ours, theirs = self.value(name, case, connections, key), self.value(over, case, connections, key)
        return ours / theirs if ours and theirs else None

    def idle(self, name, count=50):
        rounds = (self.requests.get(name) or {}).get("rounds", [])
        found = [r["memory"][str(count)]["resident"] for r in rounds if str(count) in r["memory"]]
        return statistics.median(found) / 1e6 if found else None

    def private(self, name, count=50):
        """Of the memory at rest what is backed by no file: the program's own text, which others may share, is not in it."""
        rounds = (self.requests.get(name) or {}).get("rounds", [])
        found = [r["memory"][str(count)]["anonymous"] for r in rounds if str(count) in r["memory"]]
        return statistics.median(found) / 1e6 if found else None

    def cold(self, name, count=50):
        rounds = (self.requests.get(name) or {}).get("rounds", [])
        return [r["cold_s"][str(count)] * 1e3 for r in rounds if str(count) in r["cold_s"]]

    def level(self, name, asked):
        levels = (self.streams.get(name) or {}).get("levels", [])
        return next((level for level in levels if level["asked"] == asked), None)

    def most(self):
        levels = [level["asked"] for s in self.streams.values() if s for level in s["levels"]]
        return max(levels, default=None)


def last(tells):
    """Median milliseconds until all were told; nothing when once not all were."""
    if not tells or any(t["told"] < t["open"] for t in tells):
        return None
    return statistics.median(t["last_ms"] for t in tells)


def short(value):
    """A number of a table: three figures."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def wait(microseconds):
    if microseconds is None:
        return "–"
    return f"{short(microseconds / 1e3)} ms" if microseconds >= 1000 else f"{microseconds:.0f} µs"


def spread(values):
    if not values:
        return "–"
    middle = statistics.median(values)
    return f"{short(middle)} ({short(min(values))}–{short(max(values))})" if len(values) > 1 else short(middle)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def requests(found):
    out = []
    for case, title in CASES.items():
        rows = []
        for name in NAMES:
            lanes = [(name, case)] + ([(name, "get-worker")] if (name, case) == ("cuebook", "get") else [])
            for name, lane in lanes:
                if not found.cells(name, lane, 64):
                    continue
                label = {"get-worker": "Cuebook, worker lane"}.get(lane, "Cuebook, fast lane" if (name, lane) == ("cuebook", "get") else TITLES[name])
                row = [label, spread([c["per_second"] for c in found.cells(name, lane, 64)])]
                for connections in (1, 16, 64):
                    p50, p99 = (found.value(name, lane, connections, key) for key in ("p50_us", "p99_us"))
                    row.append(f"{wait(p50)}, {wait(p99)}")
                rows.append(row)
        if rows:
            out += [f"**{title}**", ""]
            out += table(["", "requests/s at 64", "p50, p99 at 1", "at 16", "at 64"], rows)
    return out


def starts(found):
    rows = []
    for name in NAMES:
        if not found.cold(name):
            continue
        rows.append([TITLES[name], f"{spread(found.cold(name))} ms", f"{spread(found.cold(name, 1000))} ms",
                     f"{short(found.idle(name))} MB, {short(found.private(name))} MB",
                     f"{short(found.idle(name, 1000))} MB, {short(found.private(name, 1000))} MB"])
    if not rows:
        return []
    head = ["", "first answer, 50 prompts", "1,000 prompts", "resident, of it private, 50", "1,000"]
    return ["**From the start of the process to its first list; memory at rest after it**", ""] + table(head, rows)


def streams(found):
    rows = []
    for name in NAMES:
        have = found.streams.get(name)
        if not have:
            continue
        row = [TITLES[name]]
        for level in have["levels"]:
            opened = level["opened"]["open"]
            all_of_them = "" if opened == level["asked"] else f"{opened:,} of them in {level['opened']['seconds']:.0f} s: "
            told = last(level["tells"])
            row.append(f"{all_of_them}{level['memory']['resident'] / 1e6:,.0f} MB, {level['per_stream'] / 1024:.1f} KB")
            row.append(f"{short(told)} ms" if told else unheard(level["tells"]))
        row += ["–"] * (5 - len(row))
        stuck = have["stuck"]
        told = last(stuck["tells"])
        row.append((f"{short(told)} ms" if told else unheard(stuck["tells"])) + f" ({stuck['opened']['open']:,})")
        rows.append(row)
    if not rows:
        return []
    counts = [f"{level['asked']:,}" for level in next(s for s in found.streams.values() if s)["levels"]]
    counts += ["–"] * (2 - len(counts))
    head = ["", f"resident with {counts[0]} streams, each", "the last told", f"resident with {counts[1]}, each", "the last told", "with one stuck (of)"]
    return ["**Open streams**", ""] + table(head, rows)


def unheard(tells):
    told = min(tells, key=lambda t: t["told"], default=None)
    return f"{told['told']:,} of {told['open']:,} told in 20 s" if told else "–"


def publish(found):
    if not found.publish:
        return []
    rows = [[f"{int(size):,}"] + [f"{spread(row[key])} ms" for key in ("plain_ms", "path_ms", "http_ms")] for size, row in found.publish.items()]
    head = ["prompts", "`git push` without Cuebook", "by path, checked and served", "by HTTP, checked and served"]
    return ["**A push that changes one prompt**", ""] + table(head, rows)


def aims(found):
    """Each aim: what it is, what was measured, whether it is met."""
    rows = []

    def row(aim, measured, met):
        rows.append([aim, measured if measured is not None else "not measured", "–" if met is None else "met" if met else "**missed**"])

    def at_least(aim, value, least, text):
        row(aim, text.format(value * 100 if "%" in text else value) if value else None, value >= least if value else None)

    at_least("`prompts/get`, fast lane, at 64: at least 70 % of the floor", found.ratio("get"), 0.7, "{:.0f} %")
    at_least("at least 2.2 × rmcp", found.ratio("get", over="rmcp"), 2.2, "{:.1f} ×")
    at_least("at least 20 × the TypeScript SDK", found.ratio("get", over="typescript"), 20, "{:.1f} ×")
    at_least("at least 100 × FastMCP", found.ratio("get", over="fastmcp"), 100, "{:.0f} ×")
    at_least("`prompts/list` of 50 at least 85 % of the floor", found.ratio("list-50"), 0.85, "{:.0f} %")
    at_least("`completion/complete` at least 75 % of the floor", found.ratio("complete"), 0.75, "{:.0f} %")
    waits = {case: found.ratio(case, key="p99_us", connections=16) for case in ("get", "list-50", "complete")}
    waits = {case: value for case, value in waits.items() if value}
    row("p99 at 16 connections within 1.7 × of the floor's",
        ", ".join(f"{case} {value:.2f} ×" for case, value in waits.items()) or None,
        all(value <= 1.7 for value in waits.values()) if waits else None)
    most = found.most()
    ours, floor = (found.level(name, most) for name in ("cuebook", "floor"))
    at = f"{most:,}" if most else "10,000"
    each = ours["per_stream"] / 1024 if ours else None
    row(f"at most 25 KB a stream at {at}", f"{each:.1f} KB" if each else None, each <= 25 if each else None)
    told, bare = (last(level["tells"]) if level else None for level in (ours, floor))
    row(f"the last of {at} told within 1.5 × of a bare broadcast", f"{told / bare:.2f} × ({told:.0f} ms, {bare:.0f} ms)" if told and bare else None,
        told <= 1.5 * bare if told and bare else None)
    stuck = last((found.streams.get("cuebook") or {}).get("stuck", {}).get("tells"))
    row("one stuck reader among them delays nobody", f"{stuck:.0f} ms with, {told:.0f} ms without" if stuck and told else None,
        stuck <= 1.2 * told if stuck and told else None)
    idle = found.idle("cuebook")
    row("idle memory with 50 prompts under 15 MB", f"{idle:.1f} MB, of it {found.private('cuebook'):.1f} MB private" if idle else None, idle < 15 if idle else None)
    if found.publish:
        costs = [statistics.median(row["path_ms"]) for row in found.publish.values()]
        flat = max(costs) / min(costs)
        sizes = list(found.publish)
        row(f"cost of a one-file publish flat from {int(sizes[0]):,} to {int(sizes[-1]):,} prompts (1.5 ×)", f"{flat:.2f} ×", flat <= 1.5)
    else:
        row("cost of a one-file publish flat from 100 to 10,000 prompts (1.5 ×)", None, None)
    return ["**Aims**", ""] + table(["aim", "measured", ""], rows)


def ground(found):
    m = found.machine
    modes = [f"{TITLES[name]}: {MODE_NAMES[r['mode']]} ({', '.join(f'{mode} {short(seen)}/s' for mode, seen in r['probe'].items())})"
             for name, r in found.requests.items() if r and r["mode"]]
    packages = ", ".join(m["python_packages"] + [f"{name} {version}" for name, version in m["npm"].items()]).replace("==", " ")
    busy = [c["generator_busy"] for r in found.requests.values() if r for x in r["rounds"] for cells in x["cells"].values()
            for c in cells.values() if c["requests"]]
    out = [
        f"`just bench-peers{'' if m['plan'] == 'full' else ' ' + m['plan']}`, {m['date']}, {m['minutes']:.0f} minutes: {m['processor']}, "
        f"{m['cores']} cores, {m['memory_gb']} GB, Linux {m['kernel']}; server and its children on core 0, load generator on core 1. "
        f"Cuebook {m['commit']}, rmcp {m['rmcp']}, {packages}, Python {m['python']}, Node {m['node'].lstrip('v')}, {m['rustc'].split(' (')[0]}.",
        "",
        "Same prompts, same rendered bytes: every answer is compared with what it must be before it is measured, and each measured answer "
        f"with that one. MCP {m['revision']} over Streamable HTTP with kept connections; where a server makes sessions, each connection has its own. "
        "The floor returns Cuebook's bytes without reading the request's. Rust programs have the same allocator. "
        "Others run as their documentation says for production (uvicorn with uvloop and httptools, one worker on the one core), in the quickest of "
        "their documented modes by a probe of `prompts/get` at 16 connections: " + "; ".join(modes) + ". Cuebook's answers also carry where they came from, which "
        "makes them longer. Streams are held in each server's default mode, with sessions.",
        "",
    ]
    if busy:
        out += [f"Medians of {len(next(r for r in found.requests.values() if r)['rounds'])} rounds, in brackets the spread. "
                f"The load generator was busy {max(busy) * 100:.0f} % of its core at most.", ""]
    return out


def telling(found):
    if not any(found.streams.values()):
        return []
    return ["A stream is a session and its open `GET`. The last is told after: from the moved ref, in a `git push` over HTTP, for Cuebook; from the call that tells "
            "all sessions for the others, whose change is not stored, checked or read. The stuck one reads nothing and holds more than its sockets take.", ""]


def page(found):
    return [BEGIN, *ground(found), *aims(found), "![Requests a second at 64 connections](benchmarks-peers.svg)", "", *requests(found),
            *starts(found), *streams(found), *telling(found), *publish(found), END]


def plot(found):
    """Requests a second at 64 connections, on a logarithmic scale."""
    import math

    cases = [case for case in CASES if any(found.cells(name, case, 64) for name in NAMES)]
    shown = [name for name in NAMES if found.requests.get(name)]
    left, right, bar, gap = 150, 90, 13, 30
    width, plot_width = 760, 760 - left - right
    values = [found.value(name, case, 64, "per_second") for name in shown for case in cases]
    values = [value for value in values if value]
    if not values:
        return None
    low, high = 10 ** math.floor(math.log10(min(values))), max(values)
    scale = plot_width / math.log10(high / low)
    out, y = [], 34
    for case in cases:
        out.append(f'<text class="t" x="{left}" y="{y}">{CASES[case].replace("`", "")}</text>')
        y += 8
        for name in shown:
            value = found.value(name, case, 64, "per_second")
            if value is None:
                continue
            length = max(1.0, math.log10(value / low) * scale)
            kind = name if name in ("floor", "cuebook") else "other"
            out.append(f'<text class="n" x="{left - 8}" y="{y + bar - 3}" text-anchor="end">{TITLES[name].split(":")[0]}</text>')
            out.append(f'<rect class="{kind}" x="{left}" y="{y}" width="{length:.1f}" height="{bar - 2}" rx="2"/>')
            out.append(f'<text class="n" x="{left + length + 6:.1f}" y="{y + bar - 3}">{value:,.0f}</text>')
            y += bar
        y += gap
    style = (
        "text{font:11px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:12px}.n{font-size:10px}.floor{fill:#9aa4af}.cuebook{fill:#0f766e}.other{fill:#c2823a}"
        "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.floor{fill:#6e7781}.cuebook{fill:#2dd4bf}.other{fill:#e0a458}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" role="img" aria-label="Requests a second at 64 connections, logarithmic">'
        f"<style>{style}</style>"
        f'<text class="n" x="{left}" y="14">Requests a second at 64 connections, logarithmic from {low:,.0f}</text>' + "".join(out) + "</svg>\n"
    )


def write(folder, docs):
    """Prints the tables, and puts them between the marks of docs/benchmarks.md."""
    found = Found(folder)
    lines = page(found)
    text = "\n".join(lines)
    (found.folder / "report.md").write_text(text + "\n")
    picture = plot(found)
    if picture:
        (found.folder / "plot.svg").write_text(picture)
    if docs is None:
        print(text)
        return
    target = Path(docs) / "benchmarks.md"
    page_text = target.read_text()
    before, _, rest = page_text.partition(BEGIN)
    after = rest.partition(END)[2]
    target.write_text(before + text + after)
    if picture:
        (Path(docs) / "benchmarks-peers.svg").write_text(picture)
    print(f"written: {target}")
