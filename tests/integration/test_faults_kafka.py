"""Kafka through every outage, looked at by kcat, which is not ours."""
import contextlib
import itertools
import json
import random
import shutil
import subprocess
import time

import pytest

from tests.integration.shipping import (LONG, RECORD_TOPICS, Ship, State, assert_published,
                                        count_messages, kcat, kept_position, read_topics,
                                        wait_for)
from tests.servers.kafka import Kafka

TIMEOUT_MS = 5000  # of each answer
TIMES = 5 if LONG else 3
BATCHES = (1000, 3000, 10_000, 30_000)  # a run with each
N = 100_000 if LONG else 200_000  # in each of the runs
FLOW = 10_000  # records that are certain to be on their way when a fault strikes
FREEZE_SECONDS = 7  # longer than an answer may take, and than a broker may be silent

DELIVERIES = ("at-least-once", "exactly-once")
BOTH = pytest.mark.parametrize("delivery", DELIVERIES)

_names = itertools.count()


def sink(kafka, prefix, delivery, properties=(), **more):
    return {"delivery": delivery, "topic_prefix": prefix, "timeout_ms": TIMEOUT_MS,
            "properties": {"bootstrap.servers": kafka.bootstrap, **dict(properties)}, **more}


@pytest.fixture
def prefix():
    """Topics that nobody else uses."""
    return f"faults{next(_names)}"


@pytest.fixture
def start(binary, live, tmp_path, kafka, prefix):
    """A state folder that ships to the broker: start(delivery, …)."""
    return lambda delivery, properties=(), **more: State(
        binary, live, tmp_path / "state", kafka=sink(kafka, prefix, delivery, properties, **more))


@pytest.fixture
def topic(live, kafka):
    """Change topics of the broker: topic("delete", NAME), …"""
    return lambda *args: subprocess.run([live("live_kafka_topic"), kafka.bootstrap, *args],
                                        check=True, timeout=60)


def shipped(state, journal):
    """The journal's records, once all of them are acknowledged."""
    records = [r for r in state.records() if r.journal == journal]
    state.wait_shipped("kafka", journal, records[-1].seq, 60)
    return records


# ---- Outages -------------------------------------------------------------------------------------


def strike(fault, cluster, ships):
    """Let one fault happen while records flow."""
    if fault == "kill ship":
        time.sleep(random.uniform(0.1, 0.4))  # a transaction has begun, and more follow
        for ship in ships:
            ship.kill_and_restart()
        return
    node = random.randrange(cluster.n)
    if fault == "freeze broker":
        with cluster.frozen(node):
            time.sleep(FREEZE_SECONDS)
        return
    cluster.stop(node, kill=fault == "kill broker")
    cluster.start(node)


class Flow:
    """The records of one state folder, on their way to Kafka."""

    def __init__(self, state, n):
        self.state = state
        self.journal, _, self.last = state.fill(n)
        self.at = 0

    def wait_for_progress(self):
        """Until something was acknowledged since the last time."""
        wait_for(lambda: self.state.position("kafka", self.journal) > self.at, 120,
                 self.state.log_tail)

    def go_on(self, n):
        self.at = self.state.position("kafka", self.journal)
        _, _, self.last = self.state.fill(n)


def given_up(cluster, prefix):
    """Messages of transactions that a fault ended, once all is delivered."""
    return sum(count_messages(cluster, f"{prefix}.tool_execution", isolation) * sign
               for isolation, sign in (("read_uncommitted", 1), ("read_committed", -1)))


def meet_a_transaction(flows, cluster, ships):
    """Kills are aimed, and may miss: on a fast machine a transaction is short."""
    for _ in range(10):
        if given_up(cluster, "exactly-once") > 0:
            return
        for flow in flows.values():
            flow.go_on(4 * FLOW)
        strike("kill ship", cluster, ships)
        for flow in flows.values():
            shipped(flow.state, flow.journal)


def through_outages(states, cluster, plan):
    """Fill, ship, let the plan happen between two signs of progress, and look what arrived."""
    flows = {d: Flow(state, N) for d, state in states.items()}
    random.shuffle(plan)
    with contextlib.ExitStack() as stack:
        ships = [stack.enter_context(Ship(state)) for state in states.values()]
        for i, fault in enumerate(plan, 1):
            begin = time.monotonic()
            for flow in flows.values():
                flow.wait_for_progress()
            waited = time.monotonic() - begin
            for flow in flows.values():
                flow.go_on(4 * FLOW if fault == "kill ship" else FLOW)
            strike(fault, cluster, ships)
            print(f"{i} of {len(plan)}: records flow after {waited:.1f} s, {fault}", flush=True)
        for flow in flows.values():
            shipped(flow.state, flow.journal)
        meet_a_transaction(flows, cluster, ships)
        records = {d: shipped(state, flows[d].journal) for d, state in states.items()}
        for ship in ships:
            ship.stop()
    for d, state in states.items():
        look_at(state, cluster, d, flows[d].journal, records[d])


def look_at(state, cluster, prefix, journal, records):
    """What arrived, and that the faults found something on its way."""
    exactly = prefix == "exactly-once"
    twice = assert_published(cluster, prefix, records, exactly)
    print(f"{prefix}: {len(records)} records, {twice} messages twice")
    if exactly:
        assert kept_position(cluster, prefix, journal) == records[-1].seq + 1
        ended = given_up(cluster, prefix)
        print(f"{ended} messages of transactions that were given up")
        assert ended > 0, "no fault met an open transaction"
    else:
        assert twice > 0, "no kill met records that were sent and not yet counted"
    assert state.letters() == []
    assert "made anew" not in state.log_text(), "an outage is no new topic"


def one_of_each(binary, live, tmp_path, cluster, **more):
    """A state folder for each delivery, whose name is the topics' prefix."""
    return {d: State(binary, live, tmp_path / d, kafka=sink(cluster, d, d, **more))
            for d in DELIVERIES}


def test_everything_arrives_through_restarts_of_broker_and_ship(binary, live, tmp_path, kafka):
    plan = ["kill broker", "stop broker", "freeze broker"] + ["kill ship"] * 3
    through_outages(one_of_each(binary, live, tmp_path, kafka), kafka, plan)


@pytest.mark.chaos
@pytest.mark.skipif(not LONG, reason="long: make chaos")
@pytest.mark.parametrize("batch_records", BATCHES)
def test_everything_arrives_while_leaders_change_among_three_brokers(binary, live, tmp_path,
                                                                     batch_records):
    plan = [f for f in ("kill broker", "stop broker", "freeze broker", "kill ship")
            for _ in range(TIMES)]
    with Kafka(None, brokers=3) as cluster:
        states = one_of_each(binary, live, tmp_path, cluster, replication=3,
                             batch_records=batch_records)
        through_outages(states, cluster, plan)


def test_a_broker_that_is_away_at_the_start_costs_nothing_but_delay(binary, live, tmp_path, kafka):
    states = {f"late-{d}": State(binary, live, tmp_path / d, kafka=sink(kafka, f"late-{d}", d))
              for d in DELIVERIES}
    journal = {p: state.fill(1000)[0] for p, state in states.items()}
    kafka.stop(kill=True)
    with contextlib.ExitStack() as stack:
        ships = [stack.enter_context(Ship(state)) for state in states.values()]
        for state in states.values():
            wait_for(lambda: state.told("kafka").get("state") == "retrying", 30)
            assert "Connection refused" in state.log_text()
        kafka.start()
        records = {p: shipped(state, journal[p]) for p, state in states.items()}
        for ship in ships:
            ship.stop()
    for p in states:
        assert_published(kafka, p, records[p], exactly=True)


# ---- What is in a message ---------------------------------------------------------------------------


@BOTH
def test_messages_are_cloud_events_keyed_by_thread(start, kafka, prefix, delivery):
    state = start(delivery)
    journal, _, _ = state.fill(300)
    state.ship_once()
    for m in read_topics(kafka, prefix, (*RECORD_TOPICS[:2], "hook_execution")):
        kind = m.topic.split(".")[1]
        thread = m.headers["ce_subject"]
        assert m.key == thread and f'"thread_id":"{thread}"' in m.value
        assert m.headers["ce_specversion"] == "1.0" and m.headers["ce_source"] == "/hooktrail/host-a"
        assert m.headers["ce_type"] == f"hooktrail.{kind}"
        assert m.headers["content-type"] == "application/json"
        assert f'"id":"{m.id}"' in m.value and f'"time":"{m.headers["ce_time"]}"' in m.value
        assert m.journal == journal and m.seq > 0


def test_a_lost_position_sends_again_with_equal_ids_and_that_is_all(start, kafka, prefix):
    state = start("at-least-once")
    journal, _, _ = state.fill(3000)
    state.ship_once()
    (state.path / "sinks" / "kafka.positions.json").unlink()
    state.ship_once()
    records = [r for r in state.records() if r.journal == journal]
    evaluations = sum(r.type == "hook_evaluation" for r in records)
    twice = assert_published(kafka, prefix, records, exactly=False)
    assert twice == len(records) + 2 * evaluations


def test_two_ships_of_two_copies_of_one_state_publish_each_record_once(start, binary, live, tmp_path,
                                                                       kafka, prefix):
    state = start("exactly-once", batch_records=500)
    journal, _, _ = state.fill(20_000)
    shutil.copytree(state.path, tmp_path / "copy")
    copy = State(binary, live, tmp_path / "copy",
                 kafka=sink(kafka, prefix, "exactly-once", batch_records=500))
    with Ship(state) as one, Ship(copy) as two:
        records = [r for r in state.records() if r.journal == journal]
        wait_for(lambda: max(s.position("kafka", journal) for s in (state, copy)) > records[-1].seq,
                 90, lambda: state.log_tail() + copy.log_tail())
        one.stop()
        two.stop()
    # Whether they met, and one was fenced, or one was done before the other began.
    assert_published(kafka, prefix, records, exactly=True)


@BOTH
def test_two_state_folders_publish_into_the_same_topics(binary, live, tmp_path, kafka, prefix,
                                                        delivery):
    states = [State(binary, live, tmp_path / name, kafka=sink(kafka, prefix, delivery))
              for name in ("one", "two")]
    journals = [state.fill(3000)[0] for state in states]
    with Ship(states[0]) as one, Ship(states[1]) as two:
        records = [r for state, j in zip(states, journals) for r in shipped(state, j)]
        one.stop()
        two.stop()
    assert_published(kafka, prefix, records, exactly=True)


def test_a_changed_delivery_goes_on_from_where_the_other_ended(start, kafka, prefix):
    state = start("at-least-once")
    journal, _, _ = state.fill(300)
    for n, delivery in enumerate(("at-least-once", "exactly-once") * 2):
        state.sinks(kafka=sink(kafka, prefix, delivery, batch_records=50))
        with Ship(state) as ship:
            wait_for(lambda: state.position("kafka", journal) > 1, 60, state.log_tail)
            ship.kill_and_restart() if delivery == "exactly-once" else None
            shipped(state, journal)
            ship.stop()
        assert state.log_text().count("delivery was changed") == n, state.log_tail()
        assert (journal in state.told("kafka")["here"]) == (n % 2 == 0)
        state.fill(300)
    state.ship_once()
    assert_published(kafka, prefix, [r for r in state.records() if r.journal == journal],
                     exactly=True)


# ---- Transactions --------------------------------------------------------------------------------


def transactions(kafka, prefix, journal):
    """
    How many records each transaction of a journal has, and when it was sent, in ms: each writes
    the position behind itself, and of a topic's last segment nothing is compacted away.
    """
    found = [line.split()[:3] for line in kcat(kafka, f"{prefix}.positions", "%k %T %s")]
    positions = [(1, 0)] + [(int(n), int(t)) for key, t, n in found if key == journal]
    return [(after - before, t) for (before, _), (after, t) in itertools.pairwise(positions)]


def test_a_transaction_has_10000_records_at_most_unless_told(start, kafka, prefix):
    state = start("exactly-once")
    journal, _, last = state.fill(25_000)
    state.ship_once()
    sizes = [n for n, _ in transactions(kafka, prefix, journal)]
    assert sizes[:2] == [10_000, 10_000] and sum(sizes) >= last, sizes


def test_a_transaction_has_1024_bytes_a_record_at_most(start, kafka, prefix):
    limit = 300 * 1024
    state = start("exactly-once", batch_records=300)
    journal, _, _ = state.fill(2000, big=1000)  # the others are smaller
    state.ship_once()
    size = {m.seq: len(m.value) for m in read_topics(kafka, prefix) if m.journal == journal}
    ends = list(itertools.accumulate((n for n, _ in transactions(kafka, prefix, journal)), initial=0))
    bytes_of = [sum(size[i + 1] for i in range(a, b)) for a, b in itertools.pairwise(ends)]
    assert limit - 2000 < max(bytes_of) <= limit, (bytes_of, max(size.values()))


def test_what_comes_in_drops_is_gathered_for_a_second(start, kafka, prefix):
    state = start("exactly-once")
    journal, _, _ = state.fill(1)
    with Ship(state) as ship:
        state.wait_shipped("kafka", journal, 1)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            _, _, last = state.fill(1)
            time.sleep(0.05)
        begin = time.monotonic()
        state.wait_shipped("kafka", journal, last)
        waited = time.monotonic() - begin
        ship.stop()
    sent = [t for _, t in transactions(kafka, prefix, journal)]
    apart = [b - a for a, b in itertools.pairwise(sent)]
    assert len(apart) >= 3 and min(apart) >= 900, apart
    assert sorted(apart)[len(apart) // 2] < 2000 and waited < 5, (apart, waited)


# ---- What is refused -------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("spoilt", ["poison", "big"])
def test_one_bad_record_of_10000_is_a_dead_letter_and_all_others_arrive(start, kafka, prefix,
                                                                        topic, delivery, spoilt):
    if spoilt == "big":
        topic("create", f"{prefix}.tool_execution", "3", "max.message.bytes=100000")
    state = start(delivery)
    journal, _, _ = state.fill(10_000, **{spoilt: 4321})
    with Ship(state) as ship:
        records = shipped(state, journal)
        good = [r for r in records if r.seq != 4321]
        assert_published(kafka, prefix, good, exactly=True)
        assert [(d["journal"], d["seq"], d["sink"]) for d in state.letters()] == [(journal, 4321, "kafka")]
        letter = f"{journal}:4321"
        shown = state.run("deadletter", "show", letter).stdout
        assert shown == '{"poison":true}\n' if spoilt == "poison" else len(shown) > 100_000
        again = state.run("deadletter", "retry", letter)
        assert again.returncode == 1 and "1 refused again" in again.stdout, again
        if spoilt == "big":  # the mend
            topic("config", f"{prefix}.tool_execution", "max.message.bytes=1000000")
            done = state.run("deadletter", "retry", letter)
            assert done.returncode == 0 and "1 delivered" in done.stdout, done
            found = [(m.journal, m.seq, m.leaf) for m in read_topics(kafka, prefix)
                     if m.journal == journal]  # not the admin records of the retries
            assert sorted(found) == sorted((r.journal, r.seq, r.leaf) for r in records)
        else:
            assert state.run("deadletter", "drop", letter).returncode == 0
        assert state.letters() == []
        state.fill(10)
        shipped(state, journal)  # the retries beside it did not stop it
        assert "fenced" not in state.log_text()
        ship.stop()


@BOTH
def test_many_too_large_records_are_letters_that_name_topic_and_size(start, kafka, prefix, topic,
                                                                     delivery):
    topic("create", f"{prefix}.hook_evaluation", "3", "max.message.bytes=300")
    state = start(delivery)
    journal, _, _ = state.fill(40)
    done = state.ship_once()
    refused = [r.seq for r in state.records() if r.type == "hook_evaluation"]
    assert [d["seq"] for d in state.letters()] == refused and len(refused) > 10
    assert all(f"bytes to topic {prefix}.hook_evaluation; its max.message.bytes" in d["error"]
               for d in state.letters())
    assert "not available" not in done.stderr, "no refusal costs the producer"


# ---- What was lost there ----------------------------------------------------------------------------


@BOTH
def test_a_topic_made_anew_is_told_and_nothing_is_sent_twice(start, kafka, prefix, topic, delivery):
    state = start(delivery)
    journal, _, _ = state.fill(3000)
    state.ship_once()
    topic("delete", f"{prefix}.tool_execution")
    _, first, _ = state.fill(3000)
    done = state.ship_once()
    assert "deleted and made anew" in done.stderr and f"{prefix}.tool_execution" in done.stderr
    records = [r for r in state.records() if r.journal == journal]
    expected = [r for r in records if r.seq >= first or r.type != "tool_execution"]
    assert_published(kafka, prefix, expected, exactly=True)
    assert "made anew" not in state.ship_once().stderr, "it is told once"


def test_the_topic_of_positions_that_we_make_is_compacted_and_has_one_partition(start, live, kafka,
                                                                                prefix):
    state = start("exactly-once", partitions=3)
    state.fill(30)
    state.ship_once()
    name = f"{prefix}.positions"
    told = subprocess.run([live("live_kafka_topic"), kafka.bootstrap, "show", name], check=True,
                          capture_output=True, text=True, timeout=60).stdout.splitlines()
    assert "cleanup.policy=compact" in told
    listed = subprocess.run(["kcat", "-L", "-J", "-b", kafka.bootstrap, "-t", name], check=True,
                            capture_output=True, text=True, timeout=60).stdout
    assert len(json.loads(listed)["topics"][0]["partitions"]) == 1


def test_a_topic_of_positions_made_anew_stops_the_sink_until_a_person_decides(start, kafka, prefix,
                                                                              topic):
    state = start("exactly-once")
    journal, _, _ = state.fill(3000)
    state.ship_once()
    records = [r for r in state.records() if r.journal == journal]
    topic("delete", f"{prefix}.positions")
    done = state.run("ship", "--once")
    assert done.returncode == 3
    assert f"{prefix}.positions" in done.stderr and "kafka.positions.json" in done.stderr
    assert state.told("kafka")["state"] == "broken"
    assert_published(kafka, prefix, records, exactly=True)
    subprocess.run(["kcat", "-P", "-b", kafka.bootstrap, "-t", f"{prefix}.positions", "-p", "0", "-k",
                    journal], input=str(records[-1].seq + 1), text=True, check=True)
    state.fill(300)
    state.ship_once()
    assert_published(kafka, prefix, [r for r in state.records() if r.journal == journal],
                     exactly=True)


def test_a_position_that_anothers_open_transaction_hides_is_waited_for(start, live, kafka, prefix):
    state = start("exactly-once", timeout_ms=1000)
    state.fill(300)
    state.ship_once()  # makes the topics
    with subprocess.Popen([live("live_kafka_hold"), kafka.bootstrap, f"{prefix}.positions"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hold:
        assert hold.stdout.readline() == "open\n"
        journal, _, _ = state.fill(300)
        state.ship_once()  # committed, and hidden from now on
        (state.path / "sinks" / "kafka.positions.json").unlink()
        state.fill(300)
        with Ship(state) as ship:
            wait_for(lambda: "hidden by another" in state.log_text(), 30, state.log_tail)
            hold.stdin.close()
            records = shipped(state, journal)
            ship.stop()
    assert hold.returncode == 0
    assert_published(kafka, prefix, records, exactly=True)
