"""`make bench` says MISSED, and fails, where a rule does not hold: that of an outage of both sinks."""
import importlib
import itertools
import signal
import sys

import pytest

from tests.integration.plant import ROOT

SPREAD = (1, 9, 0.1, 1, 1)  # of the five runs: the medians count, and neither means nor the worst


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """tests/bench/run.py, for letter k, and what measures for it."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "bench"))
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "k"])
    before = signal.getsignal(signal.SIGTERM)
    yield importlib.reload(importlib.import_module("run")), importlib.import_module("bench_outage")
    signal.signal(signal.SIGTERM, before)


def measured(p99s, cpu, spread):
    """What five runs found: the p99 of each load in ms, and the share of a CPU."""
    return [(*(p * factor for p in p99s), cpu) for factor in spread]


@pytest.mark.parametrize("up, down, cpu, missed", [
    ((2, 20), (2, 20), 0.01, 0),
    ((2, 20), (2.9, 21.9), 0.01, 0),
    ((2, 20), (3.1, 21.9), 0.01, 1),  # within neither 10 % nor 1 ms, of the first load
    ((2, 20), (2.9, 22.1), 0.01, 1),  # of the second
    ((2, 20), (1, 1), 0.03, 1),
    ((2, 20), (30, 30), 0.03, 3),
])
def test_an_outage_may_cost_ten_percent_or_a_millisecond(bench, monkeypatch, capsys, up, down, cpu, missed):
    run, outage = bench
    found = measured(up, 0.01, SPREAD), measured(down, cpu, reversed(SPREAD))
    monkeypatch.setattr(outage, "alternate", lambda *_: found)
    for server in (outage.postgres, outage.kafka):
        monkeypatch.setattr(server, "why_not", lambda: None)
    code = run.main()
    assert capsys.readouterr().out.count("MISSED") == missed
    assert code == (1 if missed else 0)


def test_runs_with_both_up_and_with_both_down_take_turns(bench, monkeypatch):
    _, outage = bench
    taken, number = [], itertools.count()

    class Recorded:
        def __init__(self, *_):
            pass

        def up(self):
            taken.append("up")
            return next(number)

        def down(self):
            taken.append("down")
            return next(number)

    class Server:
        bootstrap = ""

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def create(self, name):
            return name

    class Place:
        sockets = disk = ROOT

        def file(self, *_):
            return ROOT

    monkeypatch.setattr(outage, "Outage", Recorded)
    monkeypatch.setattr(outage, "running", lambda *_: Server())
    monkeypatch.setattr(outage.postgres, "Postgres", Server)
    monkeypatch.setattr(outage.kafka, "Kafka", Server)
    up, down = outage.alternate(ROOT, Place(), ROOT, [])
    assert taken == ["up"] + ["up", "down"] * 5  # the first to make what is made once
    assert (up, down) == ((1, 3, 5, 7, 9), (2, 4, 6, 8, 10))
