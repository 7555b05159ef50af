"""
Servers that refuse us: the log, the sink's file, `status` and the exit code say which sink, what
the server said and what to do, and nothing shows a password. Once it is mended all arrives.
"""
import contextlib
import itertools
import pathlib
import re
import subprocess

import pytest

from tests.integration.shipping import (RECORD_TOPICS, Ship, State, assert_published,
                                        assert_stored_once, wait_for)
from tests.servers.certificates import Authority
from tests.servers.kafka import KEY_PASSWORD, PASSWORD, USER

WRONG = "n0t-r1ght"
SECRETS = (WRONG, PASSWORD, KEY_PASSWORD)
N = 60

DELIVERIES = ("at-least-once", "exactly-once")
BOTH = pytest.mark.parametrize("delivery", DELIVERIES)

# Kafka 4 compares the nonce, of which librdkafka sent one half twice before 2.6.1.
LIBRDKAFKA = tuple(map(int, re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", subprocess.run(
    ["kcat", "-V"], capture_output=True, text=True).stdout).groups()))
SCRAM = pytest.mark.skipif(LIBRDKAFKA < (2, 6, 1), reason="SCRAM with Kafka 4 needs librdkafka 2.6.1")

_names = itertools.count()


@pytest.fixture
def state(binary, live, tmp_path):
    return State(binary, live, tmp_path / "state")


def everything_written(state):
    """The log, and every file of the state folder: journals with their records, too."""
    files = [p for p in pathlib.Path(state.path).rglob("*") if p.is_file()]
    return state.log_text().encode() + b"".join(p.read_bytes() for p in files)


def ship_once_tells(state, sink):
    """`ship --once` gives up, and says why: what it wrote, and the error in the sink's file."""
    done = state.run("ship", "--once")
    assert done.returncode == 3, done
    error = state.told(sink)["error"]
    assert f'sink="{sink}"' in done.stderr
    assert error in done.stderr.replace('\\"', '"'), done.stderr
    return done.stderr, error


def ship_tells(state, sink, expected):
    """A ship goes on, and its log and `status` say why it delivers nothing."""
    before = len(state.log_text())
    with Ship(state) as ship:
        wait_for(lambda: " err=" in state.log_text()[before:], why=state.log_tail)
        wait_for(lambda: state.told(sink)["state"] == expected, why=state.log_tail)
        error = state.told(sink)["error"]
        status = state.run("status").stdout
        ship.stop()
    assert error in state.log_text()[before:].replace('\\"', '"')
    shown = [line for line in status.splitlines() if expected in line]
    assert len(shown) == 1 and sink in shown[0], status
    assert error in " ".join(status.split()), status
    return status, error


def assert_refused(state, sink, expected, words):
    """
    Refused, and told alike by all that tells; nothing that is written shows a password. A single
    run waits ten seconds for a server that is away, so that is asked of the lasting ones alone.
    """
    texts = []
    if expected == "broken":
        text, error = ship_once_tells(state, sink)
        assert state.told(sink)["state"] == expected and all(w in error for w in words), error
        texts.append(text)
    text, error = ship_tells(state, sink, expected)
    assert all(w in error for w in words), error
    written = "".join([*texts, text]).encode() + everything_written(state)
    assert not [s for s in SECRETS if s.encode() in written]


# ---- Kafka -----------------------------------------------------------------------------------------


@pytest.fixture
def prefix():
    return f"refusal{next(_names)}"


@pytest.fixture
def topic(live, kafka):
    return lambda *args: subprocess.run([live("live_kafka_topic"), kafka.bootstrap, *args],
                                        check=True, timeout=60)


@pytest.fixture
def doors(kafka, tmp_path):
    """librdkafka's properties that the broker's listeners want."""
    sasl = {"bootstrap.servers": kafka.sasl, "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
    return {
        "plain": {"bootstrap.servers": kafka.bootstrap},
        "sasl": sasl,
        "scram": {**sasl, "sasl.mechanisms": "SCRAM-SHA-256"},
        "tls": {"bootstrap.servers": kafka.tls, "security.protocol": "SSL",
                "ssl.ca.location": kafka.authority.path},
        "key": {"ssl.certificate.location": kafka.pilot[0], "ssl.key.location": kafka.pilot[1]},
    }


def into_kafka(state, prefix, delivery, properties, **more):
    state.sinks(kafka={"delivery": delivery, "topic_prefix": prefix, "timeout_ms": 4000,
                       "properties": properties, **more})


def assert_all_published(state, kafka, prefix, delivery, journal):
    state.ship_once()
    assert state.told("kafka")["state"] == "ok" and not state.told("kafka").get("error")
    records = [r for r in state.records() if r.journal == journal]
    assert len(records) >= N
    assert_published(kafka, prefix, records, exactly=delivery == "exactly-once")


@BOTH
@pytest.mark.parametrize("door", ("sasl", pytest.param("scram", marks=SCRAM), "tls"))
def test_who_has_what_the_listener_wants_delivers_all(state, kafka, prefix, doors, delivery, door):
    into_kafka(state, prefix, delivery, doors[door])
    assert_all_published(state, kafka, prefix, delivery, state.fill(N)[0])


CA = "/nowhere/ca.crt"

KAFKA_REFUSALS = {
    "a wrong password": ("sasl", {"sasl.password": WRONG}, "broken",
                         ["SASL authentication error", "Invalid username or password", "sasl.*"]),
    "a mechanism that the broker lacks": ("sasl", {"sasl.mechanisms": "SCRAM-SHA-512"}, "broken",
                                          ["SCRAM-SHA-512", "supported mechanisms: PLAIN"]),
    "no credentials": ("sasl", {"security.protocol": "PLAINTEXT"}, "retrying",
                       ["security.protocol", "broker might require SASL"]),
    "no TLS": ("tls", {"security.protocol": "PLAINTEXT"}, "retrying",
               ["security.protocol", "SSL listener"]),
    "TLS towards a plain listener": ("tls", {"bootstrap.servers": None}, "retrying",
                                     ["ssl://", "handshake failed", "security.protocol"]),
    "an authority that nobody knows": ("tls", {"ssl.ca.location": None}, "broken",
                                       ["certificate is refused", "issuer", "ssl.ca.location"]),
    "another host's certificate": ("tls", {"bootstrap.servers": "localhost"}, "broken",
                                   ["certificate is refused", "hostname mismatch",
                                    "bootstrap.servers"]),
    "a wrong password of SCRAM": ("scram", {"sasl.password": WRONG}, "broken",
                                  ["SASL authentication error", "SCRAM-SHA-256", "sasl.*"]),
    "a file that is not there": ("tls", {"ssl.ca.location": CA}, "broken",
                                 ["sinks.kafka.properties.ssl.ca.location", CA, "No such file"]),
}


# Both drivers open alike: each case by one of them, in turn, and what matters most by both.
KAFKA_CASES = {(DELIVERIES[i % 2], case) for i, case in enumerate(KAFKA_REFUSALS)} | {
    (delivery, case) for delivery in DELIVERIES
    for case in ("a wrong password", "an authority that nobody knows")}


@pytest.mark.parametrize("delivery, case", sorted(KAFKA_CASES))
def test_kafka_says_why_it_refuses_and_all_arrives_after_the_mend(state, kafka, prefix, doors,
                                                                  delivery, case, tmp_path):
    door, change, expected, words = KAFKA_REFUSALS[case]
    wrong = {**doors[door], **change}
    if case == "TLS towards a plain listener":
        wrong["bootstrap.servers"] = kafka.bootstrap
    elif case == "an authority that nobody knows":
        wrong["ssl.ca.location"] = Authority(tmp_path / "other").path
    elif case == "another host's certificate":
        wrong["bootstrap.servers"] = kafka.tls.replace("127.0.0.1", "localhost")
    journal, _, _ = state.fill(N)
    into_kafka(state, prefix, delivery, wrong)
    assert_refused(state, "kafka", expected, words)
    mended = "sasl" if door == "scram" else door  # of the same user
    into_kafka(state, prefix, delivery, doors[mended])
    assert_all_published(state, kafka, prefix, delivery, journal)


@BOTH
def test_a_topic_that_we_may_not_write_is_named(state, kafka, prefix, doors, topic, delivery):
    topic("create", f"{prefix}.tool_execution", "3")
    topic("deny", f"{prefix}.tool_execution")
    journal, _, _ = state.fill(N)
    into_kafka(state, prefix, delivery, doors["sasl"])
    assert_refused(state, "kafka", "broken",
                   ["Topic authorization failed", f"topic {prefix}.", "Write"])
    assert state.letters() == []
    topic("allow", f"{prefix}.tool_execution")
    assert_all_published(state, kafka, prefix, delivery, journal)


@pytest.mark.parametrize("policy", ("delete", "compact,delete"))
def test_a_topic_of_positions_that_would_forget_some_is_refused(state, kafka, prefix, doors, topic,
                                                                policy):
    topic("create", f"{prefix}.positions", "1", f"cleanup.policy={policy}")
    journal, _, _ = state.fill(N)
    into_kafka(state, prefix, "exactly-once", doors["plain"])
    _, error = ship_once_tells(state, "kafka")
    assert f"topic {prefix}.positions has cleanup.policy={policy} and would forget" in error, error
    assert "must be compact" in error and state.told("kafka")["state"] == "broken"
    topic("config", f"{prefix}.positions", "cleanup.policy=compact")
    assert_all_published(state, kafka, prefix, "exactly-once", journal)


def test_a_topic_of_positions_with_several_partitions_is_told_and_used(state, kafka, prefix, doors,
                                                                       topic):
    topic("create", f"{prefix}.positions", "3", "cleanup.policy=compact")
    journal, _, _ = state.fill(N)
    into_kafka(state, prefix, "exactly-once", doors["plain"])
    told = [line for line in state.ship_once().stderr.splitlines()
            if f'topic="{prefix}.positions"' in line]
    assert len(told) == 1 and "level=warn" in told[0] and "partitions=3" in told[0], told
    assert_all_published(state, kafka, prefix, "exactly-once", journal)


def test_where_we_may_make_no_topic_the_one_of_positions_is_told_with_its_settings(
        state, kafka, prefix, doors, topic):
    for name in (*RECORD_TOPICS, "hook_execution"):
        topic("create", f"{prefix}.{name}", "3")
    journal, _, _ = state.fill(N)
    into_kafka(state, prefix, "exactly-once", doors["plain"], create_topics=False)
    _, error = ship_once_tells(state, "kafka")
    assert f"topic {prefix}.positions is not there" in error, error
    assert "one partition and cleanup.policy=compact" in error, error
    assert state.told("kafka")["state"] == "broken"
    topic("create", f"{prefix}.positions", "1", "cleanup.policy=compact")
    assert_all_published(state, kafka, prefix, "exactly-once", journal)


@pytest.mark.parametrize("kind", ("file", "env"))
def test_passwords_of_librdkafka_stand_in_files_or_the_environment(state, kafka, prefix, doors, kind,
                                                                   tmp_path, monkeypatch):
    def secret(name, value):
        if kind == "env":
            monkeypatch.setenv(name, value)
            return f"env:{name}"
        path = tmp_path / name
        path.write_text(value + "\n")
        return f"file:{path}"

    journal, _, _ = state.fill(N)
    key = {**doors["tls"], **doors["key"]}
    into_kafka(state, prefix, "at-least-once",
               {**key, "ssl.key.password": secret("WRONG_KEY", WRONG)})
    assert_refused(state, "kafka", "broken", ["ssl.key.location failed", "ssl.key.password"])
    into_kafka(state, prefix, "at-least-once",
               {**key, "ssl.key.password": secret("RIGHT_KEY", KEY_PASSWORD)})
    assert_all_published(state, kafka, prefix, "exactly-once", journal)
    into_kafka(state, prefix, "at-least-once",
               {**doors["sasl"], "sasl.password": secret("SASL", PASSWORD)})
    state.fill(5)
    state.ship_once()
    shown = state.run("config")
    assert PASSWORD not in shown.stdout
    into_kafka(state, prefix, "at-least-once",
               {**doors["sasl"], "sasl.password": "file:/nowhere/sasl" if kind == "file"
                else "env:NOT_SET"})
    assert_refused(state, "kafka", "broken" if kind == "env" else "retrying",
                   ["sinks.kafka.properties.sasl.password"])


# ---- PostgreSQL ------------------------------------------------------------------------------------


@pytest.fixture
def dbname(postgres):
    name = f"refusal_{next(_names)}"
    postgres.create(name)
    yield name
    postgres.psql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def into_postgres(state, dsn):
    state.sinks(postgres={"dsn": dsn, "timeout_ms": 4000})


def assert_all_stored(state, postgres, dbname, journal):
    state.ship_once()
    assert state.told("postgres")["state"] == "ok" and not state.told("postgres").get("error")
    assert_stored_once(postgres, dbname, [r for r in state.records() if r.journal == journal])


@contextlib.contextmanager
def role(postgres, name, options=""):
    postgres.psql(f"CREATE ROLE {name} LOGIN {options}")
    try:
        yield name
    finally:
        for db in postgres.psql("SELECT datname FROM pg_database WHERE datname LIKE 'refusal_%'"):
            postgres.psql(f"DROP OWNED BY {name}", db)
        postgres.psql(f"DROP ROLE {name}")


def test_postgres_says_that_a_password_is_wrong_or_missing(state, postgres, dbname):
    journal, _, _ = state.fill(N)
    with role(postgres, "guarded", f"SUPERUSER PASSWORD '{PASSWORD}'"), \
            postgres.asking_for_passwords("guarded"):
        dsn = postgres.dsn(dbname, user="guarded")
        into_postgres(state, f"{dsn} password={WRONG}")
        assert_refused(state, "postgres", "broken",
                       ['password authentication failed for user "guarded"'])
        into_postgres(state, dsn)
        assert_refused(state, "postgres", "broken", ["no password supplied"])
        into_postgres(state, f"{dsn} password={PASSWORD}")
        assert_all_stored(state, postgres, dbname, journal)
        postgres.psql("REASSIGN OWNED BY guarded TO postgres", dbname)


POSTGRES_REFUSALS = {
    "no TLS": (" sslmode=require", "broken", ["server does not support SSL"]),
    "no such role": (" user=nobody_here", "broken", ['role "nobody_here" does not exist']),
    "no such database": (" dbname=no_such_db", "broken", ['database "no_such_db" does not exist']),
    "no such libpq value": (" target_session_attrs=redwrite", "broken", ['"redwrite"']),
    "no port": (" port=70000", "broken", ["invalid port number"]),
    "no server": (" port=1", "retrying", ["port 1", "Connection refused"]),
    "no host": (" host=nobody.invalid", "retrying", ['"nobody.invalid"', "not known"]),
}


@pytest.mark.parametrize("case", POSTGRES_REFUSALS)
def test_postgres_says_why_it_refuses_and_all_arrives_after_the_mend(state, postgres, dbname, case):
    change, expected, words = POSTGRES_REFUSALS[case]
    journal, _, _ = state.fill(N)
    into_postgres(state, postgres.dsn(dbname) + change)
    assert_refused(state, "postgres", expected, words)
    into_postgres(state, postgres.dsn(dbname))
    assert_all_stored(state, postgres, dbname, journal)


def test_a_single_run_waits_a_while_for_a_server_and_then_says_why(state, postgres):
    state.fill(N)
    into_postgres(state, postgres.dsn(port=1))
    _, error = ship_once_tells(state, "postgres")
    assert "Connection refused" in error and state.told("postgres")["state"] == "retrying"


def test_each_of_several_hosts_is_told(state, postgres):
    state.fill(N)
    into_postgres(state, f"host=127.0.0.1,127.0.0.1 port=1,{postgres.port} user=postgres "
                         "dbname=no_such_db")
    assert_refused(state, "postgres", "broken", ["Connection refused; ", 'database "no_such_db"'])


def test_a_certificate_that_is_not_to_be_trusted_is_told(state, postgres, dbname, tmp_path):
    authority = Authority(tmp_path / "authority")
    journal, _, _ = state.fill(N)
    with postgres.with_tls(*authority.issue("server", "IP:127.0.0.1")):
        dsn = f"{postgres.dsn(dbname)} sslmode=verify-full"
        into_postgres(state, f"{dsn} sslrootcert={Authority(tmp_path / 'other').path}")
        assert_refused(state, "postgres", "broken", ["certificate verify failed"])
        into_postgres(state, f"{dsn} sslrootcert={CA}")
        assert_refused(state, "postgres", "broken", [f'root certificate file "{CA}"'])
        into_postgres(state, f"{dsn} host=localhost sslrootcert={authority.path}")
        assert_refused(state, "postgres", "broken", ["does not match host name"])
        into_postgres(state, f"{dsn} sslrootcert={authority.path}")
        assert_all_stored(state, postgres, dbname, journal)


def test_a_role_that_may_not_write_is_named(state, postgres, dbname):
    into_postgres(state, postgres.dsn(dbname))
    state.ship_once()
    journal, _, _ = state.fill(N)
    with role(postgres, "onlooker"):
        postgres.psql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO onlooker", dbname)
        into_postgres(state, postgres.dsn(dbname, user="onlooker"))
        assert_refused(state, "postgres", "broken", ["permission denied", "role onlooker"])
        assert state.letters() == []
        into_postgres(state, postgres.dsn(dbname))
        assert_all_stored(state, postgres, dbname, journal)


def test_a_server_with_no_room_is_tried_again(state, postgres, dbname):
    journal, _, _ = state.fill(N)
    with role(postgres, "crowded"):
        postgres.psql(f'ALTER DATABASE "{dbname}" OWNER TO crowded')
        postgres.psql("ALTER ROLE crowded CONNECTION LIMIT 0")
        into_postgres(state, postgres.dsn(dbname, user="crowded"))
        assert_refused(state, "postgres", "retrying", ["too many connections"])
        with Ship(state) as ship:
            postgres.psql("ALTER ROLE crowded CONNECTION LIMIT -1")
            state.wait_shipped("postgres", journal, N, 30)
            ship.stop()
        assert_stored_once(postgres, dbname, [r for r in state.records() if r.journal == journal])
        postgres.psql(f'ALTER DATABASE "{dbname}" OWNER TO postgres')
        postgres.psql("REASSIGN OWNED BY crowded TO postgres", dbname)


def test_a_standby_is_waited_for_until_it_is_the_primary(state, postgres, dbname):
    into_postgres(state, postgres.dsn(dbname))
    state.ship_once()
    journal, _, _ = state.fill(N)
    with postgres.as_standby():
        assert_refused(state, "postgres", "retrying", ["read-only", "target_session_attrs"])
    assert_all_stored(state, postgres, dbname, journal)
