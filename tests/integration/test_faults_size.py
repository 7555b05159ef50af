"""What each program links, how small a record is, and that a collector stays as small as it was."""
import contextlib
import json
import os
import pathlib
import re
import subprocess

import pytest

from tests.integration.plant import LONG, Load, Plant, hook, hooks, request, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
DISPATCHES = 50_000 if LONG else 3_000
WORKERS = 8
OTHER_THREADS = 5  # main, a listener's two, journal's writer, recorder


@pytest.mark.parametrize("program, never", [
    ("hooktrail", "sqlite3|pq|rdkafka|microhttpd|curl|crypto|yaml|jansson|pcre"),
    ("libexec/hooktrail-collect", "sqlite3|pq|rdkafka"),
    ("libexec/hooktrail-serve", "rdkafka"),
    ("libexec/hooktrail-ship", "microhttpd"),
])
def test_a_program_links_only_what_it_uses(binary, program, never):
    path = pathlib.Path(binary).parent / program
    libraries = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in libraries
    assert not re.findall(rf"lib(?:{never})\S*", libraries)


def test_the_programs_link_what_they_are_for(binary):
    folder = pathlib.Path(binary).parent / "libexec"
    linked = {role: subprocess.run(["ldd", folder / f"hooktrail-{role}"], capture_output=True, text=True).stdout
              for role in ("serve", "ship")}
    assert "libsqlite3" in linked["serve"] and "libpq" in linked["serve"]
    assert "librdkafka" in linked["ship"]


def test_forty_skipped_hooks_take_less_than_6_kib(binary, tmp_path):
    """Names and matchers of the length that people choose; see deploy/sample."""
    documents = hooks(*[hook(f"deny-destructive-{i}", "/bin/true", "CreateFile|Task") for i in range(40)])
    with Plant(binary, tmp_path, documents) as plant:
        plant.start("collect")
        plant.dispatch(request("RunInTerminal", "thread-of-a-usual-length-0123456789"))
        record, = [f.record for f in plant.frames() if f.type == "hook_evaluation"]
    assert [h["skip_reason"] for h in record["hooks"]] == ["matcher"] * 40
    assert len(json.dumps(record["hooks"], separators=(",", ":"))) < 6 * 1024


def resident_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def link_of(pid, fd):
    """What a descriptor is; None when it was closed meanwhile."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except FileNotFoundError:
        return None


def descriptors(pid):
    return sorted(filter(None, (link_of(pid, fd) for fd in os.listdir(f"/proc/{pid}/fd"))))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


@pytest.mark.chaos
def test_a_collector_is_as_small_after_thousands_of_dispatches(binary, tmp_path):
    """Hooks that run, deny, are skipped, cannot start, write much, leave something behind; clients that go away."""
    documents = hooks(
        hook("passes", "/bin/true", "Passes"), hook("denies", "sh -c 'echo no >&2; exit 2'", "Denies"),
        hook("fails", "/no/such/program", "Fails"), hook("writes", "head -c 300000 /dev/zero", "Writes"),
        hook("leaves", "sh -c 'sleep 0.2 >/dev/null 2>&1 &'", "Leaves"), hook("slow", "sleep 5", "Slow"))
    usual = ["Nobody"] * 8 + ["Passes", "Denies", "Fails", "Writes", "Leaves"]
    config = f"collect: {{durability: write, workers: {WORKERS}}}\njournal: {{segment_mb: 1, keep_hours: 0}}\n"
    with Plant(binary, tmp_path, documents, config) as plant:
        pid = plant.start("collect").pid

        def run(n):
            with Load(plant, [usual] * 4) as load:
                wait_for(lambda: len(load.answered) >= n, seconds=30 + n // 20, why=f"{n} dispatches")
            for _ in range(10):  # clients that do not wait
                with contextlib.closing(plant.connection()) as c:
                    c.request("POST", "/v1/dispatch", json.dumps(request("Slow", "gone")))
            wait_for(lambda: pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text() == "", why="hooks end")
            return plant.ask("GET", "/healthz")[0]

        idle = len(descriptors(pid))
        assert run(DISPATCHES // 4) == 200
        before = resident_kb(pid)
        assert run(DISPATCHES) == 200
        after = resident_kb(pid)

        assert after <= 40 * 1024
        assert after <= before + 2048, (before, after)
        assert threads(pid) <= WORKERS + OTHER_THREADS
        wait_for(lambda: len(descriptors(pid)) <= idle, seconds=5, why=f"{idle} of {descriptors(pid)}")
