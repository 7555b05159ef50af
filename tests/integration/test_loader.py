"""`hooktrail ship --source kafka`: from the topics into PostgreSQL, each record once."""
import contextlib
import hashlib
import itertools
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from tests.integration.shipping import (LONG, STORED, Record, Ship, State, assert_stored_once,
                                        count_messages, read_topic, wait_for)
from tests.servers.kafka import PASSWORD, USER

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
    ("CREATE UNIQUE INDEX mine ON hook_evaluation (day, collector) WHERE seq > 310",
     "DROP INDEX mine", ["duplicate key"]),
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
    with Ship(sink, "--source", "kafka") as running:
        time.sleep(4)  # several rounds, each of which reads the same again
        assert sink.log_text().count("refused until somebody acts") == 1
        assert "loading goes on" not in sink.log_text()
        postgres.psql(mend, dbname)
        wait_for(lambda: "loading goes on" in sink.log_text(), 60, sink.log_tail)
        running.stop()
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
    resend(source)
    load_once(sink)
    assert [d["seq"] for d in sink.letters()] == [2000]

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
    assert_stored_once(postgres, dbname, source.records())  # and what was done to the letters


def send(kafka, topic, value, journal=None, seq=None):
    """A message that no ship of ours has sent; value None: a tombstone."""
    headers = [] if journal is None else ["-H", f"journal={journal}"]
    headers += [] if seq is None else ["-H", f"seq={seq}"]
    subprocess.run(["kcat", "-P", "-b", kafka.bootstrap, "-t", topic, "-K", "|", "-Z", *headers],
                   input=f"k|{value or ''}\n".encode(), check=True, timeout=30)


def test_messages_that_are_not_ours_are_dead_letters_and_all_others_are_loaded(
        producer, loader, kafka, postgres, dbname):
    """
    Without headers, no JSON, of no record, a tombstone, a sequence that no journal reaches, larger
    than any record.
    """
    source, sink = producer(), loader()
    journal, _, _ = source.fill(500)
    source.ship_once()
    foreign = [("{}",), ("no json", journal, 7), ('{"type":"poem"}', journal, 7),
               (None, journal, 7), ("[]", "\udcff\udcfe", 8),
               ("{}", journal, 9223372036854775808), ("no json" * 100_000,)]
    for message in foreign:
        send(kafka, f"{dbname}.tool_execution", *message)
    source.fill(500)
    source.ship_once()
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))
    letters = sink.letters()
    assert len(letters) == len(foreign) and {d["sink"] for d in letters} == {"postgres"}
    assert "dead=0" in load_once(sink)
    assert sink.told("postgres")["dead"] == len(foreign)

    names = [d["letter"] for d in letters]
    table = sink.run("deadletter", "list").stdout
    assert len(set(names)) == len(foreign) and all(f" {name} " in table for name in names)
    shown = [sink.run("deadletter", "show", name) for name in names]
    assert [s.returncode for s in shown] == [0] * len(foreign)
    assert sorted(s.stdout[:9] for s in shown) == sorted(f"{m[0] or ''}\n"[:9] for m in foreign)
    again = sink.run("deadletter", "retry", names[1])
    assert again.returncode == 1 and "0 delivered, 1 refused again" in again.stdout, again
    assert [d["attempts"] for d in sink.letters()] == [1, 2, *[1] * (len(foreign) - 2)]
    assert sink.run("deadletter", "drop", names[1]).returncode == 0
    assert [d["letter"] for d in sink.letters()] == [names[0], *names[2:]]
    assert sink.run("deadletter", "drop", names[1]).returncode == 1
    assert sink.run("deadletter", "drop", "--all").returncode == 0
    assert sink.letters() == []


def test_a_record_in_whose_place_another_one_is_stored_is_a_dead_letter_and_stops_nothing(
        producer, loader, kafka, postgres, dbname):
    source, sink = producer(), loader()
    journal, _, last = source.fill(300)
    source.ship_once()
    topic = f"{dbname}.hook_evaluation"
    forged = re.sub(r'("time":"[^".]*)[.0-9]*Z', r"\1.000001Z", read_topic(kafka, topic)[0].value,
                    count=1)
    forged_seqs = range(last + 2, last + 5)  # behind the checkpoint
    for seq in forged_seqs:
        send(kafka, topic, forged, journal, seq)
    load_once(sink)
    source.fill(300)
    source.ship_once()
    load_once(sink)
    records = records_of(source, journal)
    taken = [r for r in records if r.seq in forged_seqs]
    letters = sink.letters()
    assert len(taken) == 3 and sorted(d["seq"] for d in letters) == [r.seq for r in taken]
    assert all(f"journal {journal} had another record" in d["error"] for d in letters)
    missing = {f"{r.journal}|{r.seq}|{r.leaf}" for r in records} - set(postgres.psql(STORED, dbname))
    assert missing == {f"{r.journal}|{r.seq}|{r.leaf}" for r in taken}


def letters_of(sink):
    """As they lie in the file, with the leaf of each record."""
    lines = (sink.path / "deadletters" / "postgres.ndjson").read_text().splitlines()
    raw = [line[line.index('"record":') + 9:-1] for line in lines]
    return [(json.loads(line), hashlib.sha256(b"\0" + r.encode()).hexdigest())
            for line, r in zip(lines, raw)]


def restore_in_place(copy, folder):
    """The files of the copy and no others; the folders stay what they are, to their inodes."""
    for path in folder.rglob("*"):
        if not path.is_dir():
            path.unlink()
    shutil.copytree(copy, folder, dirs_exist_ok=True)


@pytest.mark.parametrize("days, loaded, shift", ((0, True, 0), (1, True, 0), (0, False, 0), (1, True, 1)),
                         ids=("the same day", "another day", "not loaded yet", "another kind"))
def test_numbers_that_are_given_again_after_a_restore_hide_nothing(producer, loader, postgres, dbname,
                                                                   days, loaded, shift):
    """
    The state folder of a collector is restored from an older copy, so that the journal takes it for
    its own (a disk's snapshot, rsync): it goes on under the same id, with numbers that others had.
    """
    source, sink = producer(), loader()
    journal, _, _ = source.fill(900, days=days)
    source.ship_once()
    copy = source.path.with_name("copy")
    shutil.copytree(source.path, copy)
    kept = records_of(source, journal)[-1].seq
    source.fill(900, days=days)
    source.ship_once()
    first = records_of(source, journal)
    if loaded:
        load_once(sink)
        assert_stored_once(postgres, dbname, first)

    restore_in_place(copy, source.path)
    for n in (shift, 600) if shift else (600,):  # a lone one shifts the kinds behind it
        assert source.fill(n)[0] == journal
    source.ship_once()
    again = [r for r in records_of(source, journal) if r.seq > kept]
    assert again[0].seq == kept + 1 and again[-1].seq < first[-1].seq
    said = load_once(sink)
    letters = letters_of(sink)
    if not loaded:  # of two, who came first is stored, and the topics are read side by side
        dead = {leaf for _, leaf in letters}
        first, again = ([r for r in first + again if (r.leaf in dead) == is_dead]
                        for is_dead in (False, True))
    assert_stored_once(postgres, dbname, first)
    assert sorted(leaf for _, leaf in letters) == sorted(r.leaf for r in again)
    assert all(d["error"].startswith(f"journal {journal} had another record {d['seq']} before: "
                                     "the state folder of its collector is an older copy")
               for d, _ in letters)
    assert said.count("gives its numbers again") == 1 and f"dead={len(again)}" in said
    assert sink.told("postgres")["dead"] == len(again)

    resend(source)  # what is stored, and what is a dead letter
    load_once(sink)
    assert_stored_once(postgres, dbname, first)
    assert len(sink.letters()) == len(again)
    source.fill(900)  # first with numbers that were given before, and then with new ones
    source.ship_once()
    load_once(sink)
    dead = {leaf for _, leaf in letters_of(sink)}
    rest = {r for r in records_of(source, journal) if r.leaf not in dead} - set(first)
    assert_stored_once(postgres, dbname, [*first, *rest])
    assert len(dead) > len(again) and len(rest) > 300


def test_a_resend_of_what_retention_has_removed_is_not_loaded_again(producer, loader, kafka, postgres,
                                                                    dbname):
    source, sink = producer(), loader()
    source.fill(300, days=5)
    source.ship_once()
    load_once(sink)
    for table in ("hook_evaluation", "hook_execution", "tool_execution"):
        for name in postgres.psql("SELECT inhrelid::regclass FROM pg_inherits WHERE "
                                  f"inhparent = '{table}'::regclass AND right(inhrelid::regclass::text, "
                                  "8)::date < current_date - 2", dbname):
            postgres.psql(f"DROP TABLE {name}", dbname)
    left = stored(postgres, dbname)
    sink.sinks(kafka=into(kafka, dbname, "at-least-once"),
               postgres={"dsn": postgres.dsn(dbname), "retention_days": 2})
    resend(source)
    assert re.search("records=0 resends_dropped=30[0-9] dead=0", load_once(sink))
    assert stored(postgres, dbname) == left and sink.letters() == []


def audited(sink, action="retention"):
    """The details of the admin records in a loader's own journals, oldest first."""
    lines = sink.run("tail", "--json", "--lines", "1000").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    records = [r.get("record", r) for r in records]
    return [r["details"] for r in records if r["type"] == "admin" and r["action"] == action]


def days_ago(postgres, *days):
    return postgres.psql("SELECT to_char(current_date - d, 'YYYY-MM-DD') || 'T00:00:00.000000Z' "
                         f"FROM unnest(ARRAY{list(days)}) AS d", "postgres")


@contextlib.contextmanager
def reads(postgres, dbname, table):
    """Somebody who reads a table, and so keeps its days from being dropped; close() ends it."""
    with subprocess.Popen([postgres.program("psql"), "-qAt", "-d", postgres.dsn(dbname)], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
        print(f"BEGIN; SELECT count(*) > 0 FROM {table};", file=psql.stdin, flush=True)
        assert psql.stdout.readline() == "t\n"
        yield psql.stdin.close


def old_records(producer, loader, kafka, postgres, dbname, more_days=()):
    """300 of 10 days ago, 3 of 8 and 300 of today, loaded; then three days are to be kept."""
    source, sink = producer(), loader()
    for n, days in ((300, 10), (3, 8), (300, 0), *((3, days) for days in more_days)):
        source.fill(n, days=days)
    source.ship_once()
    load_once(sink)
    keep_days(sink, kafka, postgres, dbname, 3)
    return source, sink


def keep_days(sink, kafka, postgres, dbname, days, **more):
    sink.sinks(kafka=into(kafka, dbname, "at-least-once"),
               postgres={"dsn": postgres.dsn(dbname), "retention_days": days, **more})


OLD = "SELECT count(*) FROM tool_execution WHERE day < current_date - 3"
OLD_DAYS = "SELECT count(*) FROM pg_class WHERE relispartition AND relname ~ '_[0-9]{8}$' AND " \
           "relkind = 'r' AND to_date(right(relname, 8), 'YYYYMMDD') < current_date - 3"


def test_loaders_cut_what_is_due_and_one_of_them_tells_each_day_before_it_goes(
        producer, loader, kafka, postgres, dbname):
    source, one = old_records(producer, loader, kafka, postgres, dbname)
    two = loader("two")
    for sink in (one, two):  # a lock is waited for half as long
        keep_days(sink, kafka, postgres, dbname, 3, timeout_ms=60_000)
    with reads(postgres, dbname, "tool_execution") as end, \
            Ship(one, "--source", "kafka") as first, Ship(two, "--source", "kafka") as second:
        wait_for(lambda: audited(one) + audited(two), 20, one.log_tail)
        time.sleep(1)  # a round of the other one
        assert len(audited(one) + audited(two)) == 1
        assert postgres.psql(OLD_DAYS, dbname) == ["8"]  # four tables of two days
        end()
        wait_for(lambda: postgres.psql(OLD_DAYS, dbname) == ["0"], 30,
                 lambda: one.log_tail() + two.log_tail())
        source.fill(300)
        source.ship_once()
        wait_for(lambda: postgres.psql("SELECT count(*) FROM tool_execution", dbname) == ["400"], 30,
                 one.log_tail)
        first.stop()
        second.stop()
    told = [{"sink": "postgres", "before": day, "records": n}
            for day, n in zip(days_ago(postgres, 9, 7), (300, 3))]
    assert audited(one) + audited(two) == told
    assert "what is due stays" not in one.log_text() + two.log_text()
    assert one.run("verify").returncode == 0


def test_on_sighup_a_loader_takes_its_configuration_anew_and_a_faulty_one_not(producer, loader, kafka,
                                                                              postgres, dbname):
    source, sink = producer(), loader()
    good = sink.config.read_text()
    source.fill(300, days=10)
    source.ship_once()
    with Ship(sink, "--source", "kafka") as running:
        def reload(config, words):
            before = sink.log_text().count(words)
            sink.config.write_text(config)
            running.process.send_signal(signal.SIGHUP)
            wait_for(lambda: sink.log_text().count(words) > before, 30, sink.log_tail)

        for faulty, why in ((good + "no_such_key: 1\n", "no_such_key"),
                            (good.replace("dsn:", "path:"), "path"),
                            (good.replace("  postgres:", "  sqlite: {}\n  other:"), "other"),
                            ("sinks: {sqlite: {}}\n", "both must be configured"),
                            (good.replace("heartbeat.interval.ms: '300'", "no.such.property: '1'"),
                             "no.such.property")):
            reload(faulty, "the old one stays in force")
            assert why in sink.log_text()
        wait_for(lambda: postgres.psql(OLD_DAYS, dbname) != ["0"], 60, sink.log_tail)
        keep_days(sink, kafka, postgres, dbname, 3)
        reload(sink.config.read_text(), "configuration reloaded")
        wait_for(lambda: postgres.psql(OLD_DAYS, dbname) == ["0"], 30, sink.log_tail)
        source.fill(300)
        source.ship_once()
        wait_for(lambda: postgres.psql("SELECT count(*) FROM tool_execution", dbname) == ["200"], 30,
                 sink.log_tail)
        running.stop()


def test_a_single_load_ends_when_what_is_due_is_cut(producer, loader, kafka, postgres, dbname):
    days = [8, 10, *range(20, 30)]  # more than rounds until it is given partitions
    _, sink = old_records(producer, loader, kafka, postgres, dbname, days[2:])
    held = "SELECT pg_advisory_lock(hashtext('hooktrail_cut'));"
    with subprocess.Popen([postgres.program("psql"), "-qAt", "-d", postgres.dsn(dbname)], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        print(held, file=other.stdin, flush=True)
        assert other.stdout.readline() == "\n"
        load_once(sink)  # another one sees to it
        assert postgres.psql(OLD, dbname) != ["0"] and audited(sink) == []
    load_once(sink)
    assert postgres.psql(OLD, dbname) == ["0"]
    assert [d["before"] for d in audited(sink)] == days_ago(postgres, *(d - 1 for d in reversed(days)))


def test_a_cut_that_cannot_be_told_or_done_shows_while_all_is_loaded(producer, loader, kafka,
                                                                     postgres, dbname):
    source, sink = old_records(producer, loader, kafka, postgres, dbname)
    journals = sink.path / "journals"
    journals.write_text("")  # a file where the folder should be
    source.fill(300)
    source.ship_once()
    assert "records=30" in load_once(sink)
    told = sink.told("postgres")
    assert told["state"] == "retrying" and told["error"].startswith("retention: not recorded")
    assert postgres.psql(OLD, dbname) == ["202"]
    journals.unlink()
    load_once(sink)
    assert sink.told("postgres")["state"] == "ok" and postgres.psql(OLD, dbname) == ["0"]


def test_a_database_that_does_not_answer_is_waited_for_as_long_as_its_sink_says(loader, kafka, dbname):
    sink = loader()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        sink.sinks(kafka=into(kafka, dbname, "at-least-once"),
                   postgres={"dsn": f"host=127.0.0.1 port={deaf.getsockname()[1]}", "timeout_ms": 300})
        with Ship(sink, "--source", "kafka") as running:
            wait_for(lambda: "300 ms" in sink.log_text(), 5, sink.log_tail)
            running.stop()


def test_what_a_newer_collector_sends_waits_for_a_newer_loader_and_a_new_type_is_filed(
        producer, loader, kafka, postgres, dbname):
    source, sink = producer(), loader()
    journal, _, last = source.fill(300)
    source.ship_once()
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    head = f'"id":"x","collector":"host-b","time":"{now}"'
    send(kafka, f"{dbname}.audit", '{"schema":1,"type":"hook_novelty",%s}' % head, journal, last + 1000)
    said = load_once(sink)
    assert postgres.psql("SELECT seq FROM audit_record WHERE type = 'hook_novelty'",
                         dbname) == [str(last + 1000)], said
    send(kafka, f"{dbname}.hook_evaluation", '{"schema":99,"type":"hook_evaluation",%s}' % head,
         journal, last + 1001)
    done = sink.run("ship", "--source", "kafka", "--once", timeout=60)
    assert done.returncode == 3 and "schema 99" in done.stderr, done
    assert sink.told("postgres")["state"] == "broken"
    assert sink.letters() == []


def trim(live, kafka, topic):
    """Remove all that is there, as retention does; how many messages those are."""
    messages = read_topic(kafka, topic)
    ends = {}
    for m in messages:
        ends[m.partition] = m.offset + 1
    for partition, end in ends.items():
        subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "trim", topic, str(partition),
                        str(end)], check=True)
    return messages


def test_what_retention_removed_unread_is_told_once_and_counted(producer, loader, live, kafka,
                                                                postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(900)
    source.ship_once()
    load_once(sink)
    source.fill(300)
    source.ship_once()
    topic = f"{dbname}.tool_execution"
    before = stored(postgres, dbname)
    unread = sum(m.seq > 900 for m in trim(live, kafka, topic))
    said = load_once(sink)
    assert "retention removed messages before they were loaded" in said
    assert f"lost={unread}" in said and sink.told("postgres")["lost"] == unread
    source.fill(300)
    source.ship_once()
    said = load_once(sink)
    assert "retention removed" not in said and "lost=0" in said
    assert json.loads(sink.run("status", "--json").stdout)["sinks"][1]["lost"] == unread
    after = len(records_of(source, journal)) - unread
    assert stored(postgres, dbname) == after > before


def test_a_loader_that_runs_notices_what_retention_removed_before_it(producer, loader, live, kafka,
                                                                     postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(300)
    source.ship_once()
    with Ship(sink, "--source", "kafka") as running:
        wait_for(lambda: stored(postgres, dbname) == len(records_of(source, journal)), 60,
                 sink.log_tail)
        running.process.send_signal(signal.SIGSTOP)
        time.sleep(1)  # what it has asked the broker for is answered: nothing
        source.fill(300)
        source.ship_once()
        unread = sum(m.seq > 300 for m in trim(live, kafka, f"{dbname}.tool_execution"))
        running.process.send_signal(signal.SIGCONT)
        wait_for(lambda: "retention removed" in sink.log_text(), 60, sink.log_tail)
        source.fill(300)
        source.ship_once()
        wait_for(lambda: stored(postgres, dbname) == len(records_of(source, journal)) - unread, 60,
                 sink.log_tail)
        running.stop()
    assert f"lost={unread}" in sink.log_text()


def test_messages_of_a_transaction_that_was_given_up_are_not_loaded(producer, loader, postgres, kafka,
                                                                    dbname):
    def given_up():
        name = f"{dbname}.tool_execution"
        return count_messages(kafka, name, "read_uncommitted") > \
            count_messages(kafka, name, "read_committed")

    source, sink = producer("exactly-once"), loader()
    journal, _, _ = source.fill(3000)
    source.ship_once()
    with Ship(source) as ship:
        for _ in range(20):
            source.fill(25_000)  # so many that it waits for no more
            time.sleep(random.uniform(0.1, 0.8))
            ship.kill_and_restart()
            if given_up():
                break
    source.ship_once()
    assert given_up()
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))


@contextlib.contextmanager
def transaction(live, kafka, topic, name):
    """
    One of a producer that is not ours, open until it is told "commit" or left; send(MESSAGE,
    PARTITION) to it returns when the broker has the message.
    """
    with subprocess.Popen([live("live_kafka_hold"), kafka.bootstrap, topic, name], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hold:
        def send(m, partition):
            print(partition, m.journal, m.seq, m.value, sep="\t", file=hold.stdin, flush=True)
            assert hold.stdout.readline() == "open\n"

        def commit():
            print("commit", file=hold.stdin, flush=True)
            assert hold.wait(30) == 0

        yield send, commit


def test_what_an_open_transaction_hides_is_waited_for_and_told_when_it_does_not_come(
        producer, loader, live, kafka, postgres, dbname):
    """Not so what was given up, and the marks of transactions, though they take numbers, too."""
    source, sink = producer(), loader()
    journal, _, _ = source.fill(300)
    source.ship_once()
    elsewhere = producer(name="elsewhere")
    elsewhere.sinks(kafka={**into(kafka, dbname, "at-least-once"), "topic_prefix": f"{dbname}_2"})
    elsewhere.fill(30)
    elsewhere.ship_once()
    hidden = read_topic(kafka, f"{dbname}_2.tool_execution")[:5]
    topic = f"{dbname}.tool_execution"
    with transaction(live, kafka, topic, f"{dbname}_first") as (send, commit):
        for i, message in enumerate(hidden):
            send(message, 0 if i < 3 else 2)
        done = sink.run("ship", "--source", "kafka", "--once", timeout=60)
        assert done.returncode == 3, done
        assert "an open transaction holds back up to 5 messages: " in done.stderr
        assert f"3 of {topic}/0" in done.stderr and f"2 of {topic}/2" in done.stderr
        assert done.stderr.count("holds back") == 2  # the log, and why it ends
        assert "holds back" in sink.told("postgres")["error"]
        assert_stored_once(postgres, dbname, records_of(source, journal))

        source.fill(300)  # behind what is hidden, and so hidden with it
        source.ship_once()
        with transaction(live, kafka, topic, f"{dbname}_later") as (send_later, _):
            with Ship(sink, "--source", "kafka", "--once") as ship:
                wait_for(lambda: "holds back" in sink.log_text(), 30, sink.log_tail)
                send_later(hidden[0], 0)
                commit()
                assert ship.process.wait(30) == 0, sink.log_tail()
    expected = records_of(source, journal) + [Record(m.journal, m.seq, m.leaf, "tool_execution")
                                              for m in hidden]
    assert_stored_once(postgres, dbname, expected)
    begun = time.monotonic()
    assert "records=0" in load_once(sink)  # what came later was given up
    assert time.monotonic() - begun < 8
    assert sink.told("postgres")["state"] == "ok"


def test_a_loader_that_is_refused_says_so_and_loads_all_after_the_mend(producer, loader, kafka,
                                                                       postgres, dbname):
    source, sink = producer(), loader()
    journal, _, _ = source.fill(300)
    source.ship_once()
    good = into(kafka, dbname, "at-least-once")
    sasl = {"bootstrap.servers": kafka.sasl, "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "PLAIN", "sasl.username": USER}
    refusals = [
        ({**good["properties"], **sasl, "sasl.password": "n0t-r1ght"}, dbname,
         "Invalid username or password"),
        (good["properties"], "no_such_database", "no_such_database"),
    ]
    for properties, name, words in refusals:
        sink.sinks(kafka={**good, "properties": properties}, postgres={"dsn": postgres.dsn(name)})
        done = sink.run("ship", "--source", "kafka", "--once", timeout=60)
        assert done.returncode == 3 and words in done.stderr, done
        told = sink.told("postgres")
        assert told["state"] == "broken" and words in told["error"]
        status = sink.run("status")
        assert words in " ".join(status.stdout.split()) and status.returncode == 1
        assert "n0t-r1ght" not in done.stderr + str(told)
    sink.sinks(kafka={**good, "properties": {**good["properties"], **sasl,
                                             "sasl.password": PASSWORD}},
               postgres={"dsn": postgres.dsn(dbname)})
    load_once(sink)
    assert sink.told("postgres")["state"] == "ok"
    assert_stored_once(postgres, dbname, records_of(source, journal))
    told = {s["sink"]: s for s in json.loads(sink.run("status", "--json").stdout)["sinks"]}
    assert told["postgres"]["state"] == "ok" and told["postgres"]["delivered"]
    assert told["kafka"]["state"] == "source" and not any("lag" in s for s in told.values())


@pytest.mark.parametrize("before, after", ((3000, 300), (300, 3000)), ids=("shorter", "grew beyond it"))
def test_a_topic_made_anew_is_read_from_its_beginning_and_nothing_is_doubled(
        producer, loader, live, kafka, postgres, dbname, before, after):
    """Where nobody looked while it was shorter its end does not tell, but what is in it does."""
    source, sink = producer(), loader()
    journal, _, _ = source.fill(before)
    source.ship_once()
    load_once(sink)
    subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "delete",
                    f"{dbname}.tool_execution"], check=True)
    source.fill(after)
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


@pytest.fixture
def guarded(loader, live, kafka, postgres, dbname):
    """A loader that comes through the door with rules; and a way to change them: rule("deny", NAME)."""
    sink = loader()
    through = into(kafka, dbname, "at-least-once")
    through["properties"].update({
        "bootstrap.servers": kafka.sasl, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD})
    sink.sinks(kafka=through, postgres={"dsn": postgres.dsn(dbname)})
    return sink, lambda *args: subprocess.run([live("live_kafka_topic"), kafka.bootstrap, *args],
                                              check=True, timeout=60)


def assert_single_run_gives_up(sink, state, *words):
    done = sink.run("ship", "--source", "kafka", "--once", timeout=60)
    assert done.returncode == 3, done.stderr
    told = sink.told("postgres")
    assert told["state"] == state and all(w in told["error"] for w in words), told
    assert told["error"] in done.stderr, done.stderr


def test_a_topic_that_we_may_not_read_is_named_and_the_rest_is_loaded(
        producer, guarded, postgres, dbname):
    source = producer()
    journal, _, _ = source.fill(300)
    source.ship_once()
    sink, rule = guarded
    rule("deny", f"{dbname}.hook_evaluation")
    assert_single_run_gives_up(sink, "broken", f"topic {dbname}.hook_evaluation", "Read")
    rest = sum(1 for r in records_of(source, journal) if r.type != "hook_evaluation")
    assert stored(postgres, dbname) == rest > 0
    with Ship(sink, "--source", "kafka") as running:
        source.fill(30)
        source.ship_once()
        rest = sum(1 for r in records_of(source, journal) if r.type != "hook_evaluation")
        wait_for(lambda: stored(postgres, dbname) == rest, why=sink.log_tail)
        wait_for(lambda: sink.told("postgres")["state"] == "broken", why=sink.log_tail)
        rule("allow", f"{dbname}.hook_evaluation")
        wait_for(lambda: sink.told("postgres")["state"] == "ok", why=sink.log_tail)
        running.stop()
    assert_stored_once(postgres, dbname, records_of(source, journal))
    said = [line for line in sink.log_text().splitlines() if "refused until somebody acts" in line]
    assert len(said) == 1 and "level=error" in said[0], said


def test_a_group_that_we_may_not_join_is_named(producer, guarded, postgres, dbname):
    source = producer()
    journal, _, _ = source.fill(60)
    source.ship_once()
    sink, rule = guarded
    rule("deny-group", dbname)
    assert_single_run_gives_up(sink, "broken", f"group {dbname}", "Read")
    rule("allow", dbname)
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))


def test_topics_that_are_not_there_are_told_and_waited_for(producer, loader, postgres, dbname):
    sink = loader()
    assert_single_run_gives_up(sink, "retrying", f"topic_prefix {dbname}", "not all there")
    source = producer()
    journal, _, _ = source.fill(60)
    source.ship_once()
    load_once(sink)
    assert_stored_once(postgres, dbname, records_of(source, journal))
