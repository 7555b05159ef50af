"""A TCP proxy before PostgreSQL that hurts one connection at a chosen moment.

    with PostgresProxy(port) as proxy:
        proxy.arm("lost-commit")    # the next COMMIT is carried out, its answer is not told
        proxy.fired.wait(10)

It reads the client's side of the protocol (a type, a length, the message), enough to know
a COPY and a COMMIT when they pass. The client must connect with sslmode=disable
gssencmode=disable: `proxy.dsn(dsn)` sees to that.

    cut-copy       the connection ends in the middle of a COPY
    cut-commit     it ends before the COMMIT reaches the server
    lost-commit    it ends after the server's answer to COMMIT, which the client never sees
    silent-copy    from the middle of a COPY on nothing is forwarded, and nothing is closed
    silent-commit  the same from the server's answer to COMMIT on
    hold-copy      in the middle of a COPY everything stands still until proxy.release()
    hold-commit    the same between the server's answer to COMMIT and the client
"""
import select
import socket
import struct
import threading

COMMIT = b"COMMIT\0"
FAULTS = ("cut-copy", "cut-commit", "lost-commit", "silent-copy", "silent-commit")
HOLDS = ("hold-copy", "hold-commit")  # for a fault of the server or of the client meanwhile
HOLD_SECONDS = 60


class _Ended(Exception):
    """This connection is over."""


class _Connection(threading.Thread):
    def __init__(self, proxy, client):
        super().__init__(daemon=True)
        self.proxy = proxy
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", proxy.server_port), timeout=10)
        self.server.settimeout(None)
        self.pending = b""     # of the client, not yet a whole message
        self.started = False   # the first message has no type
        self.copied = False    # something was copied since the last COMMIT
        self.committing = False
        self.fault = None      # fires with the server's answer to COMMIT

    def _silence(self):
        """Swallow what comes and say nothing, until the client gives up."""
        self.proxy.fired.set()
        while self.client.recv(1 << 20):
            pass
        raise _Ended

    def _cut(self):
        self.proxy.fired.set()
        raise _Ended

    def _hold(self):
        self.proxy.fired.set()
        self.proxy.released.wait(HOLD_SECONDS)

    def _in_copy(self, message):
        """Half of a row's message has passed. What is still to pass, where it goes on."""
        self.copied = True
        fault = self.proxy.take("cut-copy", "silent-copy", "hold-copy")
        if not fault:
            return message
        half = len(message) // 2
        self.server.sendall(message[:half])
        {"cut-copy": self._cut, "silent-copy": self._silence, "hold-copy": self._hold}[fault]()
        return message[half:]

    def _on_message(self, kind, message):
        if kind == b"d":
            message = self._in_copy(message)
        if kind == b"Q" and message[5:] == COMMIT and self.copied:
            self.committing = True
            fault = self.proxy.take("cut-commit", "lost-commit", "silent-commit", "hold-commit")
            if fault == "cut-commit":
                self._cut()
            self.fault = fault
        self.server.sendall(message)

    def _from_client(self):
        data = self.client.recv(1 << 20)
        if not data:
            raise _Ended
        self.pending += data
        while len(self.pending) >= 5:
            head = 1 if self.started else 0
            size = head + struct.unpack_from("!I", self.pending, head)[0]
            if len(self.pending) < size:
                return
            message, self.pending = self.pending[:size], self.pending[size:]
            self._on_message(message[:1] if self.started else b"", message)
            self.started = True

    def _from_server(self):
        data = self.server.recv(1 << 20)
        if not data:
            raise _Ended
        if self.fault == "lost-commit":
            self._cut()
        if self.fault == "silent-commit":
            self._silence()
        if self.fault == "hold-commit":
            self._hold()
            self.fault = None
        if self.committing:
            self.committing = self.copied = False
            self.proxy.commits += 1
        self.client.sendall(data)

    def run(self):
        try:
            while True:
                ready, _, _ = select.select([self.client, self.server], [], [])
                if self.client in ready:
                    self._from_client()
                if self.server in ready:
                    self._from_server()
        except (_Ended, OSError):
            self.client.close()
            self.server.close()


class PostgresProxy:
    def __init__(self, server_port):
        self.server_port = server_port
        self.commits = 0               # of copied rows, answered to the client, ever
        self.fired = threading.Event()  # the armed fault has happened
        self.released = threading.Event()  # what is held goes on
        self._armed = None
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                _Connection(self, client).start()
            except OSError:  # the server is away: so is the proxy
                client.close()

    def arm(self, fault):
        """The next occasion for `fault` takes it."""
        assert fault in FAULTS + HOLDS
        with self._lock:
            self.fired.clear()
            self.released.clear()
            self._armed = fault

    def release(self):
        """Let go on what a hold keeps."""
        self.released.set()

    def take(self, *faults):
        """The armed fault, when it is one of `faults`; it is then no longer armed."""
        with self._lock:
            if self._armed not in faults:
                return None
            fault, self._armed = self._armed, None
            return fault

    def dsn(self, dsn):
        """The same database, through the proxy."""
        return dsn.replace(f"port={self.server_port}", f"port={self.port}") + \
            " sslmode=disable gssencmode=disable"
