"""kill -9 of every role at random moments under load: what was answered is there once, nothing goes on."""
import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import threading
import time

import pytest

from tests.integration.plant import LONG, Load, Plant, hook, hooks, processes, wait_for

KILLS = 200 if LONG else 20
ROLES = ("collect", "ship", "serve")
CONFIG = """\
collect: {workers: 16, record_wait_ms: 20000, durability: %s}
journal: {segment_mb: 1, checkpoint_s: 1}
serve: {listen: ["unix:%s/serve.sock"]}
"""
QUICK = ["Passes", "Denies", "Asks", "Fails", "Naps", "Nobody"]
ENDLESS = ["Sleeps", "Flees", "Forks", "Ignores"]


def documents(mark, folder):
    """Hooks of every kind; those that would go on for a day have `mark` in their command lines.

    `sleeps` leaves its input in the folder: nobody may say that it never ran.
    """
    return hooks(
        hook("passes", "/bin/true", "Passes"),
        hook("denies", "sh -c 'echo no >&2; exit 2'", "Denies"),
        hook("asks", """sh -c 'cat >/dev/null; echo "{\\"ok\\":true,\\"reason\\":\\"sure?\\"}"'""", "Asks"),
        hook("fails", "/no/such/program", "Fails"),
        hook("naps", "sleep 0.05", "Naps"),
        hook("second", "/bin/true", "Naps|Passes"),
        hook("sleeps", f"sh -c 'cat > {folder}/started.$$; exec sleep {mark}'", "Sleeps", timeout=3600),
        hook("flees", f"setsid -w setsid -w sleep {mark}", "Flees", timeout=3600),
        hook("forks", f"sh -c '(setsid sleep {mark} &) ; sleep {mark}.5 & setsid sh -c \"sleep {mark}.7; :\" & wait'",
             "Forks", timeout=3600),
        hook("ignores", f"sh -c 'trap \"\" TERM HUP INT; while :; do sleep {mark}; done'", "Ignores", timeout=3600),
    )


@contextlib.contextmanager
def questions(plant):
    """Somebody who asks `serve` all the time, and does not mind when it is dead."""
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                plant.ask("GET", f"/v1/threads/load-{random.randint(1, 50)}/trace", sock="serve.sock")
            time.sleep(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def started(folder):
    """What hooks wrote when they began, whole."""
    texts = [path.read_text() for path in folder.glob("started.*")]
    return [text for text in texts if text.rstrip().endswith("}")]


class History:
    """All that was sent and answered, over many collectors."""

    def __init__(self):
        self.sent = {}
        self.answered = {}

    def add(self, load, refusals=frozenset()):
        self.sent |= load.sent
        self.answered |= load.answered
        assert set(load.refused) <= refusals, load.refused
        assert {recorded for recorded, _ in load.answered.values()} <= {"stored"}

    def check(self, plant):
        """The promises; the collector has ended and all is shipped."""
        ok, said = plant.verified()
        assert ok, said
        frames = plant.frames()
        evaluations = [f.record for f in frames if f.type == "hook_evaluation"]
        times = collections.Counter(r["id"] for r in evaluations)
        twice = [r for r in evaluations if times[r["id"]] > 1]
        assert not twice, [(r["id"], r["thread_id"], r["final_decision"]) for r in twice]
        assert not [f for f in frames if f.type == "gap"]

        for thread, (_, result) in self.answered.items():
            for evaluation in result["evaluation_ids"]:
                assert times[evaluation] == 1, f"{thread} was answered and is not there"
        answered = {e for _, result in self.answered.values() for e in result["evaluation_ids"]}
        others = [r for r in evaluations if r["id"] not in answered]
        assert {r["thread_id"] for r in others} <= set(self.sent)
        for r in others:
            interrupted = self.sent[r["thread_id"]] in ENDLESS
            assert not interrupted or r["final_decision"] in ("interrupted", "cancelled"), r
        ran = {json.loads(text)["call_id"] for text in started(plant.dir)}
        assert ran <= {r["call_id"] for r in evaluations}, "a hook ran without a trace"
        self.check_store(plant, frames)
        return others

    @staticmethod
    def check_store(plant, frames):
        """Each record of the journal is in the store, once."""
        for kind in ("hook_evaluation", "tool_execution"):
            journal = sorted((f.journal, f.seq, f.record["id"]) for f in frames if f.type == kind)
            assert sorted(plant.query(f"SELECT journal, seq, id FROM {kind}")) == journal


@pytest.fixture
def mark():
    word = f"86{random.randint(100000, 999999)}"
    yield word
    for pid in processes(word):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


CLIENTS = [QUICK] * 4 + [ENDLESS] * 3  # what each client asks for


@pytest.mark.chaos
@pytest.mark.parametrize("durability", ["fsync", "write"])
def test_a_role_that_is_killed_loses_nothing_and_leaves_nothing(binary, tmp_path, mark, durability):
    plant = Plant(binary, tmp_path, documents(mark, tmp_path), CONFIG % (durability, tmp_path / "state"))
    history = History()
    with plant:
        for role in ROLES:
            plant.start(role)
        with questions(plant):
            for round_ in range(KILLS // 2):
                others = random.sample(("ship", "serve"), random.choice((0, 1, 2)))
                victims = random.sample(["collect", *others], 1 + len(others))
                with Load(plant, CLIENTS) as load:
                    time.sleep(random.uniform(0.01, 0.4))
                    for role in victims:
                        plant.kill(role)
                        time.sleep(random.choice((0, 0, 0.02)))
                history.add(load)
                for role in victims:
                    plant.start(role)
                left = processes(mark)
                assert not left, f"round {round_}: {left} go on, killed: {victims}"
        assert plant.stop("collect") == 0
        assert plant.stop("ship") == 0
        plant.ship_once()
        others = history.check(plant)
    assert len(history.answered) > KILLS
    assert started(tmp_path)
    assert [r for r in others if r["final_decision"] == "interrupted"]


@pytest.mark.chaos
def test_a_supervisor_that_is_killed_takes_all_along_and_comes_back(binary, tmp_path, mark):
    plant = Plant(binary, tmp_path, documents(mark, tmp_path), CONFIG % ("fsync", tmp_path / "state"))
    history = History()
    with plant:
        for round_ in range(KILLS // 4):
            supervisor = plant.start("run")
            assert not processes(mark)
            children = pathlib.Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text()
            roles = [int(pid) for pid in children.split()]
            alone = round_ % 2 == 0  # its roles then end in order: what runs is waited for, no new is taken
            with Load(plant, [QUICK] * 4 if alone else CLIENTS) as load:
                time.sleep(random.uniform(0.01, 0.4))
                plant.kill("run")
                for role in [] if alone else roles:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(role, signal.SIGKILL)
            history.add(load, refusals={503})
            wait_for(lambda: not set(roles) & set(processes(str(plant.state))),
                     why="the roles of a dead supervisor end")
        plant.start("run")
        assert not processes(mark)
        assert plant.stop("run") == 0
        plant.ship_once()
        history.check(plant)
