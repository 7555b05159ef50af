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
