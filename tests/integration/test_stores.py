"""One session in SQLite and in PostgreSQL: the same answers, and the contract's own telemetry."""
import contextlib
import datetime
import json
import sqlite3
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
    ("why", "nobody", "--thread", THREAD), ("trace", "no-such-thread"),
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


# ---- The contract's telemetry, column by column --------------------------------------------------


AT = "2026-03-01T10:00:{:02d}.{:06d}Z"
DECISIONS = ("pass", "allow", "reject", "deny", "ask")


def a_hook(name, decision, **more):
    return {"hook_name": name, "decision": decision, "duration_us": 999, **more}


# What a host tells, each with the rows that the contract has of it: the columns in its order.
TOLD = [
    # A chain with all that a chain can have; of its hooks, each but those that passed or did not run.
    ({"type": "hook_evaluation", "contract": "sre", "time": AT.format(1, 1), "thread_id": "t-1",
      "hook_event_type": "PreToolUse", "tool_name": "Bash", "agent_name": "meta_agent",
      "final_decision": "allow", "allowing_hook": "opens", "hooks_configured": 15, "hooks_run": 13,
      "system_hooks_run": 2, "agent_hooks_run": 4, "user_global_hooks_run": 7, "rejection_count": 3,
      "duration_us": 12999, "call_id": "c-1", "hooks": [
          a_hook("opens", "allow", hook_type="command", tier="system", duration_us=4000),
          a_hook("fell", "error", hook_type="prompt", tier="agent", duration_us=5999,
                 reason="exit code 7", exception_type="TimeoutException"),
          a_hook("refuses", "reject", hook_type="command", tier="user-global", reason="No."),
          a_hook("denies", "deny", hook_type="command", tier="system"),
          a_hook("asks", "ask", hook_type="command", tier="agent"),
          a_hook("passes", "pass"), a_hook("skipped", "skipped", skip_reason="matcher"),
          a_hook("cancelled", "cancelled"), a_hook("interrupted", "interrupted")]},
     {"AgentHookEvaluation": [(
         AT.format(1, 1), "t-1", "PreToolUse", "Bash", "meta_agent", "allow", 15, 13, 2, 4, 7, "opens", 3, 12)],
      "AgentHookExecution": [
          (AT.format(1, 1), "t-1", name, kind, "PreToolUse", tier, "Bash", "meta_agent", decision, reason, fault, ms)
          for name, kind, tier, decision, reason, fault, ms in [
              ("opens", "command", "system", "allow", None, None, 4),
              ("fell", "prompt", "agent", "error", "exit code 7", "TimeoutException", 5),
              ("refuses", "command", "user-global", "reject", "No.", None, 0),
              ("denies", "command", "system", "deny", None, None, 0),
              ("asks", "command", "agent", "ask", None, None, 0)]]}),
    # What a chain may say, and what is no word of the contract's: that has no row, nor have its hooks.
    *(({"type": "hook_evaluation", "contract": "sre", "time": AT.format(2, i), "thread_id": f"t-{decision}",
        "hook_event_type": "Stop", "final_decision": decision, "hooks_configured": 1, "hooks_run": 1,
        "agent_hooks_run": 1, "hooks": [a_hook("h", "reject", reason="Add a summary.")]},
       {"AgentHookEvaluation": [(AT.format(2, i), f"t-{decision}", "Stop", None, None, decision, 1, 1, 0, 1, 0,
                                 None, 1, 0)],
        "AgentHookExecution": [(AT.format(2, i), f"t-{decision}", "h", None, "Stop", None, None, None, "reject",
                                "Add a summary.", None, 0)]} if decision in DECISIONS else {})
      for i, decision in enumerate([*DECISIONS, "error", "cancelled", "interrupted"])),
    # A chain that ran nothing, and records of another contract.
    ({"type": "hook_evaluation", "contract": "sre", "time": AT.format(3, 0), "thread_id": "t-none",
      "hook_event_type": "Stop", "final_decision": "pass", "hooks_configured": 1,
      "hooks": [a_hook("h", "skipped", skip_reason="inactive")]}, {}),
    ({"type": "hook_evaluation", "contract": "oscova", "time": AT.format(3, 1), "thread_id": "t-other",
      "hook_event_type": "Stop", "final_decision": "deny", "hooks_run": 1, "hooks": [a_hook("h", "deny")]}, {}),
    ({"type": "tool_execution", "contract": "oscova", "time": AT.format(3, 2), "thread_id": "t-other",
      "phase": "start", "tool_name": "Bash"}, {}),
    # A tool's start and end: what went in, what came out, as JSON or as the text that it is.
    ({"type": "tool_execution", "contract": "sre", "time": AT.format(4, 5), "thread_id": "t-1", "phase": "start",
      "tool_name": "Bash", "call_id": "c-1", "sub_agent_name": "worker", "tool_input": {"command": "ls"},
      "skills_loaded": "triage,repair", "skill_source": "built-in,custom"},
     {"AgentToolExecution": [(AT.format(4, 5), "t-1", "start", "Bash", "worker", "c-1", '{"command":"ls"}', None,
                              "triage,repair", "built-in,custom")]}),
    ({"type": "tool_execution", "contract": "sre", "time": AT.format(5, 5), "thread_id": "t-1", "phase": "end",
      "tool_name": "Bash", "call_id": "c-1", "tool_output": "bin\nboot", "tool_succeeded": True},
     {"AgentToolExecution": [(AT.format(5, 5), "t-1", "end", "Bash", None, "c-1", None, "bin\nboot", None, None)]}),
]
COLUMNS = {
    "AgentHookEvaluation": "timestamp ThreadId HookEventType ToolName AgentName FinalDecision HooksConfigured "
                           "HooksRun SystemHooksRun AgentHooksRun UserGlobalHooksRun AllowingHook RejectionCount "
                           "DurationMs",
    "AgentHookExecution": "timestamp ThreadId HookName HookType HookEventType Tier ToolName AgentName Decision "
                          "Reason ExceptionType DurationMs",
    "AgentToolExecution": "timestamp ThreadId EventType ToolName SubAgentName CallId ToolInput ToolOutput "
                          "SkillsLoaded SkillSource",
}


@pytest.fixture(scope="module")
def told(binary, postgres, tmp_path_factory):
    """What the host told, shipped into both stores."""
    sinks = {"sqlite": {}, "postgres": {"dsn": postgres.create("told")}}
    with Plant(binary, tmp_path_factory.mktemp("told"), HOOKS, f"sinks: {json.dumps(sinks)}\n") as plant:
        plant.start("collect")
        status, _, answer = plant.ask("POST", "/v1/events", "\n".join(json.dumps(e) for e, _ in TOLD))
        assert (status, answer["accepted"]) == (200, len(TOLD)), answer
        assert plant.stop("collect") == 0
        plant.ship_once()
        yield plant


def rows_of(plant, postgres, store, view):
    """The view's rows, each as names and values, in the order of its columns."""
    if store == "sqlite":
        with contextlib.closing(sqlite3.connect(plant.state / "hooktrail.db")) as db:
            db.row_factory = sqlite3.Row
            return [dict(r) for r in db.execute(f'SELECT * FROM "{view}" ORDER BY "timestamp"')]
    rows = [json.loads(line) for line in postgres.psql(
        f'SET TimeZone = UTC; SELECT row_to_json(v) FROM "{view}" v ORDER BY "timestamp"', "told")]
    return [r | {"timestamp": moment(r["timestamp"])} for r in rows]


def moment(text):
    """A time as PostgreSQL writes it in JSON, as a record does."""
    return datetime.datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("view", COLUMNS)
def test_a_view_says_what_the_contract_says_in_every_column(told, postgres, store, view):
    rows = rows_of(told, postgres, store, view)
    assert all(list(r) == COLUMNS[view].split() for r in rows)
    expected = [row for _, views in TOLD for row in views.get(view, [])]
    assert sorted((tuple(r.values()) for r in rows), key=repr) == sorted(expected, key=repr)
