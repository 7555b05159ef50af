"""Free loopback ports for servers that a test starts, and waiting for those."""
import random
import socket
import time


LOWEST = 10_000
_given = set()


def _can_bind(port):
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port():
    """
    A TCP port of 127.0.0.1 that nobody listens on now, and none that the kernel gives to
    connections: a server that is stopped for a while must find it free again.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        end = int(f.read().split()[0])
    while True:
        port = random.randrange(LOWEST, max(end, 2 * LOWEST))
        if port not in _given and _can_bind(port):
            _given.add(port)
            return port


def wait_until(condition, seconds):
    """Wait until condition() is true; False after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def accepts(port):
    """Whether 127.0.0.1:port takes a connection now."""
    with socket.socket() as s:
        s.settimeout(0.5)
        return s.connect_ex(("127.0.0.1", port)) == 0
