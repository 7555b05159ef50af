"""`make run` and `hooktrail run` end as a person expects: Ctrl-C is one wish, and nothing is lost."""
import contextlib
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from tests.integration.plant import ROOT, Plant, hook, hooks, hooktrail, request, wait_for


class Terminal:
    """A command at a terminal of its own, and what it printed there."""

    def __init__(self, command, **env):
        self.master, end = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=end, stdout=end, stderr=end, cwd=ROOT, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0),  # TIOCSCTTY
            env={**os.environ, "TERM": "xterm", **env})
        os.close(end)
        os.set_blocking(self.master, False)
        self.text = ""

    def read(self):
        try:
            self.text += os.read(self.master, 1 << 16).decode(errors="replace")
        except (BlockingIOError, OSError):
            pass
        return self.text

    def type(self, keys):
        os.write(self.master, keys)

    def end(self, seconds=20):
        def ended():
            self.read()  # a terminal that nobody reads would stop it
            return self.process.poll() is not None
        wait_for(ended, seconds)
        self.read()
        return self.process.returncode


@pytest.fixture
def terminals():
    opened = []

    def open_one(command, **env):
        opened.append(Terminal(command, **env))
        return opened[-1]
    yield open_one
    for t in opened:
        if t.process.poll() is None:
            t.process.terminate()
            t.end()
        os.close(t.master)


@pytest.fixture
def plant(binary, tmp_path):
    """A supervisor whose one hook takes its time, and tells when it begins and ends."""
    slow = hooks(hook("slow", f"echo begun >> {tmp_path}/told; sleep 1.5; echo done >> {tmp_path}/told", "*"))
    with Plant(binary, tmp_path, slow, f'serve: {{listen: ["unix:{tmp_path}/state/serve.sock"]}}\n') as p:
        p.start("run")
        wait_for(lambda: p.answers("serve.sock"))
        yield p


@contextlib.contextmanager
def running_chain(plant):
    """A dispatch whose hook runs."""
    with contextlib.closing(plant.begin_dispatch(request())) as asked:
        wait_for((plant.dir / "told").exists)
        yield asked


def lags(plant):
    return [s["lag"] for s in plant.status()["sinks"]]


def test_two_signals_at_once_are_one_wish_and_a_running_chain_is_finished(plant):
    supervisor = plant.roles["run"]
    with running_chain(plant) as asked:
        supervisor.send_signal(signal.SIGINT)
        time.sleep(0.1)
        supervisor.send_signal(signal.SIGTERM)
        assert asked.answer()[2]["final_decision"] == "pass"
    assert supervisor.wait(20) == 0
    assert (plant.dir / "told").read_text() == "begun\ndone\n"
    assert lags(plant) == [0]
    assert "verified" in plant.run("verify").stdout
    trace = plant.run("trace", "t-1")
    assert trace.returncode == 0 and trace.stderr == ""


def test_a_second_signal_later_does_not_wait(plant):
    supervisor = plant.roles["run"]
    with running_chain(plant):
        asked_at = time.monotonic()
        supervisor.send_signal(signal.SIGINT)
        time.sleep(1.1)
        supervisor.send_signal(signal.SIGINT)
        assert supervisor.wait(20) == 0
    assert time.monotonic() - asked_at < 1.4
    assert (plant.dir / "told").read_text() == "begun\n"


def test_a_clean_stop_leaves_nothing_to_ship(plant):
    assert plant.stop("run") == 0
    assert lags(plant) == [0]


def test_log_lines_tell_the_time_and_the_role(plant):
    plant.stop("run")
    lines = [line for line in plant.log().splitlines() if "level=" in line]
    told = {re.match(r"time=\d{4}-\d\d-\d\dT[\d:.]+Z role=(\w+) level=", line)[1]
            for line in lines}
    assert told == {"collect", "ship", "serve", "run"}


def test_ctrl_c_of_the_sample_is_graceful(terminals, tmp_path):
    t = terminals(["make", "run"], SAMPLE_FOLDER=str(tmp_path), MAKEFLAGS="")
    wait_for(lambda: re.search(r" 3/\d+ ", t.read()), 120)
    t.type(b"\x03")
    assert t.end() in (0, -signal.SIGINT, 130)
    assert "Ending: what was accepted is stored first" in t.text
    assert "Traceback" not in t.text and "Error" not in t.text
    status = hooktrail("status", "--config", str(tmp_path / "sample.yaml"))
    assert status.returncode == 0 and status.stdout.count("not running") == 3
    assert "signal=9" not in (tmp_path / "sample.log").read_text()


def test_a_second_sample_ends_with_a_sentence_when_the_first_is_ended(terminals, tmp_path):
    first = terminals(["deploy/sample/run.sh"], SAMPLE_FOLDER=str(tmp_path))
    wait_for(lambda: re.search(r" 2/\d+ ", first.read()), 120)
    second = terminals(["deploy/sample/run.sh"], SAMPLE_FOLDER=str(tmp_path), NO_COLOR="1")
    wait_for(lambda: re.search(r" 2/\d+ ", second.read()), 120)
    first.type(b"\x03")
    assert first.end() == 0
    assert second.end() == 3
    assert "\033[1m" in first.text and "\033[" not in second.text
    assert "the collector" in second.text
    assert "The session was not played to its end" in second.text


@pytest.mark.parametrize("args, code, says", [
    (["--help"], 0, "usage: run.sh [--once]"),
    (["--frist"], 2, "run.sh: unknown option '--frist'"),
])
def test_the_sample_explains_itself(args, code, says):
    answer = subprocess.run([ROOT / "deploy/sample/run.sh", *args], capture_output=True, text=True)
    assert answer.returncode == code
    assert says in answer.stdout + answer.stderr
