"""One session in SQLite and in PostgreSQL: the same answers, and the contract's own telemetry."""
import json
import os
import subprocess

import pytest
import yaml

from tests.integration.shipping import State, wait_for

THREAD = "thread-of-stores"

HOOKS = """\
kind: Hook
metadata: {name: context}
spec: {eventType: Start, activationMode: always, hook: {type: command, script: "#!/bin/bash\\necho '{\\"ok\\": true}'"}}
---
kind: Hook
metadata: {name: guard, tier: system}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {type: command, matcher: Bash, script: "#!/bin/bash\\necho 'Not here.' >&2; exit 2"}
---
kind: Hook
metadata: {name: asker}
spec:
  eventType: PreToolUse
  activationMode: always
  hook:
    type: command
    matcher: Edit
    script: "#!/bin/bash\\necho '{\\"hookSpecificOutput\\": {\\"permissionDecision\\": \\"ask\\"}}'"
---
kind: Hook
metadata: {name: broken, tier: agent, agent: a}
spec:
  eventType: PostToolUse
  activationMode: always
  hook: {type: command, matcher: "*", script: "#!/bin/bash\\nexit 7"}
---
kind: Hook
metadata: {name: checker}
spec:
  eventType: Stop
  activationMode: always
  hook: {type: command, script: "#!/bin/bash\\necho '{\\"ok\\": false, \\"reason\\": \\"Add a summary.\\"}'"}
"""

EVENTS = [
    {"hook_event_name": "Start", "start_message": "go", "thread_source": "Incident"},
    *({"hook_event_name": "PreToolUse", "tool_name": t, "tool_input": {"x": 1}, "call_id": f"call-{t}"}
      for t in ("Bash", "Edit", "Read")),
    {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"x": 1},
     "tool_result": "text", "tool_succeeded": True, "call_id": "call-Read"},
    {"hook_event_name": "Stop", "final_output": "done", "stop_rejection_count": 0},
]


@pytest.fixture(scope="module")
def session(binary, live, postgres, tmp_path_factory):
    """The session, dispatched through a collector and shipped into both stores."""
    folder = tmp_path_factory.mktemp("stores")
    dsn = postgres.create("stores")
    state = State(binary, live, folder / "state", sqlite={}, postgres={"dsn": dsn})
    (folder / "hooks.yaml").write_text(HOOKS)
    config = yaml.safe_load(state.config.read_text())
    config["contracts"] = {"sre": {"hooks": str(folder / "hooks.yaml")}}
    state.config.write_text(yaml.safe_dump(config))
    collect = subprocess.Popen([binary, "--config", state.config, "--state", state.path, "collect"])
    try:
        wait_for(lambda: (state.path / "collect.sock").exists() or collect.poll() is not None, 20)
        for event in EVENTS:
            done = subprocess.run(
                ["curl", "-sS", "--fail-with-body", "--unix-socket", state.path / "collect.sock",
                 "http://localhost/v1/dispatch", "-d", json.dumps(request(event))],
                capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, done.stdout + done.stderr
        collect.terminate()
        assert collect.wait(20) == 0
    finally:
        if collect.poll() is None:
            collect.kill()
            collect.wait()
    state.ship_once()
    state.folder = folder
    return state


def request(event):
    return {"contract": "sre", "thread_id": THREAD,
            "payload": {"agent_name": "a", "current_turn": 1, "max_turns": 9, **event}}


def ask(state, store, *words):
    config = yaml.safe_load(state.config.read_text()) | {"serve": {"store": store}}
    path = state.folder / f"{store}.yaml"
    path.write_text(yaml.safe_dump(config))
    return subprocess.run([state.binary, "--config", path, "--state", state.path, *words],
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


def telemetry(session):
    """What the contract calls its raw hook telemetry, of the same events, dispatched again."""
    path = session.folder / "appinsights.ndjson"
    path.unlink(missing_ok=True)
    for event in EVENTS:
        subprocess.run([session.binary, "dispatch", "--hooks", session.folder / "hooks.yaml",
                        "--appinsights", path], input=json.dumps(request(event)), text=True,
                       check=True, capture_output=True, timeout=30)
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
