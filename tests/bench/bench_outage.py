"""Dispatching at a steady pace while PostgreSQL and Kafka are both stopped, beside both up.

The servers are private ones of tests/servers. They are crashed before a run that has them down, and
for one that has them up they are started again and `ship` has caught up, so that no backlog disturbs
it. Both run on the machine that dispatches: what they need of it belongs to the runs with both up.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from place import running

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.servers import kafka, postgres  # noqa: E402

RUNS = int(os.environ.get("HOOKTRAIL_BENCH_RUNS", "5"))
SECONDS = 10  # of one run
CAUGHT_UP_SECONDS = 120
SETTLE_SECONDS = 2  # a broker that has just started is busy with itself
CONNECTIONS = 4  # of each load
PER_SECOND = {"without a hook": 1000, "with one hook": 100}
MOST_CPU = 0.02  # of one, to try whether a sink is back
TICK = os.sysconf("SC_CLK_TCK")

CONFIG = """
state: {state}
contracts: {{sre: {{hooks: {hooks}}}}}
collect: {{listen: ["unix:{socket}"]}}
sinks:
  postgres: {{dsn: "{dsn}"}}
  kafka: {{properties: {{bootstrap.servers: "{bootstrap}"}}, delivery: exactly-once}}
"""


class Outage:
    """collect and ship with both sinks, and the two loads."""

    def __init__(self, out, config, socket, bodies, servers):
        self.out, self.config, self.socket, self.bodies = out, config, socket, bodies
        self.postgres, self.kafka = servers
        self.ship = None  # its process

    def lags(self):
        """How far each sink is behind; None for one that does not deliver now."""
        told = subprocess.run([self.out / "hooktrail", "--config", self.config, "status", "--json"],
                              capture_output=True, text=True).stdout
        return [s["lag"] if s["state"] == "ok" else None for s in json.loads(told)["sinks"]]

    def catch_up(self):
        until = time.monotonic() + CAUGHT_UP_SECONDS
        while self.lags() != [0, 0]:
            if time.monotonic() > until:
                raise RuntimeError(f"ship has not caught up within {CAUGHT_UP_SECONDS} s: {self.lags()}")
            time.sleep(0.5)
        time.sleep(SETTLE_SECONDS)

    def ship_cpu(self):
        """Seconds of CPU that ship has used."""
        stat = pathlib.Path(f"/proc/{self.ship.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(stat[11]) + int(stat[12])) / TICK

    def load(self):
        """Both loads at once; the p99 of each in ms, and the share of a CPU that ship took."""
        before = self.ship_cpu()
        loads = [subprocess.Popen([self.out / "obj/tests/bench/bench_pace", self.socket, body, str(rate),
                                   str(SECONDS), str(CONNECTIONS)], stdout=subprocess.PIPE, text=True)
                 for body, rate in zip(self.bodies, PER_SECOND.values())]
        words = [p.communicate()[0] for p in loads]
        if any(p.returncode for p in loads):
            raise RuntimeError("bench_pace: a dispatch failed")
        return [int(re.search(r"p99 (\d+) us", w)[1]) / 1e3 for w in words] + [(self.ship_cpu() - before) / SECONDS]

    def up(self):
        self.catch_up()
        return self.load()

    def down(self):
        self.postgres.stop("immediate")
        self.kafka.stop(kill=True)
        found = self.load()
        self.postgres.start()
        self.kafka.start()
        return found


def alternate(out, place, hooks, bodies):
    """What load() found with both up, and with both down; in turns."""
    with postgres.Postgres() as pg, kafka.Kafka() as k:
        socket = place.sockets / "collect"
        config = place.file("outage.yaml", CONFIG.format(
            state=place.disk / "state", hooks=hooks, socket=socket, dsn=pg.create("outage"), bootstrap=k.bootstrap))
        o = Outage(out, config, socket, bodies, (pg, k))
        with running([out / "libexec/hooktrail-collect", "--config", config, "collect"], socket), \
                running([out / "libexec/hooktrail-ship", "--config", config, "ship"]) as o.ship:
            o.up()  # schemas, topics, caches
            return zip(*[(o.up(), o.down()) for _ in range(RUNS)])


def rows(out, place, hooks, bodies):
    """The two loads' p99, and what retrying costs."""
    if reason := postgres.why_not() or kafka.why_not():
        print(f"(k) outage of PostgreSQL and Kafka: SKIP: {reason}", file=sys.stderr)
        return
    up, down = ([statistics.median(f) for f in zip(*found)] for found in alternate(out, place, hooks, bodies))
    for i, (load, rate) in enumerate(PER_SECOND.items()):
        yield (f"(k) both sinks down, p99 of {rate}/s {load}", f"{down[i]:.2f} ms", f"{up[i]:.2f} ms",
               f"{down[i] / up[i]:.2f}", "<= 1.10 or 1 ms more", down[i] <= max(up[i] * 1.1, up[i] + 1))
    yield ("(k) both sinks down, CPU of ship", f"{100 * down[2]:.1f} %", f"{100 * up[2]:.1f} %", "",
           f"<= {MOST_CPU:.0%}", down[2] <= MOST_CPU)
