"""SIGHUP: what can be taken is, the rest is named, and `status` shows what is in force."""
import pytest

from tests.integration.plant import Plant, hook, hooks, request, wait_for

ONE = hooks(hook("first", "true", "*"))
TWO = hooks(hook("first", "true", "*"), hook("second", "true", "*"))


@pytest.fixture
def plant(binary, tmp_path):
    with Plant(binary, tmp_path, ONE) as p:
        yield p
        assert [p.stop(role) for role in list(p.roles)] in ([], [0])


@pytest.fixture
def collect(plant):
    plant.configure("collect: {capture_payload: false}\n")
    plant.start("collect")
    wait_for((plant.state / "run/collect.json").exists)
    return plant


def reload(plant, role="collect"):
    """The lines that the log got from it."""
    before = len(plant.log())

    def settled():
        text = plant.log()[before:]
        ends = ("configuration reloaded", "configuration not taken", "restart of serve")
        return text if any(e in text for e in ends) else None

    plant.reload(role)
    return wait_for(settled)


def test_what_can_be_taken_is_taken(collect):
    collect.dispatch(request())
    collect.configure("collect: {capture_payload: true}\njournal: {keep_hours: 1, quota_mb: 100}\n")
    told = reload(collect)
    assert "need a restart" not in told
    collect.dispatch(request())
    captured = ["captured" in e["payload"] for e in collect.tail("hook_evaluation")]
    assert captured == [False, True]


def test_each_key_that_needs_a_restart_is_named_in_one_line_until_it_is_back(collect):
    collect.configure("collect: {workers: 3, queue: 7, on_unrecorded: deny}\n"
                  "journal: {segment_mb: 8}\nserve: {max_rows: 5}\n")
    told = [line for line in reload(collect).splitlines() if "restart" in line]
    assert len(told) == 1
    assert told[0].endswith('keys="collect.workers, collect.queue, journal.segment_mb"')
    assert " role=collect level=warn " in told[0]
    assert "collect.workers" in reload(collect)
    collect.configure("")
    assert "restart" not in reload(collect)


def test_status_shows_the_hook_sets_in_force_and_a_reload_that_was_refused(collect):
    before, = collect.status()["hook_sets"]
    assert (before["contract"], before["hooks"]) == ("sre", 1)
    assert "reload" not in collect.status()
    collect.hooks_file.write_text("kind: Hook\nspec: [\n")
    text = reload(collect)
    assert "what was in force stays" in text
    assert 'level=warn msg="configuration reloaded, but' in text
    told = wait_for(lambda: collect.status().get("reload"))
    assert collect.status()["hook_sets"] == [before]
    assert told["faults"] == 1 and told["error"].startswith(f"{collect.hooks_file}:")
    collect.hooks_file.write_text(TWO)
    reload(collect)
    after, = wait_for(lambda: [s for s in collect.status()["hook_sets"] if s["hooks"] == 2])
    assert after["digest"] != before["digest"] and after["loaded"] > before["loaded"]
    assert "error" not in collect.status()["reload"]


def test_what_is_in_force_is_told_only_while_it_is(collect):
    assert collect.stop("collect") == 0
    assert "hook_sets" not in collect.status()
    assert not (collect.state / "run/collect.json").exists()


def test_serve_names_what_it_does_not_take(plant):
    listen = f'listen: ["unix:{plant.state}/serve.sock"]'
    plant.state.mkdir()
    plant.configure(f"serve: {{{listen}}}\n")
    plant.start("serve")
    plant.configure(f"serve: {{{listen}, max_rows: 5}}\ncollect: {{workers: 3}}\n"
                    "sinks: {sqlite: {}, kafka: {properties: {bootstrap.servers: k}}}\n")
    assert 'role=serve level=warn msg="changed keys that need a restart of serve" ' \
           'keys="serve.max_rows"' in reload(plant, "serve")


def test_a_collector_without_a_contract_says_so(plant):
    plant.config_file.write_text("{}\n")
    plant.start("collect")
    assert "no contract is configured" in plant.log()
