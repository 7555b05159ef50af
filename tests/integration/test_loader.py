"""`hooktrail ship --source kafka`: from the topics into PostgreSQL, each record once."""
import itertools
import random
import subprocess

import pytest

from tests.integration.shipping import (LONG, STORED, Ship, State, assert_stored_once, wait_for)

TIMES = 10 if LONG else 3  # a loader is killed

_names = itertools.count()


@pytest.fixture
def dbname(postgres):
    name = f"loader_{next(_names)}"
    postgres.create(name)
    yield name
    postgres.psql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def producer(binary, live, tmp_path, kafka, dbname):
    """A collector's state folder, which ships to Kafka alone."""
    def make(delivery="at-least-once", name="producer"):
        return State(binary, live, tmp_path / name, kafka=into(kafka, dbname, delivery))
    return make


@pytest.fixture
def loader(binary, live, tmp_path, kafka, postgres, dbname):
    """A state folder of a loader: loader(NAME)."""
    def make(name="loader"):
        return State(binary, live, tmp_path / name, kafka=into(kafka, dbname, "at-least-once"),
                     postgres={"dsn": postgres.dsn(dbname)})
    return make


def into(kafka, dbname, delivery):
    return {"delivery": delivery, "topic_prefix": dbname, "group": dbname, "partitions": 3,
            "properties": {"bootstrap.servers": kafka.bootstrap, "session.timeout.ms": "2000",
                           "heartbeat.interval.ms": "300"}}


def stored(postgres, dbname):
    """How many records are there; 0 before the tables are."""
    try:
        return int(postgres.psql(f"SELECT count(*) FROM ({STORED}) r", dbname)[0])
    except RuntimeError:
        return 0


def load_once(state):
    done = state.run("ship", "--source", "kafka", "--once", timeout=90)
    assert done.returncode == 0, done.stderr
    return done.stderr


def records_of(state, journal):
    return [r for r in state.records() if r.journal == journal]


def test_what_is_in_the_topics_is_in_the_store_once(producer, loader, postgres, dbname):
    source = producer("exactly-once")
    journal, _, _ = source.fill(3000)
    source.ship_once()
    load_once(loader())
    records = records_of(source, journal)
    assert_stored_once(postgres, dbname, records)
    assert "records=0" in load_once(loader())
    assert_stored_once(postgres, dbname, records)


def resend(source):
    """As after a ship that died between the acknowledgement and its position."""
    (source.path / "sinks" / "kafka.positions.json").unlink()
    source.ship_once()


@pytest.mark.chaos
def test_two_loaders_share_the_work_while_one_dies_and_a_producer_resends(producer, loader, postgres,
                                                                          dbname):
    source = producer()
    journal, _, _ = source.fill(30_000)
    source.ship_once()
    one, two = loader("one"), loader("two")
    met = 0  # kills that found something to be loaded
    with Ship(one, "--source", "kafka") as first, Ship(two, "--source", "kafka") as second:
        for i in range(TIMES):
            before = stored(postgres, dbname)
            source.fill(20_000)
            source.ship_once()
            if i % 3 == 1:
                resend(source)
            wait_for(lambda: stored(postgres, dbname) > before, 60,
                     lambda: one.log_tail() + two.log_tail())
            met += stored(postgres, dbname) < len(records_of(source, journal))
            random.choice([first, second]).kill_and_restart()
            print(f"{i + 1} of {TIMES}: a loader killed", flush=True)
        records = records_of(source, journal)
        wait_for(lambda: stored(postgres, dbname) >= len(records), 90,
                 lambda: f"{stored(postgres, dbname)} of {len(records)}\n"
                         f"{one.log_tail()}{two.log_tail()}")
        resend(source)
        source.fill(300)
        source.ship_once()
        records = records_of(source, journal)
        wait_for(lambda: stored(postgres, dbname) >= len(records), 90)
        first.stop()
        second.stop()
    load_once(one)
    assert_stored_once(postgres, dbname, records)
    assert met > TIMES // 2
    assert one.letters() == two.letters() == []
    assert "partitions assigned" in one.log_text() and "partitions assigned" in two.log_text()


def test_an_outage_of_the_database_costs_nothing_but_delay(producer, loader, postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(20_000)
    source.ship_once()
    with Ship(sink, "--source", "kafka") as running:
        for mode in ("fast", "immediate"):
            wait_for(lambda: stored(postgres, dbname) > 0, 60, sink.log_tail)
            postgres.stop(mode)
            source.fill(5_000)
            source.ship_once()
            postgres.start()
        records = records_of(source, journal)
        wait_for(lambda: stored(postgres, dbname) >= len(records), 60, sink.log_tail)
        running.stop()
    assert_stored_once(postgres, dbname, records)


@pytest.mark.parametrize("harm, mend, words", [
    ("ALTER TABLE hook_evaluation DROP COLUMN run_id",
     "ALTER TABLE hook_evaluation ADD COLUMN run_id text", ["run_id"]),
    ("INSERT INTO schema_version VALUES (99, 'later')",
     "DELETE FROM schema_version WHERE version = 99", ["version 99", "newer hooktrail"]),
])
def test_a_store_of_another_shape_stops_the_loader_and_buries_nothing(
        producer, loader, postgres, dbname, harm, mend, words):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(300)
    source.ship_once()
    load_once(sink)
    postgres.psql(harm, dbname)
    source.fill(3000)
    source.ship_once()
    done = sink.run("ship", "--source", "kafka", "--once", timeout=60)
    assert done.returncode == 3 and all(w in done.stderr for w in words), done
    assert sink.letters() == []
    postgres.psql(mend, dbname)
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))


def test_a_record_that_is_refused_is_a_dead_letter_and_a_letter_sent_late_is_loaded(
        producer, loader, live, kafka, postgres, dbname):
    """
    The producer's own dead letter reaches the topic behind later records, once a person has mended
    what refused it: its sequence is below the last, and it is no resend.
    """
    topic = [live("live_kafka_topic"), kafka.bootstrap]
    subprocess.run([*topic, "create", f"{dbname}.tool_execution", "3", "max.message.bytes=100000"],
                   check=True)
    source, sink = producer(), loader()
    journal, _, _ = source.fill(3000, big=1000, long=2000)
    source.ship_once()
    load_once(sink)
    records = records_of(source, journal)
    assert_stored_once(postgres, dbname, [r for r in records if r.seq not in (1000, 2000)])
    assert [d["seq"] for d in source.letters()] == [1000]
    assert [(d["seq"], d["sink"]) for d in sink.letters()] == [(2000, "postgres")]

    subprocess.run([*topic, "config", f"{dbname}.tool_execution", "max.message.bytes=1000000"],
                   check=True)
    assert source.run("deadletter", "retry", "--all").returncode == 0
    load_once(sink)
    assert_stored_once(postgres, dbname, [r for r in records if r.seq != 2000])

    postgres.psql("DROP INDEX hook_evaluation_thread, tool_execution_thread", dbname)
    done = sink.run("deadletter", "retry", "--all")
    assert done.returncode == 0, done
    resend(source)
    load_once(sink)
    assert_stored_once(postgres, dbname, records)


def test_a_topic_made_anew_is_read_from_its_beginning_and_nothing_is_doubled(
        producer, loader, live, kafka, postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(3000)
    source.ship_once()
    load_once(sink)
    subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "delete",
                    f"{dbname}.tool_execution"], check=True)
    source.fill(300)
    source.ship_once()
    assert "deleted and made anew" in load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))


def test_a_topic_made_anew_that_grew_beyond_the_old_one_is_read_from_its_beginning(
        producer, loader, live, kafka, postgres, dbname):
    """Nobody looked while it was shorter than before: its end does not tell, but what is in it does."""
    source, sink = producer(), loader()
    journal, _, _ = source.fill(300)
    source.ship_once()
    load_once(sink)
    subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "delete",
                    f"{dbname}.tool_execution"], check=True)
    source.fill(3000)
    source.ship_once()
    assert "deleted and made anew" in load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))


@pytest.mark.parametrize("loaded", (True, False), ids=("loaded before", "not yet"))
def test_what_is_sent_again_into_partitions_that_were_added_is_dropped(
        producer, loader, live, kafka, postgres, dbname, loaded):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(12_000 if loaded else 1000)
    source.ship_once()
    if loaded:
        load_once(sink)
    for name in ("tool_execution", "hook_evaluation"):
        subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "grow", f"{dbname}.{name}", "7"],
                       check=True)
    resend(source)
    source.fill(300)
    source.ship_once()
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))
    assert sink.letters() == []


def test_a_restored_older_database_is_loaded_with_what_it_lacks(producer, loader, postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(1000)
    source.ship_once()
    load_once(sink)
    dump = subprocess.run([postgres.program("pg_dump"), "-Fc", "-d", postgres.dsn(dbname)],
                          check=True, capture_output=True).stdout
    source.fill(1000)
    source.ship_once()
    load_once(sink)
    postgres.create(dbname)
    subprocess.run([postgres.program("pg_restore"), "-d", postgres.dsn(dbname)], input=dump,
                   check=True)
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))
