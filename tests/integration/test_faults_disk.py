"""A disk or a quota that is full: dispatches are answered, and accepted = stored + counted losses."""
import contextlib
import errno
import json
import os
import pathlib
import subprocess

import pytest

from tests.integration.plant import Plant, hook, hooks, request, wait_for

DOCUMENTS = hooks(hook("denies", "sh -c 'echo no >&2; exit 2'", "Denies"), hook("passes", "/bin/true", "Passes"))
CONFIG = """\
journal: {segment_mb: 1, keep_hours: 0, checkpoint_s: 1, quota_mb: %d, when_full: %s}
collect: {on_unrecorded: %s, record_wait_ms: 200, capture_payload: true, durability: %s}
"""
LARGE = {"tool_input": {"text": "word " * 8000}}  # 40 KB in the evaluation, and again in the tool execution
PER_DISPATCH = 2


@pytest.fixture
def disk():
    """A folder on a disk of 12 MiB, in a mount namespace of its own."""
    mount = "mount -t tmpfs -o size=12m none /tmp && echo && exec sleep 600"
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", mount], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if not holder.stdout.readline():
            pytest.skip(f"no disk can be mounted here: {holder.stderr.read().decode().strip()}")
        yield pathlib.Path(f"/proc/{holder.pid}/root/tmp")
    finally:
        holder.kill()
        holder.communicate()


def use_up(folder):
    """A file that takes all that is left; removing it makes room."""
    ballast = folder / "ballast"
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"\0" * 4096)
        except OSError as e:
            assert e.errno == errno.ENOSPC
    return ballast


class Account:
    """What was dispatched, and how each answer called its record."""

    def __init__(self, plant):
        self.plant = plant
        self.ids = {}  # evaluation id: stored, late, lost
        self.results = []

    def dispatch(self):
        status, headers, result = self.plant.dispatch(request("Denies", f"t-{len(self.ids)}", **LARGE))
        assert status == 200 and result["blocked"] and "no" in result["reason"], result
        recorded = headers["Hooktrail-Recorded"]
        assert result.get("recorded", "stored") == recorded
        self.ids[result["evaluation_ids"][0]] = recorded
        return recorded

    def dispatch_until(self, *outcomes, n=1):
        """Until n answers were so."""
        for _ in range(1000):
            n -= self.dispatch() in outcomes
            if n == 0:
                return
        raise AssertionError(f"none was {outcomes}")

    def check(self, others=0):
        """accepted = stored + counted losses, by the journal's own frames; what was told is true.

        others: lost records of other kinds.
        """
        frames = self.plant.frames()
        there = [f for f in frames if f.type in ("hook_evaluation", "tool_execution")]
        lost = sum(f.record["lost"] for f in frames if f.type == "gap")
        ids = {f.record["id"] for f in there}
        assert {i for i, recorded in self.ids.items() if recorded == "stored"} <= ids
        assert not {i for i, recorded in self.ids.items() if recorded == "lost"} & ids
        assert len(there) + lost == PER_DISPATCH * len(self.ids) + others
        return lost, {f.record["cause"] for f in frames if f.type == "gap"}


@pytest.mark.parametrize("durability", ["fsync", "write"])
def test_a_full_disk_loses_what_it_counts_and_no_answer(binary, tmp_path, disk, durability):
    config = CONFIG % (4096, "drop_new", "continue", durability)
    with Plant(binary, tmp_path, DOCUMENTS, config, state=disk / "s") as plant:
        plant.start("collect")
        account = Account(plant)
        account.dispatch_until("stored", n=5)
        ballast = use_up(disk)
        account.dispatch_until("lost", n=20)
        assert "ok" in str(plant.ask("GET", "/healthz")[2])
        ballast.unlink()
        account.dispatch_until("stored", n=5)
        assert plant.stop("collect") == 0

        lost, causes = account.check()
        assert lost >= PER_DISPATCH * 20 and causes == {"disk_full"}
        done = plant.run("verify", "--json")
        assert done.returncode == 1
        told = json.loads(done.stdout)["journals"]
        assert {j["state"] for j in told} == {"incomplete"} and sum(j["lost"] for j in told) == lost


def test_a_full_disk_and_kill_9_lose_no_count(binary, tmp_path, disk):
    config = CONFIG % (4096, "drop_new", "continue", "fsync")
    with Plant(binary, tmp_path, DOCUMENTS, config, state=disk / "s") as plant:
        plant.start("collect")
        account = Account(plant)
        ballast = use_up(disk)
        account.dispatch_until("lost", n=7)
        plant.kill("collect")
        with contextlib.suppress(AssertionError):  # whether it starts on a full disk or says why not
            plant.start("collect")
            account.dispatch_until("lost", n=3)
        plant.kill("collect")
        ballast.unlink()
        plant.start("collect")
        account.dispatch_until("stored", n=3)
        assert plant.stop("collect") == 0
        lost, _ = account.check()
        assert lost >= PER_DISPATCH * 7


@pytest.mark.parametrize("unrecorded", ["continue", "deny"])
def test_a_full_disk_that_blocks_loses_nothing(binary, tmp_path, disk, unrecorded):
    with Plant(binary, tmp_path, DOCUMENTS, CONFIG % (4096, "block", unrecorded, "fsync"), state=disk / "s") as plant:
        plant.start("collect")
        account = Account(plant)
        ballast = use_up(disk)
        account.dispatch_until("late", n=5)
        _, headers, result = plant.dispatch(request("Passes"))
        assert headers["Hooktrail-Recorded"] == "late"
        assert result["blocked"] is (unrecorded == "deny"), result
        account.ids[result["evaluation_ids"][0]] = "late"
        ballast.unlink()
        account.dispatch_until("stored", n=5)
        assert plant.dispatch(request("Other"))[2]["blocked"] is False
        assert plant.stop("collect") == 0
        account.ids["other"] = "late"
        assert account.check() == (0, set())
        ok, said = plant.verified()
        assert ok, said


@pytest.mark.parametrize("policy, outcome", [("block", "late"), ("drop_new", "lost")])
def test_a_quota_that_is_used_up_waits_or_counts_until_ship_makes_room(binary, tmp_path, policy, outcome):
    with Plant(binary, tmp_path, DOCUMENTS, CONFIG % (8, policy, "continue", "fsync")) as plant:
        plant.start("collect")
        account = Account(plant)
        account.dispatch_until(outcome, n=5)
        assert sum(s.stat().st_size for s in plant.journals()[0].glob("*.seg")) <= 8 << 20
        assert plant.ask("GET", "/readyz")[0] == 503
        wait_for(lambda: plant.run("status").returncode == 1, why="status tells it")
        quota, = plant.status()["quotas"]
        assert quota["state"] == "full" and quota["used_bytes"] <= quota["quota_bytes"] == 8 << 20
        plant.start("ship")
        wait_for(lambda: plant.ask("GET", "/readyz")[0] == 200 or account.dispatch() == "stored",
                 why="ship makes room")
        account.dispatch_until("stored", n=3)
        wait_for(lambda: plant.run("status").returncode == 0, why="status tells that there is room")
        lost = sum(recorded == "lost" for recorded in account.ids.values()) * PER_DISPATCH
        assert (lost > 0) == (policy == "drop_new")

        kept = PER_DISPATCH * len(account.ids) - lost
        both = "(SELECT id FROM hook_evaluation UNION ALL SELECT id FROM tool_execution)"
        wait_for(lambda: plant.query(f"SELECT count(DISTINCT id), count(*) FROM {both}") == [(kept, kept)],
                 why="all that is not lost is in the store, once")
        told = plant.query("SELECT body FROM audit_record WHERE type = 'gap'")
        gaps = [json.loads(body) for body, in told]
        assert sum(g["lost"] for g in gaps) == lost
        assert {g["cause"] for g in gaps} <= {"quota"}


def test_a_disk_that_is_full_at_the_start_is_told_and_a_later_start_is_fine(binary, tmp_path, disk):
    with Plant(binary, tmp_path, DOCUMENTS, CONFIG % (4096, "block", "continue", "fsync"), state=disk / "s") as plant:
        ballast = use_up(disk)
        done = plant.run("collect")
        assert done.returncode == 3
        assert done.stderr.splitlines()[-1].count("No space left") == 1, done.stderr
        ballast.unlink()
        plant.start("collect")
        assert Account(plant).dispatch() == "stored"
        assert os.listdir(plant.state)
