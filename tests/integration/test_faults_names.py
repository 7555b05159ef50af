"""A nameserver that says nothing: every wait for a name has its limit too."""
import socket
import subprocess
import time

import pytest
import yaml

from tests.integration.plant import wait_for
from tests.integration.shipping import Ship, State

TIMEOUT_MS = 500
ENDS_SECONDS = 3  # the limit, what follows it, and a machine with other things to do

# The lookup of a second host is another call of libpq.
POSTGRES = {"dsn": "host=store.example dbname=x user=x", "timeout_ms": TIMEOUT_MS}
SECOND = {**POSTGRES, "dsn": "host=127.0.0.1,store.example port=1,5432 dbname=x user=x"}
KAFKA = {"properties": {"bootstrap.servers": "store.example:9092"}, "timeout_ms": TIMEOUT_MS}
EXACTLY = {**KAFKA, "delivery": "exactly-once"}

SINKS = {"postgres": {"postgres": POSTGRES}, "the second host": {"postgres": SECOND},
         "kafka": {"kafka": KAFKA}, "exactly once": {"kafka": EXACTLY}}


@pytest.fixture(scope="module")
def silence(tmp_path_factory):
    """How to run a program that asks a nameserver which never answers: the words before its own."""
    conf = tmp_path_factory.mktemp("names") / "resolv.conf"
    words = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', str(conf)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        try:
            server.bind(("127.0.9.53", 53))  # nobody reads it
        except OSError as why:
            pytest.skip(f"no port 53 for a nameserver: {why}")
        conf.write_text("nameserver 127.0.9.53\n")
        tried = subprocess.run([*words, "true"], capture_output=True, text=True)
        if tried.returncode:
            pytest.skip(f"no mounts of our own: {tried.stderr.strip()}")
        yield words


@pytest.fixture
def state(silence, binary, live, tmp_path):
    state = State(binary, live, tmp_path / "state")
    state.prefix = silence
    return state


def states_until_retrying(state, sink):
    """What `status` says of a sink, from the beginning on."""
    seen = []

    def retries():
        told = state.told(sink).get("state")
        if told and told not in seen[-1:]:
            seen.append(told)
        return told == "retrying"

    wait_for(retries, 5, state.log_tail)  # the resolver itself would wait longer
    return seen


def ends_soon(ship):
    begun = time.monotonic()
    ship.stop()
    return time.monotonic() - begun < ENDS_SECONDS


@pytest.mark.parametrize("case", SINKS)
def test_a_name_that_is_not_told_is_tried_again_and_a_stop_is_heard_meanwhile(state, case):
    state.sinks(**SINKS[case])
    sink, = SINKS[case]
    state.fill(3)
    with Ship(state) as ship:
        assert states_until_retrying(state, sink) == ["connecting", "retrying"]
        assert "store.example" in state.told(sink)["error"]
        assert ends_soon(ship)


def test_a_stop_is_heard_during_the_first_lookup(state):
    state.sinks(postgres=POSTGRES, kafka=KAFKA)
    with Ship(state) as ship:
        assert ends_soon(ship)
    assert "ok" not in {state.told(sink)["state"] for sink in ("postgres", "kafka")}


def test_a_loader_hears_a_stop_too(state):
    state.sinks(postgres=POSTGRES, kafka=KAFKA)
    with Ship(state, "--source", "kafka") as ship:
        assert states_until_retrying(state, "postgres") == ["connecting", "retrying"]
        assert ends_soon(ship)


def test_a_question_is_answered_by_what_is_not_there(state):
    state.config.write_text(yaml.safe_dump({"sinks": {"postgres": POSTGRES}, "serve": {
        "store": "postgres", "query_timeout_ms": TIMEOUT_MS}}))
    begun = time.monotonic()
    asked = state.run("trace", "thread-1")
    assert asked.returncode == 3 and "host 'store.example'" in asked.stderr
    assert time.monotonic() - begun < ENDS_SECONDS
