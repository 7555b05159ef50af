"""Bad input is refused in one line that says where, and the next good request is served as ever.

test_ingress.py has what HTTP refuses; here are the files, the command line, and what comes after.
"""
import contextlib
import http.client
import json
import subprocess

import pytest

from tests.integration.plant import Plant, hook, hooks, listening_port, request

GOOD = hooks(hook("denies", "sh -c 'echo no >&2; exit 2'", "Denies"), hook("passes", "/bin/true", ".*"))
HEAD = "metadata: {name: h}\nspec:\n  eventType: PreToolUse\n  activationMode: always\n"


@pytest.fixture
def plant(binary, tmp_path):
    with Plant(binary, tmp_path, GOOD) as p:
        yield p


# ---- Files --------------------------------------------------------------------------------------

BAD_HOOKS = [
    (b"metadata: {name: h\nspec: [\n", "2"),
    (b"\tmetadata: x\n", "1"),
    (b"metadata: {name: 'h\n", "2"),  # where it ends
    (b"metadata: {name: h}\nspec: &a [*a]\n", "2"),
    (b"metadata: {name: h}\nmetadata: {name: i}\n", "2"),
    (b"metadata: {name: \xff\xfe}\n", "1"),
    (b"metadata: {name: h\0}\n", "1"),
    (b"a: " + b"[" * 500 + b"]" * 500 + b"\n", "1"),
    (b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
     b"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", ""),
    (b"- just\n- a list\n", "1"),
    (HEAD.encode() + b"  hook: {type: command, matcher: A}\n", "5"),
    (HEAD.encode() + b"  hook: {type: command, command: 7}\n", "5"),
    (HEAD.encode() + b"  hook: {type: command, command: x, timeout: 0}\n", "5"),
    (HEAD.encode() + b"  hok: {type: command, command: x}\n", "5"),
    (HEAD.replace("PreToolUse", "PreTool").encode() + b"  hook: {type: command, command: x}\n", "3"),
]


@pytest.mark.parametrize("text, line", BAD_HOOKS, ids=[str(i) for i in range(len(BAD_HOOKS))])
def test_a_broken_hook_file_is_told_with_its_line_by_every_command(plant, text, line):
    plant.hooks_file.write_bytes(text)
    place = f"{plant.hooks_file}:{line}"
    told = set()
    for code, words in ((1, ["check", "--contract", "sre", "--hooks", str(plant.hooks_file)]),
                        (2, ["dispatch", "--hooks", str(plant.hooks_file)]), (2, ["collect"])):
        done = plant.run(*words, input=json.dumps(request()), timeout=10)
        lines = [li for li in (done.stdout + done.stderr).splitlines() if place in li]
        assert done.returncode == code and lines, (words, done)
        told.add(lines[0].split(place)[1])
    assert len(told) == 1, told

    plant.hooks_file.write_text(GOOD)
    plant.start("collect")
    assert plant.dispatch(request("Denies"))[2]["blocked"]


@pytest.mark.parametrize("text, says", [
    ("collect: {workers: [}\n", ":2: error: "),
    ("collect: {worker: 4}\n", "hooktrail.yaml:2: error: collect.worker: "),
    ("collect: {workers: many}\n", "hooktrail.yaml:2: error: collect.workers: "),
    ("collect: {workers: 0}\n", "hooktrail.yaml:2: error: collect.workers: "),
    ("journal: {when_full: explode}\n", "hooktrail.yaml:2: error: journal.when_full: "),
    ("collect: {listen: [somewhere]}\n", "hooktrail.yaml:2: error: collect.listen"),
    ("sinks: {mongodb: {}}\n", "hooktrail.yaml:2: error: sinks.mongodb: "),
])
def test_a_broken_configuration_is_refused_in_one_line_by_every_role(plant, text, says):
    plant.configure(text)
    for role in ("collect", "ship", "serve", "run", "config"):
        done = plant.run(role, timeout=10)
        assert done.returncode == 2 and says in done.stderr, (role, done)
        assert done.stderr.count("\n") == 1
    assert not plant.state.exists()


# ---- Requests -----------------------------------------------------------------------------------

DEEP = json.dumps(request())[:-2] + ', "x": ' + "[" * 200 + "]" * 200 + "}}"
BAD_REQUESTS = {
    "empty": (b"", "request: "),
    "no JSON": (b"hello", "request: "),
    "cut off": (json.dumps(request()).encode()[:-1], "request: "),
    "two": (json.dumps(request()).encode() * 2, "request: "),
    "deep": (DEEP.encode(), "deeper than 128"),
    "UTF-8": (json.dumps(request()).encode().replace(b'"ls"', b'"l\xc3\x28s"'), "request: "),
    "control": (json.dumps(request()).encode().replace(b'"ls"', b'"l\x01s"'), "request: "),
    "event": (json.dumps(request(event="Nonsense")).encode(), "payload.hook_event_name"),
    "no event": (json.dumps(request(event=None)).encode(), "hook_event_name"),
    "type": (json.dumps(request(tool=["x"])).encode(), "tool_name"),
    "contract": (json.dumps(request() | {"contract": "unheard"}).encode(), "unheard"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_bad_request_is_refused_in_one_line_on_the_command_line_and_runs_nothing(binary, tmp_path, name):
    body, says = BAD_REQUESTS[name]
    with Plant(binary, tmp_path, hooks(hook("ran", f"touch {tmp_path}/ran", ".*"))) as plant:
        (tmp_path / "request").write_bytes(body)
        with open(tmp_path / "request", "rb") as file:
            done = subprocess.run(plant.command("dispatch", "--hooks", str(plant.hooks_file)), stdin=file,
                                  capture_output=True, text=True, timeout=10)
        assert done.returncode == 2, done
        assert done.stderr.count("\n") == 1 and done.stdout == ""
        assert says.split(".")[-1] in done.stderr
        assert not (tmp_path / "ran").exists()


def test_after_every_bad_request_a_good_one_on_the_same_connection_is_served(plant):
    plant.start("collect")
    with contextlib.closing(plant.connection()) as c:
        for n, (name, (body, says)) in enumerate(BAD_REQUESTS.items()):
            status, headers, problem = c.ask("POST", "/v1/dispatch", body)
            assert status == 400 and says.split(".")[-1] in problem["detail"], (name, problem)
            status, headers, result = c.ask("POST", "/v1/dispatch", request("Denies", f"good-{n}"))
            assert (status, result["blocked"], headers["Hooktrail-Recorded"]) == (200, True, "stored"), name
    threads = {f.record["thread_id"] for f in plant.frames() if f.type == "hook_evaluation"}
    assert threads == {f"good-{n}" for n in range(len(BAD_REQUESTS))}


def test_over_tcp_who_may_not_dispatch_runs_nothing(binary, tmp_path):
    documents = hooks(hook("ran", f"touch {tmp_path}/ran", ".*"))
    with Plant(binary, tmp_path, documents, "collect: {listen: [unix, 'tcp:127.0.0.1:0']}\n") as plant:
        plant.start("collect")
        port = listening_port(plant.roles["collect"].pid)
        tokens = {scope: plant.run("token", "create", scope, "--scopes", scope).stdout.strip()
                  for scope in ("ingest", "query", "dispatch")}

        def ask(token=None, **headers):
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as c:
                bearer = {"Authorization": f"Bearer {tokens[token]}"} if token else {}
                c.request("POST", "/v1/dispatch", json.dumps(request()), bearer | headers)
                answer = c.getresponse()
                return answer.status, answer.read().decode()

        for scope in ("ingest", "query"):
            status, text = ask(scope)
            assert status == 403 and "'dispatch'" in text and "\n" not in text.strip()
        assert ask()[0] == 401
        assert ask("dispatch", Host="evil.example")[0] == 403
        assert ask("dispatch", Origin="http://evil.example")[0] == 403
        assert ask("dispatch", Origin="null")[0] == 403
        assert not (tmp_path / "ran").exists()
        assert ask("dispatch")[0] == 200
        assert (tmp_path / "ran").exists()
