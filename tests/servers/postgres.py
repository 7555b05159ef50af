"""A private PostgreSQL server of Debian's package, with its data below the build folder.

    with Postgres(folder) as pg:
        pg.dsn("postgres")          # "host=127.0.0.1 port=… user=postgres dbname=postgres"
        pg.stop(); pg.start()       # an outage; `mode` immediate is a crash
"""
import contextlib
import glob
import os
import pwd
import shutil
import subprocess

from .folders import new_folder
from .ports import free_port, wait_until

START_SECONDS = 60


def bin_dir():
    """Where the newest installed server's programs are; None without one."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"),
                   key=lambda p: float(p.split("/")[4]))
    return os.path.dirname(found[-1]) if found else None


def why_not():
    """Why no server can be started here; None when one can."""
    return None if bin_dir() else "PostgreSQL's server is not installed"


class Postgres:
    """One server. Not started twice on one folder."""

    def __init__(self, folder=None, settings=()):
        self.owns_folder = folder is None
        self.folder = folder or new_folder("pg", others=os.geteuid() == 0)
        self.data = os.path.join(self.folder, "data")
        self.log = os.path.join(self.folder, "server.log")
        self.port = free_port()
        self.settings = {"listen_addresses": "127.0.0.1", "port": self.port,
                         "unix_socket_directories": "", "fsync": "on",
                         "max_connections": 60, "shared_buffers": "64MB", **dict(settings)}
        self.process = None
        # initdb and postgres refuse root: as root they run as the package's own user.
        self.prefix = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}",
                           "--clear-groups", "--"]
            os.makedirs(self.folder, exist_ok=True)
            os.chown(self.folder, user.pw_uid, user.pw_gid)

    def __enter__(self):
        self.init()
        self.start()
        return self

    def __exit__(self, *_):
        self.stop("immediate")
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name):
        return os.path.join(bin_dir(), name)

    def init(self):
        """Make the cluster, unless the folder has one already."""
        if os.path.isdir(self.data):
            return
        subprocess.run([*self.prefix, self.program("initdb"), "-D", self.data, "-U", "postgres",
                        "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/")

    def start(self):
        """Start and wait until it accepts."""
        options = [x for k, v in self.settings.items() for x in ("-c", f"{k}={v}")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self.prefix, self.program("postgres"), "-D",
                                             self.data, *options], stdout=log, stderr=log, cwd="/",
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        if not wait_until(self._accepts, START_SECONDS):
            raise RuntimeError(f"PostgreSQL did not start; see {self.log}")

    def _accepts(self):
        """Whether it takes connections: the port is open before recovery is over."""
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended; see {self.log}")
        return subprocess.run([self.program("pg_isready"), "-q", "-h", "127.0.0.1", "-p",
                               str(self.port)]).returncode == 0

    def stop(self, mode="fast"):
        """`fast` ends cleanly; `immediate` is a crash that recovery must mend."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(2 if mode == "fast" else 3)
            self.process.wait(60)
        self.process = None

    @contextlib.contextmanager
    def asking_for_passwords(self, user):
        """While this lasts the server asks `user` for a password; all others are trusted."""
        path = os.path.join(self.data, "pg_hba.conf")
        with open(path) as f:
            before = f.read()
        with open(path, "w") as f:
            f.write(f"host all {user} 127.0.0.1/32 scram-sha-256\n{before}")
        self.psql("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            with open(path, "w") as f:
                f.write(before)
            self.psql("SELECT pg_reload_conf()")

    @contextlib.contextmanager
    def with_tls(self, cert, key):
        """While this lasts the server has TLS, with this certificate."""
        for name, path in (("server.crt", cert), ("server.key", key)):
            here = os.path.join(self.data, name)
            shutil.copyfile(path, here)
            os.chmod(here, 0o600)
            os.chown(here, *self._owner())
        self._set_tls("on")
        try:
            yield
        finally:
            self._set_tls("off")

    def _owner(self):
        found = os.stat(self.data)
        return found.st_uid, found.st_gid

    def _set_tls(self, value):
        self.psql(f"ALTER SYSTEM SET ssl = {value}")
        self.psql("SELECT pg_reload_conf()")
        if not wait_until(lambda: self.psql("SHOW ssl") == [value], START_SECONDS):
            raise RuntimeError(f"ssl is not {value}; see {self.log}")

    @contextlib.contextmanager
    def as_standby(self):
        """While this lasts the server waits to be the primary, and can only be read."""
        signal = os.path.join(self.data, "standby.signal")
        self.stop()
        with open(signal, "w"):
            os.chown(signal, *self._owner())
        self.start()
        try:
            yield
        finally:
            self.stop()
            os.unlink(signal)
            self.start()

    def dsn(self, dbname="postgres", user="postgres", port=None):
        return (f"host=127.0.0.1 port={port or self.port} user={user} dbname={dbname} "
                "connect_timeout=5")

    def psql(self, sql, dbname="postgres"):
        """Run SQL with psql; its rows, unaligned, a line each."""
        r = subprocess.run([self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-d",
                            self.dsn(dbname), "-c", sql], capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError(r.stderr.strip())
        return r.stdout.splitlines()

    def create(self, dbname):
        """A fresh database; its dsn."""
        self.psql(f'DROP DATABASE IF EXISTS "{dbname}" WITH (FORCE)')
        self.psql(f'CREATE DATABASE "{dbname}"')
        return self.dsn(dbname)
