"""What a hook inherits: our environment, without the credentials that are ship's; what it leaves."""
import contextlib
import json
import os
import pathlib
import subprocess

import pytest

from tests.integration.plant import Plant, hook, hooks, processes, request, wait_for

SLEEPS = f"71.{os.getpid()}"  # nobody else's
SECRET = "SECRET-TRAJECTORY"

SINKS = """sinks:
  sqlite: {}
  postgres: {dsn: "env:TEST_DSN"}
  kafka: {properties: {bootstrap.servers: "127.0.0.1:1", sasl.password: "env:TEST_PASSWORD"}}
"""


def test_a_hook_inherits_no_credential_of_a_sink(binary, tmp_path):
    looks = hooks(hook("env", "env | grep -c S3cret >&2; env | grep -c PLAIN >&2; exit 2", "*"))
    env = {"TEST_DSN": "host=127.0.0.1 port=1 password=S3cret", "TEST_PASSWORD": "S3cret", "TEST_PLAIN": "PLAIN"}
    with Plant(binary, tmp_path, looks, SINKS, env=env) as plant:
        pid = plant.start("collect").pid

        _, _, result = plant.dispatch(request())

        assert result["reason"].split() == ["0", "1"]
        assert b"S3cret" not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def files_below(folder):
    return [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files]


@pytest.fixture
def plant(binary, tmp_path):
    """Its hook says that it has started, and sleeps."""
    (tmp_path / "tmp").mkdir()
    slow = hooks(hook("slow", f"touch {tmp_path}/started; sleep {SLEEPS}", "*"))
    with Plant(binary, tmp_path, slow, env={"TMPDIR": str(tmp_path / "tmp")}) as p:
        yield p


def slow_request():
    return request(execution_summary=json.dumps({"turns": SECRET}))


def test_a_dispatch_that_is_told_to_stop_leaves_nothing(plant):
    dispatch = plant.command("dispatch", "--hooks", str(plant.hooks_file))
    p = subprocess.Popen(dispatch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plant.env)
    p.stdin.write(json.dumps(slow_request()).encode())
    p.stdin.close()
    wait_for((plant.dir / "started").exists)

    p.terminate()

    assert p.wait(20) == 128 + 15
    assert files_below(plant.dir / "tmp") == []
    assert not processes(f"sleep\0{SLEEPS}")


def test_a_trajectory_does_not_outlive_a_killed_collector(plant):
    plant.start("collect")
    with contextlib.closing(plant.begin_dispatch(slow_request())):
        wait_for((plant.dir / "started").exists)
        kept = files_below(plant.state / "work")
        plant.kill("collect")

    plant.start("collect")

    assert len(kept) == 1 and "SECRET" not in str(kept)
    assert files_below(plant.state / "work") == []
    assert not processes(f"sleep\0{SLEEPS}")
