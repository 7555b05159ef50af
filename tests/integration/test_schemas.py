"""Every record that the commands write fits its JSON Schema, and each schema refuses what is none."""
import glob
import json
import os
import re
import subprocess

import jsonschema
import pytest

from tests.integration.plant import ROOT, Plant

FOLDER = os.path.join(ROOT, "collector", "record", "schemas")
SCHEMAS = {os.path.basename(f)[:-5]: json.load(open(f)) for f in glob.glob(os.path.join(FOLDER, "*.json"))}
CASES = sorted(glob.glob(os.path.join(ROOT, "tests", "contract", "cases", "sre", "*.json")))
ID = "018f0000-0000-7000-8000-000000000001"
HEAD = {"schema": 1, "id": ID, "collector": "m1", "time": "2026-11-30T14:22:45.000001Z"}


def validate(record):
    schema = SCHEMAS[record["type"]]
    jsonschema.validators.validator_for(schema)(schema).validate(record)


def test_there_is_a_schema_for_each_type_and_each_is_valid():
    assert set(SCHEMAS) == {"hook_evaluation", "hook_execution", "tool_execution", "hook_registry",
                            "gap", "checkpoint", "admin"}
    for schema in SCHEMAS.values():
        jsonschema.validators.validator_for(schema).check_schema(schema)


def hook(name, script="true", **more):
    return {"api_version": "azuresre.ai/v2", "kind": "Hook", "metadata": {"name": name, **more.pop("metadata", {})},
            "spec": {"eventType": "PreToolUse", "activationMode": "always", "hook": {
                "type": "command", "matcher": more.pop("matcher", "*"), "script": f"#!/bin/bash\n{script}\n", **more}}}


def records_of(binary, tmp_path, hooks, request):
    path, record = tmp_path / "hooks.yaml", tmp_path / "record"
    path.write_text("".join("---\n" + json.dumps(h) + "\n" for h in hooks))
    run = subprocess.run([binary, "dispatch", "--hooks", path, "--record", record], input=json.dumps(request),
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in record.read_text().splitlines()]


def tool_request(**payload):
    return {"contract": "sre", "thread_id": "T", "payload": {
        "hook_event_name": "PreToolUse", "agent_name": "main", "current_turn": 1, "max_turns": 9,
        "execution_summary": None, "tool_name": "Bash", "tool_input": {"command": "TOKEN=abc123 ls"}, **payload}}


def test_records_of_a_dispatch_fit(binary, tmp_path):
    hooks = [hook("passes"), hook("misses", matcher="Write"), hook("fails", "echo why >&2; exit 7"),
             hook("is-slow", "sleep 5", timeout=1), hook("dies", "kill -9 $$"),
             hook("denies", "echo '" + "no " * 200 + "' >&2; exit 2"), hook("comes-too-late")]
    records = records_of(binary, tmp_path, hooks, tool_request())
    for record in records:
        validate(record)
    evaluation = next(r for r in records if r["type"] == "hook_evaluation")
    assert len(evaluation["hooks"]) == len(hooks)
    assert evaluation["hooks"][5]["reason_truncated"]


@pytest.mark.parametrize("case", [c for c in CASES if "request" in open(c).read()][::6], ids=os.path.basename)
def test_records_of_vectors_fit(binary, tmp_path, case):
    vector = json.load(open(case))
    if not vector.get("request") or "refused" in vector or not vector.get("hooks") or vector.get("env"):
        pytest.skip("no request that is dispatched")
    text = json.dumps(vector["hooks"]).replace("@DIR@", str(tmp_path))
    for record in records_of(binary, tmp_path, json.loads(text), vector["request"]):
        validate(record)


def journalled(state):
    """The records in the journal's segments, found by how each begins."""
    decoder = json.JSONDecoder()
    for segment in sorted(state.glob("journals/collect/*/*.seg")):
        data = segment.read_bytes().decode("latin-1")
        for found in re.finditer(r'\{"type":"', data):
            yield decoder.raw_decode(data, found.start())[0]


def test_records_of_a_collector_fit(binary, tmp_path):
    with Plant(binary, tmp_path, json.dumps(hook("passes"))) as plant:
        plant.start("collect")
        plant.dispatch(tool_request())
        plant.stop("collect")
    records = list(journalled(plant.state))
    for record in records:
        validate(record)
    assert {"hook_registry", "hook_evaluation", "tool_execution", "checkpoint"} <= {r["type"] for r in records}, plant.log()
    tool = [r for r in records if r["type"] == "tool_execution"]
    assert [(t["phase"], t["tool_input"]) for t in tool] == [("start", {"command": "TOKEN=[redacted] ls"})]


GOOD = [
    {"type": "gap", **HEAD, "lost": 7, "cause": "io", "first_time": HEAD["time"], "last_time": HEAD["time"]},
    {"type": "gap", **HEAD, "cause": "unclean_boot"},
    {"type": "admin", **HEAD, "action": "reload", "actor": "uid 0", "details": {"hooks": 2}},
    {"type": "hook_registry", **HEAD, "contract": "sre", "config_digest": "a" * 64, "part": 0, "parts": 1, "hooks": []},
    {"type": "tool_execution", **HEAD, "contract": "sre", "phase": "end", "tool_output": None, "tool_succeeded": False},
    {"type": "hook_execution", **{**HEAD, "id": ID + ".3"}, "evaluation_id": ID, "contract": "sre", "child": False,
     "blocking": True, "ordinal": 3, "hook_name": "h", "decision": "deny", "queue_us": 0, "duration_us": 5,
     "stdout_bytes": 0},
    {"type": "checkpoint", **HEAD, "journal": ID, "first_seq": 1, "last_seq": 9, "root": "a" * 64, "boot_id": ID,
     "key_id": "ab12", "signature": "c" * 128},
]


@pytest.mark.parametrize("record", GOOD, ids=lambda r: r["type"])
def test_a_record_fits_and_not_with_a_key_too_many_or_too_few(record):
    validate(record)
    for worse in ({**record, "news": 1}, {**record, "schema": 2}, {**record, "id": None},
                  {k: v for k, v in record.items() if k != "time"}):
        with pytest.raises(jsonschema.ValidationError):
            validate(worse)
