"""A state folder put back from an older copy, in place: it gives its numbers away a second time."""
import collections
import json
import os
import shutil
import sqlite3

import pytest

from tests.integration.shipping import STORED, Ship, State, read_topics, wait_for

Place = collections.namedtuple("Place", "sink settings stored")  # stored(): a line a record


def in_sqlite(request):
    store = request.getfixturevalue("tmp_path") / "store.db"

    def stored():
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            sql = STORED.replace("encode(leaf, 'hex')", "lower(hex(leaf))")
            return ["|".join(map(str, row)) for row in db.execute(sql)]

    return Place("sqlite", {"path": str(store)}, stored)


def in_postgres(request):
    postgres = request.getfixturevalue("postgres")
    postgres.create("older_copy")
    return Place("postgres", {"dsn": postgres.dsn("older_copy")}, lambda: postgres.psql(STORED, "older_copy"))


def in_kafka(request):
    kafka = request.getfixturevalue("kafka")
    settings = {"delivery": "exactly-once", "topic_prefix": "older_copy",
                "properties": {"bootstrap.servers": kafka.bootstrap}}
    return Place("kafka", settings,
                 lambda: [f"{m.journal}|{m.seq}|{m.leaf}" for m in read_topics(kafka, "older_copy")])


@pytest.fixture(params=[in_sqlite, in_postgres, in_kafka], ids=lambda f: f.__name__[3:])
def place(request):
    return request.param(request)


@pytest.fixture
def state(binary, live, tmp_path, place):
    return State(binary, live, tmp_path / "state", **{place.sink: place.settings})


def put_back(copy, folder):
    """The copy's files where they were; the folders themselves stay, as a snapshot or rsync leaves them."""
    for path, _, names in os.walk(folder):
        for name in names:
            os.unlink(os.path.join(path, name))
    shutil.copytree(copy, folder, dirs_exist_ok=True)


def assert_refused(state, sink, journal, words):
    """A single run delivers nothing and says why, and so does the status."""
    done = state.run("ship", "--once")
    assert done.returncode == 3, done
    assert done.stderr.count("the state folder is an older copy") == 1 and words in done.stderr, done.stderr
    status = state.run("status", "--json")
    assert status.returncode == 1
    told, = json.loads(status.stdout)["sinks"]
    assert (told["sink"], told["state"]) == (sink, "broken")
    assert words in told["error"] and f"move journals/collect/{journal} out of it" in told["error"]


def test_an_older_copy_delivers_nothing_also_when_it_has_grown_past_the_sink(state, place, tmp_path):
    journal, _, _ = state.fill(300)
    state.ship_once()
    shutil.copytree(state.path, tmp_path / "copy")
    at = state.position(place.sink, journal)
    state.fill(100)
    state.ship_once()
    had = sorted(place.stored())
    assert had == sorted(f"{r.journal}|{r.seq}|{r.leaf}" for r in state.records())

    put_back(tmp_path / "copy", state.path)
    assert_refused(state, place.sink, journal, "it ends at")
    again, _, last = state.fill(200)
    assert again == journal and last > len(had), "it gives numbers away a second time"
    assert_refused(state, place.sink, journal, "another one than the sink has")
    with Ship(state) as ship:
        wait_for(lambda: state.told(place.sink)["state"] == "broken", why=state.log_tail)
        state.fill(100)
        ship.stop()
    assert state.log_text().count("the state folder is an older copy") == 1, state.log_tail()
    assert state.position(place.sink, journal) == at, "collect keeps what nobody has"
    assert sorted(place.stored()) == had

    shutil.move(state.path / "journals" / "collect" / journal, tmp_path / "aside")
    new, _, _ = state.fill(50)
    assert new != journal
    state.ship_once()
    assert sorted(place.stored()) == sorted(had + [f"{r.journal}|{r.seq}|{r.leaf}" for r in state.records()])
    assert state.run("status").returncode == 0
