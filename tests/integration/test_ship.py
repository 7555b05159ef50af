"""`hooktrail ship`: from the journals into the store, exactly once, whatever dies when."""
import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from tests.integration import plant
from tests.integration.plant import BIN, LONG, wait_for

KILLS = 200 if LONG else 20
BATCH = 400  # records between two kills


@pytest.fixture
def fill(live):
    """A tool that writes journals: fill(state, n) gives the journal's id and last sequence."""
    def run(state, n, poisoned=0, days=0):
        out = subprocess.run([live("live_fill"), state, str(n), str(poisoned), str(days)], check=True,
                             capture_output=True, text=True, timeout=60).stdout.split()
        return out[0], int(out[1])

    return run


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def hooktrail(state, *args, config=None, timeout=60):
    options = ["--config", config] if config else []
    return plant.hooktrail(*options, "--state", state, *args, timeout=timeout)


def ship_once(state, **kw):
    done = hooktrail(state, "ship", "--once", **kw)
    assert done.returncode == 0, done.stderr
    return done


def query(state, sql):
    with sqlite3.connect(f"file:{state}/hooktrail.db?mode=ro", uri=True) as db:
        return db.execute(sql).fetchall()


def change(state, sql):
    """Do something to the store behind ship's back."""
    with contextlib.closing(sqlite3.connect(state / "hooktrail.db")) as db, db:
        db.execute(sql)


RECORDS = """(SELECT journal, seq FROM hook_evaluation UNION ALL SELECT journal, seq FROM tool_execution
              UNION ALL SELECT journal, seq FROM audit_record)"""


def assert_whole(state, journal, last):
    """Every record of the journal once, the roll-ups alike, the position behind the last."""
    assert query(state, f"SELECT count(*), count(DISTINCT seq), min(seq) FROM {RECORDS} "
                        f"WHERE journal = '{journal}' AND seq <= {last}") == [(last, last, 1)]
    (evaluations,), = query(state, "SELECT count(*) FROM hook_evaluation")
    assert query(state, "SELECT sum(n) FROM evaluation_minute") == [(evaluations,)]
    assert query(state, "SELECT count(*) FROM hook_execution") == [(2 * evaluations,)]
    assert query(state, "SELECT sum(n) FROM hook_minute") == [(3 * evaluations,)]
    (position,), = query(state, f"SELECT next_seq FROM position WHERE journal = '{journal}'")
    assert position > last


def positions(state, sink="sqlite"):
    return json.loads((state / "sinks" / f"{sink}.positions.json").read_text())


class Ship:
    """A ship in the background."""

    def __init__(self, state, config=None):
        options = ["--config", str(config)] if config else []
        self.process = subprocess.Popen([BIN, *options, "--state", str(state), "ship"],
                                        stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=10)


def wait_delivered(state, journal, last, sink="sqlite"):
    file = state / "sinks" / f"{sink}.positions.json"
    wait_for(lambda: file.exists() and positions(state, sink)["positions"].get(journal, 0) > last)


def test_what_is_in_the_journals_is_in_the_store_once(state, fill):
    journal, last = fill(state, 1000)
    ship_once(state)
    ship_once(state)
    assert_whole(state, journal, last)
    told = positions(state)
    assert told["state"] == "ok" and told["configured"] is True
    assert told["positions"][journal] > last


def test_without_a_journal_a_single_run_ends_well(state):
    ship_once(state)
    assert query(state, f"SELECT count(*) FROM {RECORDS}") == [(0,)]


@pytest.mark.chaos
def test_killed_at_random_moments_it_stores_each_record_once(state, fill):
    journal = None
    last = 0
    for _ in range(KILLS):
        with Ship(state) as ship:
            found, last = fill(state, BATCH)
            journal = journal or found
            assert found == journal
            time.sleep(random.uniform(0, 0.15))
            ship.kill()
    ship_once(state)
    assert_whole(state, journal, last)


def test_it_follows_a_journal_that_grows_and_stops_on_term(state, fill):
    with Ship(state) as ship:
        journal, last = fill(state, 50)
        wait_delivered(state, journal, last)
        ship.send_signal(signal.SIGTERM)
        assert ship.wait(timeout=10) == 0
    assert_whole(state, journal, last)


def test_a_second_ship_on_one_state_folder_is_refused(state):
    with Ship(state) as first:
        wait_for(lambda: (state / "sinks").exists())
        second = hooktrail(state, "ship", "--once")
        assert second.returncode == 3
        assert "another hooktrail ship" in second.stderr
        assert f"as process {first.pid}" in second.stderr


def test_a_ship_that_stops_says_so_and_what_it_leaves(state, fill, tmp_path):
    config = tmp_path / "hooktrail.yaml"
    config.write_text('sinks: {postgres: {dsn: "host=127.0.0.1 port=1 user=nobody"}}\n')
    fill(state, 20)
    with Ship(state, config) as ship:
        wait_for(lambda: "not available" in ship.stderr.readline())
        ship.send_signal(signal.SIGTERM)
        _, said = ship.communicate(timeout=30)
    assert ship.returncode == 0
    sink, = json.loads(hooktrail(state, "status", "--json", config=config).stdout)["sinks"]
    assert sink["lag"] >= 20
    assert 'msg="stopping, ' in said and f'sink="postgres" left={sink["lag"]}' in said, said


def test_a_poisoned_record_goes_to_the_dead_letters_and_all_others_arrive(state, fill):
    journal, last = fill(state, 1000, 250)
    ship_once(state)
    (n,), = query(state, f"SELECT count(*) FROM {RECORDS} WHERE journal = '{journal}' AND seq <= {last}")
    assert n == last - 4
    assert positions(state)["dead"] == 4

    listed = json.loads(hooktrail(state, "deadletter", "list", "--json").stdout)["dead_letters"]
    assert len(listed) == 4 and {d["journal"] for d in listed} == {journal}
    letter = f"{journal}:{listed[0]['seq']}"
    assert hooktrail(state, "deadletter", "show", letter).stdout == '{"poison":true}\n'

    again = hooktrail(state, "deadletter", "retry", "--all")
    assert again.returncode == 1 and "4 refused again" in again.stdout
    assert json.loads(hooktrail(state, "deadletter", "list", "--json").stdout)["dead_letters"][0]["attempts"] == 2

    assert hooktrail(state, "deadletter", "drop", letter).returncode == 0
    assert hooktrail(state, "deadletter", "show", letter).returncode == 1
    assert len(json.loads(hooktrail(state, "deadletter", "list", "--json").stdout)["dead_letters"]) == 3


@pytest.mark.parametrize("sink, settings", [
    ("postgres", 'dsn: "host=127.0.0.1 port={port}"'),
    ("kafka", 'properties: {{bootstrap.servers: "127.0.0.1:{port}"}}'),
])
def test_a_letter_is_sent_again_within_the_sinks_own_limit(state, fill, tmp_path, sink, settings):
    fill(state, 10, 5)
    ship_once(state)
    letters = state / "deadletters"
    (letters / f"{sink}.ndjson").write_bytes((letters / "sqlite.ndjson").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        config = tmp_path / "deaf.yaml"
        config.write_text("sinks: {%s: {timeout_ms: 300, %s}}\n" % (
            sink, settings.format(port=deaf.getsockname()[1])))
        begun = time.monotonic()
        done = hooktrail(state, "deadletter", "retry", "--all", "--sink", sink, config=config)
        assert (done.returncode, time.monotonic() - begun < 5) == (3, True), done


def test_a_letter_sent_again_after_the_mend_arrives_once(state, fill):
    ship_once(state)
    change(state, "CREATE TRIGGER poison BEFORE INSERT ON tool_execution WHEN new.seq = 10 "
                  "BEGIN SELECT RAISE(ABORT, 'poison'); END")
    journal, last = fill(state, 100)
    ship_once(state)
    change(state, "DROP TRIGGER poison")
    done = hooktrail(state, "deadletter", "retry", "--all")
    assert done.returncode == 0 and "1 delivered" in done.stdout, done
    assert_whole(state, journal, last)


def test_a_dropped_column_buries_nothing_and_all_arrives_once_it_is_back(state, fill):
    ship_once(state)
    change(state, "ALTER TABLE hook_evaluation DROP COLUMN run_id")
    journal, last = fill(state, 100)
    with Ship(state) as ship:
        wait_for(lambda: positions(state)["state"] == "broken")
        assert "run_id" in positions(state)["error"]
        ship.kill()
    assert positions(state)["dead"] == 0
    change(state, "ALTER TABLE hook_evaluation ADD COLUMN run_id TEXT")
    ship_once(state)
    assert_whole(state, journal, last)


def test_a_restored_older_store_gets_what_it_lacks(state, fill):
    journal, _ = fill(state, 100)
    ship_once(state)
    change(state, "PRAGMA wal_checkpoint(TRUNCATE)")
    old = (state / "hooktrail.db").read_bytes()
    _, last = fill(state, 100)
    ship_once(state)
    for end in ("-wal", "-shm"):
        (state / f"hooktrail.db{end}").unlink(missing_ok=True)
    (state / "hooktrail.db").write_bytes(old)
    ship_once(state)
    assert_whole(state, journal, last)


def test_a_sink_taken_out_of_the_configuration_pins_nothing(state, fill, tmp_path):
    config = tmp_path / "hooktrail.yaml"
    config.write_text("sinks: {sqlite: {}, \"null\": {}}\n")
    fill(state, 10)
    ship_once(state, config=config)
    assert positions(state, "null")["configured"] is True
    config.write_text("sinks: {sqlite: {}}\n")
    ship_once(state, config=config)
    assert positions(state, "null")["configured"] is False
    assert positions(state)["configured"] is True


def test_retention_cuts_and_says_so_in_a_record(state, fill, tmp_path):
    config = tmp_path / "hooktrail.yaml"
    config.write_text("sinks: {sqlite: {retention_days: 1}}\n")
    journal, _ = fill(state, 100, days=10)
    ship_once(state, config=config)
    ship_once(state, config=config)
    assert query(state, "SELECT count(*) FROM hook_evaluation") == [(0,)]
    assert query(state, "SELECT count(*) FROM hook_execution") == [(0,)]
    ship_once(state, config=config)
    details, = query(state, "SELECT json_extract(body, '$.details.records'), journal <> "
                            f"'{journal}' FROM audit_record WHERE action = 'retention'")
    assert details == (100, 1)


def test_a_newer_store_is_refused_in_words(state):
    ship_once(state)
    change(state, "INSERT INTO schema_version VALUES (99, 'later', '')")
    done = hooktrail(state, "ship", "--once", timeout=120)
    assert done.returncode == 3
    assert "version 99" in done.stderr


def test_status_shows_who_ships_and_how_far_each_sink_is(state, fill):
    journal, last = fill(state, 20)
    waiting = json.loads(hooktrail(state, "status", "--json").stdout)
    assert waiting["sinks"] == [{"sink": "sqlite", "state": "not started", "lag": waiting["sinks"][0]["lag"],
                                 "dead": 0, "dead_ever": 0, "lost": 0}]
    assert waiting["sinks"][0]["lag"] >= last
    with Ship(state) as ship:
        wait_delivered(state, journal, last)
        status = json.loads(hooktrail(state, "status", "--json").stdout)
        assert {"role": "ship", "state": "running", "pid": ship.pid} in status["roles"]
        sink, = status["sinks"]
        assert (sink["state"], sink["lag"], sink["dead"]) == ("ok", 0, 0)
        assert "error" not in sink and sink["delivered"] <= sink["time"]
        ship.kill()
    died = hooktrail(state, "status", "--json")
    assert died.returncode == 1 and json.loads(died.stdout)["roles"][1]["state"] == "died"
    ship_once(state)
    assert json.loads(hooktrail(state, "status", "--json").stdout)["roles"][1]["state"] == "not running"


def test_the_last_error_of_a_broken_sink_stands_in_status(state, fill):
    ship_once(state)
    change(state, "ALTER TABLE hook_evaluation DROP COLUMN run_id")
    fill(state, 5)
    assert hooktrail(state, "ship", "--once").returncode == 3
    status = hooktrail(state, "status", "--json")
    sink, = json.loads(status.stdout)["sinks"]
    assert status.returncode == 1 and sink["state"] == "broken" and "run_id" in sink["error"]
    assert sink["error"] in hooktrail(state, "status").stdout


def test_sighup_takes_a_new_sink_and_refuses_a_faulty_file(state, fill, tmp_path):
    config = tmp_path / "hooktrail.yaml"
    config.write_text("sinks: {sqlite: {}}\n")
    journal, last = fill(state, 10)
    with Ship(state, config) as ship:
        wait_delivered(state, journal, last)
        config.write_text("sinks: {sqlite: {}, \"null\": {}}\n")
        ship.send_signal(signal.SIGHUP)
        wait_delivered(state, journal, last, "null")
        config.write_text("sinks: {sqlite: {no_such_key: 1}}\n")
        ship.send_signal(signal.SIGHUP)
        wait_for(lambda: "configuration not taken" in ship.stderr.readline())
        journal, last = fill(state, 10)
        for sink in ("sqlite", "null"):
            wait_delivered(state, journal, last, sink)
        ship.send_signal(signal.SIGTERM)
        assert ship.wait(timeout=10) == 0
    assert_whole(state, journal, last)


def test_deadletter_touches_the_letters_of_the_named_sink_alone(state, fill):
    _, last = fill(state, 10, 5)
    ship_once(state)
    letters = state / "deadletters"
    (letters / "other.ndjson").write_bytes((letters / "sqlite.ndjson").read_bytes())

    def of(*args):
        listed = json.loads(hooktrail(state, "deadletter", "list", "--json", *args).stdout)["dead_letters"]
        return sorted(d["sink"] for d in listed)

    assert of() == ["other", "other", "sqlite", "sqlite"]
    assert of("--sink", "other") == ["other", "other"]
    nobody = hooktrail(state, "deadletter", "list", "--sink", "nobody")
    assert (nobody.returncode, "there is no sink 'nobody'" in nobody.stderr) == (1, True)
    assert hooktrail(state, "deadletter", "drop", "--all", "--sink", "other").returncode == 0
    assert of() == ["sqlite", "sqlite"]
    assert hooktrail(state, "deadletter", "drop", "--all", "--sink", "other").returncode == 0  # none is left

    admin, = (r for r in map(json.loads, hooktrail(state, "tail", "--json", "-n", "99").stdout.splitlines())
              if r["type"] == "admin")
    listed = json.loads(hooktrail(state, "deadletter", "list", "--json").stdout)["dead_letters"]
    assert (admin["action"], admin["actor"]) == ("deadletter_drop", f"uid {os.getuid()}")
    assert admin["details"] == {"sink": "other", "count": 2,
                                "letters": [f"{d['journal']}:{d['seq']}" for d in listed]}


def test_a_letter_that_is_no_json_is_listed_shown_and_sent_again(state, fill):
    journal, last = fill(state, 10, 5)
    ship_once(state)
    letters = state / "deadletters/sqlite.ndjson"
    first, rest = letters.read_text().split("\n", 1)
    plain = json.dumps(json.loads(first)["record"], separators=(",", ":"))
    deep = json.loads(first)
    del deep["record"]
    letters.write_text(json.dumps({**deep, "record_hex": plain.encode().hex()}) + "\n" + rest)

    listed = json.loads(hooktrail(state, "deadletter", "list", "--json").stdout)["dead_letters"]
    assert len(listed) == 2
    assert hooktrail(state, "deadletter", "show", f"{journal}:{deep['seq']}").stdout == plain + "\n"
    assert "2 refused again" in hooktrail(state, "deadletter", "retry", "--all").stdout


@pytest.mark.parametrize("delivered", (True, False), ids=("delivered", "not yet"))
def test_the_journal_of_the_commands_is_retired_once_it_is_delivered(state, fill, tmp_path, delivered):
    config = tmp_path / "hooktrail.yaml"
    config.write_text("journal: {keep_hours: 0}\n")
    journal, _ = fill(state, 1800)  # more than one segment
    folder = state / "journals/cli" / journal
    before = len(list(folder.glob("*.seg")))
    assert before > 1
    if delivered:
        ship_once(state, config=config)
    assert hooktrail(state, "token", "create", "t", "--scopes", "query", config=config).returncode == 0
    assert (len(list(folder.glob("*.seg"))) < before) is delivered


def test_a_loss_is_told_once_although_ship_starts_again_before_it_delivers(state, fill):
    fill(state, 100)
    ship_once(state)
    journal, last = fill(state, 1800)
    min((state / "journals/cli" / journal).glob("*.seg")).unlink()
    # The store opens, and takes nothing.
    change(state, "CREATE TRIGGER full BEFORE INSERT ON hook_minute BEGIN SELECT RAISE(ABORT, 'full'); END")
    for _ in range(2):
        assert hooktrail(state, "ship", "--once").returncode == 3
        assert positions(state)["told"][journal] < last
    change(state, "DROP TRIGGER full")
    ship_once(state)
    ship_once(state)
    assert query(state, "SELECT count(*) FROM audit_record WHERE type = 'gap' AND cause = 'damage'") == [(1,)]
    assert positions(state)["told"] == {} and positions(state)["lost"] > 1000
