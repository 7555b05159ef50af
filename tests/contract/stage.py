"""The stage of one vector: its files, its little HTTP server, and the runs of the binary."""
import dataclasses
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time

LIMIT_S = 40  # one run
KINDS = ("pre-message", "post-message", "cost-alert", "update-applied")  # deputyos


def is_built(binary, contract):
    done = subprocess.run([binary, "check", "--contract", contract, "--hooks", "/dev/null"], capture_output=True,
                          text=True, timeout=LIMIT_S)
    return "unknown contract" not in done.stderr


@dataclasses.dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str
    seconds: float


@dataclasses.dataclass
class Outcome:
    """What a dispatch left: its result, its records, its rows, the requests that handlers got."""
    result: dict
    record_text: str
    evaluations: list
    rows: list
    requests: list
    seconds: float
    ran: bool
    folder: str

    def left(self, command):
        """True when a process with this command line is alive; one of this run is ended."""
        pattern = command.replace("@DIR@", re.escape(self.folder))
        pids = subprocess.run(["pgrep", "-f", "-x", pattern], capture_output=True, text=True).stdout.split()
        for pid in pids if "@DIR@" in command else []:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        return bool(pids)


class Server:
    """Answers with the vector's replies in order, the last one again and again, and keeps what it saw."""

    def __init__(self, replies):
        self.requests = []
        self.replies = replies
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                outer.answer(self)

            def log_message(self, *args):
                pass

            do_POST = do_GET = do_PUT = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        headers = {k.lower(): ", ".join(handler.headers.get_all(k)) for k in handler.headers.keys()}
        self.requests.append({"method": handler.command, "headers": headers, "body": body.decode("utf-8", "replace")})
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        time.sleep(reply.get("delay", 0))
        try:
            self.send(handler, reply)
        except OSError:
            pass  # the handler did not wait

    @staticmethod
    def send(handler, reply):
        data = reply["body"].encode()
        handler.send_response(reply["status"], reply.get("phrase"))
        if 300 <= reply["status"] <= 399:
            handler.send_header("location", "/elsewhere")
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        parts = [data[i:i + 1] for i in range(len(data))] if "drip" in reply else [data]
        for part in parts:
            handler.wfile.write(part)
            handler.wfile.flush()
            time.sleep(reply.get("drip", 0))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Stand:
    """One vector set up in a folder; check() and dispatch() run the binary on it."""

    def __init__(self, binary, vector, folder):
        self.binary, self.vector, self.folder = binary, vector, folder
        self.server = None

    def __enter__(self):
        if "http" in self.vector:
            self.server = Server(self.vector["http"])
        self.hooks = self.set_up_scripts() if self.vector["contract"] == "deputyos" else self.set_up_file()
        return self

    def __exit__(self, *args):
        if self.server:
            self.server.close()

    def path(self, name):
        return self.folder / name

    def fill(self, text):
        if self.server:
            text = text.replace("@PORT@", str(self.server.port))
        return text.replace("@DIR@", str(self.folder))

    def hook_text(self):
        if "raw_hooks" in self.vector:
            return self.vector["raw_hooks"]
        if self.vector["contract"] == "sre":
            return "".join("---\n" + json.dumps(h, ensure_ascii=False) + "\n" for h in self.vector["hooks"])
        return json.dumps({"handlers": self.vector["handlers"]}, ensure_ascii=False)

    def set_up_file(self):
        path = self.path("hooks.yaml")
        path.write_text(self.fill(self.hook_text()), encoding="utf-8")
        return path

    def request_text(self):
        return self.vector.get("raw_request") or json.dumps(self.vector["request"], ensure_ascii=False)

    def kind(self):
        try:
            return json.loads(self.request_text()).get("kind")
        except ValueError:
            return None

    def set_up_scripts(self):
        root = self.path("hooks.d")
        folders = self.vector.get("folders", KINDS)
        if folders is False:
            return root
        for kind in folders:
            (root / kind).mkdir(parents=True)
        root.mkdir(exist_ok=True)
        kind = self.kind()
        for name, (mode, text) in self.vector["scripts"].items() if kind in folders else []:
            self.put_script(root / kind / name, mode, self.fill(text))
        return root

    @staticmethod
    def put_script(path, mode, text):
        if mode == "dir":
            path.mkdir(parents=True)
        elif mode == "link":
            path.symlink_to(text)
        elif mode == "fifo":
            os.mkfifo(path)
            path.chmod(0o755)
        else:
            path.write_text(text, encoding="utf-8")
            path.chmod(int(mode, 8))

    def call(self, args, text=None):
        began = time.monotonic()
        done = subprocess.run([self.binary, *args], input=text, capture_output=True, encoding="utf-8",
                              timeout=LIMIT_S, env={**os.environ, **self.vector.get("env", {})})
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def check(self):
        return self.call(["check", "--contract", self.vector["contract"], "--hooks", str(self.hooks)])

    def dispatch(self):
        args = ["dispatch", "--hooks", str(self.hooks), "--record", str(self.path("record")),
                "--appinsights", str(self.path("rows"))]
        if "secrets" in self.vector:
            secrets = self.path("secrets.yaml")
            secrets.touch(0o600)
            secrets.write_text(json.dumps(self.vector["secrets"]))
            args += ["--secrets", str(secrets)]
        return self.call(args, self.request_text())

    def read(self, name):
        path = self.path(name)
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def outcome(self, result, seconds):
        text = self.read("record")
        records = [json.loads(line) for line in text.splitlines()]
        return Outcome(
            result=result,
            record_text=text,
            evaluations=[r for r in records if r.get("type") == "hook_evaluation"],
            rows=[json.loads(line) for line in self.read("rows").splitlines()],
            requests=self.server.requests if self.server else [],
            seconds=seconds,
            ran=self.path("ran").exists(),
            folder=str(self.folder),
        )
