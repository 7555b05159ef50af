"""SIGHUP: what can be taken is, the rest is named, and `status` shows what is in force."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("HOOKTRAIL_BIN", str(ROOT / "build/hooktrail"))
HOOK = """---
kind: Hook
metadata: {name: %s}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {type: command, matcher: "*", command: "true"}
"""


def wait_for(what, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := what():
            return answer
        time.sleep(0.02)
    pytest.fail("waited too long")


class Role:
    """One role on a state of its own, and the file that it was configured by."""

    def __init__(self, folder):
        self.folder = folder
        self.config = folder / "h.yaml"
        self.log = folder / "log"
        self.hooks = folder / "hooks.yaml"
        self.hooks.write_text(HOOK % "first")

    def write(self, text=""):
        self.config.write_text(f"state: {self.folder}/s\n"
                               f"contracts: {{sre: {{hooks: {self.hooks}}}}}\n" + text)

    def run(self, name):
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([BIN, "--config", str(self.config), name],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self.process

    def reload(self):
        """SIGHUP; the lines that the log got from it."""
        before = len(self.log.read_text())
        self.process.send_signal(signal.SIGHUP)
        return wait_for(lambda: self.settled(before))

    def settled(self, before):
        text = self.log.read_text()[before:]
        ends = ("configuration reloaded", "configuration not taken", "restart of serve")
        return text if any(e in text for e in ends) else None

    def status(self):
        answer = subprocess.run([BIN, "--config", str(self.config), "status", "--json"],
                                capture_output=True, text=True, timeout=20, check=False)
        return json.loads(answer.stdout)


@pytest.fixture
def role(tmp_path):
    r = Role(tmp_path)
    yield r
    r.process.terminate()
    assert r.process.wait(20) == 0


@pytest.fixture
def collect(role):
    role.write("collect: {capture_payload: false}\n")
    role.run("collect")
    wait_for((role.folder / "s/run/collect.json").exists)
    return role


def dispatch(role):
    request = {"contract": "sre", "thread_id": "t1", "payload": {
        "hook_event_name": "PreToolUse", "agent_name": "meta_agent", "tool_name": "X",
        "tool_input": {"a": 1}, "call_id": "c1"}}
    subprocess.run(["curl", "-sS", "--max-time", "20", "--unix-socket",
                    str(role.folder / "s/collect.sock"), "http://localhost/v1/dispatch", "-d",
                    json.dumps(request)], check=True, capture_output=True)


def evaluations(role):
    answer = subprocess.run([BIN, "--config", str(role.config), "tail", "-n", "100", "--json"],
                            capture_output=True, text=True, timeout=20, check=True)
    records = [json.loads(line) for line in answer.stdout.splitlines()]
    return [r for r in records if r["type"] == "hook_evaluation"]


def test_what_can_be_taken_is_taken(collect):
    dispatch(collect)
    collect.write("collect: {capture_payload: true}\njournal: {keep_hours: 1, quota_mb: 100}\n")
    told = collect.reload()
    assert "need a restart" not in told
    dispatch(collect)
    captured = ["captured" in e["payload"] for e in evaluations(collect)]
    assert captured == [False, True]


def test_each_key_that_needs_a_restart_is_named_in_one_line_until_it_is_back(collect):
    collect.write("collect: {workers: 3, queue: 7, on_unrecorded: deny}\n"
                  "journal: {segment_mb: 8}\nserve: {max_rows: 5}\n")
    told = [line for line in collect.reload().splitlines() if "restart" in line]
    assert len(told) == 1
    assert told[0].endswith('keys="collect.workers, collect.queue, journal.segment_mb"')
    assert " role=collect level=warn " in told[0]
    assert "collect.workers" in collect.reload()
    collect.write()
    assert "restart" not in collect.reload()


def test_status_shows_the_hook_sets_in_force_and_a_reload_that_was_refused(collect):
    before, = collect.status()["hook_sets"]
    assert (before["contract"], before["hooks"]) == ("sre", 1)
    assert "reload" not in collect.status()
    collect.hooks.write_text("kind: Hook\nspec: [\n")
    assert "what was in force stays" in collect.reload()
    told = wait_for(lambda: collect.status().get("reload"))
    assert collect.status()["hook_sets"] == [before]
    assert told["faults"] == 1 and told["error"].startswith(f"{collect.hooks}:")
    collect.hooks.write_text(HOOK % "first" + HOOK % "second")
    collect.reload()
    after, = wait_for(lambda: [s for s in collect.status()["hook_sets"] if s["hooks"] == 2])
    assert after["digest"] != before["digest"] and after["loaded"] > before["loaded"]
    assert "error" not in collect.status()["reload"]


def test_what_is_in_force_is_told_only_while_it_is(collect):
    collect.process.terminate()
    collect.process.wait(20)
    assert "hook_sets" not in collect.status()
    assert not (collect.folder / "s/run/collect.json").exists()


def test_serve_names_what_it_does_not_take(role):
    (role.folder / "s").mkdir()
    role.write('serve: {listen: ["tcp:127.0.0.1:0"]}\n')
    role.run("serve")
    wait_for(lambda: "serving" in role.log.read_text())
    role.write('serve: {listen: ["tcp:127.0.0.1:0"], max_rows: 5}\ncollect: {workers: 3}\n')
    assert 'role=serve level=warn msg="changed keys that need a restart of serve" ' \
           'keys="serve.max_rows"' in role.reload()


def test_a_collector_without_a_contract_says_so(role):
    role.config.write_text(f"state: {role.folder}/s\n")
    role.run("collect")
    wait_for(lambda: "no contract is configured" in role.log.read_text())
