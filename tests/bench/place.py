"""Where a benchmark runs what it measures: folders, and servers that end with it."""
import contextlib
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Place:
    """A folder on the disk that is measured, and a short one for sockets; both go in the end."""

    def __init__(self, out):
        (out / "bench").mkdir(parents=True, exist_ok=True)
        self.disk = pathlib.Path(tempfile.mkdtemp(dir=out / "bench"))
        self.sockets = pathlib.Path(tempfile.mkdtemp(prefix="hooktrail-bench-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.disk, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def file(self, name, content):
        path = self.disk / name
        path.write_text(content)
        return path


def connectable(path):
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


@contextlib.contextmanager
def running(argv, path=None):
    """A server until the block ends; it is up once its socket takes connections."""
    with subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        try:
            until = time.monotonic() + 30
            while path and not connectable(path):
                if p.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{argv[0]} does not start")
                time.sleep(0.02)
            yield p
        finally:
            p.send_signal(signal.SIGTERM)
            p.wait(30)
