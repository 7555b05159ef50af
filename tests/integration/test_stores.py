"""One session in SQLite and in PostgreSQL: the same answers, and the contract's own telemetry."""
import json
import subprocess

import pytest

from tests.integration.plant import Plant, hook, hooks

THREAD = "thread-of-stores"


def tells(**answer):
    """A command that answers so."""
    return f"echo '{json.dumps(answer)}'"


HOOKS = hooks(
    hook("context", tells(ok=True), event="Start"),
    hook("guard", "echo 'Not here.' >&2; exit 2", "Bash", tier="system"),
    hook("asker", tells(hookSpecificOutput={"permissionDecision": "ask"}), "Edit"),
    hook("broken", "exit 7", "*", event="PostToolUse", tier="agent", agent="a"),
    hook("checker", tells(ok=False, reason="Add a summary."), event="Stop"),
)

EVENTS = [
    {"hook_event_name": "Start", "start_message": "go", "thread_source": "Incident"},
    *({"hook_event_name": "PreToolUse", "tool_name": t, "tool_input": {"x": 1}, "call_id": f"call-{t}"}
      for t in ("Bash", "Edit", "Read")),
    {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"x": 1},
     "tool_result": "text", "tool_succeeded": True, "call_id": "call-Read"},
    {"hook_event_name": "Stop", "final_output": "done", "stop_rejection_count": 0},
]


@pytest.fixture(scope="module")
def session(binary, postgres, tmp_path_factory):
    """The session, dispatched through a collector and shipped into both stores."""
    sinks = {"sqlite": {}, "postgres": {"dsn": postgres.create("stores")}}
    with Plant(binary, tmp_path_factory.mktemp("stores"), HOOKS, f"sinks: {json.dumps(sinks)}\n") as plant:
        plant.start("collect")
        for event in EVENTS:
            status, _, problem = plant.dispatch(request(event))
            assert status == 200, problem
        assert plant.stop("collect") == 0
        plant.ship_once()
        yield plant


def request(event):
    return {"contract": "sre", "thread_id": THREAD,
            "payload": {"agent_name": "a", "current_turn": 1, "max_turns": 9, **event}}


def ask(plant, store, *words):
    path = plant.dir / f"{store}.yaml"
    path.write_text(plant.config_file.read_text() + f"serve: {{store: {store}}}\n")
    return subprocess.run([plant.binary, "--config", path, "--state", plant.state, *words],
                          capture_output=True, timeout=30)


@pytest.mark.parametrize("words", [
    ("trace", THREAD), ("trace", "--json", THREAD), ("trace", "--json", THREAD, "--limit", "3"),
    ("why", "guard", "--thread", THREAD), ("why", "--json", "asker", "--call", "call-Bash"),
    ("why", "--json", "guard", "--thread", THREAD, "--tool", "Read"),
    ("why", "nobody", "--thread", THREAD), ("tail", "--json"), ("trace", "no-such-thread"),
])
def test_both_stores_give_the_same_bytes(session, words):
    sqlite, postgres = (ask(session, store, *words) for store in ("sqlite", "postgres"))
    assert sqlite.returncode == postgres.returncode
    assert sqlite.stdout == postgres.stdout
    assert sqlite.stdout or sqlite.returncode


@pytest.fixture
def serving(session):
    """`serve` with PostgreSQL as its store."""
    before = session.config_file.read_text()
    session.config_file.write_text(f'{before}serve: {{store: postgres, '
                                   f'listen: ["unix:{session.state}/serve.sock"]}}\n')
    session.start("serve")
    yield session
    assert session.stop("serve") == 0
    session.config_file.write_text(before)


def question(serving):
    return serving.ask("GET", f"/v1/threads/{THREAD}/trace", sock="serve.sock")[0]


def is_ready(serving):
    return serving.ask("GET", "/readyz", sock="serve.sock")[0] == 200


def test_connections_that_the_server_ended_are_noticed_by_nobody(serving, postgres):
    assert {question(serving) for _ in range(40)} == {200}
    postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'stores'")
    assert {question(serving) for _ in range(40)} == {200}


def test_who_cannot_reach_the_store_is_not_ready_and_says_why_once(serving, postgres):
    assert is_ready(serving) and question(serving) == 200
    postgres.psql("ALTER DATABASE stores ALLOW_CONNECTIONS false")
    try:
        postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'stores'")
        assert not any(is_ready(serving) for _ in range(8)) and question(serving) == 503
    finally:
        postgres.psql("ALTER DATABASE stores ALLOW_CONNECTIONS true")
    assert is_ready(serving) and question(serving) == 200
    told = [line for line in serving.log().splitlines() if "the store " in line]
    assert len(told) == 2 and "not currently accepting connections" in told[0]


def telemetry(session):
    """What the contract calls its raw hook telemetry, of the same events, dispatched again."""
    path = session.dir / "appinsights.ndjson"
    path.unlink(missing_ok=True)
    for event in EVENTS:
        done = session.run("dispatch", "--hooks", session.hooks_file, "--appinsights", path,
                           input=json.dumps(request(event)))
        assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def as_dimensions(row):
    """A row of a view as the contract writes it: every value a string, none left out."""
    return {k: str(v) for k, v in row.items() if v is not None and k not in ("timestamp",
                                                                            "DurationMs")}


def in_order(dictionaries):
    return sorted(dictionaries, key=lambda d: sorted(d.items()))


@pytest.mark.parametrize("view", ["AgentHookEvaluation", "AgentHookExecution"])
def test_views_have_the_contracts_names_and_rows(session, postgres, view):
    rows = [json.loads(line) for line in postgres.psql(
        f'SELECT row_to_json(v) FROM "{view}" v ORDER BY "timestamp"', "stores")]
    expected = [r["customDimensions"] for r in telemetry(session) if r["name"] == view]
    for dimensions in expected:
        assert dimensions.pop("DurationMs").isdigit()
    assert in_order(map(as_dimensions, rows)) == in_order(expected)
    assert all(isinstance(r["DurationMs"], int) for r in rows)


def test_the_tool_view_has_each_start_and_end(session, postgres):
    rows = postgres.psql('SELECT "EventType", "ToolName", "CallId", "ThreadId" FROM '
                         '"AgentToolExecution" ORDER BY 1, 2', "stores")
    assert f"end|Read|call-Read|{THREAD}" in rows
    assert len(rows) == len(set(rows)) >= 2
