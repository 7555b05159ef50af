"""Start an empty PostgreSQL and Kafka for use by hand, say how to reach them, stop them on Ctrl-C."""
import argparse
import signal
import sys

from . import kafka, postgres


def configuration(sinks):
    """What hooktrail.yaml needs, ready to paste."""
    lines = ["", "hooktrail.yaml:", "", "state: /tmp/hooktrail-play", "sinks:", "  sqlite: {}"]
    lines += [f"  {name}: {{{settings}}}" for name, settings in sinks.items()]
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(prog="make servers", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1)
    brokers = parser.parse_args().brokers
    running = []
    sinks = {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if reason := postgres.why_not():
            print(f"PostgreSQL: not started: {reason}")
        else:
            pg = postgres.Postgres()
            running.append(pg.__enter__())
            dsn = pg.create("hooktrail")
            sinks["postgres"] = f'dsn: "{dsn}"'
            print(f'PostgreSQL: psql "{dsn}"')
        if reason := kafka.why_not():
            print(f"Kafka:      not started: {reason}")
        else:
            k = kafka.Kafka(None, brokers)
            running.append(k.__enter__())
            sinks["kafka"] = f'properties: {{bootstrap.servers: "{k.bootstrap}"}}'
            print(f"Kafka:      kcat -b {k.bootstrap} -L")
        print(configuration(sinks))
        print("All is empty and the ports are new at each start, and nothing stays at the end.")
        print("Ctrl-C stops them.", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print()
    finally:
        for server in reversed(running):
            server.__exit__()


main()
