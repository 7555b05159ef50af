"""The front: finding commands, and `run`, the supervisor of the three roles."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

from tests.integration.plant import BIN, ROOT, Plant, hooktrail, wait_for

ROLES = {"collect", "ship", "serve"}


def children(pid):
    """{role: pid} of a supervisor's children."""
    found = {}
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if len(words) > 1 and words[-2] in ROLES:
            found[words[-2]] = int(child)
    return found


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def plant(binary, tmp_path):
    """A supervisor, and its three roles."""
    with Plant(binary, tmp_path, "", 'serve: {listen: ["tcp:127.0.0.1:0"]}\n') as p:
        supervisor = p.start("run")
        wait_for(lambda: set(children(supervisor.pid)) == ROLES)
        yield p


def test_the_front_links_libc_alone():
    libraries = subprocess.run(["ldd", BIN], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].split("/")[-1] for line in libraries.splitlines()}
    assert not {n for n in names if not re.match(r"linux-vdso|libc\.so|ld-linux", n)}


def test_every_command_of_the_help_explains_itself():
    commands = re.findall(r"^  ([a-z]+) +[A-Z]", hooktrail("help").stdout, re.M)
    assert len(commands) > 15
    for command in commands:
        answer = hooktrail(command, "--help")
        assert answer.returncode == 0, command
        assert answer.stdout.startswith("Usage: hooktrail"), command
        assert hooktrail("help", command).stdout == answer.stdout


@pytest.mark.parametrize("args, says", [
    (["vesion"], "did you mean 'version'?"),
    (["zzzzzz"], "see 'hooktrail help'"),
    ([], "no command"),
    (["config", "--bogus"], "unknown option '--bogus'"),
    (["config", "--get"], "--get needs a value"),
    (["--state"], "--state needs a value"),
    (["--config"], "--config needs a value"),
    (["--state", "x"], "no command"),
    (["--jsno", "status"], "unknown option '--jsno'; did you mean '--json'?"),
    (["status", "--jsno"], "unknown option '--jsno'; did you mean '--json'?"),
    (["--confg", "x", "status"], "unknown option '--confg'; did you mean '--config'?"),
    (["--jsno"], "unknown option '--jsno'; did you mean '--json'?"),
    (["--jsno", "run"], "unknown option '--jsno'; did you mean '--json'?"),
    (["config", "--ge", "state"], "unknown option '--ge'; did you mean '--get'?"),
    (["check", "--hooks", "a", "--hooks=b"], "--hooks is given twice"),
    (["tail", "-xy"], "tail: unknown option '-x'"),
    (["tail", "-n5x"], "--lines takes a number from 0 to 10000, not '5x'"),
    (["tail", "--follow=5"], "tail: --follow takes no value"),
    (["--state", "a", "status", "--state", "b"], "--state is given twice"),
    (["--color=blue", "run"], "--color takes auto, always or never"),
    (["help", "trace", "extra"], "explains one command, not 'extra' too"),
    (["run", "extra"], "run: takes no operand, not 'extra'"),
    (["--json", "run"], "run: --json means nothing here"),
    (["version", "extra"], "version: takes no operand, not 'extra'"),
    (["version", "--jso"], "unknown option '--jso'; did you mean '--json'?"),
    (["status", "extra"], "takes no operand, not 'extra'"),
    (["why", "h", "--call", "a", "--thread", "b"], "--thread does not go with it"),
    (["config", "--color", "blue"], "--color takes auto, always or never"),
    (["config", "--config", "/nonexistent"], "/nonexistent: error: cannot be read"),
    (["run", "--bogus"], "unknown option '--bogus'"),
    (["completion", "tcsh"], "bash, zsh or fish"),
])
def test_what_is_not_meant_is_refused_in_one_line(args, says):
    answer = hooktrail(*args)
    assert answer.returncode == 2
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""


GLOBAL_OPTIONS = {"--config", "--state", "--json", "--color", "--help"}
COMMANDS = ("run trace why status tail check dispatch verify deadletter token config collect ship "
            "serve").split()


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - GLOBAL_OPTIONS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_completion_and_man_page_know_the_same_options(command):
    own = options_in(hooktrail(command, "--help").stdout)
    cases = re.findall(rf'^    {command}\) words="(.*)" ;;$', hooktrail("completion", "bash").stdout, re.M)
    assert options_in(" ".join(cases)) == own
    fish = re.findall(rf"_from {command}' -l ([a-z-]+)", hooktrail("completion", "fish").stdout)
    assert {f"--{name}" for name in fish} == own

    page = (ROOT / "deploy/hooktrail.1").read_text().replace("\\\n", "").replace("\\-", "-")
    page = re.sub(r"\\f.", "", page)
    heads = [head for head in re.findall(r"^\.TP\n(.*)", page, re.M)
             if re.search(rf"(?<![-\w]){command}(?![-\w])", head)]
    assert len(heads) == 1
    if command not in ("collect", "serve"):  # they share a line with ship
        assert options_in(heads[0]) == own


SUBCOMMANDS = {"token": ["create"], "deadletter": ["list"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_of_the_help_are_those_that_are_taken(command):
    """Options are parsed in order: an unknown one before --bogus would be the one that is named."""
    own = options_in(hooktrail(command, "--help").stdout)
    given = [word for option in sorted(own) for word in (option, "1")]
    answer = hooktrail(command, *SUBCOMMANDS.get(command, []), *given, "--bogus")
    assert "unknown option '--bogus'" in answer.stderr


def test_fish_reads_its_completions():
    for line in hooktrail("completion", "fish").stdout.splitlines():
        assert re.sub(r"'(?:[^'\\]|\\.)*'", "", line).count("'") == 0, line


@pytest.mark.parametrize("args, says", [
    (["-V"], "hooktrail 0.1.0\n"),
    (["--version"], "hooktrail 0.1.0\n"),
    (["version"], "hooktrail 0.1.0\n"),
    (["version", "--json"], '{"version":"0.1.0"}\n'),
    (["--json", "version"], '{"version":"0.1.0"}\n'),
    (["config", "--get", "serve.max_rows", "--json"], "10000\n"),
    (["config", "--get", "serve.max_rows"], "10000\n"),
])
def test_what_is_meant_is_answered(args, says):
    answer = hooktrail(*args)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, says, "")


def test_run_starts_all_and_ends_all(plant):
    pids = children(plant.roles["run"].pid)
    assert plant.stop("run") == 0
    assert all(gone(pid) for pid in pids.values())
    assert "hooktrail" in plant.log().splitlines()[0]


def test_a_role_that_is_killed_comes_back(plant):
    supervisor = plant.roles["run"].pid
    before = children(supervisor)
    os.kill(before["collect"], signal.SIGKILL)
    after = wait_for(lambda: children(supervisor).get("collect") not in (None, before["collect"])
                     and children(supervisor))
    assert after["ship"] == before["ship"] and after["serve"] == before["serve"]
    assert 'child="collect" signal=9' in plant.log()


def test_when_the_supervisor_is_killed_nothing_goes_on(plant):
    pids = children(plant.roles["run"].pid)
    plant.kill("run")
    wait_for(lambda: all(gone(pid) for pid in pids.values()))


def test_a_second_one_on_the_same_state_is_refused(plant):
    answer = plant.run("run")
    assert answer.returncode == 2
    assert f"already running on {plant.state}, as process {plant.roles['run'].pid}" in answer.stderr


def test_a_faulty_configuration_starts_nothing(tmp_path):
    (tmp_path / "h.yaml").write_text("collect: {workers: 0}\n")
    answer = hooktrail("run", "--config", str(tmp_path / "h.yaml"), "--state", str(tmp_path / "s"))
    assert answer.returncode == 2
    assert "h.yaml:1: error: collect.workers" in answer.stderr
    assert not (tmp_path / "s").exists()


def completed(words):
    """What bash offers behind these words."""
    line = " ".join(words)
    script = f"""
eval "$({BIN} completion bash)"
COMP_WORDS=({line} "")
COMP_CWORD={len(words)}
_hooktrail
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    answer = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


@pytest.mark.parametrize("words, offers", [
    (["hooktrail", "deadletter"], {"list", "show", "retry", "drop", "--all", "--sink"}),
    (["hooktrail", "token"], {"create", "list", "revoke", "--scopes"}),
    (["hooktrail", "tail"], {"--follow", "--lines", "--thread", "--json"}),
    (["hooktrail", "ship", "--source"], {"journals", "kafka"}),
])
def test_completion_offers_what_a_command_takes(words, offers):
    assert offers <= completed(words)


def test_completion_offers_the_contracts_that_there_are():
    known = hooktrail("check", "--hooks", "x", "--contract", "zzz").stderr
    names = re.search(r"known: ([^;]+);", known)[1].replace(",", " ").split()
    assert completed(["hooktrail", "check", "--contract"]) == set(names)


def test_tail_takes_its_number_joined_too(tmp_path):
    assert hooktrail("--state", tmp_path, "tail", "-n5").returncode == 0


def test_status_tells_a_folder_of_other_things_from_a_state_to_come(tmp_path):
    assert hooktrail("--state", tmp_path, "status").returncode == 0
    (tmp_path / "letter.txt").write_text("of somebody")
    answer = hooktrail("--state", tmp_path, "status")
    assert answer.returncode == 3 and f"{tmp_path} is no state folder" in answer.stderr
