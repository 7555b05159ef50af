"""Free loopback ports for servers that a test starts."""
import socket


def free_port():
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, alive, seconds):
    """Wait until 127.0.0.1:port accepts; False after `seconds`, or once alive() is false."""
    import time

    end = time.monotonic() + seconds
    while time.monotonic() < end and alive():
        with socket.socket() as s:
            s.settimeout(0.5)
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.05)
    return False
