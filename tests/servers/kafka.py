"""Apache Kafka in KRaft mode on free loopback ports, with its data below the build folder.

    with Kafka(folder, brokers=1) as k:
        k.bootstrap                 # "127.0.0.1:PORT,…"
        k.stop(0); k.start(0)       # an outage of one broker; kill=True is a crash

    with Kafka(guarded=True) as k:  # one broker with two more doors, and an authorizer
        k.bootstrap                 # without any guard: whoever comes here may do everything
        k.sasl                      # SASL_PLAINTEXT with PLAIN or SCRAM-SHA-256, for USER alone
        k.tls, k.authority          # its certificate is good for 127.0.0.1
        k.pilot                     # a client's certificate, and its key under KEY_PASSWORD

The jars come by Maven from pom.xml beside this file into build/kafka, once. Where they
cannot be had, why_not() says so and the tests that need a broker are skipped with that reason.
"""
import contextlib
import glob
import os
import pathlib
import shutil
import signal
import subprocess

from .certificates import Authority
from .folders import new_folder
from .ports import accepts, free_port, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
JARS = os.environ.get("HOOKTRAIL_KAFKA_JARS",
                      os.path.join(HERE, "..", "..", "build", "kafka", "jars"))
CLUSTER_ID = "hooktrailAAAAAAAAAAAAA"
START_SECONDS = 90
HEAP = "-Xmx384m"

USER, PASSWORD = "teller", "r1ght-Pa55word"  # whom the SASL door lets in
KEY_PASSWORD = "k3y-Pa55word"  # of the key of a client's certificate

_reason = []  # why there is no Kafka, once that is known


def _fetch():
    """Bring the jars. The reason when that fails."""
    if glob.glob(os.path.join(JARS, "kafka_2.13-*.jar")):
        return None
    if not shutil.which("mvn") or not shutil.which("java"):
        return "Kafka needs java and mvn, which are not installed"
    os.makedirs(JARS, exist_ok=True)
    r = subprocess.run(["mvn", "-q", "-B", "-f", os.path.join(HERE, "pom.xml"),
                        "dependency:copy-dependencies", f"-DoutputDirectory={os.path.abspath(JARS)}"],
                       capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if r.returncode == 0:
        return None
    last = [line for line in r.stdout.splitlines() if "ERROR" in line][:1]
    return "Kafka's jars cannot be had: " + (last[0][:200] if last else f"mvn exited {r.returncode}")


def why_not():
    """Why no broker can be started here; None when one can."""
    if not _reason:
        _reason.append(_fetch())
    return _reason[0]


class Kafka:
    """A cluster whose nodes are broker and controller both."""

    def __init__(self, folder=None, brokers=1, settings=(), guarded=False):
        assert brokers == 1 or not guarded
        self.owns_folder = folder is None
        self.folder = folder or new_folder("kafka")
        self.n = brokers
        self.ports = [free_port() for _ in range(brokers)]
        self.controllers = [free_port() for _ in range(brokers)]
        self.settings = dict(settings)
        self.processes = [None] * brokers
        self.bootstrap = ",".join(f"127.0.0.1:{p}" for p in self.ports)
        self.doors = {"SASL": ("SASL_PLAINTEXT", free_port()),
                      "TLS": ("SSL", free_port())} if guarded else {}
        if guarded:
            self._add_guards()

    def _add_guards(self):
        """Two more listeners, and an authorizer that knows no rule yet."""
        self.sasl, self.tls = (f"127.0.0.1:{port}" for _, port in self.doors.values())
        self.authority = Authority(os.path.join(self.folder, "tls"), "broker-authority")
        self.pilot = self.authority.issue("pilot", password=KEY_PASSWORD)
        cert, key = self.authority.issue("broker", "IP:127.0.0.1")
        store = os.path.join(self.folder, "tls", "broker.pem")
        with open(store, "w") as f:
            for part in (key, cert):
                f.write(pathlib.Path(part).read_text())
        logins = "org.apache.kafka.common.security"
        self.settings.update({
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl.plain.sasl.jaas.config":
                f'{logins}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
            "listener.name.sasl.scram-sha-256.sasl.jaas.config":
                f"{logins}.scram.ScramLoginModule required;",
            "ssl.keystore.type": "PEM", "ssl.keystore.location": store,
            "ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority.path,
            "ssl.client.auth": "requested",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true", "super.users": "User:ANONYMOUS",
        })

    def __enter__(self):
        try:
            for i in range(self.n):
                self._format(i)
            for i in range(self.n):
                self._spawn(i)
            for i in range(self.n):
                self._wait(i)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for i in range(self.n):
            self.stop(i, kill=True)
        if self.owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, i, name):
        return os.path.join(self.folder, f"node-{i}", name)

    def _java(self, heap, main, *args):
        return ["java", heap, "-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1", "-cp",
                os.path.join(os.path.abspath(JARS), "*"), main, *args]

    def _format(self, i):
        os.makedirs(os.path.dirname(self._path(i, "x")), exist_ok=True)
        copies = min(self.n, 3)
        doors = {"PLAINTEXT": ("PLAINTEXT", self.ports[i]), **self.doors}
        open_doors = ",".join(f"{name}://127.0.0.1:{port}" for name, (_, port) in doors.items())
        settings = {
            "process.roles": "broker,controller", "node.id": i,
            "controller.quorum.voters": ",".join(f"{j}@127.0.0.1:{p}"
                                                 for j, p in enumerate(self.controllers)),
            "listeners": f"{open_doors},CONTROLLER://127.0.0.1:{self.controllers[i]}",
            "advertised.listeners": open_doors,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT," + ",".join(
                f"{name}:{protocol}" for name, (protocol, _) in doors.items()),
            "log.dirs": self._path(i, "data"),
            "offsets.topic.replication.factor": copies, "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": max(1, copies - 1),
            "transaction.state.log.num.partitions": 4,
            "default.replication.factor": copies, "min.insync.replicas": max(1, copies - 1),
            "num.partitions": 3, "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2, "num.io.threads": 2, "background.threads": 2,
            # A broker that died or fell silent is missed, and may come back, after so long.
            "broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500,
            "group.min.session.timeout.ms": 1000,  # and a consumer that did, where it says so
            "log.segment.bytes": 64 * 1024 * 1024, **self.settings,
        }
        with open(self._path(i, "server.properties"), "w") as f:
            f.write("".join(f"{k}={v}\n" for k, v in settings.items()))
        users = ["--add-scram", f"SCRAM-SHA-256=[name={USER},password={PASSWORD}]"]
        subprocess.run(self._java("-Xmx128m", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID,
                                  "-c", self._path(i, "server.properties"), "--ignore-formatted",
                                  *(users if self.doors else [])),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _spawn(self, i):
        with open(self._path(i, "server.log"), "ab") as log:
            self.processes[i] = subprocess.Popen(
                self._java(HEAP, "kafka.Kafka", self._path(i, "server.properties")),
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def _wait(self, i):
        def is_up():
            if self.processes[i].poll() is not None:
                raise RuntimeError(f"Kafka ended; see {self._path(i, 'server.log')}")
            return accepts(self.ports[i])

        if not wait_until(is_up, START_SECONDS):
            raise RuntimeError(f"Kafka did not start; see {self._path(i, 'server.log')}")

    def start(self, i=0):
        """Start node i again on its ports and data."""
        self._spawn(i)
        self._wait(i)

    @contextlib.contextmanager
    def frozen(self, i=0):
        """While this lasts node i says nothing and closes nothing."""
        self.processes[i].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.processes[i].send_signal(signal.SIGCONT)

    def stop(self, i=0, kill=False):
        """End node i; kill=True is a crash."""
        p, self.processes[i] = self.processes[i], None
        if p and p.poll() is None:
            p.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            try:
                p.wait(60)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
