"""What becomes of a command whose answer cannot be written, and of questions that are empty."""
import json
import os
import subprocess

import pytest

from tests.integration.plant import BIN, request


def shell(folder, words, **more):
    return subprocess.run(["sh", "-c", f'"$0" --config c.yaml --state state {words}', BIN], cwd=folder,
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
    words, body = "dispatch --contract sre --hooks hooks", json.dumps(request())
    assert shell(folder, words, input=body).returncode == 0
    assert shell(folder, words + " >&-", input=body).returncode == 3
    assert shell(folder, words + " <&-").returncode == 3


def test_a_bad_answer_that_nobody_can_read_is_a_failure_too(folder):
    (folder / "state/run").mkdir(parents=True)
    (folder / "state/run/ship.pid").write_text("999999999\n")  # of a role that died
    assert shell(folder, "status").returncode == 1
    assert shell(folder, "status >/dev/full").returncode == 3


def test_a_number_that_is_another_program_s_by_now_is_no_role(folder):
    (folder / "state/run").mkdir(parents=True)
    (folder / "state/run/collect.pid").write_text(f"{os.getpid()}\n")
    status = json.loads(shell(folder, "status --json").stdout)
    assert status["roles"][0] == {"role": "collect", "state": "died"}


def test_a_supervisor_without_stdout_says_why_it_ends(folder):
    ended = shell(folder, "run >&-")
    assert ended.returncode == 3
    assert ended.stderr == "hooktrail run: stdout: Bad file descriptor\n"


def test_a_journal_that_cannot_be_read_is_no_success_of_tail(folder):
    assert shell(folder, "token create ui --scopes query").returncode == 0
    segment, = (folder / "state/journals").rglob("*.seg")
    bytes_before = segment.read_bytes()
    segment.unlink()
    segment.mkdir()
    tail = shell(folder, "tail")
    assert tail.returncode == 3
    assert str(segment.name) in tail.stderr
    segment.rmdir()
    segment.write_bytes(bytes_before)
    assert shell(folder, "tail").returncode == 0


def test_a_role_makes_its_state_folder_and_those_above_it(folder):
    made = subprocess.run([BIN, "--config", "c.yaml", "--state", "a/b/state", "ship", "--once"], cwd=folder,
                          capture_output=True, text=True, timeout=30, check=False)
    assert made.returncode == 0, made.stderr
    assert (folder / "a/b/state").stat().st_mode & 0o777 == 0o750


def test_a_fault_of_a_hook_steers_no_terminal(folder):
    (folder / "hooks.yaml").write_text('metadata: {name: "a\\e[31mb"}\n')
    for words in ("dispatch --contract sre --hooks hooks.yaml", "check --hooks hooks.yaml"):
        answer = shell(folder, words, input="{}")
        assert answer.returncode in (1, 2)
        assert "\033" not in answer.stderr and "\\x1b[31mb" in answer.stderr


@pytest.mark.parametrize("words", [
    "trace ''", "trace t --from ''", "why '' --call c", "why h --call ''", "why h --thread ''",
])
def test_an_empty_name_is_refused(folder, words):
    (folder / "state").mkdir()
    asked = shell(folder, words)
    assert asked.returncode == 2, asked.stderr
    assert "empty" in asked.stderr


@pytest.mark.parametrize("words", ["token ID", "token revoke ID", "trace t --from ID", "check --hooks ID"])
def test_what_is_echoed_steers_no_terminal(folder, words):
    (folder / "state").mkdir()
    asked = shell(folder, words.replace("ID", "\"$(printf 'a\\033[31mb')\""))
    assert asked.returncode != 0
    assert "\033" not in asked.stderr + asked.stdout
    if words != "trace t --from ID":  # without a store it goes no further
        assert "\\x1b[31mb" in asked.stderr + asked.stdout


def start_collect(folder):
    role = subprocess.Popen([BIN, "--config", "c.yaml", "--state", "state", "collect"], cwd=folder,
                            stderr=subprocess.PIPE, text=True)
    lines = []
    for line in role.stderr:
        lines.append(line)
        if 'msg="collecting"' in line:
            break
    role.terminate()
    role.communicate(timeout=20)
    return role.returncode, "".join(lines)


@pytest.mark.parametrize("mode, told", [(0o777, True), (0o720, True), (0o755, False), (0o700, False)])
def test_a_state_folder_that_others_may_write_to_is_told(folder, mode, told):
    (folder / "state").mkdir()
    (folder / "state").chmod(mode)
    code, log = start_collect(folder)
    assert code == 0, log
    assert ("others may write to the state folder" in log) == told


@pytest.mark.parametrize("start", [start_collect, lambda f: shell(f, "ship --once"),
                                   lambda f: shell(f, "token create me --scopes query")],
                         ids=["collect", "ship", "token"])
def test_a_new_state_folder_is_nobody_elses(folder, start):
    start(folder)
    assert oct((folder / "state").stat().st_mode & 0o777) == "0o750"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives the folder to another user")
def test_a_state_folder_of_another_user_is_told(folder):
    (folder / "state").mkdir()
    os.chown(folder / "state", 12345, -1)
    code, log = start_collect(folder)
    assert code == 0, log
    assert "another user's" in log and "uid=12345" in log


def test_keys_that_others_may_replace_are_not_used(folder):
    (folder / "state" / "keys").mkdir(parents=True)
    (folder / "state" / "keys").chmod(0o777)
    code, log = start_collect(folder)
    assert code != 0
    assert "others may write there" in log


@pytest.mark.parametrize("sources, faulty", [('[""]', True), ('["ui", ""]', True), ('["ui"]', False)])
def test_a_source_without_a_name_is_a_fault(folder, sources, faulty):
    (folder / "hooks.yaml").write_text(f"""metadata: {{name: greet}}
spec:
  eventType: Start
  sources: {sources}
  hook: {{type: command, script: "exit 0"}}
""")
    checked = shell(folder, "check --contract sre --hooks hooks.yaml")
    said = checked.stdout + checked.stderr
    assert ("is empty" in said) == faulty, said
