#!/usr/bin/env python3
"""Run conformance vectors against a built binary.

usage: run.py BINARY PATH... [-k WORD] [-v] [-j N] [--skip-unbuilt]

PATH is a vector (*.json) or a folder of them. Each runs in a folder of its own, several at once.
A failing vector is told with every difference: where, what was wanted, what came. Exit 0: all pass;
1: some fail, or there was none to run. --skip-unbuilt passes over contracts the binary does not have.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import compare  # noqa: E402
import stage  # noqa: E402


def run_check(stand, vector):
    fails = "check_fails" in vector
    done = stand.check()
    wanted = 1 if fails else 0
    if done.returncode != wanted:
        yield f"check: exit {done.returncode}, want {wanted}: {done.stderr.strip()}"
    for word in vector["check_fails" if fails else "check_warns"]:
        if word not in done.stderr:
            yield f"check: stderr lacks {word!r}: {done.stderr.strip()}"


def run_refused(stand, vector):
    done = stand.dispatch()
    if done.returncode != 2:
        yield f"dispatch: exit {done.returncode}, want 2 (refused): {done.stderr.strip()}"
    for word in vector["refused"]:
        if word not in done.stderr:
            yield f"dispatch: stderr lacks {word!r}: {done.stderr.strip()}"
    if stand.path("ran").exists():
        yield "dispatch: refused, and yet a hook ran"


def run_dispatch(stand, vector):
    done = stand.dispatch()
    if done.returncode != 0:
        yield f"dispatch: exit {done.returncode}: {done.stderr.strip()}"
        return
    try:
        result = json.loads(done.stdout)
    except ValueError:
        yield f"stdout: no JSON: {done.stdout[:200]!r}"
        return
    yield from compare.outcome(vector["expect"], stand.outcome(result, done.seconds))


def run_vector(binary, path):
    """The differences of one vector; none when it passes."""
    vector = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="hooktrail-vector-", ignore_cleanup_errors=True) as folder:
        with stage.Stand(binary, vector, pathlib.Path(folder)) as stand:
            if "check_fails" in vector or "check_warns" in vector:
                return list(run_check(stand, vector))
            if "refused" in vector:
                return list(run_refused(stand, vector))
            return list(run_dispatch(stand, vector))


def try_vector(binary, path):
    try:
        return run_vector(binary, path)
    except Exception as error:  # a vector that cannot be run is a failing one
        return [f"{type(error).__name__}: {error}"]


def find(paths, word):
    for path in map(pathlib.Path, paths):
        files = [path] if path.is_file() else sorted(path.rglob("*.json"))
        yield from (f for f in files if word in f.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("-k", dest="word", default="", help="only vectors whose file name has it")
    parser.add_argument("-v", dest="verbose", action="store_true", help="name those that pass too")
    parser.add_argument("-j", dest="jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--skip-unbuilt", action="store_true")
    args = parser.parse_args()
    binary = os.path.abspath(args.binary)

    vectors = list(find(args.paths, args.word))
    skipped = 0
    if args.skip_unbuilt:
        contracts = {json.loads(v.read_text(encoding="utf-8"))["contract"] for v in vectors}
        missing = {c for c in contracts if not stage.is_built(binary, c)}
        kept = [v for v in vectors if json.loads(v.read_text(encoding="utf-8"))["contract"] not in missing]
        skipped, vectors = len(vectors) - len(kept), kept
        if skipped:
            print(f"SKIPPED [{skipped}] of contracts that this program does not have: {', '.join(sorted(missing))}")

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for path, problems in zip(vectors, pool.map(lambda v: try_vector(binary, v), vectors)):
            failed += bool(problems)
            if problems:
                print(f"FAIL {path}")
                print("".join(f"     {p}\n" for p in problems), end="")
            elif args.verbose:
                print(f"ok   {path}")
    print(f"{len(vectors) - failed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed or not vectors + [None] * skipped else 0)


if __name__ == "__main__":
    main()
