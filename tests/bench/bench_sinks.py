"""PostgreSQL and Kafka: `hooktrail ship` beside a bare client, and beside programs of the trade.

Private servers of tests/servers, one journal, the same events for all. run.py calls postgres_rows and
kafka_rows, which give rows of its table. A peer that is not installed is told as SKIP, with the Debian
package that has it. Debian lets only one of rsyslog and syslog-ng be installed: HOOKTRAIL_PEERS names a
folder that packages were unpacked into (dpkg -x). A peer gets large batches and less
to do: no hook is a row or a message of its own, nothing is counted, there are no headers; but the same
key, and a table whose columns and indexes find an event as ours do. It is timed from its start until
everything is there, as `hooktrail ship --once` is.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.servers import kafka, postgres  # noqa: E402

RECORDS = int(os.environ.get("HOOKTRAIL_BENCH_RECORDS", "150000"))
RUNS = int(os.environ.get("HOOKTRAIL_BENCH_RUNS", "5"))
PEERS = os.environ.get("HOOKTRAIL_PEERS", "/")
LIB = "usr/lib/x86_64-linux-gnu"
PEER_SECONDS = 40  # then what has arrived by then is its rate
TICK = os.sysconf("SC_CLK_TCK")

# What one way of sending took: seconds, CPU seconds, peak memory in MiB; events, and what they became.
Run = namedtuple("Run", "seconds cpu peak events sent")


def words(run, what):
    """A run for the table."""
    return (f"{run.sent / run.seconds:.0f} {what}/s, {run.events / run.seconds:.0f} events/s, "
            f"{run.cpu * 1e6 / run.events:.1f} s CPU a million events, {run.peak:.0f} MB")


def peer_path(*names):
    """The first of these files that is there, below HOOKTRAIL_PEERS or /; None without one."""
    for root in (PEERS, "/"):
        for name in names:
            found = sorted(pathlib.Path(root).glob(name))
            if found:
                return str(found[-1])
    return None


def peer_env():
    folders = [f"{PEERS}/{d}" for d in (LIB, "lib/x86_64-linux-gnu", "usr/lib/syslog-ng")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}


class Skip(Exception):
    """Why something is not measured."""


def run_program(args, env=None):
    """A program that ends by itself, with what it used."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(args, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        log.seek(0)
        if p.returncode:
            raise RuntimeError(f"{args}: {p.returncode}: {log.read().decode()[-2000:]}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def watch_program(args, count, n, env=None):
    """A program that never ends: until count() is n, with what it used until then."""
    with tempfile.TemporaryFile() as log:
        start = time.monotonic()
        p = subprocess.Popen(args, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env,
                             start_new_session=True)
        try:
            there = count()
            while there < n and p.poll() is None and time.monotonic() - start < PEER_SECONDS:
                time.sleep(0.05)
                there = count()
            seconds = time.monotonic() - start
            log.seek(0)
            if p.poll() is not None:
                said = log.read().decode(errors="replace").strip().splitlines()
                raise Skip(f"{args[0]} ended: {said[0] if said else f'status {p.returncode}'}")
            stat = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()
            status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
        finally:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
    return Run(seconds, (int(stat[11]) + int(stat[12])) / TICK,
               int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024, min(there, n), min(there, n))


class Bench:
    """Events, and a scratch folder."""

    def __init__(self, out, folder):
        self.out = pathlib.Path(out)
        self.folder = pathlib.Path(folder)
        self.state = self.folder / "state"
        self.lines = self.folder / "lines"
        self.state.mkdir()
        subprocess.run([self.out / "obj/tests/live/live_journal", "fill", self.state, str(RECORDS)],
                       check=True, stdout=subprocess.DEVNULL)
        with open(self.lines, "wb") as f:
            subprocess.run([self.out / "obj/tests/bench/bench_lines", self.state], check=True, stdout=f)
        self.n = 0
        self.ran = 0  # hooks: each is a row and a message of its own
        with open(self.lines, "rb") as f:
            for line in f:
                hooks = json.loads(line).get("hooks", [])
                self.n += 1
                self.ran += sum(h["decision"] != "skipped" for h in hooks)

    def fresh(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def beside_bare(self, target, name, *args):
        """A row of a C benchmark; its last line ends with "RATIO x … (target LEAST…)"."""
        r = subprocess.run([str(self.out / "obj/tests/bench" / name), *map(str, args), str(RUNS)],
                           capture_output=True, text=True)
        if r.returncode not in (0, 1):
            raise RuntimeError(f"{name}: {r.stderr.strip()}")
        lines = r.stdout.strip().splitlines()
        figures = [line.split(": ", 2)[2].replace("client's ", "") for line in lines[:2]]
        ratio, least = re.search(r"([\d.]+) x.*\(target ([\d.]+)\)", lines[-1]).groups()
        return (target, *figures, ratio, f">= {least}", float(ratio) >= float(least))

    def ship(self, sinks):
        """`hooktrail ship --once` of the whole journal."""
        state = self.folder / "ship-state"
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(self.state, state)
        config = self.folder / "ship.yaml"
        config.write_text(f"collector: bench\nsinks:\n{sinks}\n")
        return Run(*run_program([str(self.out / "hooktrail"), "--config", str(config), "--state",
                                 str(state), "ship", "--once"]), self.n, self.n + self.ran)

    def beside_peers(self, target, what, ship, peers, least=2.0):
        """A row for each peer, from alternating runs: the medians of both, in rows or messages."""
        runs = {"ship": [], **{name: [] for name in peers}}
        for _ in range(RUNS):
            for name in list(runs):
                try:
                    runs[name].append(ship() if name == "ship" else peers[name]())
                except Skip as why:
                    print(f"{target}, {name}: SKIP: {why}", file=sys.stderr, flush=True)
                    del runs[name]
        middle = {name: sorted(some, key=lambda r: r.sent / r.seconds)[len(some) // 2]
                  for name, some in runs.items()}
        ours = middle.pop("ship")
        for name, run in middle.items():
            ratio = ours.sent / ours.seconds / (run.sent / run.seconds)
            yield (f"{target}, {name}", words(ours, what), words(run, what), f"{ratio:.2f}",
                   f">= {least}", ratio >= least)


# ---- rsyslog and syslog-ng ----------------------------------------------------------------------

RSYSLOG = """global(workDirectory="{folder}" maxMessageSize="256k")
module(load="imfile" mode="inotify")
module(load="mmjsonparse")
module(load="{module}")
template(name="line" type="string" string="%msg%")
template(name="key" type="string" string="%$!thread_id%")
template(name="sql" type="string" option.stdsql="on" string="INSERT INTO peer VALUES ('%$!id%', '%$!time%', \
'%$!collector%', NULLIF('%$!thread_id%', ''), NULLIF('%$!call_id%', ''), '%$!tool_name%', '%msg%')")
input(type="imfile" File="{lines}" Tag="x" ruleset="r" addMetadata="off")
ruleset(name="r" queue.type="LinkedList" queue.size="100000" queue.dequeueBatchSize="4096") {{
  action(type="mmjsonparse" cookie="")
  action({action})
}}
"""

SYSLOG_NG = """@version: 3.35
options {{ stats-freq(0); log-fifo-size(100000); threaded(yes); }};
source s {{ file("{lines}" flags(no-parse) log-iw-size(100000) log-fetch-limit(10000)
                 log-msg-size(262144)); }};
parser p {{ json-parser(prefix("j.")); }};
destination d {{ {destination} }};
log {{ source(s); parser(p); destination(d); flags(flow-control); }};
"""

# As our tables of evaluations and tool calls find an event: by id, thread, call, time.
PEER_TABLE = """
CREATE TABLE peer (id text PRIMARY KEY, time timestamptz NOT NULL, collector text NOT NULL, thread_id text,
                   call_id text, tool_name text, body json NOT NULL);
CREATE INDEX ON peer (thread_id, time) WHERE thread_id IS NOT NULL;
CREATE INDEX ON peer (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX ON peer (time);
"""


def rsyslog(bench, module, package, action, count):
    program = peer_path("usr/sbin/rsyslogd")
    found = peer_path(f"{LIB}/rsyslog/{module}.so")
    if not program or not found:
        raise Skip(f"needs the package {package}")
    folder = bench.fresh("rsyslog")
    config = folder / "rsyslog.conf"
    config.write_text(RSYSLOG.format(folder=folder, module=module, lines=bench.lines,
                                     action=action))
    modules = f"{os.path.dirname(found)}:/{LIB}/rsyslog"
    return watch_program([program, "-n", "-f", str(config), "-i", str(folder / "pid"), "-M",
                          modules], count, bench.n, peer_env())


def syslog_ng(bench, module, package, destination, count):
    program = peer_path("usr/sbin/syslog-ng")
    found = peer_path(f"usr/lib/syslog-ng/*/{module}.so")
    if not program or not found:
        raise Skip(f"needs the package {package}")
    folder = bench.fresh("syslog-ng")
    config = folder / "syslog-ng.conf"
    config.write_text(SYSLOG_NG.format(lines=bench.lines,
                                       destination=destination.replace("@FOLDER@", str(folder))))
    return watch_program([program, "-F", "--no-caps", "--module-path", os.path.dirname(found), "-f",
                          str(config), "-R", str(folder / "persist"), "-c", str(folder / "ctl"),
                          "-p", str(folder / "pid")], count, bench.n, peer_env())


# ---- PostgreSQL -----------------------------------------------------------------------------------

def postgres_rows(out, folder):
    """PostgreSQL: the driver beside a bare COPY, ship beside rsyslog and syslog-ng."""
    if reason := postgres.why_not():
        print(f"(h) PostgreSQL: SKIP: {reason}", file=sys.stderr)
        return
    bench = Bench(out, folder)
    with postgres.Postgres(None, {"shared_buffers": "256MB", "max_wal_size": "4GB"}) as pg:
        yield bench.beside_bare("(h) PostgreSQL, bare COPY", "bench_postgres", bench.state,
                                pg.create("bare"))

        def count():
            return int(pg.psql("SELECT count(*) FROM peer", "peer")[0])

        def peer(run, *args):
            pg.create("peer")
            pg.psql(PEER_TABLE, "peer")
            return run(bench, *args, count)

        yield from bench.beside_peers(
            "(h) ship to PostgreSQL", "rows", lambda: bench.ship(f'  postgres: {{dsn: "{pg.create("ship")}"}}'), {
                "rsyslog": lambda: peer(
                    rsyslog, "ompgsql", "rsyslog-pgsql",
                    f'type="ompgsql" conninfo="postgresql://postgres@127.0.0.1:{pg.port}/peer" '
                    'template="sql"'),
                "syslog-ng": lambda: peer(
                    syslog_ng, "libafsql", "syslog-ng-mod-sql",
                    f'sql(type(pgsql) host("127.0.0.1") port("{pg.port}") username("postgres") '
                    'password("-") database("peer") table("peer") '
                    'columns("id", "time", "collector", "thread_id", "call_id", "tool_name", "body") '
                    'values("${j.id}", "${j.time}", "${j.collector}", "${j.thread_id:-@NULL@}", '
                    '"${j.call_id:-@NULL@}", "${j.tool_name}", "$MSG") null("@NULL@") indexes() '
                    'flags(explicit-commits, dont-create-tables) batch-lines(4096) batch-timeout(1000));'),
            })


# ---- Kafka ------------------------------------------------------------------------------------------

PARTITIONS = 3


class Topic:
    """A topic that a peer writes, and how many messages it has."""

    made = 0

    def __init__(self, bootstrap):
        Topic.made += 1
        self.name = f"peer-{Topic.made}"
        self.bootstrap = bootstrap
        self.count()  # asking makes it

    def count(self):
        asked = [x for i in range(PARTITIONS) for x in ("-t", f"{self.name}:{i}:-1")]
        r = subprocess.run(["kcat", "-Q", "-b", self.bootstrap, *asked], capture_output=True,
                           text=True)
        return sum(int(n) for n in re.findall(r"offset (\d+)", r.stdout))


def kafka_peers(bench, k, exactly_once):
    """The ways of peers, each through a buffer on disk."""
    def on_topic(run, module, package, text):
        topic = Topic(k.bootstrap)
        return run(bench, module, package, text.replace("TOPIC", topic.name), topic.count)

    rsyslog_kafka = (
        'type="omkafka" broker=["BROKER"] topic="TOPIC" template="line" key="key" dynakey="on" '
        'confParam=["acks=all","enable.idempotence=true"] queue.type="Disk" queue.filename="kafka" '
        'queue.maxDiskSpace="4g" queue.dequeueBatchSize="4096"').replace("BROKER", k.bootstrap)
    ng = ('kafka-c(bootstrap-servers("BROKER") topic("TOPIC") key("${j.thread_id}") message("$MSG") '
          'config(acks("all") enable.idempotence("true")) EXTRA '
          'disk-buffer(disk-buf-size(2147483648) reliable(RELIABLE) dir("@FOLDER@")));'
          ).replace("BROKER", k.bootstrap)
    if exactly_once:
        return {"syslog-ng, kafka-c, sync-send": lambda: on_topic(
            syslog_ng, "libkafka", "syslog-ng-mod-rdkafka",
            ng.replace("EXTRA", "sync-send(yes) batch-lines(20000)").replace("RELIABLE", "yes"))}
    return {
        "rsyslog, omkafka, disk queue": lambda: on_topic(
            rsyslog, "omkafka", "rsyslog-kafka", rsyslog_kafka),
        "syslog-ng, kafka-c, disk buffer": lambda: on_topic(
            syslog_ng, "libkafka", "syslog-ng-mod-rdkafka",
            ng.replace("EXTRA", "batch-lines(10000)").replace("RELIABLE", "no")),
        "syslog-ng, kafka-c, reliable disk buffer": lambda: on_topic(
            syslog_ng, "libkafka", "syslog-ng-mod-rdkafka",
            ng.replace("EXTRA", "batch-lines(10000)").replace("RELIABLE", "yes")),
    }


def kafka_rows(out, folder, delivery):
    """Kafka: the driver beside bare librdkafka, ship beside rsyslog and syslog-ng."""
    title = f"({'ij'[delivery == 'exactly-once']}) "
    if reason := kafka.why_not():
        print(f"{title}Kafka: SKIP: {reason}", file=sys.stderr)
        return
    bench = Bench(out, folder)
    with kafka.Kafka() as k:
        for compression in ("none", "lz4"):
            yield bench.beside_bare(f"{title}Kafka {delivery}, {compression}, bare librdkafka",
                                    "bench_kafka", bench.state, k.bootstrap, delivery, compression)
        if not shutil.which("kcat"):
            print(f"{title}peers: SKIP: needs the package kcat", file=sys.stderr)
            return

        def ship():
            return bench.ship(f"  kafka: {{properties: {{bootstrap.servers: '{k.bootstrap}'}}, "
                              f"delivery: {delivery}, topic_prefix: ship-{time.monotonic_ns()}}}")

        yield from bench.beside_peers(f"{title}ship to Kafka", "messages", ship,
                                      kafka_peers(bench, k, delivery == "exactly-once"))
