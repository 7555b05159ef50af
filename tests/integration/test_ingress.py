"""The collector's HTTP: what it refuses and how it says so, what becomes of clients that leave, and
how sure a record is when a decision is answered."""
import contextlib
import http.client
import json
import os
import re
import socket
import threading
import time

import pytest

from tests.integration.plant import Plant, hook, hooks, hooktrail, listening_port, request, wait_for


def documents(folder):
    return hooks(hook("says-no", "sh -c 'echo no >&2; exit 2'", "No"),
                 hook("slow", f"sh -c 'echo $$ > {folder}/pid; exec sleep 30'", "Slow"),
                 hook("waits", "sleep 0.4", "Waits"))


@pytest.fixture
def collector(binary, tmp_path):
    """A collector with a configuration: collector(config)."""
    with contextlib.ExitStack() as stack:
        def start(config=""):
            c = stack.enter_context(Plant(binary, tmp_path, documents(tmp_path), config))
            c.start("collect")
            return c

        yield start


@pytest.fixture(scope="module")
def shared(binary, tmp_path_factory):
    """One collector for the questions that leave nothing behind."""
    folder = tmp_path_factory.mktemp("ingress")
    config = "collect: {listen: [unix, 'tcp:127.0.0.1:0'], max_body_mb: 1}\n"
    with Plant(binary, folder, documents(folder), config) as c:
        c.start("collect")
        yield c
        assert c.stop("collect") == 0


# ---- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("body, says", [
    (b"", "request: "),
    (b"no json", "request: "),
    (b'{"contract":"sre"', "request: "),
    (b'{"contract":"sre"} x', "request: "),
    (b"[" * 200 + b"]" * 200, "deeper than 128"),
    (b'{"contract":"sre","thread_id":"\xff\xfe"}', "request: "),
    (b'[]', "request: must be an object"),
    (b'{}', "contract: is missing"),
    (b'{"contract":7}', "contract: must be a string"),
    (b'{"contract":"nope"}', "contract: 'nope' is not known"),
    (b'{"contract":"sre"}', "thread_id"),
    (b'{"contract":"sre","thread_id":"t"}', "payload"),
    (b'{"contract":"sre","thread_id":"t","payload":[]}', "payload"),
    (json.dumps(request(event="Nope")).encode(), "hook_event_name"),
    (json.dumps(request(tool=7)).encode(), "tool_name"),
])
def test_a_request_that_is_no_dispatch_is_refused_in_one_line(shared, body, says):
    status, headers, problem = shared.dispatch(body)

    assert status == 400
    assert headers["Content-Type"] == "application/problem+json"
    assert says in problem["detail"]
    assert "\n" not in problem["detail"]


def test_of_two_equal_keys_the_first_counts(shared):
    twice = json.dumps(request("No"))[:-2] + ', "tool_name": "Other"}}'

    status, _, result = shared.dispatch(twice)

    assert status == 200
    assert result["final_decision"] == "reject"


@pytest.mark.parametrize("head, status, says", [
    ("POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048577\r\n\r\n", 413, "is 1048576"),
    ("POST /v1/dispatch HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\n\r\n{}", 403, "Host 'evil.example'"),
    ("POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 2\r\n\r\n{}",
     403, "Origin 'http://evil.example'"),
    ("PUT /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405, "Allow: POST"),
    ("HEAD /v1/dispatch HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "Allow: POST"),
    ("GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this path"),
    (f"GET /{'x' * 9000} HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "limit is 8192"),
    (f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 17000}\r\n\r\n", 431, "limit is 16384"),
])
def test_a_refusal_names_the_limit_or_the_name(shared, head, status, says):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(str(shared.state / "collect.sock"))
        s.sendall(head.encode())
        answer = s.recv(65536).decode()

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert says in answer


def test_a_token_does_what_its_scopes_say_until_it_is_revoked(shared):
    token = shared.run("token", "create", "ci", "--scopes", "dispatch").stdout.strip()
    port = listening_port(shared.roles["collect"].pid)

    def status_of(path, bearer, body=None):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        c.request("POST" if body else "GET", path, body, {"Authorization": f"Bearer {bearer}"} if bearer else {})
        answer = c.getresponse()
        return answer.status, answer.read().decode()

    body = json.dumps(request())
    assert status_of("/v1/dispatch", token, body)[0] == 200
    assert status_of("/v1/dispatch", None, body)[0] == 401
    assert status_of("/v1/dispatch", token[:-1] + "#", body)[0] == 401
    status, text = status_of("/v1/events", token, "{}")
    assert status == 403 and "'ingest'" in text
    assert status_of("/healthz", None)[0] == 200
    assert shared.run("token", "revoke", "ci").returncode == 0
    assert status_of("/v1/dispatch", token, body)[0] == 401
    assert shared.run("token", "revoke", "ci").returncode == 1
    actions = [r["action"] for r in shared.tail("admin")]
    assert actions.count("token_create") == 1 and actions.count("token_revoke") == 1


# ---- Events -------------------------------------------------------------------------------------


def test_each_line_of_a_host_is_accepted_or_refused_with_its_number(shared):
    lines = [
        {"type": "tool_execution", "phase": "start", "thread_id": "host-1", "tool_name": "x",
         "tool_input": {"password": "hunter2", "n": 1}},
        {"type": "hook_registry"},
        {"type": "hook_evaluation", "contract": "sre", "thread_id": "host-1", "hook_event_type": "Stop",
         "final_decision": "pass", "hooks": [{"hook_name": "h", "decision": "pass"}]},
        {"type": "tool_execution", "phase": "start", "thread_id": "host-1", "tool_nam": "x"},
        {"type": "tool_execution", "phase": "middle", "thread_id": "host-1", "tool_name": "x"},
        {"type": "tool_execution", "phase": "end", "thread_id": "host-1", "tool_name": "x", "source": "dispatcher"},
        {"type": "tool_execution", "phase": "end", "tool_name": "x"},
    ]
    body = "\n".join(json.dumps(line) for line in lines) + "\nno json\n"

    status, _, answer = shared.ask("POST", "/v1/events", body)

    assert status == 200
    assert answer["accepted"] == 2
    assert [r["line"] for r in answer["refused"]] == [2, 4, 5, 6, 7, 8]
    reasons = " ".join(r["reason"] for r in answer["refused"])
    for word in ("type", "tool_nam", "phase", "source", "thread_id"):
        assert word in reasons
    stored = [r for r in shared.tail() if r.get("thread_id") == "host-1"]
    assert [r["source"] for r in stored] == ["host", "host"]
    assert "hunter2" not in json.dumps(stored)
    assert all(r["id"] and r["time"] and r["collector"] for r in stored)


def test_ten_thousand_lines_are_taken_and_more_are_refused(shared):
    line = json.dumps({"type": "tool_execution", "phase": "start", "thread_id": "many", "tool_name": "x"}) + "\n"

    status, _, answer = shared.ask("POST", "/v1/events", line * 2000)
    assert (status, answer["accepted"]) == (200, 2000)
    status, _, problem = shared.ask("POST", "/v1/events", "\n" * 10001)
    assert status == 413 and "more than 10000" in problem["detail"]


# ---- Clients, queues, durability ----------------------------------------------------------------


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


def pid_of_slow(c):
    """Once the hook has written it."""
    path = c.dir / "pid"
    return int(wait_for(lambda: path.exists() and path.read_text().strip()))


def test_a_client_that_goes_away_cancels_its_chain(collector):
    c = collector()
    connection = c.begin_dispatch(request("Slow", "gone"))
    pid = pid_of_slow(c)

    connection.close()

    wait_for(lambda: not alive(pid))
    records = wait_for(lambda: [r for r in c.tail("hook_evaluation") if r["thread_id"] == "gone"])
    assert records[0]["final_decision"] == "cancelled"
    assert c.dispatch(request())[0] == 200


def test_a_full_queue_answers_503_and_when_to_come_again(collector):
    c = collector("collect: {workers: 1, queue: 1}\n")
    answers = []

    def ask():
        answers.append(c.dispatch(request("Waits")))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    refused = [a for a in answers if a[0] == 503]
    assert 200 in [a[0] for a in answers]
    assert refused
    assert refused[0][1]["Retry-After"] == "1"
    assert "collect.queue" in refused[0][2]["detail"]


def test_a_stop_cancels_what_does_not_end_and_answers_it(collector):
    c = collector()
    connection = c.begin_dispatch(request("Slow"))
    pid = pid_of_slow(c)
    begin = time.monotonic()

    assert c.stop("collect") == 0

    assert time.monotonic() - begin < 10
    assert connection.answer()[2]["final_decision"] == "cancelled"
    assert not alive(pid)
    assert not (c.state / "collect.sock").exists()


@pytest.mark.parametrize("durability", ["fsync", "write"])
def test_an_answered_dispatch_is_in_the_journal(collector, durability):
    c = collector(f"collect: {{durability: {durability}}}\n")

    for i in range(20):
        status, headers, result = c.dispatch(request(thread=f"t-{i}"))
        assert status == 200
        assert headers["Hooktrail-Recorded"] == "stored"
        assert "recorded" not in result

    c.kill("collect")
    c.start("collect")  # with `write` a reader sees what is in the page cache once it has been recovered
    threads = {r["thread_id"] for r in c.tail("hook_evaluation")}
    assert threads == {f"t-{i}" for i in range(20)}


@pytest.mark.parametrize("on_unrecorded, blocked", [("continue", False), ("deny", True)])
def test_a_record_that_is_not_safe_in_time_is_told(collector, on_unrecorded, blocked):
    """The quota of one segment is used up, and held back: nothing can be stored in time."""
    c = collector("journal: {quota_mb: 8, segment_mb: 8, when_full: block}\n"
                  f"collect: {{on_unrecorded: {on_unrecorded}, record_wait_ms: 50}}\n")
    line = json.dumps({"type": "tool_execution", "phase": "start", "thread_id": "fill", "tool_name": "x",
                       "tool_input": {"text": "word " * 10000}}) + "\n"
    for _ in range(120):
        status, _, answer = c.ask("POST", "/v1/events", line * 15)
        if status == 503:
            break
    assert status == 503
    assert c.ask("GET", "/readyz")[0] == 503

    status, headers, result = c.dispatch(request())

    assert status == 200
    assert headers["Hooktrail-Recorded"] in ("late", "lost")
    assert result["recorded"] == headers["Hooktrail-Recorded"]
    assert result["blocked"] is blocked

    assert c.stop("collect") == 0
    # What is small enough may fit at the end; what did not is told either way, with its number.
    assert re.search(r'msg="journal (closed without records|stores records again).* lost=[1-9]', c.log())


# ---- Start and reload ---------------------------------------------------------------------------


def test_a_faulty_hook_file_is_refused_at_start_and_ignored_later(collector):
    c = collector()
    good = c.hooks_file.read_text()

    c.hooks_file.write_text(good + "---\nmetadata: {name: bad}\n")
    second = hooktrail("--config", c.config_file, "--state", c.dir / "other", "collect")
    assert second.returncode == 2
    assert "hooks.yaml:" in second.stderr

    c.reload()
    wait_for(lambda: "hooks.yaml" in c.log())
    assert c.dispatch(request("No"))[2]["final_decision"] == "reject"

    c.hooks_file.write_text(good.replace('"No"', '"Never"'))
    c.reload()
    wait_for(lambda: c.dispatch(request("No"))[2]["final_decision"] == "pass")
    wait_for(lambda: len(c.tail("admin")) == 2)
    reloads = [r["details"] for r in c.tail("admin") if r["action"] == "reload"]
    assert [d["hook_sets_changed"] for d in reloads] == [0, 1]
    assert reloads[0]["faults"] > 0
    assert len(c.tail("hook_registry")) == 2


def test_two_collectors_on_one_state_folder_are_one_too_many(collector):
    c = collector()

    second = c.run("collect")

    assert second.returncode != 0
    assert second.stderr.count("\n") == 1
    assert c.dispatch(request())[0] == 200


def test_status_tells_who_runs_and_what_is_behind(collector):
    c = collector()
    c.dispatch(request())

    done = c.run("status", "--json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert status["roles"][0]["state"] == "running"
    assert status["sinks"][0]["lag"] >= 2
    c.kill("collect")
    assert c.run("status").returncode == 1


def test_metrics_are_prometheus_text(shared):
    shared.dispatch(request("No"))

    status, headers, text = shared.ask("GET", "/metrics")

    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = text.decode().splitlines()
    assert any(line.startswith('hooktrail_decisions_total{contract="sre",event="PreToolUse",decision="reject"} ')
               for line in lines)
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    values = {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}
    assert {v.removesuffix(s) for v in values for s in ("_bucket", "_sum", "_count") if v.endswith(s)} <= named
