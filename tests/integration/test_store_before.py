"""A store of the version before the program's own: it is read as it is, until a ship brings it up to date."""
import contextlib
import hashlib
import json
import sqlite3
import subprocess

import pytest
import yaml

from tests.integration.plant import ROOT, Plant, hook, hooks, request

MIGRATIONS = ROOT / "collector" / "sql" / "migrations"
THREAD = "t-before"
DBNAME, BEFORE = "now", "before"

TABLES = """SELECT c.relname, string_agg(a.attname, ',') FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
AND c.relname <> 'schema_version' AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1"""


def migrations_before(database):
    """Number, name and SQL of every migration but the newest."""
    files = sorted((MIGRATIONS / database).glob("*.sql"))
    return [(int(f.stem[:4]), f.stem[5:], f.read_text()) for f in files][:-1]


@pytest.fixture(scope="module")
def plant(binary, postgres, tmp_path_factory):
    """A thread in both stores, as this program makes them."""
    sinks = {"sqlite": {}, "postgres": {"dsn": postgres.create(DBNAME)}}
    documents = hooks(hook("says-no", "echo no >&2; exit 2", "Bash"), hook("passes", "true"))
    with Plant(binary, tmp_path_factory.mktemp("before"), documents, f"sinks: {json.dumps(sinks)}\n") as plant:
        plant.start("collect")
        for tool in ("Bash", "Read"):
            assert plant.dispatch(request(tool) | {"thread_id": THREAD})[0] == 200
        assert plant.stop("collect") == 0
        plant.ship_once()
        yield plant


class SqliteBefore:
    """A file of the version before, with the rows of the store that there is now."""

    def __init__(self, plant):
        self.path = plant.dir / "before.db"
        self.settings = {"path": str(self.path)}
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            for number, name, sql in migrations_before("sqlite"):
                db.executescript(sql)
                db.execute("INSERT INTO schema_version VALUES (?, ?, '')", (number, name))
            self.fill(db, plant.state / "hooktrail.db")

    @staticmethod
    def fill(db, path):
        db.execute("ATTACH ? AS now", (str(path),))
        tables = db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table' "
                            "AND name NOT IN ('schema_version', 'sqlite_sequence')").fetchall()
        for table, in tables:
            columns = ",".join(c[1] for c in db.execute(f"PRAGMA main.table_info({table})"))
            db.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM now.{table}")

    def contents(self):
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            return hashlib.sha256("\n".join(db.iterdump()).encode()).hexdigest()


class PostgresBefore:
    """The same, as a database."""

    def __init__(self, plant, server):
        self.server = server
        self.settings = {"dsn": server.create(BEFORE)}
        for number, name, sql in migrations_before("postgres"):
            server.psql(f"BEGIN; {sql}; INSERT INTO schema_version (version, name) VALUES ({number}, '{name}'); "
                        "COMMIT", BEFORE)
        for table, columns in (row.split("|") for row in server.psql(TABLES, BEFORE)):
            if server.psql(f"SELECT 1 FROM pg_class WHERE relname = '{table}' AND relkind = 'p'", BEFORE):
                server.psql(f"CREATE TABLE {table}_all PARTITION OF {table} DEFAULT", BEFORE)
            rows = self.program("psql", DBNAME, "-Xqc", f"COPY (SELECT {columns} FROM {table}) TO STDOUT")
            self.program("psql", BEFORE, "-Xqc", f"COPY {table} ({columns}) FROM STDIN", stdin=rows)

    def program(self, name, dbname, *words, stdin=b""):
        return subprocess.run([self.server.program(name), "-d", self.server.dsn(dbname), *words],
                              input=stdin, check=True, capture_output=True).stdout

    def contents(self):
        dump = self.program("pg_dump", BEFORE).splitlines()
        return [line for line in dump if b"restrict " not in line]  # a word that is new in each dump


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def before(request, plant, postgres):
    """The old store, with the configuration that reads it."""
    old = SqliteBefore(plant) if request.param == "sqlite" else PostgresBefore(plant, postgres)
    old.config = plant.dir / f"{request.param}.yaml"
    old.config.write_text(plant.config_file.read_text().split("sinks:")[0] + yaml.safe_dump({
        "sinks": {request.param: old.settings},
        "serve": {"store": request.param, "listen": [f"unix:{plant.state}/serve.sock"]}}))
    return old


def ask(plant, config, *words):
    done = subprocess.run([plant.binary, "--config", config, "--state", plant.state, *words],
                          capture_output=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", [("trace", "--json", THREAD), ("trace", THREAD),
                                   ("why", "--json", "says-no", "--thread", THREAD, "--tool", "Read")])
def test_it_answers_as_a_store_of_now_and_is_left_as_it_is(plant, before, words):
    contents = before.contents()
    assert ask(plant, before.config, *words) == ask(plant, plant.config_file, *words)
    assert before.contents() == contents


def test_serve_reads_it_too(plant, before):
    contents, now = before.contents(), plant.config_file
    plant.config_file = before.config
    try:
        plant.start("serve")
        status, _, trace = plant.ask("GET", f"/v1/threads/{THREAD}/trace", sock="serve.sock")
        assert status == 200 and trace == json.loads(ask(plant, now, "trace", "--json", THREAD))
        assert plant.stop("serve") == 0
    finally:
        plant.config_file = now
    assert before.contents() == contents
