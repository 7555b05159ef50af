"""What may not be read, or is not there, is told: never shown as an empty state."""
import json
import os
import pathlib
import subprocess

import pytest

from tests.integration.plant import BIN, hooktrail

READERS = [["status"], ["tail"], ["verify"], ["token", "list"], ["deadletter", "list"]]
NOBODY = 65534


def as_nobody(*args):
    """The command of a user who owns nothing, in a process that was root."""
    if os.getuid() != 0:
        pytest.skip("another user can only be played by root")
    answer = hooktrail(*args, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    if "Permission denied" in answer.stderr and answer.returncode == 126:
        pytest.skip("the program itself may not be run by another user")
    return answer


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "h.yaml"
    path.write_text("{}\n")
    return str(path)


@pytest.fixture
def open_folder(tmp_path):
    """A folder that everybody may enter, however pytest made those above."""
    for p in [tmp_path, *tmp_path.parents]:
        if p == pathlib.Path("/tmp"):
            break
        p.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_state_folder_that_is_not_there_is_told(command, config, tmp_path):
    gone = str(tmp_path / "gone")
    answer = hooktrail(*command, "--config", config, "--state", gone)
    assert answer.returncode == 3
    assert answer.stderr == (f"hooktrail {command[0]}: no state folder at {gone}; "
                             "is --state right?\n")
    assert answer.stdout == ""
    assert not os.path.exists(gone)


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_state_folder_that_is_a_file_is_told(command, config):
    answer = hooktrail(*command, "--config", config, "--state", config)
    assert answer.returncode == 3
    assert answer.stderr == f"hooktrail {command[0]}: state folder {config}: Not a directory\n"


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_state_folder_that_may_not_be_entered_is_told(command, config, open_folder):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    answer = as_nobody(*command, "--config", config, "--state", str(closed))
    assert answer.returncode == 3
    assert answer.stderr == (f"hooktrail {command[0]}: state folder {closed}: "
                             "Permission denied\n")


@pytest.mark.parametrize("command", READERS[:3], ids=" ".join)
def test_journals_that_may_not_be_listed_are_told(command, config, open_folder):
    state = open_folder / "s"
    state.mkdir()
    state.chmod(0o755)
    (state / "journals").mkdir(mode=0o700)
    answer = as_nobody(*command, "--config", config, "--state", str(state))
    assert answer.returncode == 3
    assert answer.stderr == (f"hooktrail {command[0]}: {state}/journals: Permission denied\n")


@pytest.mark.parametrize("folder", ["run", "sinks", "deadletters"])
def test_status_tells_what_else_it_may_not_read(folder, config, open_folder):
    state = open_folder / "s"
    state.mkdir()
    state.chmod(0o755)
    (state / folder).mkdir(mode=0o700)
    answer = as_nobody("status", "--config", config, "--state", str(state))
    assert answer.returncode == 3
    assert f"{state}/{folder}/" in answer.stderr and "Permission denied" in answer.stderr


def test_status_counts_the_dead_letters_that_are_there(config, tmp_path):
    state = tmp_path / "s"
    for folder in ("sinks", "deadletters"):
        (state / folder).mkdir(parents=True)
    (state / "sinks/sqlite.positions.json").write_text(
        '{"sink":"sqlite","configured":true,"positions":{},"state":"ok","error":"","dead":5}')
    (state / "deadletters/sqlite.ndjson").write_text("{}\n{}\n")
    answer = hooktrail("status", "--json", "--config", config, "--state", str(state))
    sink, = json.loads(answer.stdout)["sinks"]
    assert (sink["dead"], sink["dead_ever"]) == (2, 5)


def test_a_role_that_does_not_run_has_no_pid(config, tmp_path):
    answer = hooktrail("status", "--config", config, "--state", str(tmp_path))
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[1].split() == ["collect", "not", "running", "-"]


def test_a_sink_that_is_not_there_has_no_dead_letters_to_list(config, tmp_path):
    answer = hooktrail("deadletter", "list", "--sink", "nope", "--config", config, "--state",
                       str(tmp_path))
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == "hooktrail deadletter: there is no sink 'nope'\n"


def test_a_journal_that_was_renamed_is_told_what_it_is_called(config, tmp_path):
    (tmp_path / "copy").mkdir()
    answer = hooktrail("verify", str(tmp_path / "copy"), "--config", config)
    assert answer.returncode == 2
    assert "its name must be the journal's id" in answer.stderr


def at_terminal(columns, *args):
    """What a command prints on a terminal of so many columns."""
    command = f"stty cols {columns}; exec {BIN} {' '.join(args)}"
    answer = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True,
                            text=True, timeout=20, stdin=subprocess.DEVNULL, check=True,
                            env={**os.environ, "NO_COLOR": "1"})
    return answer.stdout.splitlines()


@pytest.mark.parametrize("command", ["config", "status"])
def test_a_narrow_terminal_gets_a_row_a_line(command, config, tmp_path):
    lines = [line for line in at_terminal(60, command, "--config", config, "--state", str(tmp_path))
             if not line.startswith("Read from ")]
    assert max(map(len, lines)) <= 60
    assert any("…" in line for line in lines) is (command == "config")
