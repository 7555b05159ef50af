"""What befalls a state folder: clocks, copies, seconds of a kind, sinks that go, hooks that change."""
import collections
import datetime
import json
import os
import shutil
import threading
import time

import pytest

from tests.integration.plant import Plant, hook, hooks, processes, request, wait_for

PASSES = hooks(hook("passes", "/bin/true", "Passes"))
SLEEPS = "8640017"


@pytest.fixture
def plant(binary, tmp_path):
    with Plant(binary, tmp_path, PASSES) as p:
        yield p


def dispatch_some(plant, n=10, tool="Passes"):
    """The ids of the evaluations of n dispatches."""
    answers = [plant.dispatch(request(tool, f"t-{i}")) for i in range(n)]
    assert [(status, headers["Hooktrail-Recorded"]) for status, headers, _ in answers] == [(200, "stored")] * n
    return [result["evaluation_ids"][0] for _, _, result in answers]


def stored(plant, ids, table="hook_evaluation"):
    """Of each id, how many rows the store has."""
    rows = collections.Counter(row[0] for row in plant.query(f"SELECT id FROM {table}"))
    return [rows[i] for i in ids]


def refused(plant, *words, code, **how):
    """A program must end at once with this code, and one line that it says."""
    done = plant.run(*words, **how)
    assert done.returncode == code, done
    assert done.stderr.count("\n") == 1 and done.stdout == "", done
    return done.stderr


# ---- The clock ----------------------------------------------------------------------------------


def hours_ago(record):
    return (time.time() - datetime.datetime.fromisoformat(record["time"]).timestamp()) / 3600


def test_a_clock_that_is_set_back_an_hour_loses_and_repeats_nothing(binary, tmp_path, clock):
    env, set_back = clock
    config = "journal: {checkpoint_s: 1, segment_mb: 1, keep_hours: 0}\n"
    with Plant(binary, tmp_path, PASSES, config, env=env) as plant:
        set_back(0)
        plant.start("ship")
        plant.start("collect")
        before = dispatch_some(plant)
        set_back(3600)
        running = dispatch_some(plant)
        plant.kill("collect")
        plant.kill("ship")
        plant.start("ship")
        plant.start("collect")
        restarted = dispatch_some(plant)
        set_back(0)
        after = dispatch_some(plant)
        ids = before + running + restarted + after
        wait_for(lambda: stored(plant, ids) == [1] * 40, why="all is in the store")

        records = {f.record["id"]: f.record for f in plant.frames()}
        assert all(0.9 < hours_ago(records[i]) < 1.1 for i in running + restarted)
        assert all(hours_ago(records[i]) < 0.1 for i in before + after)
        assert plant.stop("collect") == 0
        ok, said = plant.verified()
        assert ok, said
        assert len(plant.journals()) == 1
        trace = plant.run("trace", "t-3", "--json")
        assert trace.returncode == 0
        assert all(i in trace.stdout for i in (before[3], running[3], restarted[3], after[3]))


# ---- Copies -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alive", [False, True], ids=["stopped", "running"])
def test_a_state_folder_that_is_copied_makes_two_that_lose_nothing(binary, tmp_path, alive):
    """Both ship into one database: each record of either is there once."""
    config = f"sinks: {{sqlite: {{path: {tmp_path}/shared.db}}}}\n"
    with Plant(binary, tmp_path / "a", PASSES, config) as a, \
            Plant(binary, tmp_path / "b", PASSES, config) as b:
        a.start("collect")
        common = dispatch_some(a)
        if not alive:
            a.stop("collect")
        shutil.copytree(a.state, b.state, ignore=shutil.ignore_patterns("*.sock"))
        if not alive:
            a.start("collect")
        b.start("collect")
        assert len(b.journals()) == 2
        own = dispatch_some(a), dispatch_some(b)
        a.start("ship")
        b.start("ship")
        own = own[0] + dispatch_some(a), own[1] + dispatch_some(b)

        a.state.joinpath("hooktrail.db").symlink_to(tmp_path / "shared.db")
        wait_for(lambda: stored(a, common + own[0] + own[1]) == [1] * 50, why="all is in the store")
        assert a.query("SELECT count(*) FROM hook_evaluation") == [(50,)]
        seen = {f.record["id"]: f for p in (a, b) for f in p.frames()}
        assert not {seen[i].journal for i in own[0]} & {seen[i].journal for i in own[1]}
        for p in (a, b):
            assert p.stop("collect") == 0
            ok, said = p.verified()
            assert ok, said


def test_a_copy_of_a_running_state_folder_leaves_the_hooks_of_the_first_alone(binary, tmp_path):
    waits = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo {SLEEPS} >&2; exit 2"
    documents = hooks(hook("waits", f"sh -c '{waits}'", "Waits"))
    answers = []
    with Plant(binary, tmp_path / "a", documents) as a, Plant(binary, tmp_path / "b", documents) as b:
        a.start("collect")
        asking = threading.Thread(target=lambda: answers.append(a.dispatch(request("Waits"))))
        asking.start()
        wait_for(lambda: processes(SLEEPS))
        shutil.copytree(a.state, b.state, ignore=shutil.ignore_patterns("*.sock"))
        b.start("collect")
        (tmp_path / "go").touch()
        asking.join(30)
        assert answers[0][2]["reason"] == SLEEPS  # it was not ended by the other
        assert [f for f in a.frames() if f.type == "hook_evaluation"]
        assert not [f for f in b.frames() if f.type == "hook_evaluation"]


# ---- Two of one kind ----------------------------------------------------------------------------


@pytest.mark.parametrize("role, says", [("collect", "written by another process"), ("ship", "another hooktrail ship")])
def test_a_second_one_on_a_state_folder_is_refused_and_the_first_goes_on(plant, role, says):
    plant.start("collect")
    plant.start("ship")
    wait_for(lambda: (plant.state / "hooktrail.db").exists())

    assert says in refused(plant, role, code=3)

    ids = dispatch_some(plant)
    wait_for(lambda: stored(plant, ids) == [1] * 10, why="the first ship goes on")
    assert (plant.state / "run" / "collect.pid").read_text().strip() == str(plant.roles["collect"].pid)


# ---- A sink that goes ---------------------------------------------------------------------------


def fill(plant, megabytes):
    line = json.dumps({"type": "tool_execution", "phase": "start", "thread_id": "fill", "tool_name": "x",
                       "tool_input": {"text": "word " * 10000}}) + "\n"
    for _ in range(megabytes):
        status, _, answer = plant.ask("POST", "/v1/events", line * 20)
        assert (status, answer["accepted"]) == (200, 20)


def test_a_sink_that_is_taken_out_pins_no_segment(plant):
    journal = "journal: {segment_mb: 1, keep_hours: 0}\n"
    plant.configure(journal + "sinks: {sqlite: {}, postgres: {dsn: 'host=127.0.0.1 port=1 connect_timeout=1'}}\n")
    plant.start("collect")
    plant.start("ship")
    fill(plant, 5)
    wait_for(lambda: (plant.state / "sinks/sqlite.positions.json").exists()
             and plant.query("SELECT count(*) FROM tool_execution") == [(100,)], why="it is shipped")

    def segments():
        return list(plant.journals()[0].glob("*.seg"))

    for n in (1, 2):  # at each it looks what it may retire; the second comes when the first look is over
        plant.reload()
        wait_for(lambda: plant.log().count('msg="configuration reloaded"') == n)
    assert len(segments()) >= 5

    plant.configure(journal + "sinks: {sqlite: {}}\n")
    plant.reload("ship")
    told = plant.state / "sinks/postgres.positions.json"
    wait_for(lambda: not json.loads(told.read_text())["configured"], why="ship tells that the sink is gone")
    plant.reload()

    wait_for(lambda: len(segments()) == 1, why="the segments retire")
    ids = dispatch_some(plant)
    wait_for(lambda: stored(plant, ids) == [1] * 10, why="shipping goes on")
    assert plant.query("SELECT count(*) FROM tool_execution WHERE thread_id = 'fill'") == [(100,)]
    plant.stop("collect")
    ok, said = plant.verified()
    assert ok, said


# ---- Hooks that change --------------------------------------------------------------------------


def test_a_hook_that_is_replaced_while_it_runs_ends_as_it_began(binary, tmp_path):
    def document(word):
        body = f"#!/bin/bash\ntouch {tmp_path}/running\nsleep 1\necho {word} >&2\nexit 2\n"
        return json.dumps({"metadata": {"name": "guard"}, "spec": {
            "eventType": "PreToolUse", "activationMode": "always",
            "hook": {"type": "command", "matcher": "Guarded", "script": body}}}) + "\n"

    answers = {}
    with Plant(binary, tmp_path, document("old")) as plant:
        plant.start("collect")
        asking = threading.Thread(target=lambda: answers.update(old=plant.dispatch(request("Guarded"))[2]))
        asking.start()
        wait_for((tmp_path / "running").exists)
        plant.hooks_file.write_text(document("new"))
        plant.reload()
        wait_for(lambda: "hook_sets_changed=1" in plant.log(), why="the new one is in force")
        assert asking.is_alive()
        answers["new"] = plant.dispatch(request("Guarded"))[2]
        asking.join(30)
        assert {k: a["reason"] for k, a in answers.items()} == {"old": "old", "new": "new"}

        plant.hooks_file.write_text("metadata: {name: guard}\nspec: [\n")
        plant.reload()
        wait_for(lambda: "what was in force stays" in plant.log())
        assert f'file="{plant.hooks_file}"' in plant.log() or f"file={plant.hooks_file}" in plant.log()
        assert plant.dispatch(request("Guarded"))[2]["reason"] == "new"

        digests = {f.record["config_digest"] for f in plant.frames() if f.type == "hook_evaluation"}
        registries = {f.record["config_digest"] for f in plant.frames() if f.type == "hook_registry"}
        assert len(digests) == 2 and digests <= registries


def is_missing(path):
    path.unlink()


def is_a_loop(path):
    path.unlink()
    path.symlink_to(path)


def is_closed(path):
    path.chmod(0)


def is_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


# What root is without the right to read everything.
PLAIN = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("spoil", [is_missing, is_a_loop, is_closed, is_a_pipe])
def test_a_hook_file_that_cannot_be_read_is_told_at_start(plant, spoil):
    spoil(plant.hooks_file)
    plant.prefix = PLAIN

    assert str(plant.hooks_file) in refused(plant, "collect", code=2)
    assert str(plant.hooks_file) in refused(plant, "dispatch", "--hooks", str(plant.hooks_file), code=2,
                                            input=json.dumps(request()))
    assert str(plant.hooks_file) in plant.run("check", "--contract", "sre", "--hooks", str(plant.hooks_file)).stderr
    assert not plant.state.joinpath("journals").exists()

    plant.hooks_file.unlink(missing_ok=True)
    plant.hooks_file.write_text(PASSES)
    plant.start("collect")
    dispatch_some(plant, 1)


def test_a_hook_file_that_goes_while_it_is_in_force_changes_nothing(plant):
    plant.start("collect")
    plant.hooks_file.unlink()
    plant.reload()
    wait_for(lambda: str(plant.hooks_file) in plant.log(), why="it is told")
    dispatch_some(plant)
