"""A session through collect, ship and serve: what trace, why and the endpoints say of it."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SAMPLE = os.path.join(ROOT, "deploy", "sample")
THREAD = "thread-of-the-test"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, url, **headers):
    connection = UnixConnection(path)
    connection.request("GET", url, headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def is_listening(path):
    try:
        return get(path, "/healthz")[0] == 200
    except OSError:
        return False


class Hooktrail:
    """The three roles with a state folder of their own."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.state = str(folder / "state")
        self.config = str(folder / "hooktrail.yaml")
        self.serve_socket = str(folder / "serve.sock")
        self.roles = {}
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"state": self.state,
                       "contracts": {"sre": {"hooks": os.path.join(SAMPLE, "hooks.yaml")}},
                       "serve": {"listen": [f"unix:{self.serve_socket}"], "max_rows": 500}}, file)

    @property
    def socket(self):
        return os.path.join(self.state, "collect.sock")

    def start(self, role):
        self.roles[role] = subprocess.Popen([self.binary, "--config", self.config, role])

    def stop(self, role):
        process = self.roles.pop(role)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0

    def run(self, *words):
        return subprocess.run([self.binary, "--config", self.config, *words], text=True,
                              capture_output=True, timeout=30, check=False)

    def play(self, thread):
        command = [sys.executable, os.path.join(SAMPLE, "play.py"), self.socket,
                   os.path.join(SAMPLE, "session.ndjson"), thread]
        done = subprocess.run(command, text=True, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == thread + "\n"

    def unshipped(self):
        done = self.run("trace", "--json", THREAD)
        return json.loads(done.stdout)["unshipped"] if done.returncode == 0 else -1


@pytest.fixture(scope="module")
def hooktrail(binary, tmp_path_factory):
    h = Hooktrail(binary, tmp_path_factory.mktemp("queries"))
    try:
        h.start("collect")
        wait_until(lambda: is_listening(h.socket))
        h.start("ship")
        h.play(THREAD)
        wait_until(lambda: h.unshipped() == 0)
        h.start("serve")
        wait_until(lambda: is_listening(h.serve_socket))
        yield h
    finally:
        for role in list(h.roles):
            h.stop(role)


def test_the_trace_has_every_event_of_the_session(hooktrail):
    trace = json.loads(hooktrail.run("trace", "--json", THREAD).stdout)
    evaluations = [e for e in trace["events"] if e["kind"] == "evaluation"]
    with open(os.path.join(SAMPLE, "session.ndjson"), encoding="utf-8") as file:
        assert len(evaluations) == len(file.readlines())
    assert {e["final_decision"] for e in evaluations} == {"pass", "deny", "reject", "ask"}
    assert not trace["truncated"]


def test_the_timeline_is_for_people(hooktrail):
    done = hooktrail.run("trace", THREAD)
    assert done.returncode == 0
    assert "lookup-owner  timed out after 1." in done.stdout
    assert "ticket-comment  failed with exit code 7, failMode allow: ticket:" in done.stdout
    assert "ms: Destructive commands" in done.stdout
    assert "child agent code_reviewer" in done.stdout
    assert "\033" not in done.stdout


@pytest.mark.parametrize("words, url", [
    (["trace", THREAD], f"/v1/threads/{THREAD}/trace"),
    (["trace", THREAD, "--limit", "5"], f"/v1/threads/{THREAD}/trace?limit=5"),
    (["why", "review-terminal", "--thread", THREAD, "--tool", "RunInTerminal"],
     f"/v1/why?hook=review-terminal&thread={THREAD}&tool=RunInTerminal"),
    (["why", "flag-secrets", "--call", f"call-{THREAD}-10"],
     f"/v1/why?hook=flag-secrets&call=call-{THREAD}-10"),
])
def test_commands_and_endpoints_give_the_same_bytes(hooktrail, words, url):
    def both():
        command = hooktrail.run("--json", *words).stdout.encode()
        status, answer = get(hooktrail.serve_socket, url)
        assert status == 200
        return command, answer

    wait_until(lambda: b'"unshipped":0' in both()[0])
    command, answer = both()
    assert command == answer


def fails(answer):
    return [step["step"] for step in answer["steps"] if step["state"] == "fails"]


@pytest.mark.parametrize("hook, words, step, advice", [
    ("review-terminal", ["--tool", "RunInTerminal"], "matcher", "Run.*"),
    ("weekly-report-context", [], "event", "spec.sources"),
    ("change-freeze", ["--tool", "MultiReplaceStringInFile"], "activation", "activated_hooks"),
    ("legacy-audit", [], "registration", "spec.enabled"),
    ("lookup-owner", ["--tool", "GrepSearch"], "worked", "timeout"),
    ("ticket-comment", ["--tool", "RunInTerminal"], "worked", "name not known"),
    ("flag-secret", [], "registration", "'flag-secrets'"),
])
def test_why_names_the_step_that_fails(hooktrail, hook, words, step, advice):
    done = hooktrail.run("why", hook, "--thread", THREAD, *words, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode == 0) is answer["found"] is (hook != "flag-secret"), done.stderr
    assert fails(answer)[0] == step, answer
    assert advice in answer["advice"]


def test_a_hook_behind_a_deny_was_not_reached(hooktrail):
    call = f"call-{THREAD}-13"
    answer = json.loads(hooktrail.run("why", "ask-before-production", "--call", call,
                                      "--json").stdout)
    assert fails(answer) == ["reached"]
    assert "'deny-destructive-commands' (system) decided deny" in answer["steps"][5]["evidence"]


def test_what_nobody_saw_is_a_negative_answer(hooktrail):
    assert hooktrail.run("trace", "no-such-thread").returncode == 1
    assert hooktrail.run("why", "flag-secrets", "--call", "no-such-call").returncode == 1
    assert get(hooktrail.serve_socket, "/v1/threads/no-such-thread/trace")[0] == 404
    assert get(hooktrail.serve_socket, "/v1/evaluations/no-such-id")[0] == 404


@pytest.mark.parametrize("url, names", [
    (f"/v1/threads/{THREAD}/trace?limit=501", "serve.max_rows (500)"),
    (f"/v1/threads/{THREAD}/trace?from=yesterday", "from: 'yesterday' is no time"),
    (f"/v1/threads/{THREAD}/trace?from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "366 days"),
    ("/v1/why?hook=flag-secrets", "name a call or a thread"),
])
def test_a_limit_that_is_passed_is_named(hooktrail, url, names):
    status, answer = get(hooktrail.serve_socket, url)
    assert status == 400
    assert names in json.loads(answer)["detail"]


def test_an_evaluation_is_told_by_its_id(hooktrail):
    trace = json.loads(hooktrail.run("trace", "--json", THREAD).stdout)
    first = trace["events"][0]
    status, answer = get(hooktrail.serve_socket, f"/v1/evaluations/{first['id']}")
    assert status == 200
    assert json.loads(answer)["evaluation"]["dispatch_id"] == first["dispatch_id"]


def test_a_foreign_host_is_refused(hooktrail):
    assert get(hooktrail.serve_socket, "/v1/why?hook=x&call=y", Host="evil.example")[0] >= 400


def test_what_is_not_shipped_yet_is_told(hooktrail):
    hooktrail.stop("ship")
    try:
        hooktrail.play("thread-not-shipped")
        done = hooktrail.run("trace", "thread-not-shipped")
        assert done.returncode == 1
        assert "records are not shipped yet" in done.stderr
        why = hooktrail.run("why", "flag-secrets", "--thread", "thread-not-shipped", "--json")
        assert json.loads(why.stdout)["steps"][0]["state"] == "unknown"
    finally:
        hooktrail.start("ship")
    wait_until(lambda: hooktrail.run("trace", "thread-not-shipped").returncode == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_who_may_only_read_can_ask(hooktrail):
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        program = shutil.copy(hooktrail.binary, folder)
        shutil.copytree(os.path.join(os.path.dirname(hooktrail.binary), "libexec"),
                        os.path.join(folder, "libexec"))
        shutil.copytree(hooktrail.state, state, ignore=shutil.ignore_patterns("*.sock"))
        subprocess.run(["chmod", "-R", "a+rX,a-w", folder], check=True)
        ask = [program, "--state", state, "trace", THREAD]
        assert subprocess.run(ask, capture_output=True, check=False).returncode == 0
        done = subprocess.run(ask, text=True, capture_output=True, check=False, cwd="/",
                              user=65534, group=65534, extra_groups=[])
        assert done.returncode == 0, done.stderr
        assert f"thread {THREAD}" in done.stdout
