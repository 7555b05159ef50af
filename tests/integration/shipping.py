"""What the tests of `hooktrail ship` share: filled journals, ships, and what must have arrived."""
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
from collections import namedtuple

import yaml

from tests.integration.plant import LONG, wait_for  # noqa: F401 (LONG: for its users)

BEGINS = re.compile('msg="(?:shipping|loading from Kafka into PostgreSQL)"')

Record = namedtuple("Record", "journal seq leaf type")


class State:
    """A state folder with its configuration and journals."""

    def __init__(self, binary, live, folder, **sinks):
        self.binary = binary
        self.live = live
        self.prefix = []  # of every command line
        self.path = pathlib.Path(folder)
        self.path.mkdir(exist_ok=True)
        self.config = self.path.parent / f"{self.path.name}.yaml"
        self.log = self.path.parent / f"{self.path.name}.log"
        self.sinks(**sinks)

    def sinks(self, **sinks):
        """Write hooktrail.yaml with these sinks."""
        self.config.write_text(yaml.safe_dump({"collector": "host-a", "sinks": sinks}))

    def fill(self, n, **spoilt):
        """Append n records; the journal's id, and the first and last sequence."""
        out = subprocess.run([self.live("live_journal"), "fill", str(self.path), str(n),
                              *[f"{k}={v}" for k, v in spoilt.items()]],
                             check=True, capture_output=True, text=True, timeout=120).stdout.split()
        return out[0], int(out[1]), int(out[2])

    def records(self):
        """Every record of the journals, as they are on disk (a ship's own too)."""
        out = subprocess.run([self.live("live_journal"), "read", str(self.path)], check=True,
                             capture_output=True, text=True, timeout=120).stdout
        return [Record(j, int(s), leaf, t) for j, s, leaf, t in map(str.split, out.splitlines())]

    def run(self, *args, timeout=120, env=None):
        return subprocess.run([*self.prefix, self.binary, "--config", str(self.config), "--state",
                               str(self.path), *args], capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(env or {})})

    def ship_once(self):
        done = self.run("ship", "--once")
        assert done.returncode == 0, (done.returncode, done.stderr)
        return done

    def told(self, sink):
        """What STATE/sinks/NAME.positions.json says; {} before there is one."""
        try:
            return json.loads((self.path / "sinks" / f"{sink}.positions.json").read_text())
        except FileNotFoundError:
            return {}

    def position(self, sink, journal):
        return self.told(sink).get("positions", {}).get(journal, 0)

    def letters(self):
        out = self.run("deadletter", "list", "--json")
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)["dead_letters"]

    def wait_shipped(self, sink, journal, last, seconds=120):
        """Until the sink is past `last`."""
        wait_for(lambda: self.position(sink, journal) > last, seconds,
                 lambda: f"at {self.told(sink)}, not past {last}; log: {self.log_tail()}")

    def log_text(self):
        return self.log.read_text() if self.log.exists() else ""

    def log_tail(self):
        return self.log_text()[-3000:]


class Ship:
    """A ship of a state folder in the background; its log is appended to state.log."""

    def __init__(self, state, *args, env=None):
        self.state = state
        self.args = args
        self.env = env
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        # The role itself, not the front: what is killed is who works.
        begun = len(BEGINS.findall(self.state.log_text()))
        with open(self.state.log, "a") as log:
            self.process = subprocess.Popen(
                [*self.state.prefix, os.path.join(os.path.dirname(self.state.binary), "libexec", "hooktrail-ship"),
                 "--config", str(self.state.config), "--state", str(self.state.path),
                 "ship", *self.args], stderr=log, stdout=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **(self.env or {})})
        wait_for(lambda: self.process.poll() is not None
                 or len(BEGINS.findall(self.state.log_text())) > begun, why=self.state.log_tail)
        assert self.process.poll() is None, self.state.log_tail()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

    def kill_and_restart(self):
        assert self.process.poll() is None, self.state.log_tail()
        self.kill()
        self.start()

    def stop(self):
        """SIGTERM; it must end well within a moment."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.state.log_tail()


def digest(lines):
    """One hash over many lines, whatever their order."""
    h = hashlib.sha256()
    for line in sorted(lines):
        h.update(line.encode() + b"\n")
    return h.hexdigest()


# ---- PostgreSQL -----------------------------------------------------------------------------

STORED = """SELECT journal, seq, encode(leaf, 'hex') FROM hook_evaluation
UNION ALL SELECT journal, seq, encode(leaf, 'hex') FROM tool_execution
UNION ALL SELECT journal, seq, encode(leaf, 'hex') FROM audit_record"""


def assert_stored_once(postgres, dbname, records, ran=2, skipped=1):
    """
    The database holds exactly these records, each once; an execution for each hook that ran;
    and roll-ups that sum up to the rows.
    """
    rows = postgres.psql(STORED, dbname)
    expected = [f"{r.journal}|{r.seq}|{r.leaf}" for r in records]
    missing, surplus = set(expected) - set(rows), set(rows) - set(expected)
    assert len(rows) == len(expected) and not missing and not surplus, \
        f"{len(rows)} rows of {len(expected)}; missing {sorted(missing)[:3]}, " \
        f"surplus {sorted(surplus)[:3]}"
    assert digest(rows) == digest(expected)
    evaluations = sum(r.type == "hook_evaluation" for r in records)
    counts = postgres.psql("SELECT count(*), count(DISTINCT (journal, seq, ordinal)) "
                           "FROM hook_execution", dbname)
    assert counts == [f"{ran * evaluations}|{ran * evaluations}"]
    sums = postgres.psql("SELECT coalesce((SELECT sum(n) FROM evaluation_minute), 0), "
                         "coalesce((SELECT sum(n) FROM hook_minute), 0)", dbname)
    assert sums == [f"{evaluations}|{(ran + skipped) * evaluations}"]


def stored_position(postgres, dbname, journal):
    rows = postgres.psql(f"SELECT next_seq FROM position WHERE journal = '{journal}'", dbname)
    return int(rows[0]) if rows else 0


# ---- Kafka: read by kcat, which is not ours ---------------------------------------------------

Message = namedtuple("Message", "topic partition offset key journal seq id leaf headers value")

RECORD_TOPICS = ("hook_evaluation", "tool_execution", "audit")


def kcat(kafka, topic, form, isolation="read_committed"):
    """A topic from its beginning to its end, a line a message."""
    return subprocess.run(
        ["kcat", "-C", "-b", kafka.bootstrap, "-t", topic, "-e", "-q", "-o", "beginning",
         "-X", f"isolation.level={isolation}", "-X", "check.crcs=true", "-f", form + "\n"],
        capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()


def read_topic(kafka, topic):
    """Every message of a topic that was committed."""
    found = []
    for line in kcat(kafka, topic, "%p\t%o\t%k\t%h\t%s"):
        partition, offset, key, headers, value = line.split("\t", 4)
        h = dict(re.findall(r"([\w-]+)=([^,]*)", headers))
        leaf = hashlib.sha256(b"\0" + value.encode()).hexdigest()
        found.append(Message(topic, int(partition), int(offset), key, h.get("journal"),
                             int(h.get("seq", 0)), h.get("ce_id"), leaf, h, value))
    return found


def count_messages(kafka, topic, isolation):
    return len(kcat(kafka, topic, "%o", isolation))


def read_topics(kafka, prefix, names=RECORD_TOPICS):
    return [m for name in names for m in read_topic(kafka, f"{prefix}.{name}")]


def kept_position(kafka, prefix, journal):
    """The position of exactly-once in its compacted topic: the last one that was committed."""
    values = {line.split()[0]: line.split()[1] for line in kcat(kafka, f"{prefix}.positions", "%k %s")}
    return int(values.get(journal, 0))


def assert_in_order(messages):
    """Within a partition (and so within a key) a journal's records come in its order; resends aside."""
    last, seen = {}, set()
    for m in messages:
        if (m.topic, m.id) in seen:
            continue
        seen.add((m.topic, m.id))
        place = (m.topic, m.partition, m.journal)
        assert last.get(place, 0) <= m.seq, f"{place}: {m.seq} behind {last[place]}"
        last[place] = m.seq


def read_whole(kafka, prefix, names, is_whole):
    """A commit is answered before its marks are in every partition: what is missing may come yet."""
    end = time.monotonic() + 10
    while True:
        messages = read_topics(kafka, prefix, names)
        if is_whole(messages) or time.monotonic() > end:
            return messages
        time.sleep(0.1)


def assert_published(kafka, prefix, records, exactly, ran=2):
    """
    The topics hold these records and no other, in order; how many messages are there twice.
    `exactly`: none may be.
    """
    expected = {(r.journal, r.seq, r.leaf) for r in records}
    messages = read_whole(kafka, prefix, RECORD_TOPICS,
                          lambda m: expected <= {(x.journal, x.seq, x.leaf) for x in m})
    found = [(m.journal, m.seq, m.leaf) for m in messages]
    assert set(found) == expected, f"missing {sorted(expected - set(found))[:3]}, " \
                                   f"surplus {sorted(set(found) - expected)[:3]}"
    assert len({m.id for m in messages}) == len(expected), "equal records have equal ids"
    n_executions = ran * sum(r.type == "hook_evaluation" for r in records)
    executions = read_whole(kafka, prefix, ("hook_execution",), lambda m: len(m) >= n_executions)
    assert len({m.id for m in executions}) == n_executions
    assert_in_order(messages)
    twice = len(found) - len(expected) + len(executions) - n_executions
    assert not exactly or twice == 0, f"{twice} messages are there twice"
    return twice
