"""Start PostgreSQL and Kafka for use by hand, say how to reach them, stop them on Ctrl-C."""
import argparse
import os
import signal
import sys

from . import kafka, postgres

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "servers")


def main():
    parser = argparse.ArgumentParser(prog="make servers", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1)
    brokers = parser.parse_args().brokers
    running = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if reason := postgres.why_not():
            print(f"PostgreSQL: not started: {reason}")
        else:
            pg = postgres.Postgres(os.path.abspath(os.path.join(FOLDER, "postgres")))
            running.append(pg.__enter__())
            print(f'PostgreSQL: psql "{pg.create("hooktrail")}"')
        if reason := kafka.why_not():
            print(f"Kafka:      not started: {reason}")
        else:
            k = kafka.Kafka(None, brokers)
            running.append(k.__enter__())
            print(f"Kafka:      kcat -b {k.bootstrap} -L")
        print("Ctrl-C stops them.", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print()
    finally:
        for server in reversed(running):
            server.__exit__()


main()
