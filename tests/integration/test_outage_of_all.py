"""Both destinations down for a whole load of dispatches: hosts notice nothing, and all arrives."""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest
import yaml

from tests.integration.shipping import LONG, STORED, Ship, State, digest, read_topics, wait_for

RUNS = 3 if LONG else 1                          # alternating: up, down
SECONDS = 15 if LONG else 4                      # a run
NO_HOOK, ONE_HOOK = (1000, 100) if LONG else (200, 20)  # dispatches a second
QUOTA_MB = 256

HOOKS = """\
kind: Hook
metadata: {name: look}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {type: command, matcher: Edit, command: "true"}
"""


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def request(tool):
    return json.dumps({"contract": "sre", "thread_id": "load", "payload": {
        "hook_event_name": "PreToolUse", "agent_name": "a", "tool_name": tool,
        "tool_input": {"path": "x"}, "call_id": "c"}})


class Load(threading.Thread):
    """So many dispatches of one tool a second, for a while; how long each took."""

    def __init__(self, path, tool, per_second):
        super().__init__()
        self.path, self.body, self.pause = path, request(tool), 1 / per_second
        self.took = []

    def run(self):
        connection = Unix(self.path)
        end = time.monotonic() + SECONDS
        due = time.monotonic()
        while due < end:
            time.sleep(max(0, due - time.monotonic()))
            due += self.pause
            begin = time.monotonic()
            connection.request("POST", "/v1/dispatch", self.body)
            response = connection.getresponse()
            response.read()
            assert response.status == 200
            self.took.append(time.monotonic() - begin)


def p99_ms(took):
    return 1000 * sorted(took)[int(len(took) * 0.99)]


def median(values):
    return sorted(values)[len(values) // 2]


def run_load(path):
    """The p99 of dispatches without a hook and of those with one."""
    loads = [Load(path, "Read", NO_HOOK), Load(path, "Edit", ONE_HOOK)]
    for load in loads:
        load.start()
    for load in loads:
        load.join()
    assert all(len(load.took) > 0 for load in loads)
    return [p99_ms(load.took) for load in loads]


def memory_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def size_of(folder):
    return sum(p.stat().st_blocks * 512 for p in folder.rglob("*") if p.is_file())


@pytest.mark.chaos
def test_dispatches_do_not_notice_that_both_are_down_and_everything_arrives(
        binary, live, tmp_path, postgres, kafka):
    postgres.create("outage")
    state = State(binary, live, tmp_path / "state",
                  postgres={"dsn": postgres.dsn("outage"), "timeout_ms": 2000},
                  kafka={"properties": {"bootstrap.servers": kafka.bootstrap},
                         "delivery": "exactly-once", "topic_prefix": "outage", "timeout_ms": 5000})
    hooks = tmp_path / "hooks.yaml"
    hooks.write_text(HOOKS)
    config = yaml.safe_load(state.config.read_text())
    config |= {"contracts": {"sre": {"hooks": str(hooks)}}, "journal": {"quota_mb": QUOTA_MB}}
    state.config.write_text(yaml.safe_dump(config))
    sock = state.path / "collect.sock"
    collect = subprocess.Popen(
        [os.path.join(os.path.dirname(binary), "libexec", "hooktrail-collect"), "--config",
         state.config, "--state", state.path, "collect"], stderr=subprocess.DEVNULL)
    try:
        wait_for(sock.exists)
        with Ship(state) as ship:
            measure(state, sock, postgres, kafka, collect, ship)
            collect.send_signal(signal.SIGTERM)
            assert collect.wait(20) == 0
            look_at_what_arrived(state, postgres, kafka)
            ship.stop()
    finally:
        if collect.poll() is None:
            collect.kill()
        collect.wait()


def measure(state, sock, postgres, kafka, collect, ship):
    """Alternate runs with both up and both down, and compare."""
    up, down = [], []
    run_load(str(sock))  # warm
    wait_for(lambda: all(state.told(s).get("state") == "ok" for s in ("postgres", "kafka")), 60)
    for _ in range(RUNS):
        up.append(run_load(str(sock)))
        postgres.stop("immediate")
        kafka.stop(kill=True)
        before = memory_kb(collect.pid), memory_kb(ship.process.pid)
        cpu = cpu_seconds(ship.process.pid)
        down.append(run_load(str(sock)))
        cpu = cpu_seconds(ship.process.pid) - cpu
        assert cpu < 0.1 * SECONDS, f"trying again took {cpu} s of CPU in {SECONDS} s"
        after = memory_kb(collect.pid), memory_kb(ship.process.pid)
        assert all(a < b + 16 * 1024 for a, b in zip(after, before)), (before, after)
        assert size_of(state.path / "journals") < QUOTA_MB << 20
        postgres.start()
        kafka.start()
    for i, name in enumerate(("no hook", "one hook")):
        with_both, without = median([f[i] for f in up]), median([f[i] for f in down])
        print(f"{name}: p99 {with_both:.2f} ms with both up, {without:.2f} ms with both down")
        # A dispatch that waited for either would wait seconds. `make bench` holds the difference
        # to 10 % or 1 ms, with more dispatches, on a machine that does nothing else.
        assert without < with_both + (50 if LONG else 1000)


def look_at_what_arrived(state, postgres, kafka):
    """Every record of the collector's journal, once, at both."""
    last = state.records()
    journal = next(r.journal for r in last if r.type == "hook_evaluation")
    mine = [r for r in last if r.journal == journal]
    assert sum(r.type == "hook_evaluation" for r in mine) > \
        0.9 * (2 * RUNS + 1) * SECONDS * (NO_HOOK + ONE_HOOK)
    for sink in ("postgres", "kafka"):
        state.wait_shipped(sink, journal, mine[-1].seq, 90)
    expected = digest(f"{r.journal}|{r.seq}|{r.leaf}" for r in mine)
    rows = postgres.psql(f"SELECT * FROM ({STORED}) r WHERE journal = '{journal}'", "outage")
    assert len(rows) == len(mine) and digest(rows) == expected
    messages = [m for m in read_topics(kafka, "outage") if m.journal == journal]
    assert len(messages) == len(mine)
    assert digest(f"{m.journal}|{m.seq}|{m.leaf}" for m in messages) == expected
