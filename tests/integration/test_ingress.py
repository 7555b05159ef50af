"""The collector's HTTP: what it refuses and how it says so, what becomes of clients that leave, and
how sure a record is when a decision is answered."""
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

HOOKS = """\
metadata: {{name: says-no}}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {{type: command, matcher: No, command: "sh -c 'echo no >&2; exit 2'"}}
---
metadata: {{name: slow}}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {{type: command, matcher: Slow, command: "sh -c 'echo $$ > {dir}/pid; exec sleep 30'"}}
---
metadata: {{name: waits}}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {{type: command, matcher: Waits, command: "sleep 1"}}
"""


def request_of(tool="Other", thread="t-1", **more):
    payload = {"hook_event_name": "PreToolUse", "agent_name": "meta_agent", "current_turn": 1, "max_turns": 9,
               "execution_summary": None, "tool_name": tool, "tool_input": {"command": "ls"},
               "tool_description": "d", "agent_mode": "Review", "is_write_action": False,
               "requires_approval": False, "requires_browser_connection": False, "call_id": "c-1"}
    return {"contract": "sre", "thread_id": thread, "payload": payload | more}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Collector:
    def __init__(self, binary, folder, config=""):
        self.dir = str(folder)
        self.state = os.path.join(self.dir, "state")
        self.binary = binary
        self.write("hooks.yaml", HOOKS.format(dir=self.dir))
        self.write("hooktrail.yaml", f"contracts: {{sre: {{hooks: {self.dir}/hooks.yaml}}}}\n{config}")
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command("collect"), stderr=self.log)
        self.wait_for(lambda: self.connects())

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)

    def command(self, *words):
        return [self.binary, "--config", os.path.join(self.dir, "hooktrail.yaml"), "--state", self.state, *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=30)

    def logged(self):
        with open(os.path.join(self.dir, "log")) as f:
            return f.read()

    def wait_for(self, condition, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := condition():
                return value
            assert self.process.poll() is None, self.logged()
            time.sleep(0.02)
        raise AssertionError("it does not come")

    def connects(self):
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def connection(self):
        return UnixConnection(os.path.join(self.state, "collect.sock"))

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Status, headers, and the answer as JSON where it is JSON."""
        c = connection or self.connection()
        c.request(method, path, body, headers or {})
        answer = c.getresponse()
        text = answer.read()
        if "json" in answer.headers["Content-Type"]:
            text = json.loads(text)
        if not connection:
            c.close()
        return answer.status, answer.headers, text

    def dispatch(self, request, **more):
        body = request if isinstance(request, (bytes, str)) else json.dumps(request)
        return self.ask("POST", "/v1/dispatch", body, **more)

    def records(self, kind=None):
        """What the journals hold, by the tail command."""
        done = self.run("tail", "--json", "-n", "10000")
        assert done.returncode == 0, done.stderr
        all_of_them = [json.loads(line) for line in done.stdout.splitlines()]
        return [r for r in all_of_them if kind in (None, r["type"])]

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self.log.close()
        return code


@pytest.fixture
def collector(binary, tmp_path):
    started = []

    def start(config=""):
        started.append(Collector(binary, tmp_path, config))
        return started[-1]

    yield start
    for c in started:
        c.stop()


@pytest.fixture(scope="module")
def shared(binary, tmp_path_factory):
    """One collector for the questions that leave nothing behind."""
    c = Collector(binary, tmp_path_factory.mktemp("ingress"), "collect: {listen: [unix, 'tcp:127.0.0.1:0'], "
                  "max_body_mb: 1}\n")
    yield c
    assert c.stop() == 0


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
    (json.dumps(request_of(hook_event_name="Nope")).encode(), "hook_event_name"),
    (json.dumps(request_of(tool_name=7)).encode(), "tool_name"),
])
def test_a_request_that_is_no_dispatch_is_refused_in_one_line(shared, body, says):
    status, headers, problem = shared.dispatch(body)

    assert status == 400
    assert headers["Content-Type"] == "application/problem+json"
    assert says in problem["detail"]
    assert "\n" not in problem["detail"]


def test_of_two_equal_keys_the_first_counts(shared):
    twice = json.dumps(request_of("No"))[:-2] + ', "tool_name": "Other"}}'

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
        s.connect(os.path.join(shared.state, "collect.sock"))
        s.sendall(head.encode())
        answer = s.recv(65536).decode()

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert says in answer


def tcp_port(c):
    """The port that the kernel gave, as the kernel tells it."""
    inodes = {os.readlink(f"/proc/{c.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{c.process.pid}/fd")}
    with open("/proc/net/tcp") as f:
        for fields in (line.split() for line in f.readlines()[1:]):
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                return int(fields[1].split(":")[1], 16)
    raise AssertionError("it listens on no port")


def test_a_token_does_what_its_scopes_say_until_it_is_revoked(shared):
    token = shared.run("token", "create", "ci", "--scopes", "dispatch").stdout.strip()
    port = tcp_port(shared)

    def status_of(path, bearer, body=None):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        c.request("POST" if body else "GET", path, body, {"Authorization": f"Bearer {bearer}"} if bearer else {})
        answer = c.getresponse()
        return answer.status, answer.read().decode()

    body = json.dumps(request_of())
    assert status_of("/v1/dispatch", token, body)[0] == 200
    assert status_of("/v1/dispatch", None, body)[0] == 401
    assert status_of("/v1/dispatch", token[:-1] + "#", body)[0] == 401
    status, text = status_of("/v1/events", token, "{}")
    assert status == 403 and "'ingest'" in text
    assert status_of("/healthz", None)[0] == 200
    assert shared.run("token", "revoke", "ci").returncode == 0
    assert status_of("/v1/dispatch", token, body)[0] == 401
    assert shared.run("token", "revoke", "ci").returncode == 1
    actions = [r["action"] for r in shared.records("admin")]
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
    stored = [r for r in shared.records() if r.get("thread_id") == "host-1"]
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


def test_a_client_that_goes_away_cancels_its_chain(collector):
    c = collector()
    connection = c.connection()
    connection.request("POST", "/v1/dispatch", json.dumps(request_of("Slow", "gone")))
    path = os.path.join(c.dir, "pid")
    c.wait_for(lambda: os.path.exists(path) and open(path).read().strip())
    pid = int(open(path).read())

    connection.close()

    c.wait_for(lambda: not alive(pid))
    records = c.wait_for(lambda: [r for r in c.records("hook_evaluation") if r["thread_id"] == "gone"])
    assert records[0]["final_decision"] == "cancelled"
    assert c.dispatch(request_of())[0] == 200


def test_a_full_queue_answers_503_and_when_to_come_again(collector):
    c = collector("collect: {workers: 1, queue: 1}\n")
    answers = []

    def ask():
        answers.append(c.dispatch(request_of("Waits")))

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
    connection = c.connection()
    connection.request("POST", "/v1/dispatch", json.dumps(request_of("Slow")))
    path = os.path.join(c.dir, "pid")
    c.wait_for(lambda: os.path.exists(path) and open(path).read().strip())
    begin = time.monotonic()

    assert c.stop() == 0

    assert time.monotonic() - begin < 10
    assert json.loads(connection.getresponse().read())["final_decision"] == "cancelled"
    assert not alive(int(open(path).read()))
    assert not os.path.exists(os.path.join(c.state, "collect.sock"))


@pytest.mark.parametrize("durability", ["fsync", "write"])
def test_an_answered_dispatch_is_in_the_journal(collector, durability):
    c = collector(f"collect: {{durability: {durability}}}\n")

    for i in range(20):
        status, headers, result = c.dispatch(request_of(thread=f"t-{i}"))
        assert status == 200
        assert headers["Hooktrail-Recorded"] == "stored"
        assert "recorded" not in result

    c.process.kill()
    c.process.wait()
    c.start()  # with `write` a reader sees what is in the page cache once it has been recovered
    threads = {r["thread_id"] for r in c.records("hook_evaluation")}
    assert threads == {f"t-{i}" for i in range(20)}


@pytest.mark.parametrize("on_unrecorded, blocked", [("continue", False), ("deny", True)])
def test_a_record_that_is_not_safe_in_time_is_told(collector, on_unrecorded, blocked):
    """The quota of one segment is used up, and held back: nothing can be stored in time."""
    c = collector("journal: {quota_mb: 64, segment_mb: 64, when_full: block}\n"
                  f"collect: {{on_unrecorded: {on_unrecorded}, record_wait_ms: 50}}\n")
    line = json.dumps({"type": "tool_execution", "phase": "start", "thread_id": "fill", "tool_name": "x",
                       "tool_input": {"text": "word " * 10000}}) + "\n"
    for _ in range(120):
        status, _, answer = c.ask("POST", "/v1/events", line * 15)
        if status == 503:
            break
    assert status == 503
    assert c.ask("GET", "/readyz")[0] == 503

    status, headers, result = c.dispatch(request_of())

    assert status == 200
    assert headers["Hooktrail-Recorded"] in ("late", "lost")
    assert result["recorded"] == headers["Hooktrail-Recorded"]
    assert result["blocked"] is blocked


# ---- Start and reload ---------------------------------------------------------------------------


def test_a_faulty_hook_file_is_refused_at_start_and_ignored_later(collector):
    c = collector()
    good = HOOKS.format(dir=c.dir)

    c.write("hooks.yaml", good + "---\nmetadata: {name: bad}\n")
    other = [c.binary, "--config", c.dir + "/hooktrail.yaml", "--state", c.dir + "/other", "collect"]
    second = subprocess.run(other, capture_output=True, text=True, timeout=20)
    assert second.returncode == 2
    assert "hooks.yaml:" in second.stderr

    c.process.send_signal(signal.SIGHUP)
    c.wait_for(lambda: "hooks.yaml" in c.logged())
    assert c.dispatch(request_of("No"))[2]["final_decision"] == "reject"

    c.write("hooks.yaml", good.replace("matcher: No,", "matcher: Never,"))
    c.process.send_signal(signal.SIGHUP)
    c.wait_for(lambda: c.dispatch(request_of("No"))[2]["final_decision"] == "pass")
    c.wait_for(lambda: len(c.records("admin")) == 2)
    reloads = [r["details"] for r in c.records("admin") if r["action"] == "reload"]
    assert [d["hook_sets_changed"] for d in reloads] == [0, 1]
    assert reloads[0]["faults"] > 0
    assert len(c.records("hook_registry")) == 2


def test_two_collectors_on_one_state_folder_are_one_too_many(collector):
    c = collector()

    second = c.run("collect")

    assert second.returncode != 0
    assert second.stderr.count("\n") == 1
    assert c.dispatch(request_of())[0] == 200


def test_status_tells_who_runs_and_what_is_behind(collector):
    c = collector()
    c.dispatch(request_of())

    done = c.run("status", "--json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert status["roles"][0]["state"] == "running"
    assert status["sinks"][0]["lag"] >= 2
    c.process.kill()
    c.process.wait()
    assert c.run("status").returncode == 1


def test_metrics_are_prometheus_text(shared):
    shared.dispatch(request_of("No"))

    status, headers, text = shared.ask("GET", "/metrics")

    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = text.decode().splitlines()
    assert any(line.startswith('hooktrail_decisions_total{contract="sre",event="PreToolUse",decision="reject"} ')
               for line in lines)
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    values = {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")}
    assert {v.removesuffix(s) for v in values for s in ("_bucket", "_sum", "_count") if v.endswith(s)} <= named
