"""What a hook inherits: our environment, without the credentials that are ship's."""
import http.client
import json
import os
import socket
import subprocess
import time

HOOKS = """kind: Hook
metadata: {name: env}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {type: command, matcher: "*", command: "env | grep -c S3cret >&2; env | grep -c PLAIN >&2; exit 2"}
"""

CONFIG = """state: STATE_DIR
contracts: {sre: {hooks: hooks.yaml}}
sinks:
  sqlite: {}
  postgres: {dsn: "env:TEST_DSN"}
  kafka: {properties: {bootstrap.servers: "127.0.0.1:1", sasl.password: "env:TEST_PASSWORD"}}
"""


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(path):
    c = Unix(path)
    c.request("POST", "/v1/dispatch", json.dumps({
        "contract": "sre", "thread_id": "t",
        "payload": {"hook_event_name": "PreToolUse", "agent_name": "a", "tool_name": "T"}}))
    return json.loads(c.getresponse().read())


def test_a_hook_inherits_no_credential_of_a_sink(binary, tmp_path):
    state = tmp_path / "state"
    (tmp_path / "hooks.yaml").write_text(HOOKS)
    (tmp_path / "c.yaml").write_text(CONFIG.replace("STATE_DIR", str(state)))
    env = {**os.environ, "TEST_DSN": "host=127.0.0.1 port=1 password=S3cret",
           "TEST_PASSWORD": "S3cret", "TEST_PLAIN": "PLAIN"}
    p = subprocess.Popen([binary, "--config", str(tmp_path / "c.yaml"), "collect"], env=env,
                         stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not (state / "collect.sock").exists() and time.monotonic() < end:
            time.sleep(0.02)
        reason = ask(str(state / "collect.sock"))["reason"]
        seen = open(f"/proc/{p.pid}/environ", "rb").read()
    finally:
        p.terminate()
        p.wait(20)

    assert reason.split() == ["0", "1"]
    assert b"S3cret" not in seen


SLOW = """kind: Hook
metadata: {name: slow}
spec:
  eventType: PreToolUse
  activationMode: always
  hook: {type: command, matcher: "*", command: "touch STARTED; sleep 71.5"}
"""
REQUEST = {"contract": "sre", "thread_id": "t",
           "payload": {"hook_event_name": "PreToolUse", "agent_name": "a", "tool_name": "T",
                       "execution_summary": '{"turns": "SECRET-TRAJECTORY"}'}}


def wait_until(there, seconds=20):
    end = time.monotonic() + seconds
    while not there() and time.monotonic() < end:
        time.sleep(0.02)
    assert there()


def files_below(folder):
    return [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files]


def is_running(command):
    return subprocess.run(["pgrep", "-f", "-x", command], capture_output=True).returncode == 0


def test_a_dispatch_that_is_told_to_stop_leaves_nothing(binary, tmp_path):
    started = tmp_path / "started"
    (tmp_path / "hooks.yaml").write_text(SLOW.replace("STARTED", str(started)))
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    p = subprocess.Popen([binary, "dispatch", "--hooks", str(tmp_path / "hooks.yaml")],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         env={**os.environ, "TMPDIR": str(scratch)})
    p.stdin.write(json.dumps(REQUEST).encode())
    p.stdin.close()
    wait_until(started.exists)
    p.terminate()

    assert p.wait(20) == 128 + 15
    assert files_below(scratch) == []
    assert not is_running("sleep 71.5")


def test_a_trajectory_does_not_outlive_a_killed_collector(binary, tmp_path):
    started = tmp_path / "started"
    state = tmp_path / "state"
    (tmp_path / "hooks.yaml").write_text(SLOW.replace("STARTED", str(started)))
    (tmp_path / "c.yaml").write_text(
        f"state: {state}\ncontracts: {{sre: {{hooks: hooks.yaml}}}}\n")

    def start():
        p = subprocess.Popen([binary, "--config", str(tmp_path / "c.yaml"), "collect"],
                             stderr=subprocess.DEVNULL)
        wait_until((state / "run" / "collect.pid").exists)
        wait_until((state / "collect.sock").exists)
        return p

    first = start()
    c = Unix(str(state / "collect.sock"))
    c.request("POST", "/v1/dispatch", json.dumps(REQUEST))
    wait_until(started.exists)
    kept = files_below(state / "work")
    first.kill()
    first.wait()
    (state / "collect.sock").unlink()
    second = start()
    left = files_below(state / "work")
    second.terminate()
    second.wait(20)

    assert len(kept) == 1 and "SECRET" not in str(kept)
    assert left == []
    assert not is_running("sleep 71.5")
