#!/usr/bin/env python3
"""make bench: every speed target beside its bare baseline, in one table.

    tests/bench/run.py OUT [LETTER...]

A figure and its baseline are measured in one run, five times in turns, and the medians are told. What needs a
program of its own is tests/bench/bench_NAME.c: it alternates by itself, and its last line ends with what it found and
"(target ...)". Progress goes to stderr. Exit 1 when a target is missed, or could not be measured.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import typing

import bench_outage
import bench_sinks
from place import Place, running

RUNS = 5
SECONDS = 2  # of one run under load
MANY = 64  # connections
EVENTS = 1_000_000
FLAT_MB = 2
OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
PROGRAM = OUT / "hooktrail"
BENCH = OUT / "obj/tests/bench"

HOOK = """kind: Hook
metadata: {name: %s}
spec:
  eventType: %s
  activationMode: always
  hook: {type: command, command: /bin/true%s}
"""
CHAIN = ["/bin/bash", "-c", "/bin/true"]  # what the sre contract makes of `command: /bin/true`


class Row(typing.NamedTuple):
    """One line of the table; ratio "" where the target is no ratio."""
    target: str
    figure: str
    bare: str
    ratio: str
    wanted: str
    met: bool


def call(event, **more):
    payload = {"hook_event_name": event, "agent_name": "meta_agent", **more}
    return {"contract": "sre", "thread_id": "bench", "payload": payload}


def tool_call(tool):
    return call("PreToolUse", tool_name=tool, tool_input={"command": "ls"}, call_id="call-1")


def body_file(place, name, request):
    return place.file(f"{name}.json", json.dumps(request))


def hooks_file(place):
    """A hook for RunInTerminal, and nothing for other tools."""
    return place.file("hooks.yaml", HOOK % ("passes", "PreToolUse", ", matcher: RunInTerminal"))


def config_file(place, durability="write"):
    """A collector of its own."""
    return place.file(f"{durability}.yaml", f"""
state: {place.disk}/{durability}
contracts: {{sre: {{hooks: {hooks_file(place)}}}}}
collect: {{durability: {durability}, listen: ["unix:{place.sockets}/{durability}"]}}
serve: {{listen: ["unix:{place.sockets}/serve"]}}
journal: {{keep_hours: 0}}
""")


@contextlib.contextmanager
def servers(place, *bare):
    """The bare server, and a collector for each durability; name: socket."""
    sockets = {name: place.sockets / name for name in ("bare", "write", "fsync")}
    with contextlib.ExitStack() as stack:
        stack.enter_context(running([BENCH / "bench_dispatch", bare[0], sockets["bare"], *bare[1:]], sockets["bare"]))
        for durability in ("write", "fsync"):
            argv = [OUT / "libexec/hooktrail-collect", "--config", config_file(place, durability), "collect"]
            stack.enter_context(running(argv, sockets[durability]))
        yield sockets


def load(path, body, connections, seconds=SECONDS, requests=None):
    """Requests a second."""
    argv = [BENCH / "bench_dispatch", "load", path, body, str(connections), str(seconds)]
    out = subprocess.run(argv + ([str(requests)] if requests else []), check=True, capture_output=True, text=True).stdout
    return float(out.split()[0])


def alternate(sockets, body, connections):
    """The median requests a second of each server, which are asked in turns."""
    found = {name: [] for name in sockets}
    for path in sockets.values():  # caches, workers, the first segment
        load(path, body, connections, 1)
    for _ in range(RUNS):
        for name, path in sockets.items():
            found[name].append(load(path, body, connections))
    return {name: statistics.median(values) for name, values in found.items()}


# ---- What each letter measures -------------------------------------------------------


def chain_of_one(place):
    """(a) A chain of one /bin/true against a bare posix_spawn and wait, behind the same HTTP server."""
    body = body_file(place, "chain", tool_call("RunInTerminal"))
    with servers(place, "spawn", *CHAIN) as sockets:
        for n in (1, 2):
            rate = alternate(sockets, body, n)
            for durability, most in (("write", 1.25), ("fsync", 1.5)):
                ratio = rate["bare"] / rate[durability]
                yield Row(f"(a) chain of one /bin/true, {durability}, {n} at once", f"{n * 1e6 / rate[durability]:.0f} us",
                          f"{n * 1e6 / rate['bare']:.0f} us", f"{ratio:.2f}", f"<= {most}", ratio <= most)


def recorder(place):
    """(b) What recording costs the thread that dispatches."""
    words = program("bench_recorder", place.disk)
    size, us, bare = re.search(r"of (\d+) bytes: ([\d.]+) us, .* ([\d.]+) us \(", words).groups()
    yield Row(f"(b) recorder, an evaluation of {size} bytes", f"{us} us", f"{bare} us", "", "<= 15 us", float(us) <= 15)


def journal(place):
    """(c) Append with group commit of 64."""
    return ratio_of("(c) journal, groups of 64", program("bench_journal", place.disk))


def no_hook(place):
    """(d) A dispatch that matches no hook against an echo of the same body."""
    body = body_file(place, "none", tool_call("ReadFile"))
    with servers(place, "echo") as sockets:
        rate = alternate(sockets, body, MANY)
    echo = rate["bare"]
    for durability, least, words in (("write", echo / 3, ">= 0.33"), ("fsync", min(20_000, echo / 4), ">= 20000/s or 0.25")):
        yield Row(f"(d) dispatch without a hook, {durability}, {MANY} clients", f"{rate[durability]:.0f}/s", f"{echo:.0f}/s",
                  f"{rate[durability] / echo:.2f}", words, rate[durability] >= least)


def sqlite(place):
    """(e) Shipping into SQLite, roll-ups on."""
    return ratio_of("(e) ship to SQLite", program("bench_sqlite", place.disk))


def resident_mb(process):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) / 1024


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        self.request(method, path, body)
        response = self.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {answer}")
        return answer


def wait_found(serve, path):
    """Until the store has it, and so all that the journal has before it."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        with contextlib.suppress(RuntimeError):
            return serve.ask("GET", path)
        time.sleep(0.5)
    raise RuntimeError(f"{path} is not shipped within 600 s")


def fill_and_ask(place, body, events, thread):
    """So many events through all three roles: dispatched, shipped, and the last of them asked for."""
    load(place.sockets / "write", body, MANY, 600, events)
    with contextlib.closing(UnixConnection(place.sockets / "write")) as collect, \
            contextlib.closing(UnixConnection(place.sockets / "serve")) as serve:
        asked = collect.ask("POST", "/v1/dispatch", json.dumps(call("Start") | {"thread_id": thread}))
        wait_found(serve, f"/v1/evaluations/{asked['evaluation_ids'][0]}")
        for _ in range(1000):
            serve.ask("GET", f"/v1/evaluations/{asked['evaluation_ids'][0]}")
            serve.ask("GET", f"/v1/threads/{thread}/trace")


def memory(place):
    """(f) Resident memory of each role: idle, after half of the events, after all."""
    config = config_file(place)
    body = body_file(place, "start", call("Start", thread_source="Incident"))
    with contextlib.ExitStack() as stack:
        roles = {}
        for role in ("collect", "ship", "serve"):
            path = place.sockets / {"collect": "write", "serve": "serve"}[role] if role != "ship" else None
            roles[role] = stack.enter_context(running([OUT / f"libexec/hooktrail-{role}", "--config", config, role], path))
            time.sleep(2)
        seen = [{role: resident_mb(p) for role, p in roles.items()}]
        for half in ("first", "second"):
            fill_and_ask(place, body, EVENTS // 2, half)
            time.sleep(2)
            seen.append({role: resident_mb(p) for role, p in roles.items()})
    for role in roles:
        idle, half, full = (s[role] for s in seen)
        yield Row(f"(f) {role}: idle, after {EVENTS // 2}, {EVENTS} events", f"{idle:.1f}, {half:.1f}, {full:.1f} MB", "", "",
                  f"<= 40 MB, flat ({FLAT_MB} MB)", max(idle, half, full) <= 40 and full <= half + FLAT_MB)


def starts_ms(argv, n=100):
    began = time.perf_counter()
    for _ in range(n):
        os.waitpid(os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]), 0)
    return (time.perf_counter() - began) * 1e3 / n


def version(_):
    """(g) The front starts as quickly as a program can."""
    found = [(starts_ms(["/bin/true"]), starts_ms([str(PROGRAM), "version"])) for _ in range(RUNS)]
    bare, ours = (statistics.median(f[i] for f in found) for i in (0, 1))
    yield Row("(g) hooktrail version", f"{ours:.2f} ms", f"{bare:.2f} ms", "", "<= 3 ms more", ours - bare <= 3)


def program(name, *argv):
    """The last line of a bench program; its exit code says met or missed, and 3 that it could not."""
    p = subprocess.run([BENCH / name, *map(str, argv)], capture_output=True, text=True)
    if p.returncode not in (0, 1):
        raise RuntimeError(f"{name}: {p.stderr.strip()}")
    return p.stdout.strip().splitlines()[-1]


def ratio_of(target, words):
    """The row of a program whose last line ends with "RATIO x … (target LEAST)"."""
    ratio, least = re.search(r"([\d.]+) x[^(]*\(target ([\d.]+)\)$", words).groups()
    rates = re.findall(r"([\d.]+ [a-z]+/s)", words)
    bare, figure = (rates + ["", ""])[:2]
    return [Row(target, figure, bare, ratio, f">= {least}", float(ratio) >= float(least))]


def to_postgres(place):
    """(h) Shipping to PostgreSQL."""
    return [Row(*row) for row in bench_sinks.postgres_rows(OUT, place.disk)]


def to_kafka(place):
    """(i) Shipping to Kafka, at least once."""
    return [Row(*row) for row in bench_sinks.kafka_rows(OUT, place.disk, "at-least-once")]


def to_kafka_once(place):
    """(j) Shipping to Kafka, exactly once."""
    return [Row(*row) for row in bench_sinks.kafka_rows(OUT, place.disk, "exactly-once")]


def both_down(place):
    """(k) Dispatching while PostgreSQL and Kafka are both down."""
    bodies = [body_file(place, name, tool_call(tool)) for name, tool in (("none", "ReadFile"), ("one", "RunInTerminal"))]
    return [Row(*row) for row in bench_outage.rows(OUT, place, hooks_file(place), bodies)]


# By letter; the last four need servers of their own, and are left out where those are not installed.
BENCHES = {"a": chain_of_one, "b": recorder, "c": journal, "d": no_hook, "e": sqlite, "f": memory, "g": version,
           "h": to_postgres, "i": to_kafka, "j": to_kafka_once, "k": both_down}


def print_table(rows):
    head = ("target", "figure", "bare", "ratio", "wanted", "")
    lines = [head] + [(*row[:5], "met" if row.met else "MISSED") for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def measure(letter):
    """Its rows, and whether it could be measured: that one could not costs no other its row."""
    rows = []
    print(f"{BENCHES[letter].__doc__} …", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        with Place(OUT) as place:
            rows += BENCHES[letter](place)
    except (RuntimeError, OSError, subprocess.SubprocessError) as why:
        print(f"({letter}) could not be measured: {why}", file=sys.stderr, flush=True)
        return rows, False
    print(f"({letter}) took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows, True


def main():
    letters = sys.argv[2:] or list(BENCHES)
    if unknown := [letter for letter in letters if letter not in BENCHES]:
        print(f"{' '.join(unknown)}: no such measurement; there are {' '.join(BENCHES)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # what runs is ended, as it is by Ctrl-C
    found = [measure(letter) for letter in letters]
    rows = [row for some, _ in found for row in some]
    print_table(rows)
    return 0 if all(ok for _, ok in found) and all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
