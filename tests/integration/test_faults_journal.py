"""A journal that somebody or something has changed, a disk that is full: what is not there is counted, and said."""
import json
import os
import time

from plant import Plant, read_journal, request, wait_for
from test_faults_disk import CONFIG, DOCUMENTS, PER_DISPATCH, Account, disk, use_up  # noqa: F401

STARTS_WITHIN_S = 8  # one wait for the hook_registry, and none for what a predecessor left


def counted(frames):
    """What gap records count, by cause."""
    return {(f.record["cause"], f.record["lost"]) for f in frames if f.type == "gap"}


# ---- A full disk ----------------------------------------------------------------------------------


def test_what_was_answered_late_and_died_with_its_process_is_counted(binary, tmp_path, disk):  # noqa: F811
    """On a full disk that holds records back, kill -9 twice: each record is stored, or counted, once."""
    config = CONFIG % (4096, "block", "continue", "fsync")
    with Plant(binary, tmp_path, DOCUMENTS, config, state=disk / "s") as plant:
        plant.start("collect")
        account = Account(plant)
        account.dispatch_until("stored", n=3)
        ballast = use_up(disk)
        account.dispatch_until("late", n=8)
        plant.kill("collect")
        os.truncate(ballast, ballast.stat().st_size - 64 * 1024)  # for all but a segment
        started = time.monotonic()
        plant.start("collect")
        assert time.monotonic() - started < STARTS_WITHIN_S
        account.dispatch_until("late", n=2)
        plant.kill("collect")
        ballast.unlink()
        plant.start("collect")
        account.dispatch_until("stored", n=2)
        assert plant.stop("collect") == 0

        registries = 3 - sum(f.type == "hook_registry" for f in plant.frames())  # it may have found room
        lost, causes = account.check(others=registries)
        assert lost == PER_DISPATCH * 10 + registries and causes == {"interrupted"}
        decisions = {f.record["final_decision"] for f in plant.frames() if f.type == "hook_evaluation"}
        assert "interrupted" not in decisions  # their hooks had ended
