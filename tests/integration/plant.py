"""A plant: one state folder, its configuration, its programs, those who ask it. For the fault tests.

Journals are read here by format.h's words alone, so that no fault of the product's own reader hides.
"""
import collections
import contextlib
import hashlib
import http.client
import itertools
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = os.environ.get("HOOKTRAIL_BIN", str(ROOT / "build/hooktrail"))  # the front
LONG = os.environ.get("HOOKTRAIL_CHAOS") == "long"  # make chaos
TYPES = [None, "hook_evaluation", "tool_execution", "hook_registry", "gap", "checkpoint", "admin"]
Frame = collections.namedtuple("Frame", "journal seq type record")


def wait_for(condition, seconds=60, why="what was waited for"):
    """Until condition() is true; its value."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {why() if callable(why) else why}"
        time.sleep(0.01)


def hooktrail(*words, **more):
    """One command, to its end."""
    return subprocess.run([BIN, *words], **{"input": "", "capture_output": True, "text": True, "timeout": 20} | more)


def hook(name, command, matcher=None, event="PreToolUse", tier=None, agent=None, **more):
    """One hook document, as YAML that is JSON."""
    metadata = {"name": name, "tier": tier, "agent": agent}
    body = {"type": "command", "command": command} | ({"matcher": matcher} if matcher else {}) | more
    return json.dumps({"metadata": {k: v for k, v in metadata.items() if v},
                       "spec": {"eventType": event, "activationMode": "always", "hook": body}})


def hooks(*documents):
    return "\n---\n".join(documents) + "\n"


def request(tool="Other", thread="t-1", event="PreToolUse", **payload):
    payload = {"hook_event_name": event, "agent_name": "meta_agent", "tool_name": tool,
               "tool_input": {"command": "ls"}, "call_id": f"call-{thread}"} | payload
    return {"contract": "sre", "thread_id": thread, "payload": payload}


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=40):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None, **headers):
        self.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers)
        return self.answer()

    def answer(self):
        """Status, headers, and the answer (as JSON where it is some)."""
        answer = self.getresponse()
        text = answer.read()
        is_json = "json" in (answer.headers["Content-Type"] or "")
        return answer.status, answer.headers, json.loads(text) if is_json else text


class Plant:
    def __init__(self, binary, folder, documents, config="", state=None, env=None):
        self.binary = str(binary)
        self.dir = pathlib.Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.state = pathlib.Path(state or self.dir / "state")
        self.env = os.environ | (env or {})
        self.hooks_file = self.dir / "hooks.yaml"
        self.config_file = self.dir / "hooktrail.yaml"
        self.log_file = self.dir / "log"
        self.hooks_file.write_text(documents)
        self.configure(config)
        self.roles = {}
        self.prefix = []  # of every command line

    def configure(self, config):
        self.config_file.write_text(f"contracts: {{sre: {{hooks: {self.hooks_file}}}}}\n{config}")

    # ---- Programs ----

    def command(self, *words):
        return [*self.prefix, self.binary, "--config", str(self.config_file), "--state", str(self.state), *words]

    def run(self, *words, input="", timeout=60):
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=timeout,
                              env=self.env, input=input)

    def start(self, role="collect", ready=None):
        """Start a role, and wait until it answers, or, of ship, can be told to end."""
        with open(self.log_file, "a") as log:
            process = subprocess.Popen(self.command(role), env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.roles[role] = process
        ready = ready or {"collect": "collect.sock", "serve": "serve.sock", "run": "collect.sock"}.get(role)
        if ready:
            wait_for(lambda: process.poll() is not None or self.answers(ready), why=f"{role} answers")
            assert process.poll() is None, self.log()
        elif role == "ship":
            wait_for(lambda: process.poll() is not None or self.pid(role) == process.pid, why="ship is there")
        return process

    def pid(self, role):
        """What the role's pid file says; 0 where there is none."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.state / "run" / f"{role}.pid").read_text())
        return 0

    def kill(self, role="collect"):
        process = self.roles.pop(role)
        process.kill()
        process.wait(10)

    def stop(self, role="collect"):
        process = self.roles.pop(role)
        if process.poll() is None:
            process.terminate()
        return process.wait(30)

    def reload(self, role="collect"):
        self.roles[role].send_signal(signal.SIGHUP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for role in list(self.roles):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop(role)
                continue
            self.roles.pop(role, None)

    def log(self):
        return self.log_file.read_text()

    # ---- Questions ----

    def connection(self, sock="collect.sock", timeout=40):
        return Connection(self.state / sock, timeout)

    def ask(self, method, path, body=None, sock="collect.sock", **headers):
        with contextlib.closing(self.connection(sock)) as c:
            return c.ask(method, path, body, **headers)

    def answers(self, sock="collect.sock"):
        try:
            return self.ask("GET", "/healthz", sock=sock)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def dispatch(self, body):
        return self.ask("POST", "/v1/dispatch", body)

    def begin_dispatch(self, body):
        """A connection that has asked: its answer() is yet to come."""
        connection = self.connection()
        connection.request("POST", "/v1/dispatch", json.dumps(body))
        return connection

    def tail(self, kind=None):
        """What the journals hold, by the command; of one type, or all."""
        done = self.run("tail", "--json", "-n", "10000")
        assert done.returncode == 0, done.stderr
        return [r for r in map(json.loads, done.stdout.splitlines()) if kind in (None, r["type"])]

    def status(self):
        return json.loads(self.run("status", "--json").stdout)

    def journals(self, role="collect"):
        """Each journal of a role, oldest first: its folder."""
        return sorted(p for p in (self.state / "journals" / role).glob("*-*") if p.suffix != ".new")

    def frames(self, role="collect"):
        return [f for j in self.journals(role) for f in read_journal(j)]

    def ship_once(self):
        done = self.run("ship", "--once")
        assert done.returncode == 0, done.stderr

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.state}/hooktrail.db?mode=ro", uri=True)) as db:
            return db.execute(sql).fetchall()

    def verified(self):
        done = self.run("verify", "--json")
        return done.returncode == 0 and json.loads(done.stdout)["verified"], done.stdout + done.stderr


def read_segment(path, until):
    """The frames of a segment below sequence `until`; ends where there is none."""
    data = path.read_bytes()
    at = 4096
    while at + 64 <= len(data):
        _, length, seq, kind = struct.unpack_from("<IIQB", data, at)
        bytes_ = data[at + 64:at + 64 + length]
        if length == 0 or seq >= until or hashlib.sha256(b"\0" + bytes_).digest() != data[at + 32:at + 64]:
            return
        yield seq, TYPES[kind], json.loads(bytes_)
        at += (64 + length + 7) // 8 * 8


def read_journal(folder):
    """What is durable in a journal, in order; each sequence follows the one before."""
    segments = sorted(folder.glob("*.seg"))
    durable, = struct.unpack_from("<Q", (folder / "mark").read_bytes(), 512)
    starts = [int(s.stem) for s in segments]
    expected = starts[0] if starts else durable + 1
    for path, until in itertools.zip_longest(segments, starts[1:], fillvalue=durable + 1):
        for seq, kind, record in read_segment(path, min(until, durable + 1)):
            assert seq == expected, f"{folder}: {seq} where {expected} was expected"
            expected += 1
            yield Frame(folder.name, seq, kind, record)
    assert expected == durable + 1, f"{folder}: ends before {expected}, durable is {durable}"


def is_killed(pid):
    """Whether a SIGKILL waits for the process: it runs none of its own code any more."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    pending = [int(line.split()[1], 16) for line in status.splitlines() if "Pnd:" in line]
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)


def processes(word):
    """Pids of living processes that have a word in their command line."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (word.encode() in (path / "cmdline").read_bytes()
                    and (path / "stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
                    and not is_killed(path.name)):
                found.append(int(path.name))
    return found


def listening_port(pid):
    """The TCP port that a process listens on, as the kernel tells it."""
    inodes = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    with open("/proc/net/tcp") as f:
        return next(int(fields[1].split(":")[1], 16) for fields in (line.split() for line in f)
                    if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes)


class Load:
    """Client threads that dispatch until told to stop, or until nobody answers."""

    numbers = itertools.count(1)

    def __init__(self, plant, clients):
        """clients: for each, the tools that it asks about."""
        self.plant = plant
        self.sent = {}  # thread_id: tool
        self.answered = {}  # thread_id: (Hooktrail-Recorded, result)
        self.refused = collections.Counter()  # HTTP statuses other than 200
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.client, args=(own,), daemon=True)
                        for own in clients]

    def client(self, tools):
        with contextlib.suppress(OSError, http.client.HTTPException), \
                contextlib.closing(self.plant.connection()) as connection:
            while not self.stopping.is_set():
                self.send(connection, random.choice(tools))

    def send(self, connection, tool):
        thread = f"load-{next(Load.numbers)}"
        self.sent[thread] = tool
        status, headers, result = connection.ask("POST", "/v1/dispatch", request(tool, thread))
        if status == 200:
            self.answered[thread] = headers["Hooktrail-Recorded"], result
        else:
            self.refused[status] += 1

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for t in self.threads:
            t.join(60)
            assert not t.is_alive(), "a client got no answer and no end"
