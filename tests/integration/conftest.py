"""What every integration test uses: the binaries, and servers that are started once."""
import os
import pathlib
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from tests.integration.plant import BIN, ROOT  # noqa: E402
from tests.servers.kafka import Kafka, why_not as no_kafka  # noqa: E402
from tests.servers.postgres import Postgres, why_not as no_postgres  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "chaos: the long fault tests of `make chaos`")


@pytest.fixture(scope="session")
def binary():
    """The front, build/hooktrail."""
    return BIN


@pytest.fixture(scope="session")
def live(binary):
    """A test program under tests/live, by name; of the same build."""
    folder = os.path.join(os.path.dirname(os.path.abspath(binary)), "obj", "tests", "live")
    return lambda name: os.path.join(folder, name)


@pytest.fixture(scope="session")
def clock(tmp_path_factory):
    """A wall clock that a test sets: environment, and a function that takes seconds."""
    folder = tmp_path_factory.mktemp("clock")
    library, shift = folder / "clock_shift.so", folder / "shift"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                    pathlib.Path(__file__).with_name("clock_shift.c")], check=True)
    shift.write_bytes(struct.pack("<q", 0))

    def set_back(seconds):
        with open(shift, "r+b") as f:
            f.write(struct.pack("<q", -seconds))

    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}, set_back


@pytest.fixture(scope="session")
def postgres():
    """A private PostgreSQL; tests make databases of their own on it."""
    if reason := no_postgres():
        pytest.skip(reason)
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def kafka():
    """A private Kafka of one broker; tests use topic prefixes of their own."""
    if reason := no_kafka():
        pytest.skip(reason)
    with Kafka(guarded=True) as cluster:
        yield cluster
