"""The suites that every driver must pass, on real servers."""
import subprocess

import pytest


def run(program, *args):
    r = subprocess.run([program, *args], capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr[-4000:]


def test_the_postgres_sink_is_a_sink_like_the_others(live, postgres):
    run(live("live_sink_postgres"), postgres.create("sink_contract"))


def test_the_postgres_store_answers_like_the_others(live, postgres):
    run(live("live_store_postgres"), postgres.create("store_contract"))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_the_kafka_sink_is_a_sink_like_the_others(live, kafka, delivery):
    run(live("live_sink_kafka"), kafka.bootstrap, delivery)
