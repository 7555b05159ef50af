#!/usr/bin/env python3
"""Random dispatches against an independent model of the SRE contract.

usage: model_sre.py BINARY [-n CASES] [--seed N] [-j JOBS]

The model is written from the contract's document, not from the C code. A case that differs is printed
as a vector; the seed makes it come again. Exit 1 when any differs.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shlex
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare  # noqa: E402
import stage  # noqa: E402

EVENTS = ("Start", "PreToolUse", "PostToolUse", "Stop")
TIERS = ("system", "agent", "user-global")
TOOLS = ("ReadFile", "RunInTerminal", "Task")
AGENTS = ("meta_agent", "Explore")
MATCHERS = ("*", "ReadFile", "Read", "Read.*|Task", "^(Task|RunInTerminal)$", "readfile", "Read(", "", ".*")
REASONS = (None, "", "  ", "one", "two", "three\nlines")
CONTEXTS = (None, "", "ctx-a", "ctx-b")
DEFAULT = "Blocked by hook"
WITHHELD = ("Tool executed, but its output was withheld as it needs user approval. "
            "Try to find an alternative approach.")


# ---- What a case is made of ---------------------------------------------------


def random_output(rnd):
    """(exit code, stdout, stderr)"""
    kind = rnd.choices(("json", "empty", "exit2", "other", "garbage"), (12, 1, 2, 2, 1))[0]
    if kind == "empty":
        return 0, rnd.choice(("", " \n")), "noise"
    if kind == "exit2":
        return 2, rnd.choice(("", '{"ok": true}')), rnd.choice(("", "  ", "  why not \n"))
    if kind == "other":
        return rnd.choice((1, 3, 77)), "", "broken"
    if kind == "garbage":
        return 0, rnd.choice(("all good", "[1]", '{"ok": 1}', '{"ok": true')), ""
    return 0, json.dumps(random_result(rnd)), ""


def random_result(rnd):
    result = {}
    if rnd.random() < 0.8:
        result["ok"] = rnd.random() < 0.6
    if rnd.random() < 0.6:
        result["reason"] = rnd.choice(REASONS)
    if rnd.random() < 0.15:
        result["decision"] = rnd.choice(("block", "approve", "deny"))
    if rnd.random() < 0.7:
        result["hookSpecificOutput"] = random_specific(rnd)
    return result


def random_specific(rnd):
    specific = {}
    if rnd.random() < 0.4:
        specific["permissionDecision"] = rnd.choice((None, "allow", "allow", "deny", "ask"))
    if rnd.random() < 0.3:
        specific["permissionDecisionReason"] = rnd.choice((None, "", " ", "Sure?"))
    if rnd.random() < 0.5:
        specific["additionalContext"] = rnd.choice(CONTEXTS)
    for key in ("acme_a", "acme_b", "hookEventName"):
        if rnd.random() < 0.3:
            specific[key] = rnd.choice((1, "x", [1, 2], None, {"k": True}))
    return specific


def random_hook(rnd, i, event):
    exit_code, out, err = random_output(rnd)
    command = f"printf %s {shlex.quote(out)}; printf %s {shlex.quote(err)} >&2; exit {exit_code}"
    tier = rnd.choice(TIERS)
    metadata = {"name": f"h{i}", "tier": tier}
    if tier == "agent":
        metadata["agent"] = rnd.choice(AGENTS)
    hook = {"type": "command", "command": command}
    if rnd.random() < 0.5:
        hook["failMode"] = rnd.choice(("allow", "block"))
    own_event = event if rnd.random() < 0.85 else rnd.choice(EVENTS)
    if own_event in ("PreToolUse", "PostToolUse"):
        matcher = rnd.choice(MATCHERS)
        hook["matcher"] = "*" if own_event == "PostToolUse" and matcher in ("", "Read(") else matcher
    spec = {"eventType": own_event, "activationMode": rnd.choice(("always", "always", "onDemand")), "hook": hook}
    if rnd.random() < 0.1:
        spec["enabled"] = False
    if own_event == "Start" and rnd.random() < 0.4:
        spec["sources"] = rnd.sample(("Alert", "Conversation", "Incident"), rnd.randint(0, 2))
    document = {"metadata": metadata, "spec": spec}
    if rnd.random() < 0.5:
        document.update(api_version="azuresre.ai/v2", kind="Hook")
    return document, (exit_code, out, err)


def random_payload(rnd, event):
    payload = {"hook_event_name": event, "agent_name": rnd.choice(AGENTS), "current_turn": rnd.randint(0, 9),
               "max_turns": 250, "execution_summary": None}
    if event == "Start":
        payload.update(start_message="hi", thread_source=rnd.choice(("Conversation", "Alert", None)))
    elif event == "Stop":
        payload.update(stop_hook_active=False, stop_rejection_count=0, final_output="done")
    else:
        payload.update(tool_name=rnd.choice(TOOLS), tool_input={}, call_id="c1")
        if event == "PostToolUse":
            payload.update(tool_result="ok", tool_succeeded=True)
    return payload


def random_case(seed):
    rnd = random.Random(seed)
    event = rnd.choices(EVENTS, (1, 4, 2, 2))[0]
    hooks = [random_hook(rnd, i, event) for i in range(rnd.randint(0, 5))]
    request = {"contract": "sre", "thread_id": f"t{seed}", "payload": random_payload(rnd, event)}
    if rnd.random() < 0.3:
        request["child"] = rnd.random() < 0.7
    if rnd.random() < 0.7:
        request["activated_hooks"] = [f"h{i}" for i in range(len(hooks)) if rnd.random() < 0.5]
    return hooks, request


# ---- The model ----------------------------------------------------------------


def matches(pattern, name):
    if pattern == "*":
        return True
    if not pattern:
        return False
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return pattern == name


def belongs(document, request):
    if document["metadata"]["tier"] == "agent":
        return document["metadata"]["agent"] == request["payload"]["agent_name"]
    return not request.get("child") or document["spec"]["eventType"] in ("PreToolUse", "PostToolUse")


def skip_reason(document, request):
    spec, payload = document["spec"], request["payload"]
    if not spec.get("enabled", True):
        return "disabled"
    if spec["activationMode"] == "onDemand" and document["metadata"]["name"] not in request.get("activated_hooks", []):
        return "inactive"
    if spec.get("sources") and payload.get("thread_source") not in spec["sources"]:
        return "source"
    if not belongs(document, request):
        return "scope"
    if "tool_name" in payload and not matches(spec["hook"].get("matcher", ""), payload["tool_name"]):
        return "matcher"
    return None


def read_result(text):
    """The HookResult, or None for a process failure."""
    try:
        result = json.loads(text)
    except ValueError:
        return None
    if not isinstance(result, dict) or not isinstance(result.get("ok", True), bool):
        return None
    return result


def judge(document, output, event):
    """A verdict: decision, reason, question, context, metadata, blank."""
    exit_code, out, err = output
    name = document["metadata"]["name"]
    verdict = {"decision": "pass", "reason": None, "question": None, "context": None, "metadata": {}, "blank": False}
    if exit_code == 2:
        return verdict | {"decision": "reject", "reason": err.strip() or DEFAULT}
    if exit_code != 0:
        return verdict | {"decision": "error"}
    if not out.strip():
        return verdict
    result = read_result(out)
    if result is None:
        return verdict | {"decision": "error"}
    specific = result.get("hookSpecificOutput") or {}
    permission = None if event == "Stop" else specific.get("permissionDecision")
    rejects = result.get("decision") == "block" or result.get("ok") is False
    reason = result.get("reason") or None
    verdict["context"] = specific.get("additionalContext") or None
    blank = bool(reason) and not reason.strip()
    if permission == "deny":
        return verdict | {"decision": "deny", "reason": None if blank else reason, "blank": blank}
    if permission == "ask":
        texts = (specific.get("permissionDecisionReason"), reason, f"Hook {name} asks for confirmation")
        return verdict | {"decision": "ask", "question": next(t for t in texts if t and t.strip())}
    if rejects and not blank:
        return verdict | {"decision": "reject", "reason": reason or DEFAULT}
    own = ("permissionDecision", "permissionDecisionReason", "additionalContext", "hookEventName", "updatedInput")
    verdict["metadata"] = {k: v for k, v in specific.items() if k not in own}
    verdict["blank"] = rejects
    return verdict | {"decision": "allow" if permission == "allow" and not rejects else "pass"}


def run_chain(hooks, request):
    """The chain's record and what it gives to the result."""
    event = request["payload"]["hook_event_name"]
    listed, reasons, allower, context, metadata = [], [], None, None, {}
    ended, question, failed = None, None, False
    rejections = 0
    for document, output in hooks:
        entry = {"hook_name": document["metadata"]["name"], "tier": document["metadata"]["tier"]}
        listed.append(entry)
        skipped = skip_reason(document, request) or ("short_circuit" if ended else None)
        if skipped:
            entry.update(decision="skipped", skip_reason=skipped)
            continue
        verdict = judge(document, output, event)
        decision = verdict["decision"]
        entry.update(decision=decision, blank_reason=verdict["blank"] or None)
        context = verdict["context"] or context
        if decision in ("deny", "ask"):
            ended, question = decision, verdict["question"]
            reasons = [verdict["reason"]] if verdict["reason"] else []
        elif decision == "reject":
            rejections += 1
            reasons.append(verdict["reason"])
        elif decision == "error":
            if document["spec"]["hook"].get("failMode") == "block":
                failed = True
                reasons.append(f"<{entry['hook_name']}>")
        else:
            metadata = verdict["metadata"] | metadata
            allower = allower or (entry["hook_name"] if decision == "allow" else None)
    final = ended or ("reject" if rejections or failed else "allow" if allower else "pass")
    return {
        "listed": listed, "final": final, "question": question, "rejections": rejections,
        "reasons": reasons if final in ("deny", "reject") else [],
        "context": context if final in ("pass", "reject") else None,
        "metadata": {} if final == "ask" else metadata,
        "allower": allower if final == "allow" else None,
        "configured": sum(belongs(d, request) for d, _ in hooks),
        "run": sum(h["decision"] != "skipped" for h in listed),
    }


def tool_message(event, final, blocked, child, reasons, question):
    if not blocked or event not in ("PreToolUse", "PostToolUse"):
        return None
    if event == "PostToolUse" and final == "ask":
        return WITHHELD
    wrapper = "[Tool execution blocked] " if event == "PreToolUse" else \
        "[Tool result blocked by hook] [Hook Blocked Tool Result] "
    return wrapper + ("\n".join(reasons) or question or DEFAULT)


def expected(hooks, request):
    event = request["payload"]["hook_event_name"]
    mine = [h for tier in TIERS for h in hooks
            if h[0]["metadata"]["tier"] == tier and h[0]["spec"]["eventType"] == event]
    chain = run_chain(mine, request)
    final, child = chain["final"], bool(request.get("child"))
    blocked = event != "Start" and (final in ("reject", "deny") or (final == "ask" and child))
    kind = "command" if event == "Stop" and chain["configured"] else "all"
    vague = any(r.startswith("<") for r in chain["reasons"])  # our own words about a failure
    result = {
        "final_decision": final, "blocked": blocked,
        "question": chain["question"] if event != "Start" and not blocked else None,
        "additional_context": chain["context"], "allowing_hook": chain["allower"],
        "metadata": chain["metadata"],
    }
    if event == "Start":
        result["reason"] = None
    elif final != "ask" and not vague:
        result["reason"] = "\n".join(chain["reasons"]) or None
    if not vague:
        result["tool_message"] = tool_message(event, final, blocked, child, chain["reasons"], chain["question"])
    evaluation = {
        "chain": kind, "final_decision": final, "hooks_configured": chain["configured"],
        "hooks_run": chain["run"], "rejection_count": chain["rejections"],
        "user_global_hooks_run": sum(h["tier"] == "user-global" and h["decision"] != "skipped" for h in chain["listed"]),
    }
    rows = [{"name": "AgentHookEvaluation", "customDimensions": {"FinalDecision": final}}] if chain["run"] else []
    rows += [{"name": "AgentHookExecution", "customDimensions": {"HookName": h["hook_name"], "Decision": h["decision"]}}
             for h in chain["listed"] if h["decision"] not in ("pass", "skipped")]
    return {"result": result, "evaluation": evaluation, "hooks": chain["listed"], "appinsights": rows}


# ---- Cases --------------------------------------------------------------------


def run_case(binary, seed):
    hooks, request = random_case(seed)
    vector = {"name": f"seed {seed}", "contract": "sre", "hooks": [d for d, _ in hooks], "request": request,
              "expect": expected(hooks, request)}
    with tempfile.TemporaryDirectory(prefix="hooktrail-model-") as folder:
        with stage.Stand(binary, vector, pathlib.Path(folder)) as stand:
            done = stand.dispatch()
            if done.returncode != 0:
                return vector, [f"exit {done.returncode}: {done.stderr.strip()}"]
            came = stand.outcome(json.loads(done.stdout), done.seconds)
            return vector, list(compare.outcome(vector["expect"], came))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("-n", dest="cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-j", dest="jobs", type=int, default=2 * (os.cpu_count() or 1))
    args = parser.parse_args()
    binary = os.path.abspath(args.binary)

    failed = 0
    seeds = range(args.seed, args.seed + args.cases)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for vector, problems in pool.map(lambda s: run_case(binary, s), seeds):
            if problems:
                failed += 1
                print(f"FAIL {vector['name']}: {json.dumps(vector, ensure_ascii=False)}")
                print("".join(f"     {p}\n" for p in problems), end="")
    print(f"{args.cases - failed} of {args.cases} random dispatches agree with the model (seed {args.seed})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
