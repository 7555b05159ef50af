"""What a vector wants against what came: each difference in one line."""
import json

SHOWN = 160  # characters of a value in a message


def show(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def subset(want, got, path):
    """Objects compare by the keys that are wanted; lists by length, then item by item."""
    if isinstance(want, dict):
        yield from subset_object(want, got, path)
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            yield f"{path}: want {len(want)} items, got {show(got)}"
            return
        for i, (w, g) in enumerate(zip(want, got)):
            yield from subset(w, g, f"{path}[{i}]")
    elif want == "<any>":
        if got in (None, ""):
            yield f"{path}: want some value, got {show(got)}"
    elif want == "<integer>":
        if not isinstance(got, int) or isinstance(got, bool):
            yield f"{path}: want an integer, got {show(got)}"
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield f"{path}: want {show(want)}, got {show(got)}"


def subset_object(want, got, path):
    if not isinstance(got, dict):
        yield f"{path}: want an object, got {show(got)}"
    elif not want and got:
        yield f"{path}: want it empty, got {show(got)}"
    else:
        for key, value in want.items():
            if value is not None and key not in got:
                yield f"{path}.{key}: missing, want {show(value)}"
            else:
                yield from subset(value, got.get(key), f"{path}.{key}")


def records(expect, came):
    if "evaluations" in expect:
        yield from subset(expect["evaluations"], came.evaluations, "evaluations")
    elif len(came.evaluations) != 1:
        yield f"evaluations: want one record, got {len(came.evaluations)}"
    first = came.evaluations[0] if came.evaluations else {}
    if "evaluation" in expect:
        yield from subset(expect["evaluation"], first, "evaluation")
    if "hooks" in expect:
        yield from subset(expect["hooks"], first.get("hooks"), "hooks")
    if "appinsights" in expect:
        yield from subset(expect["appinsights"], came.rows, "appinsights")
    for word in expect.get("record_lacks", []):
        if word in came.record_text:
            yield f"record: holds {word!r}"


def words(expect, came):
    for key, field in (("reason_contains", "reason"), ("message_contains", "message")):
        for word in expect.get(key, []):
            if word not in str(came.result.get(field)):
                yield f"result.{field}: lacks {word!r}, got {show(came.result.get(field))}"


def ids(expect, came):
    if not expect.get("ids_match"):
        return
    want = {"dispatch_id": "<any>", "evaluation_ids": [e.get("id") for e in came.evaluations]}
    yield from subset(want, came.result, "result")
    for e in came.evaluations:
        if e.get("dispatch_id") != came.result.get("dispatch_id"):
            yield f"evaluation: of another dispatch: {show(e.get('dispatch_id'))}"


def http(expect, came):
    if "http_requests" in expect and len(came.requests) != expect["http_requests"]:
        yield f"http: want {expect['http_requests']} requests, got {len(came.requests)}"
    want = expect.get("http_request")
    if want is None:
        return
    got = came.requests[0] if came.requests else {}
    yield from subset({k: want[k] for k in ("method", "headers") if k in want}, got, "http")
    for header in want.get("lacks", []):
        if header in got.get("headers", {}):
            yield f"http: header {header} was sent"
    try:
        body = json.loads(got.get("body") or "")
    except ValueError:
        yield f"http.body: no JSON: {got.get('body', '')[:SHOWN]!r}"
        return
    yield from subset(want.get("body", {"schema_version": 1}), body, "http.body")


def traces(expect, came):
    if "max_seconds" in expect and came.seconds > expect["max_seconds"]:
        yield f"took {came.seconds:.1f} s, at most {expect['max_seconds']}"
    for command in expect.get("no_process", []):
        if came.left(command):
            yield f"left behind: {command}"
    if expect.get("ran") is False and came.ran:
        yield "a hook ran that must not"


def outcome(expect, came):
    if "result" in expect:
        yield from subset(expect["result"], came.result, "result")
    for part in (records, words, ids, http, traces):
        yield from part(expect, came)
