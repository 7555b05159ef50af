"""PostgreSQL and Kafka: `hooktrail ship` beside a bare client, and beside programs of the trade.

    python3 -m tests.bench.bench_sinks [-n RECORDS] [--runs N] [postgres|kafka]…

Private servers of tests/servers, one journal, the same events for all. A peer that is not
installed is told as SKIP, with the Debian package that has it. Debian lets only one of rsyslog and
syslog-ng be installed; HOOKTRAIL_PEERS names a folder that packages were unpacked into (dpkg -x).
A peer gets the settings that are best for it: large batches, one plain table without an index, no
key and no headers to make. It is timed from its start until everything is there.
"""
import argparse
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

from tests.servers import kafka, postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]
OBJ = ROOT / "build/obj/tests"
BINARY = os.environ.get("HOOKTRAIL_BIN", str(ROOT / "build/hooktrail"))
PEERS = os.environ.get("HOOKTRAIL_PEERS", "/")
LIB = "usr/lib/x86_64-linux-gnu"
PEER_SECONDS = 120  # then what has arrived by then is its rate
TICK = os.sysconf("SC_CLK_TCK")

# What one way of sending took: seconds, CPU seconds, peak memory in MiB, messages or rows sent.
Run = namedtuple("Run", "seconds cpu peak sent")


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
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(args, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        log.seek(0)
        if p.returncode:
            raise RuntimeError(f"{args}: {p.returncode}: {log.read().decode()[-2000:]}")
    del before
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
                raise RuntimeError(f"{args[0]} ended: {log.read().decode()[-2000:]}")
            stat = pathlib.Path(f"/proc/{p.pid}/stat").read_text().rsplit(")", 1)[1].split()
            status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
        finally:
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
    return Run(seconds, (int(stat[11]) + int(stat[12])) / TICK,
               int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024, min(there, n))


class Bench:
    """Events, a scratch folder, and the lines of the report."""

    def __init__(self, folder, n, runs):
        self.folder = pathlib.Path(folder)
        self.n = n
        self.runs = runs
        self.missed = []
        self.state = self.folder / "state"
        self.lines = self.folder / "lines"
        self.state.mkdir()
        subprocess.run([OBJ / "live/live_journal", "fill", self.state, str(n)], check=True,
                       stdout=subprocess.DEVNULL)
        with open(self.lines, "wb") as f:
            subprocess.run([OBJ / "bench/bench_lines", self.state], check=True, stdout=f)
        with open(self.lines, "rb") as f:
            self.n = sum(1 for _ in f)

    def fresh(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def beside_bare(self, *args):
        """A C benchmark that prints its own lines and exits with 1 below its target."""
        r = subprocess.run([str(a) for a in args], capture_output=True, text=True)
        print(r.stdout, end="", flush=True)
        if r.returncode == 1:
            self.missed.append(r.stdout.splitlines()[-1])
        elif r.returncode:
            raise RuntimeError(r.stderr)

    def ship(self, sinks):
        """`hooktrail ship --once` of the whole journal."""
        state = self.folder / "ship-state"
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(self.state, state)
        config = self.folder / "ship.yaml"
        config.write_text(f"collector: bench\nsinks:\n{sinks}\n")
        return Run(*run_program([BINARY, "--config", str(config), "--state", str(state), "ship",
                                 "--once"]), self.n)

    def best(self, name, ways):
        """Alternating runs of several ways; the medians. A way that cannot be is told, and left out."""
        runs = {way: [] for way in ways}
        for _ in range(self.runs):
            for way in list(runs):
                try:
                    runs[way].append(ways[way]())
                except Skip as why:
                    print(f"{name}: {way}: SKIP: {why}", flush=True)
                    del runs[way]
        rates = {}
        for way, list_of in runs.items():
            r = sorted(list_of, key=lambda r: r.sent / r.seconds)[len(list_of) // 2]
            rates[way] = r.sent / r.seconds
            print(f"{name}: {way}: {rates[way]:.0f} events/s, CPU {r.cpu * 1e6 / r.sent:.1f} s a "
                  f"million events, peak memory {r.peak:.0f} MiB", flush=True)
        return rates

    def beside_peers(self, name, ways, target=2.0):
        rates = self.best(name, ways)
        ours = rates.pop("hooktrail ship")
        if not rates:
            print(f"{name}: SKIP: no peer is installed", flush=True)
            return
        peer = max(rates, key=rates.get)
        line = (f"{name}: hooktrail ship / the best peer ({peer}): {ours / rates[peer]:.2f} x "
                f"(target {target:.2f})")
        print(line, flush=True)
        if ours < target * rates[peer]:
            self.missed.append(line)


# ---- rsyslog and syslog-ng ----------------------------------------------------------------------

RSYSLOG = """global(workDirectory="{folder}" maxMessageSize="256k")
module(load="imfile" mode="inotify")
module(load="{module}")
template(name="line" type="string" string="%msg%")
template(name="sql" type="string" option.stdsql="on" string="INSERT INTO peer VALUES ('%msg%')")
input(type="imfile" File="{lines}" Tag="x" ruleset="r" addMetadata="off")
ruleset(name="r" queue.type="LinkedList" queue.size="100000" queue.dequeueBatchSize="4096") {{
  action({action})
}}
"""

SYSLOG_NG = """@version: 3.35
options {{ stats-freq(0); log-fifo-size(100000); threaded(yes); }};
source s {{ file("{lines}" flags(no-parse) log-iw-size(100000) log-fetch-limit(10000)
                 log-msg-size(262144)); }};
destination d {{ {destination} }};
log {{ source(s); destination(d); flags(flow-control); }};
"""


def rsyslog(bench, module, package, action, count):
    program = peer_path("usr/sbin/rsyslogd")
    found = peer_path(f"{LIB}/rsyslog/{module}.so")
    if not program or not found:
        raise Skip(f"needs the package {package}")
    folder = bench.fresh("rsyslog")
    config = folder / "rsyslog.conf"
    config.write_text(RSYSLOG.format(folder=folder, module=module, lines=bench.lines,
                                     action=action.format(folder=folder)))
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
                                       destination=destination.format(folder=folder)))
    return watch_program([program, "-F", "--no-caps", "--module-path", os.path.dirname(found), "-f",
                          str(config), "-R", str(folder / "persist"), "-c", str(folder / "ctl"),
                          "-p", str(folder / "pid")], count, bench.n, peer_env())


# ---- PostgreSQL -----------------------------------------------------------------------------------

def bench_postgres(bench):
    if reason := postgres.why_not():
        print(f"postgres: SKIP: {reason}")
        return
    with postgres.Postgres(str(bench.folder / "postgres"), {"shared_buffers": "256MB",
                                                            "max_wal_size": "4GB"}) as pg:
        bench.beside_bare(OBJ / "bench/bench_postgres", bench.state, pg.create("bare"), bench.runs)

        def count():
            return int(pg.psql("SELECT count(*) FROM peer", "peer")[0])

        def peer(run, *args):
            pg.create("peer")
            pg.psql("CREATE TABLE peer (body text)", "peer")
            return run(bench, *args, count)

        def ship():
            return bench.ship(f'  postgres: {{dsn: "{pg.create("ship")}"}}')

        bench.beside_peers("postgres", {
            "hooktrail ship": ship,
            "rsyslog, ompgsql": lambda: peer(
                rsyslog, "ompgsql", "rsyslog-pgsql",
                f'type="ompgsql" conninfo="postgresql://postgres@127.0.0.1:{pg.port}/peer" '
                'template="sql"'),
            "syslog-ng, sql": lambda: peer(
                syslog_ng, "libafsql", "syslog-ng-mod-sql and libdbd-pgsql",
                f'sql(type(pgsql) host("127.0.0.1") port("{pg.port}") username("postgres") '
                'password("-") database("peer") table("peer") columns("body text") '
                'values("$MSG") indexes() flags(explicit-commits) batch-lines(4096) '
                'batch-timeout(1000));'),
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
        'type="omkafka" broker=["BROKER"] topic="TOPIC" template="line" '
        'confParam=["acks=all","enable.idempotence=true"] queue.type="Disk" queue.filename="kafka" '
        'queue.maxDiskSpace="4g" queue.dequeueBatchSize="4096"').replace("BROKER", k.bootstrap)
    ng = ('kafka-c(bootstrap-servers("BROKER") topic("TOPIC") message("$MSG") '
          'config(acks("all") enable.idempotence("true")) EXTRA '
          'disk-buffer(disk-buf-size(2147483648) reliable(RELIABLE) dir("{folder}")));'
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


def bench_kafka(bench):
    if reason := kafka.why_not():
        print(f"kafka: SKIP: {reason}")
        return
    for delivery in ("at-least-once", "exactly-once"):
        with kafka.Kafka() as k:
            for compression in ("none", "lz4"):
                bench.beside_bare(OBJ / "bench/bench_kafka", bench.state, k.bootstrap, delivery,
                                  compression, bench.runs)
            if not shutil.which("kcat"):
                print("kafka: peers: SKIP: needs the package kcat")
                continue

            def ship():
                prefix = f"ship-{time.monotonic_ns()}"
                return bench.ship(f"  kafka: {{properties: {{bootstrap.servers: '{k.bootstrap}'}}, "
                                  f"delivery: {delivery}, topic_prefix: {prefix}}}")

            bench.beside_peers(f"kafka, {delivery}", {
                "hooktrail ship": ship, **kafka_peers(bench, k, delivery == "exactly-once")})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=150000, help="records")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("what", nargs="*", default=["postgres", "kafka"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hooktrail-bench-") as folder:
        os.chmod(folder, 0o755)  # the server's user goes through it
        bench = Bench(folder, args.n, args.runs)
        for what in args.what:
            {"postgres": bench_postgres, "kafka": bench_kafka}[what](bench)
    for line in bench.missed:
        print(f"MISSED: {line}")
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())
