#!/usr/bin/env python3
"""Play a recorded session to a running collector, as an agent's host would.

usage: play.py SOCKET SESSION.ndjson [THREAD]

Each line of the session is a dispatch request; @THREAD@ in it becomes the id of a new
thread, which is printed last, alone on its line. Exit 1: the collector refused a request;
3: it cannot be reached, or was stopped meanwhile; 130: interrupted.
"""
import http.client
import json
import os
import socket
import sys
import time

COLORS = {"pass": 32, "allow": 32, "ask": 33, "reject": 31, "deny": 31, "error": 31}

IN_COLOR = sys.stderr.isatty() and not os.environ.get("NO_COLOR")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def colored(word, width):
    text = word.ljust(width)
    return f"\033[{COLORS.get(word, 0)}m{text}\033[0m" if IN_COLOR else text


def tell(number, total, request, result, seconds):
    payload = request["payload"]
    what = payload["hook_event_name"]
    tool = payload.get("tool_name", "")
    why = result.get("reason") or result.get("question") or ""
    line = f"{number:3}/{total}  {what:12} {tool:24} "
    line += f"{colored(result.get('final_decision', '?'), 7)} {seconds * 1000:6.0f} ms"
    print(f"{line}  {why}".rstrip(), file=sys.stderr)


def post(connection, body):
    connection.request("POST", "/v1/dispatch", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def play(path, lines, thread):
    connection = UnixConnection(path)
    for number, line in enumerate(lines, 1):
        body = line.replace("@THREAD@", thread)
        begun = time.monotonic()
        try:
            status, answer = post(connection, body.encode())
        except (OSError, http.client.HTTPException) as error:
            print(f"play: the collector went away, after {number - 1} of {len(lines)} events "
                  f"({error})", file=sys.stderr)
            return 3
        if status != 200:
            print(f"play: request {number}: {status}: {answer.decode(errors='replace')}",
                  file=sys.stderr)
            return 1
        tell(number, len(lines), json.loads(body), json.loads(answer), time.monotonic() - begun)
    return 0


def main():
    if not 3 <= len(sys.argv) <= 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[2], encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    thread = sys.argv[3] if len(sys.argv) == 4 else time.strftime("incident-%Y%m%d-%H%M%S")
    try:
        code = play(sys.argv[1], lines, thread)
    except KeyboardInterrupt:
        return 130
    if code == 0:
        print(thread)
    return code


if __name__ == "__main__":
    sys.exit(main())
