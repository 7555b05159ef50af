"""`hooktrail check` says all of it: in order, counted, and what was probably meant."""
import json
import re

import pytest

from tests.integration.plant import ROOT, hooktrail

FAULTY = """kind: Hook
metadata: {name: a}
spec:
  eventType: Stop
  activationMode: always
  hook: {type: prompt, prompt: x, tmeout: 3}
activaton: 1
"""
PROMPT = """kind: Hook
metadata: {name: a}
spec:
  eventType: Stop
  activationMode: always
  hook: {type: prompt, prompt: x}
"""


@pytest.fixture
def check(tmp_path):
    def check(text, *args):
        path = tmp_path / "hooks.yaml"
        path.write_text(text)
        answer = hooktrail("check", "--hooks", path, *args)
        answer.stderr = answer.stderr.replace(str(path), "F")
        return answer
    return check


def test_faults_stand_by_line_and_are_counted(check):
    answer = check(FAULTY)
    assert answer.returncode == 1
    lines = [line.split(":")[1] for line in answer.stderr.splitlines()]
    assert lines == sorted(lines) and len(lines) == 3
    assert answer.stdout == "2 faults, 1 warning\n"


def test_a_key_that_nobody_knows_is_compared_with_those_that_are_known(check):
    answer = check(FAULTY)
    assert "spec.hook.tmeout: unknown key (did you mean 'timeout'?); known here: " in answer.stderr


def test_a_prompt_hook_is_told_to_have_no_runner(check):
    answer = check(PROMPT)
    assert answer.returncode == 0
    assert answer.stderr == (
        "F:6: warning: spec.hook.type: loaded and checked; this build has no runner for prompt "
        "hooks: an event that reaches it is recorded as an error\n")
    assert answer.stdout == "1 hook, 0 faults, 1 warning\n"


def test_a_file_without_a_hook_is_told(check):
    answer = check("# later\n")
    assert answer.returncode == 0
    assert answer.stderr == "F: warning: there is no hook in it\n"
    assert json.loads(check("# later\n", "--json").stdout)["hooks"] == 0


def test_a_file_that_is_not_there_is_named_once(check, tmp_path):
    answer = check("", "--hooks", str(tmp_path / "gone"), "--json")
    assert answer.returncode == 2  # --hooks twice
    answer = hooktrail("check", "--hooks", tmp_path / "gone")
    assert answer.returncode == 1
    assert answer.stderr == f"{tmp_path}/gone: error: No such file or directory\n"


def test_colour_is_for_whom_it_was_asked(check):
    assert "\033[31merror:\033[0m" in check(FAULTY, "--color", "always").stderr
    assert "\033" not in check(FAULTY).stderr


@pytest.mark.parametrize("key, words", [
    ("eventType", "Start PreToolUse PostToolUse Stop"), ("activationMode", "always onDemand"),
    ("type", "command prompt"),
])
def test_a_word_that_is_missing_is_told_with_all_it_may_be(check, key, words):
    answer = check("\n".join(re.sub(rf"\b{key}: \w+,?", "", line) for line in PROMPT.splitlines()))
    assert f"{key}: is missing; it must be one of: {words}" in answer.stderr


def test_the_manuals_example_is_a_hook_file_without_a_fault(check):
    page = (ROOT / "deploy/hooktrail-hooks.5").read_text()
    example = page.split(".SH EXAMPLE\n.nf\n")[1].split(".fi\n")[0].replace("\\-", "-")
    answer = check(example.replace("\\e", "\\"))
    assert (answer.returncode, answer.stderr) == (0, "")
