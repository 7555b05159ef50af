"""A journal that somebody or something has changed, a disk that is full: what is not there is counted, and said."""
import json
import os
import time

import pytest

from tests.integration.plant import Plant, read_journal, request, wait_for
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


@pytest.mark.parametrize("policy", ["block", "drop_new"])
def test_a_full_disk_is_said_once_and_so_is_its_end(binary, tmp_path, disk, policy):  # noqa: F811
    config = CONFIG % (4096, policy, "continue", "fsync")

    def refusing(plant):
        return b"\nhooktrail_journal_refusing 1" in plant.ask("GET", "/metrics")[2]

    with Plant(binary, tmp_path, DOCUMENTS, config, state=disk / "s") as plant:
        plant.start("collect")
        account = Account(plant)
        account.dispatch_until("stored")
        assert plant.ask("GET", "/readyz")[0] == 200 and not refusing(plant)
        ballast = use_up(disk)
        account.dispatch_until("late", "lost", n=5)
        status, _, problem = plant.ask("GET", "/readyz")
        assert status == 503 and "disk_full" in str(problem) and refusing(plant)
        ballast.unlink()
        account.dispatch_until("stored", n=3)
        assert plant.ask("GET", "/readyz")[0] == 200 and not refusing(plant)
        assert plant.stop("collect") == 0

        lost, _ = account.check()
        said = [line for line in plant.log().splitlines() if "journal " in line]
        assert len(said) == 2, said
        assert 'cause="disk_full"' in said[0] and f'when_full="{policy}"' in said[0]
        assert f"lost={lost}" in said[1]


# ---- Files that are gone --------------------------------------------------------------------------


def states(plant):
    done = plant.run("verify", "--json")
    return {j["journal"]: j["state"] for j in json.loads(done.stdout)["journals"]}


def test_a_journal_whose_segment_was_deleted_is_a_counted_loss(binary, tmp_path):
    with Plant(binary, tmp_path, DOCUMENTS) as plant:
        plant.start("collect")
        for i in range(10):
            plant.dispatch(request("Passes", f"t-{i}"))
        plant.stop("collect")
        journal, = plant.journals()
        last = max(f.seq for f in plant.frames())
        (journal / f"{1:020}.seg").unlink()
        assert states(plant) == {journal.name: "broken"}

        plant.start("collect")
        assert "segments of the journal are missing" in plant.log()
        assert journal.exists()
        plant.dispatch(request("Passes", "t-after"))
        plant.stop("collect")
        second, = [j for j in plant.journals() if j != journal]
        assert counted(read_journal(second)) == {("missing", last)}
        assert states(plant) == {second.name: "incomplete"}
        plant.ship_once()
        assert plant.query("SELECT count(*) FROM hook_evaluation") == [(1,)]
        gaps = [json.loads(body) for body, in plant.query("SELECT body FROM audit_record WHERE type = 'gap'")]
        assert [(g["cause"], g["lost"]) for g in gaps] == [("missing", last)]


def test_the_first_of_several_segments_deleted_unshipped_is_a_loss_and_no_retirement(binary, tmp_path):
    config = "journal: {segment_mb: 1}\ncollect: {capture_payload: true}\n"
    with Plant(binary, tmp_path, DOCUMENTS, config) as plant:
        plant.start("collect")
        (journal,), n = plant.journals(), 0
        while len(segments := sorted(journal.glob("*.seg"))) < 3:
            plant.dispatch(request("Passes", f"t-{n}", tool_input={"text": "word " * 8000}))
            n += 1
        plant.stop("collect")
        segments[0].unlink()
        second = int(segments[1].stem)
        plant.start("collect")
        assert "segments of the journal are missing" in plant.log()
        plant.stop("collect")
        assert states(plant) == {journal.name: "broken"}
        plant.ship_once()
        plant.ship_once()  # its own journal, too
        gaps = [json.loads(body) for body, in plant.query("SELECT body FROM audit_record WHERE type = 'gap'")]
        assert [(g["cause"], g["lost"]) for g in gaps] == [("damage", second - 1)]


def test_what_is_no_file_hangs_nobody_and_is_no_success(binary, tmp_path):
    with Plant(binary, tmp_path, DOCUMENTS) as plant:
        plant.start("collect")
        plant.dispatch(request("Passes"))
        plant.stop("collect")
        segment, = plant.journals()[0].glob("*.seg")
        segment.unlink()
        os.mkfifo(segment)
        assert plant.run("verify", timeout=10).returncode == 3
        shipped = plant.run("ship", "--once", timeout=20)
        assert shipped.returncode == 3 and "cannot be read" in shipped.stderr, shipped
        plant.start("collect")
        plant.dispatch(request("Passes", "t-after"))
        assert plant.stop("collect") == 0
        assert plant.run("ship", "--once", timeout=20).returncode == 3  # all else is delivered
        assert plant.query("SELECT count(*) FROM hook_evaluation") == [(1,)]


def test_a_mark_that_is_cut_kills_neither_collect_nor_ship(binary, tmp_path):
    with Plant(binary, tmp_path, DOCUMENTS) as plant:
        plant.start("collect")
        ship = plant.start("ship")
        for n in range(20):
            assert plant.dispatch(request("Passes", f"t-{n}"))[1]["Hooktrail-Recorded"] == "stored"
            if n % 5 == 2:
                os.truncate(plant.journals()[0] / "mark", 0)
        wait_for(lambda: plant.query("SELECT count(*) FROM hook_evaluation") == [(20,)])
        assert ship.poll() is None
        assert plant.stop("ship") == 0 and plant.stop("collect") == 0
        ok, said = plant.verified()
        assert ok, said


# ---- Keys -----------------------------------------------------------------------------------------


def test_a_lost_key_is_said_and_followed_by_a_journal_with_another_one(binary, tmp_path):
    with Plant(binary, tmp_path, DOCUMENTS) as plant:
        plant.start("collect")
        plant.dispatch(request("Passes"))
        plant.stop("collect")
        (plant.state / "keys" / "collect.key").unlink()
        for _ in range(2):
            plant.start("collect")
            plant.dispatch(request("Passes"))
            plant.stop("collect")
        ok, said = plant.verified()
        assert ok, said
        assert len(plant.journals()) == 2
        assert plant.log().count("is lost, another one signs") == 1
        admins = [f.record for f in plant.frames() if f.type == "admin" and f.record["action"] == "key_lost"]
        keys = {k.stem for k in (plant.state / "keys").glob("*.pub")}
        assert len(admins) == 1 and admins[0]["details"]["key_id"] in keys and len(keys) == 2
