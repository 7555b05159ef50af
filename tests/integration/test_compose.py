"""deploy/compose.yaml as far as it can be looked at without a container: it is what README says."""
import re

import yaml

from tests.integration.plant import ROOT, hooktrail

COMPOSE = ROOT / "deploy" / "compose.yaml"
README = (ROOT / "README.md").read_text()


def services():
    return yaml.safe_load(COMPOSE.read_text())["services"]


def images():
    return {name: s["image"].rsplit(":", 1) for name, s in services().items()}


def sinks_of_readme():
    """The configuration behind the sentence about the file."""
    block = README.split("(deploy/compose.yaml)", 1)[1].split("```yaml\n", 1)[1].split("```", 1)[0]
    return yaml.safe_load(block)["sinks"]


def test_the_versions_and_ports_are_those_that_readme_names():
    told = README.split("(deploy/compose.yaml)", 1)[1].split("```", 1)[0]
    found = re.findall(r"(PostgreSQL|Kafka) ([\d.]+) on\s(127\.0\.0\.1):(\d+)", told)
    assert [name for name, *_ in found] == ["PostgreSQL", "Kafka"], told
    for name, version, host, port in found:
        service = {"PostgreSQL": "postgres", "Kafka": "kafka"}[name]
        repository, tag = images()[service]
        assert repository == {"postgres": "postgres", "kafka": "apache/kafka"}[service]
        assert f"{tag}.".startswith(f"{version}."), (tag, version)
        assert services()[service]["ports"] == [f"{host}:{port}:{port}"]


def test_kafka_is_of_the_version_that_is_tested():
    pom = (ROOT / "tests" / "servers" / "pom.xml").read_text()
    tested = re.search(r"<artifactId>kafka_2.13</artifactId>\s*<version>([\d.]+)<", pom).group(1)
    assert images()["kafka"][1] == tested


def test_the_configuration_that_readme_prints_reaches_what_is_started():
    sinks, started = sinks_of_readme(), services()
    dsn = dict(word.split("=") for word in sinks["postgres"]["dsn"].split())
    login = started["postgres"]["environment"]
    assert (dsn["user"], dsn["password"], dsn["dbname"]) == tuple(
        login[f"POSTGRES_{key}"] for key in ("USER", "PASSWORD", "DB"))
    assert started["postgres"]["ports"] == [f"{dsn['host']}:5432:5432"]
    address = sinks["kafka"]["properties"]["bootstrap.servers"]
    assert started["kafka"]["ports"] == [f"{address}:{address.split(':')[1]}"]
    advertised = started["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == f"HOST://{address}"


def test_hooktrail_takes_the_configuration(tmp_path):
    config = tmp_path / "hooktrail.yaml"
    config.write_text(yaml.safe_dump({"sinks": sinks_of_readme()}))
    done = hooktrail("--config", config, "--state", tmp_path / "state", "config")
    assert done.returncode == 0, done.stderr
    assert "sinks.postgres.dsn" in done.stdout and "exactly-once" in done.stdout


def test_the_head_of_the_file_says_the_same():
    head = "".join(line.removeprefix("#").removeprefix(" ") + "\n"
                   for line in COMPOSE.read_text().split("\nname:")[0].splitlines())
    block = re.search(r"^    sinks:\n(?:     .*\n)+", head, re.M).group(0)
    assert yaml.safe_load(block)["sinks"] == sinks_of_readme()
