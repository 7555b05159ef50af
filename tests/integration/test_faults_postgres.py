"""PostgreSQL through every outage: each record exactly once, and every refusal told in words."""
import itertools
import random
import shutil
import subprocess
import time

import pytest

from tests.integration.plant import ROOT
from tests.integration.shipping import (LONG, STORED, Ship, State, assert_stored_once,
                                        stored_position, wait_for)
from tests.servers.proxy import FAULTS, HOLDS, PostgresProxy

TIMEOUT_MS = 1500  # of each answer: what a peer that falls silent costs
TIMES = 5 if LONG else 3
RUNS = 4 if LONG else 1
BATCH = 10_000  # records of a transaction

_names = itertools.count()


@pytest.fixture
def dbname(postgres):
    """A fresh database's name."""
    name = f"faults_{next(_names)}"
    postgres.create(name)
    yield name
    postgres.psql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def state(binary, live, tmp_path, postgres, dbname):
    return State(binary, live, tmp_path / "state", postgres=sink(postgres.dsn(dbname)))


def sink(dsn, **more):
    return {"dsn": dsn, "timeout_ms": TIMEOUT_MS, **more}


def arrives(state, postgres, dbname, journal, last):
    """Everything of the state folder arrives, once, and the position is right behind it."""
    state.wait_shipped("postgres", journal, last)
    records = [r for r in state.records() if r.journal == journal]
    wait_for(lambda: stored_position(postgres, dbname, journal) == records[-1].seq + 1)
    assert_stored_once(postgres, dbname, records)


# ---- Outages -------------------------------------------------------------------------------------


def strike(fault, postgres, proxy, ship):
    """
    Let one fault happen in the middle of a transaction: of its COPY, or between its COMMIT and
    the answer.
    """
    proxy.arm(fault if fault in FAULTS else random.choice(HOLDS))
    assert proxy.fired.wait(60), f"{fault}: no occasion in time; {ship.state.log_tail()}"
    if fault == "kill":
        ship.kill_and_restart()
    elif fault in ("fast", "immediate"):
        postgres.stop(fault)
        time.sleep(random.uniform(0, 0.3))
        postgres.start()
    proxy.release()


@pytest.mark.chaos
@pytest.mark.parametrize("run", range(RUNS))
def test_each_record_arrives_exactly_once_through_every_outage(binary, live, tmp_path, postgres,
                                                               dbname, run):
    """
    The server stopped and crashed, the connection cut in a COPY, before a COMMIT and before its
    answer, a peer that falls silent, ship killed: each several times while records flow.
    """
    plan = [f for f in (*FAULTS, "fast", "immediate", "kill") for _ in range(TIMES)]
    random.shuffle(plan)
    with PostgresProxy(postgres.port) as proxy:
        state = State(binary, live, tmp_path / "state",
                      postgres=sink(proxy.dsn(postgres.dsn(dbname))))
        journal, _, last = state.fill(200_000)
        with Ship(state) as ship:
            wait_for(lambda: proxy.commits > 0, 60, state.log_tail)
            for i, fault in enumerate(plan, 1):
                passed = proxy.commits
                if last - stored_position(postgres, dbname, journal) < 3 * BATCH:
                    _, _, last = state.fill(6 * BATCH)
                wait_for(lambda: proxy.commits > passed, 60, state.log_tail)
                strike(fault, postgres, proxy, ship)
                print(f"{i} of {len(plan)}: {fault}", flush=True)
            arrives(state, postgres, dbname, journal, last)
            ship.stop()
    assert state.letters() == []
    assert "no answer in 1500 ms" in state.log_text()


def test_a_silent_peer_is_given_up_in_time(binary, live, tmp_path, postgres, dbname):
    with PostgresProxy(postgres.port) as proxy:
        state = State(binary, live, tmp_path / "state",
                      postgres=sink(proxy.dsn(postgres.dsn(dbname))))
        journal, _, last = state.fill(100)
        proxy.arm("silent-commit")
        with Ship(state) as ship:
            assert proxy.fired.wait(10)
            begin = time.monotonic()
            wait_for(lambda: state.told("postgres").get("state") == "retrying", 10)
            assert time.monotonic() - begin < TIMEOUT_MS / 1000 + 2
            arrives(state, postgres, dbname, journal, last)
            ship.stop()


def keepalives_s(port):
    """Of each end of the connections to a port: in how many seconds it probes; what does not, is not there."""
    rows = [line.split() for line in open("/proc/net/tcp")][1:]
    ends = [(r[5].split(":"), [int(a.split(":")[1], 16) for a in r[1:3]]) for r in rows if r[3] == "01"]
    return {"server" if local == port else "client": int(when, 16) / 100
            for (timer, when), (local, remote) in ends if port in (local, remote) and timer == "02"}


def test_the_server_ends_what_a_ship_that_vanished_has_begun(state, postgres, dbname):
    """The limits of the session, as the server has them."""
    limits = {"statement_timeout": TIMEOUT_MS, "lock_timeout": TIMEOUT_MS // 2,
              "idle_in_transaction_session_timeout": TIMEOUT_MS * 2, "tcp_keepalives_idle": 10,
              "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
    state.ship_once()
    postgres.psql("CREATE TABLE noted AS SELECT name, setting FROM pg_settings LIMIT 0; "
                  "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                  "INSERT INTO noted SELECT name, setting FROM pg_settings; RETURN NEW; END $$; "
                  "CREATE TRIGGER note BEFORE INSERT ON position FOR EACH ROW EXECUTE FUNCTION note()", dbname)
    journal, _, last = state.fill(10)
    with Ship(state) as ship:
        state.wait_shipped("postgres", journal, last)
        probes = wait_for(lambda: set(p := keepalives_s(postgres.port)) == {"client", "server"} and p, 10)
        ship.stop()
    noted = dict(row.split("|") for row in postgres.psql("SELECT * FROM noted", dbname))
    assert {name: int(noted[name]) for name in limits} == limits
    assert all(0 < s <= 10 for s in probes.values()), probes


# ---- What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("spoilt", ["poison", "long"])
def test_one_bad_record_of_10000_is_a_dead_letter_and_all_others_arrive(state, postgres, dbname,
                                                                        spoilt):
    journal, _, last = state.fill(10_000, **{spoilt: 4321})
    with Ship(state) as ship:
        state.wait_shipped("postgres", journal, last)
        ship.stop()
    records = [r for r in state.records() if r.journal == journal]
    bad = [r for r in records if r.seq == 4321]
    assert_stored_once(postgres, dbname, [r for r in records if r not in bad])
    letters = state.letters()
    assert [(d["journal"], d["seq"], d["sink"]) for d in letters] == [(journal, 4321, "postgres")]
    assert state.told("postgres")["dead"] == 1
    letter = f"{journal}:4321"
    shown = state.run("deadletter", "show", letter).stdout
    assert shown == '{"poison":true}\n' if spoilt == "poison" else "thread-" in shown
    again = state.run("deadletter", "retry", letter)
    assert again.returncode == 1 and "1 refused again" in again.stdout, again

    if spoilt == "long":  # the mend: no index minds it any more
        postgres.psql("DROP INDEX tool_execution_thread, hook_evaluation_thread", dbname)
        done = state.run("deadletter", "retry", letter)
        assert done.returncode == 0 and "1 delivered" in done.stdout, done
        assert_stored_once(postgres, dbname, records)
    else:
        assert state.run("deadletter", "drop", letter).returncode == 0
    assert state.letters() == []
    assert stored_position(postgres, dbname, journal) == records[-1].seq + 1


@pytest.mark.parametrize("harm, mend, word", [
    ("ALTER TABLE hook_evaluation DROP COLUMN run_id",
     "ALTER TABLE hook_evaluation ADD COLUMN run_id text", "run_id"),
    ("REVOKE INSERT ON tool_execution FROM shipper", "GRANT INSERT ON tool_execution TO shipper",
     "permission denied"),
    ("ALTER TABLE hook_evaluation ALTER queue_us TYPE int",
     "ALTER TABLE hook_evaluation ALTER queue_us TYPE bigint", "column hook_evaluation.queue_us"),
    ("ALTER TABLE hook_evaluation ALTER queue_us TYPE text",
     "ALTER TABLE hook_evaluation ALTER queue_us TYPE bigint USING queue_us::bigint",
     "column hook_evaluation.queue_us"),
    ('DROP VIEW "AgentToolExecution"; ALTER TABLE tool_execution ALTER body TYPE jsonb',
     "ALTER TABLE tool_execution ALTER body TYPE json", "column tool_execution.body"),
    ("ALTER TABLE hook_evaluation ALTER collector TYPE varchar(3)",
     "ALTER TABLE hook_evaluation ALTER collector TYPE text", "column hook_evaluation.collector"),
    ("CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
     "RETURN CASE WHEN NEW.seq % 2 = 1 THEN NEW END; END $$; "
     "CREATE TRIGGER drops BEFORE INSERT ON tool_execution FOR EACH ROW EXECUTE FUNCTION drops()",
     "DROP FUNCTION drops CASCADE", "table tool_execution took"),
])
def test_what_somebody_changed_in_the_store_buries_nothing(state, postgres, dbname, harm, mend, word):
    make_role(postgres, dbname, "shipper")
    state.sinks(postgres=sink(postgres.dsn(dbname, user="shipper")))
    state.ship_once()
    postgres.psql(harm, dbname)
    journal, _, last = state.fill(10_000)
    with Ship(state) as ship:
        wait_for(lambda: state.told("postgres").get("state") == "broken", why=state.log_tail)
        assert word in state.told("postgres")["error"]
        ship.stop()
    assert "refuses us until somebody acts" in state.log_text()
    assert word in state.run("status").stdout
    assert state.letters() == [] and state.told("postgres")["dead"] == 0
    postgres.psql(mend, dbname)
    with Ship(state) as ship:
        arrives(state, postgres, dbname, journal, last)
        ship.stop()


def test_a_database_that_cannot_hold_every_character_is_refused(state, postgres, dbname):
    postgres.psql(f"DROP DATABASE {dbname}")
    postgres.psql(f"CREATE DATABASE {dbname} ENCODING 'LATIN1' TEMPLATE template0 "
                  "LC_COLLATE 'C' LC_CTYPE 'C'")
    state.fill(10)
    done = state.run("ship", "--once")
    assert done.returncode == 3 and "encoding is LATIN1" in done.stderr, done
    assert state.told("postgres")["state"] == "broken" and state.letters() == []


def make_role(postgres, dbname, name, option="LOGIN"):
    """A role of this name that owns nothing yet and may make tables."""
    postgres.psql(f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') "
                  f"THEN CREATE ROLE {name} {option}; END IF; END $$", dbname)
    postgres.psql(f"GRANT CREATE, USAGE ON SCHEMA public TO {name}", dbname)


# ---- Other writers, other times -----------------------------------------------------------------


def test_an_old_ship_refuses_a_newer_schema_and_loses_nothing(state, postgres, dbname):
    state.ship_once()
    postgres.psql("INSERT INTO schema_version VALUES (99, 'later')", dbname)
    journal, _, last = state.fill(100)
    done = state.run("ship", "--once")
    assert done.returncode == 3
    assert "version 99" in done.stderr and "newer hooktrail" in done.stderr
    assert state.told("postgres")["state"] == "broken" and state.letters() == []
    postgres.psql("DELETE FROM schema_version WHERE version = 99", dbname)
    state.ship_once()
    arrives(state, postgres, dbname, journal, last)


@pytest.mark.parametrize("theirs", [
    "CREATE TABLE schema_version (installed_rank int, version varchar(50), name text)",
    "CREATE TABLE schema_version (version int, name text)",
    "CREATE TABLE schema_version (version int, at date); CREATE TABLE hook_evaluation (x int)",
])
def test_another_programs_schema_is_left_alone_in_words(state, postgres, dbname, theirs):
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    postgres.psql(theirs, dbname)
    before = postgres.psql(tables, dbname)
    state.fill(10)
    state.config.write_text(f"{state.config.read_text()}serve: {{store: postgres}}\n")
    for words in (("ship", "--once"), ("trace", "t")):
        done = state.run(*words)
        assert done.returncode == 3 and "this is another program's database" in done.stderr, done
    assert state.told("postgres")["state"] == "broken" and state.letters() == []
    assert postgres.psql(tables, dbname) == before


def test_a_name_that_no_index_takes_is_counted_and_stops_nobody(state, postgres, dbname):
    journal, _, last = state.fill(300, name=101)
    state.ship_once()
    arrives(state, postgres, dbname, journal, last)
    assert state.letters() == []


def test_two_ships_of_two_copies_of_one_state_store_each_record_once(state, binary, live, tmp_path,
                                                                     postgres, dbname):
    journal, _, last = state.fill(60_000)
    shutil.copytree(state.path, tmp_path / "copy")
    copy = State(binary, live, tmp_path / "copy", postgres=sink(postgres.dsn(dbname)))
    with Ship(state) as one, Ship(copy) as two:
        for each in (state, copy):
            each.wait_shipped("postgres", journal, last)
        one.stop()
        two.stop()
    arrives(state, postgres, dbname, journal, last)
    assert "another ship writes to it" in state.log_text() + copy.log_text()


def test_ships_that_start_at_once_migrate_once(binary, live, tmp_path, postgres, dbname):
    states = [State(binary, live, tmp_path / f"s{i}", postgres=sink(postgres.dsn(dbname)))
              for i in range(4)]
    filled = [s.fill(50) for s in states]
    running = [subprocess.Popen([binary, "--config", s.config, "--state", s.path, "ship", "--once"],
                                stderr=subprocess.PIPE, text=True) for s in states]
    for process in running:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr
    versions = [int(v) for v in postgres.psql("SELECT version FROM schema_version ORDER BY version", dbname)]
    assert versions == list(range(1, len(versions) + 1)) and versions
    for journal, _, last in filled:
        assert stored_position(postgres, dbname, journal) > last
    assert_stored_once(postgres, dbname, [r for s, (journal, _, _) in zip(states, filled)
                                          for r in s.records() if r.journal == journal])


def test_a_store_of_the_version_before_is_brought_up_to_date_and_goes_on(state, postgres, dbname):
    journal, _, _ = state.fill(300)
    state.ship_once()
    postgres.psql("ALTER TABLE position DROP COLUMN last_seq, DROP COLUMN last_leaf; "
                  "DELETE FROM schema_version WHERE version > 1", dbname)
    state.fill(300)
    state.ship_once()
    records = [r for r in state.records() if r.journal == journal]
    assert_stored_once(postgres, dbname, records)
    last = postgres.psql("SELECT last_seq, encode(last_leaf, 'hex') FROM position "
                         f"WHERE journal = '{journal}'", dbname)
    assert last == [f"{records[-1].seq}|{records[-1].leaf}"]


def dump_and_restore(postgres, dbname, between):
    """The database as it was before `between()` ran."""
    dump = subprocess.run([postgres.program("pg_dump"), "-Fc", "-d", postgres.dsn(dbname)],
                          check=True, capture_output=True).stdout
    between()
    postgres.create(dbname)
    subprocess.run([postgres.program("pg_restore"), "-d", postgres.dsn(dbname)], input=dump,
                   check=True)


def test_a_restored_older_database_gets_what_it_lacks_and_that_is_told(state, postgres, dbname):
    journal, _, _ = state.fill(1000)
    state.ship_once()

    def go_on():
        state.fill(1000)
        state.ship_once()

    dump_and_restore(postgres, dbname, go_on)
    done = state.ship_once()
    assert "restored" in done.stderr and journal in done.stderr
    records = [r for r in state.records() if r.journal == journal]
    assert_stored_once(postgres, dbname, records)


def test_what_a_restored_database_lacks_and_no_journal_has_is_a_gap(state, postgres, dbname):
    journal, _, _ = state.fill(60_000)  # three segments
    state.ship_once()
    segments = sorted((state.path / "journals" / "collect" / journal).glob("*.seg"))
    assert len(segments) > 1
    segments[0].unlink()  # and nobody retired it
    for table in ("hook_evaluation", "hook_execution", "tool_execution", "audit_record"):
        postgres.psql(f"DELETE FROM {table} WHERE seq > 1000", dbname)
    postgres.psql(f"UPDATE position SET next_seq = 1001 WHERE journal = '{journal}'", dbname)
    done = state.ship_once()
    assert "restored" in done.stderr
    assert "records cannot be delivered" in done.stderr and "damage" in done.stderr
    state.ship_once()  # the gap record, which stands in ship's own journal
    first = int(segments[1].stem)
    gaps = postgres.psql("SELECT lost, cause FROM audit_record WHERE type = 'gap'", dbname)
    assert gaps == [f"{first - 1001}|damage"]
    kept = [r for r in state.records() if r.journal == journal]
    rows = postgres.psql(f"SELECT count(*) FROM ({STORED}) r WHERE journal = '{journal}' "
                         f"AND seq >= {first}", dbname)
    assert rows == [str(len(kept))]


# ---- Who is let in ---------------------------------------------------------------------------------


ROLES = ROOT / "deploy" / "postgres-roles.sql"


def make_roles(postgres, dbname, *options):
    """The roles' script as an administrator runs it."""
    return subprocess.run([postgres.program("psql"), "-X", "-d", postgres.dsn(dbname), *options,
                           "-f", ROLES], capture_output=True, text=True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_roles_script_serves_before_and_after_the_first_ship(binary, live, tmp_path, postgres,
                                                                 dbname, when):
    passwords = ("-v", "writer_password=w", "-v", "reader_password=r")
    make_role(postgres, dbname, "shipper")
    state = State(binary, live, tmp_path / "state",
                  postgres=sink(postgres.dsn(dbname, user="shipper")))
    if when == "after":
        state.fill(30, days=1)
        state.ship_once()
    postgres.psql(f"REVOKE ALL ON DATABASE {dbname} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC", dbname)
    for _ in range(2):  # again changes nothing
        done = make_roles(postgres, dbname, *passwords)
        assert (done.returncode, done.stderr) == (0, "")
    state.sinks(postgres=sink(postgres.dsn(dbname, user="hooktrail_writer"), retention_days=2))
    state.fill(30, days=5)
    state.ship_once()
    state.ship_once()  # it may drop the days that somebody else made, too
    state.fill(30)
    state.ship_once()
    owners = postgres.psql("SELECT DISTINCT relowner::regrole FROM pg_class "
                           "WHERE relnamespace = 'public'::regnamespace", dbname)
    assert owners == ["hooktrail_writer"]

    dsn = postgres.dsn(dbname, user="hooktrail_reader")

    def as_reader(sql, dsn=dsn):
        r = subprocess.run([postgres.program("psql"), "-XAtq", "-d", dsn, "-c", sql],
                           capture_output=True, text=True)
        return r.stdout.strip(), r.stderr

    for view in ("AgentHookEvaluation", "AgentHookExecution", "AgentToolExecution"):
        rows, fault = as_reader(f'SELECT count(*) FROM "{view}"')
        assert int(rows) > 0, fault
    assert "read-only" in as_reader("CREATE TABLE mine ()")[1]
    for change in ("DELETE FROM hook_evaluation", "UPDATE position SET next_seq = 1",
                   "DROP VIEW \"AgentHookEvaluation\"", "TRUNCATE audit_record",
                   "SELECT hooktrail_drop_day(date '2030-01-01')"):
        _, fault = as_reader(change, f"{dsn} options='-c default_transaction_read_only=off'")
        assert "permission denied" in fault or "must be owner" in fault, (change, fault)


def test_the_roles_script_wants_both_passwords(postgres, dbname):
    done = make_roles(postgres, dbname, "-v", "writer_password=w")
    assert done.returncode == 3
    assert "give both passwords: -v writer_password=… -v reader_password=…" in done.stderr
    assert "nothing was done" in done.stderr


# ---- Days ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("days, filed", [(5, 5), (-400, -1), (200, 90)])
def test_a_clock_that_is_far_off_is_filed_at_the_edge_and_keeps_its_time(state, postgres, dbname,
                                                                        days, filed):
    journal, _, last = state.fill(30, days=days)
    state.ship_once()
    rows = postgres.psql("SELECT DISTINCT current_date - day, current_date - time::date "
                         "FROM tool_execution", dbname)
    assert rows == [f"{filed}|{days}"]
    arrives(state, postgres, dbname, journal, last)
    of_day = f"current_date - {filed}"
    for which, left in ((f"{of_day} - 1", True), (of_day, False)):  # roll-ups stay as long as their records
        postgres.psql(f"SELECT hooktrail_drop_day({which})", dbname)
        for table in ("hook_evaluation", "evaluation_minute", "hook_minute"):
            assert (postgres.psql(f"SELECT count(*) FROM {table}", dbname) != ["0"]) == left, table


PARTITIONS = "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE relname ~ '_[0-9]{8}$' " \
             "AND to_date(right(relname, 8), 'YYYYMMDD') "
TELLS = "SELECT body -> 'details' ->> 'before', body -> 'details' ->> 'records' FROM audit_record " \
        "WHERE action = 'retention' ORDER BY 1"


def test_retention_drops_day_by_day_and_says_so_in_a_record_each(state, postgres, dbname):
    for n, days in ((300, 10), (3, 8), (300, 0)):
        state.fill(n, days=days)
    state.ship_once()
    postgres.psql("CREATE TABLE tool_execution_default PARTITION OF tool_execution DEFAULT; "
                  "SELECT hooktrail_make_day('tool_execution', current_date - 9)", dbname)  # of no records
    state.sinks(postgres=sink(state_dsn(state), retention_days=3))
    state.ship_once()
    state.ship_once()
    old = "SELECT count(*) FROM {} WHERE time < now() - interval '5 days'"
    for table in ("hook_evaluation", "hook_execution", "tool_execution"):
        assert postgres.psql(old.format(table), dbname) == ["0"]
    assert postgres.psql("SELECT count(*) FROM tool_execution", dbname) == ["200"]
    ends = postgres.psql("SELECT to_char(current_date - d, 'YYYY-MM-DD') FROM (VALUES (9), (7)) AS days (d)", dbname)
    assert postgres.psql(TELLS, dbname) == [f"{ends[0]}T00:00:00.000000Z|300", f"{ends[1]}T00:00:00.000000Z|3"]
    for table in ("evaluation_minute", "hook_minute"):
        minutes = postgres.psql(f"SELECT count(*), count(*) FILTER (WHERE minute < "
                                f"extract(epoch FROM current_date - 3) / 60) FROM {table}", dbname)[0].split("|")
        assert minutes[0] != "0" and minutes[1] == "0"
    assert postgres.psql(PARTITIONS + "< current_date - 3", dbname) == ["0"]
    assert postgres.psql(PARTITIONS + ">= current_date - 3", dbname) != ["0"]


def test_a_retention_that_is_refused_shows_and_goes_on_when_it_is_mended(state, postgres, dbname):
    make_role(postgres, dbname, "shipper")
    dsn = postgres.dsn(dbname, user="shipper")
    state.sinks(postgres=sink(dsn))
    state.fill(30, days=10)
    state.ship_once()
    postgres.psql("ALTER TABLE tool_execution OWNER TO postgres; "
                  "GRANT INSERT, SELECT ON tool_execution TO shipper", dbname)
    state.sinks(postgres=sink(dsn, retention_days=3))
    journal, _, last = state.fill(30)
    state.ship_once()
    assert state.position("postgres", journal) > last
    status = state.run("status")
    assert status.returncode == 1 and "retention: " in status.stdout and "must be owner" in status.stdout
    assert postgres.psql("SELECT count(*) FROM hook_evaluation WHERE time < now() - interval '5 days'", dbname) == ["10"]
    postgres.psql("ALTER TABLE tool_execution OWNER TO shipper", dbname)
    state.ship_once()
    assert state.told("postgres")["state"] == "ok" and state.told("postgres")["error"] == ""
    assert postgres.psql(PARTITIONS + "< current_date - 3", dbname) == ["0"]


def test_a_ship_that_stays_connected_makes_days_ahead_of_their_records(state, postgres, dbname, clock):
    env, set_back = clock
    set_back(0)
    made = "SELECT string_agg(right(relname, 8), ' ' ORDER BY relname) FROM pg_class " \
           "WHERE relname ~ '^tool_execution_[0-9]{8}$'"

    def days(*ahead):
        return [" ".join(postgres.psql("SELECT to_char(current_date + d, 'YYYYMMDD') FROM "
                                       f"unnest(ARRAY{list(ahead)}) AS d", dbname))]

    with Ship(state, env=env) as ship:
        wait_for(lambda: postgres.psql(made, dbname) == days(0, 1), 20, lambda: postgres.psql(made, dbname))
        set_back(-3 * 86400)
        journal, _, last = state.fill(30)
        state.wait_shipped("postgres", journal, last)
        assert postgres.psql(made, dbname) == days(0, 1, 3, 4)
        ship.stop()
    together = "SELECT count(*) FROM pg_inherits WHERE xmin IN (SELECT xmin FROM tool_execution)"
    assert postgres.psql(together, dbname) == ["0"]


@pytest.mark.parametrize("ahead, age", [(200, 0), (2, 0), (1, 0), (-1, 0), (-2, 0), (-200, 100)])
def test_a_clock_that_is_not_the_servers_cuts_nothing_and_is_told(state, postgres, dbname, clock, ahead, age):
    """Nothing that is kept by one of the two."""
    env, set_back = clock
    state.sinks(postgres=sink(state_dsn(state), retention_days=365))
    journal, _, last = state.fill(300, days=age)
    state.ship_once()
    state.sinks(postgres=sink(state_dsn(state), retention_days=90))
    set_back(-ahead * 86400)
    done = state.run("ship", "--once", env=env)
    assert done.returncode == 0, done
    told = "our clock is not the database's" in done.stderr and f"days_ahead={ahead}" in done.stderr
    assert told == (abs(ahead) > 1), done.stderr
    arrives(state, postgres, dbname, journal, last)


def test_a_day_that_somebody_drops_while_ship_runs_is_made_anew(state, postgres, dbname):
    with Ship(state) as ship:
        journal, _, last = state.fill(100)
        state.wait_shipped("postgres", journal, last)
        postgres.psql("SELECT hooktrail_drop_day(current_date)", dbname)
        _, first, last = state.fill(1000)
        state.wait_shipped("postgres", journal, last)
        ship.stop()
    assert "no partition" in state.log_text() and "made anew" in state.log_text()
    assert "until somebody acts" not in state.log_text() and state.letters() == []
    assert_stored_once(postgres, dbname, [r for r in state.records()
                                          if r.journal == journal and r.seq >= first])


def test_a_constraint_of_somebody_else_stops_the_sink_and_is_told(state, postgres, dbname):
    state.ship_once()
    postgres.psql("ALTER TABLE tool_execution ADD CONSTRAINT mine CHECK (seq < 50)", dbname)
    journal, _, last = state.fill(100)
    with Ship(state) as ship:
        wait_for(lambda: state.told("postgres").get("state") == "broken", why=state.log_tail)
        assert "mine" in state.told("postgres")["error"]
        ship.stop()
    postgres.psql("ALTER TABLE tool_execution DROP CONSTRAINT mine", dbname)
    with Ship(state) as ship:
        arrives(state, postgres, dbname, journal, last)
        ship.stop()


def test_one_batch_holds_records_of_several_days_and_each_goes_alone(state, postgres, dbname):
    for days in (3, 0, 2):
        journal, _, last = state.fill(50, days=days)
    state.ship_once()
    days = "SELECT string_agg(DISTINCT (current_date - day)::text, ' ') FROM tool_execution"
    assert postgres.psql(days, dbname) == ["0 2 3"]
    arrives(state, postgres, dbname, journal, last)
    postgres.psql("SELECT hooktrail_drop_day(current_date - 2)", dbname)
    assert postgres.psql(days, dbname) == ["0 3"]


def state_dsn(state):
    import yaml

    return yaml.safe_load(state.config.read_text())["sinks"]["postgres"]["dsn"]
