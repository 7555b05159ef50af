"""What becomes of a command whose answer cannot be written, and of questions that are empty."""
import json
import os
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BINARY = os.environ.get("HOOKTRAIL_BIN", os.path.join(ROOT, "build", "hooktrail"))


def shell(folder, words, **more):
    return subprocess.run(["sh", "-c", f'"$0" --config c.yaml --state state {words}', BINARY], cwd=folder,
                          capture_output=True, text=True, timeout=30, check=False, **more)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "c.yaml").write_text("collector: box\n")
    return tmp_path


@pytest.mark.parametrize("target", [">/dev/full", ">&-", "--json >/dev/full"])
def test_a_token_that_cannot_be_shown_is_revoked(folder, target):
    made = shell(folder, f"token create ui --scopes query {target}")
    assert made.returncode == 3
    assert "revoked" in made.stderr
    assert json.loads(shell(folder, "token list --json").stdout) == []


@pytest.mark.parametrize("words", ["token list", "token revoke x", "token bogus"])
def test_a_token_command_that_makes_nothing_makes_no_state_folder(folder, words):
    assert shell(folder, words).returncode in (2, 3)
    assert not (folder / "state").exists()


def test_a_result_that_nobody_can_read_is_a_failure(folder):
    (folder / "hooks").mkdir()
    request = json.dumps({"contract": "sre", "thread_id": "t", "payload": {
        "hook_event_name": "PreToolUse", "agent_name": "m", "tool_name": "Run", "tool_input": {}}})
    words = "dispatch --contract sre --hooks hooks"
    assert shell(folder, words, input=request).returncode == 0
    assert shell(folder, words + " >&-", input=request).returncode == 3
    assert shell(folder, words + " <&-").returncode == 3


@pytest.mark.parametrize("words", [
    "trace ''", "trace t --from ''", "why '' --call c", "why h --call ''", "why h --thread ''",
])
def test_an_empty_name_is_refused(folder, words):
    (folder / "state").mkdir()
    asked = shell(folder, words)
    assert asked.returncode == 2, asked.stderr
    assert "empty" in asked.stderr


def test_what_is_echoed_steers_no_terminal(folder):
    asked = shell(folder, "trace \"$(printf 'a\\033[31mb')\" --limit x")
    assert asked.returncode != 0
    assert "\033" not in asked.stderr
