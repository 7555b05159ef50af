"""A session through collect, ship and serve: what trace, why and the endpoints say of it."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from tests.integration.plant import ROOT, Plant, request, wait_for

SAMPLE = ROOT / "deploy" / "sample"
SESSION = SAMPLE / "session.ndjson"
THREAD = "thread-of-the-test"


def get(plant, url, **headers):
    """Status and bytes of an answer of `serve`."""
    with contextlib.closing(plant.connection("serve.sock")) as c:
        c.request("GET", url, headers=headers)
        answer = c.getresponse()
        return answer.status, answer.read()


def play(plant, thread):
    done = subprocess.run([sys.executable, SAMPLE / "play.py", plant.state / "collect.sock", SESSION, thread],
                          text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == thread + "\n"


def is_shipped(plant):
    done = plant.run("trace", "--json", THREAD)
    return done.returncode == 0 and json.loads(done.stdout)["unshipped"] == 0


@pytest.fixture(scope="module")
def hooktrail(binary, tmp_path_factory):
    """The three roles, after the sample's session."""
    folder = tmp_path_factory.mktemp("queries")
    config = f'serve: {{listen: ["unix:{folder}/state/serve.sock"], max_rows: 500}}\n'
    with Plant(binary, folder, (SAMPLE / "hooks.yaml").read_text(), config) as plant:
        plant.start("collect")
        plant.start("ship")
        play(plant, THREAD)
        wait_for(lambda: is_shipped(plant))
        plant.start("serve")
        yield plant
        assert [plant.stop(role) for role in list(plant.roles)] == [0, 0, 0]


def test_the_trace_has_every_event_of_the_session(hooktrail):
    trace = json.loads(hooktrail.run("trace", "--json", THREAD).stdout)
    evaluations = [e for e in trace["events"] if e["kind"] == "evaluation"]
    assert len(evaluations) == len(SESSION.read_text().splitlines())
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
        status, answer = get(hooktrail, url)
        assert status == 200
        return command, answer

    wait_for(lambda: b'"unshipped":0' in both()[0])
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
    assert get(hooktrail, "/v1/threads/no-such-thread/trace")[0] == 404
    assert get(hooktrail, "/v1/evaluations/no-such-id")[0] == 404


def test_a_time_before_1970_is_before_every_record(hooktrail):
    assert hooktrail.run("trace", THREAD, "--to", "1969-12-31T00:00:00Z").returncode == 1
    assert hooktrail.run("trace", THREAD, "--from", "1969-12-31T00:00:00Z").returncode == 0


@pytest.mark.parametrize("url, names", [
    (f"/v1/threads/{THREAD}/trace?limit=501", "serve.max_rows (500)"),
    (f"/v1/threads/{THREAD}/trace?from=yesterday", "from: 'yesterday' is no time"),
    (f"/v1/threads/{THREAD}/trace?from=2020-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "366 days"),
    ("/v1/why?hook=flag-secrets", "name a call or a thread"),
])
def test_a_limit_that_is_passed_is_named(hooktrail, url, names):
    status, answer = get(hooktrail, url)
    assert status == 400
    assert names in json.loads(answer)["detail"]


def test_an_evaluation_is_told_by_its_id(hooktrail):
    trace = json.loads(hooktrail.run("trace", "--json", THREAD).stdout)
    first = trace["events"][0]
    status, answer = get(hooktrail, f"/v1/evaluations/{first['id']}")
    assert status == 200
    assert json.loads(answer)["evaluation"]["dispatch_id"] == first["dispatch_id"]


def test_a_foreign_host_is_refused(hooktrail):
    status, answer = get(hooktrail, "/v1/why?hook=x&call=y", Host="evil.example")
    assert status == 403 and b"(serve.hosts names more)" in answer


def test_the_gauge_of_connections_falls_when_they_end(hooktrail):
    def gauge():
        told = get(hooktrail, "/metrics")[1].decode().splitlines()
        return [line for line in told if line.startswith("hooktrail_serve_connections ")]

    with contextlib.closing(hooktrail.connection("serve.sock")) as c:
        c.connect()
        wait_for(lambda: gauge() == ["hooktrail_serve_connections 2"])
    wait_for(lambda: gauge() == ["hooktrail_serve_connections 1"])


def test_what_is_not_shipped_yet_is_told(hooktrail):
    assert hooktrail.stop("ship") == 0
    try:
        assert hooktrail.dispatch(request("ReadFile", "thread-not-shipped"))[0] == 200
        done = hooktrail.run("trace", "thread-not-shipped")
        assert done.returncode == 1
        assert "records are not shipped yet" in done.stderr
        why = hooktrail.run("why", "flag-secrets", "--thread", "thread-not-shipped", "--json")
        assert json.loads(why.stdout)["steps"][0]["state"] == "unknown"
    finally:
        hooktrail.start("ship")
    wait_for(lambda: hooktrail.run("trace", "thread-not-shipped").returncode == 0)


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
