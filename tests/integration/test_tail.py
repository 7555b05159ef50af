"""`hooktrail tail`: the records of this machine's journals, whatever the stores have of them."""
import contextlib
import json
import signal
import subprocess

import pytest

from tests.integration.plant import Plant, hook, hooks, request
ROLES = ["cli", "collect"]


@pytest.fixture(scope="module")
def told(binary, tmp_path_factory):
    """Two threads in the journal of collect, and in another one, between them, a token. Nothing was shipped."""
    with Plant(binary, tmp_path_factory.mktemp("tail"), hooks(hook("passes", "true"))) as plant:
        plant.start("collect")
        for thread in ("one", "two", None, "one", "two"):
            dispatch(plant, thread) if thread else make_token(plant)
        assert plant.stop("collect") == 0
        assert not (plant.state / "hooktrail.db").exists()
        yield plant


def make_token(plant):
    assert plant.run("token", "create", "ui", "--scopes", "query").returncode == 0


def dispatch(plant, thread):
    status, _, problem = plant.dispatch(request("Bash") | {"thread_id": thread})
    assert status == 200, problem


def journalled(plant, thread=None):
    """Every record, of one thread or all, in the order of their times."""
    records = sorted((f.record for role in ROLES for f in plant.frames(role)), key=lambda r: r["time"])
    return [r for r in records if thread in (None, r.get("thread_id"))]


def tail(plant, *words):
    done = subprocess.run(plant.command("tail", *words), capture_output=True, timeout=30, check=True)
    return done.stdout.splitlines()


def tail_json(plant, *words):
    return [json.loads(line) for line in tail(plant, "--json", *words)]


@pytest.mark.parametrize("thread", [None, "one", "two", "nobody"])
def test_it_shows_the_records_of_all_journals_as_they_are(told, thread):
    of_thread = ["--thread", thread] if thread else []
    assert tail_json(told, "-n", "999", *of_thread) == journalled(told, thread)


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_it_shows_the_newest_only(told, lines):
    newest = journalled(told)[-lines:] if lines else []
    assert tail_json(told, "--lines", str(lines)) == newest


def test_for_people_it_is_a_line_a_record(told):
    lines = tail(told, "-n", "999", "--thread", "two")
    assert len(lines) == len(journalled(told, "two")) and all(b"two" in line for line in lines)


@contextlib.contextmanager
def following(plant, *words):
    """The lines that a tail which follows prints; it is ended when none comes."""
    process = subprocess.Popen(["timeout", "20", *plant.command("tail", "--json", "--follow", *words)],
                               stdout=subprocess.PIPE)
    try:
        yield process.stdout
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()


def read(lines, n):
    return [json.loads(lines.readline()) for _ in range(n)]


def test_it_follows_what_comes_in_journals_that_began_later(binary, tmp_path):
    with Plant(binary, tmp_path, hooks(hook("passes", "true"))) as plant:
        plant.start("collect")
        dispatch(plant, "one")
        with following(plant, "-n", "1") as lines:
            assert read(lines, 1) == journalled(plant)[-1:]
            make_token(plant)
            assert read(lines, 2) == journalled(plant)[-2:]  # and its journal's checkpoint
            dispatch(plant, "two")
            assert read(lines, 2) == journalled(plant)[-2:]  # the evaluation, and the start of the tool
