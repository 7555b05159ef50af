"""`make install` puts things where they find each other, whatever the prefix."""
import shutil
import subprocess

import pytest

from tests.integration.plant import ROOT, hooktrail


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["make", "install", f"DESTDIR={folder}", "PREFIX=/opt/h"], cwd=ROOT, check=True,
                   capture_output=True, timeout=600)
    return folder


def test_the_installed_front_finds_its_roles(root):
    answer = subprocess.run([root / "opt/h/bin/hooktrail", "config", "--get", "serve.max_rows"],
                            capture_output=True, text=True, timeout=20, check=True)
    assert answer.stdout == "10000\n"


def test_the_sample_configuration_and_the_roles_are_there_and_in_order(root):
    docs = root / "opt/h/share/doc/hooktrail"
    assert sorted(p.name for p in docs.iterdir()) == ["hooks.yaml", "hooktrail.yaml",
                                                      "postgres-roles.sql"]
    answer = subprocess.run([root / "opt/h/bin/hooktrail", "--config", docs / "hooktrail.yaml",
                             "config", "--get", "contracts.sre.hooks"], capture_output=True,
                            text=True, timeout=20, check=True)
    assert (answer.stdout, answer.stderr) == (f"{docs / 'hooks.yaml'}\n", "")


def test_the_units_start_what_was_installed(root):
    units = sorted((root / "opt/h/lib/systemd/system").iterdir())
    starts = [line for unit in units for line in unit.read_text().splitlines()
              if line.startswith("ExecStart=")]
    loads = "--config /etc/hooktrail/load.yaml --state /var/lib/hooktrail-load ship --source kafka"
    assert starts == [f"ExecStart=/opt/h/bin/hooktrail {words}" for words in (
        "--state /var/lib/hooktrail collect", loads,
        "--state /var/lib/hooktrail serve", "--state /var/lib/hooktrail ship")]
    assert (root / "opt/h/lib/sysusers.d/hooktrail.conf").read_text().count("\nu hooktrail ") == 1


@pytest.mark.parametrize("shell, path, begins", [
    ("bash", "bash-completion/completions/hooktrail", "_hooktrail() {\n"),
    ("zsh", "zsh/site-functions/_hooktrail", "#compdef hooktrail\n"),
    ("fish", "fish/vendor_completions.d/hooktrail.fish", "complete -c hooktrail "),
])
def test_a_shell_finds_the_completions_that_the_program_prints(root, shell, path, begins):
    file = root / "opt/h/share" / path
    assert file.read_text() == hooktrail("completion", shell).stdout
    assert file.read_text().startswith(begins)
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_has_nothing_to_say_but_that_the_files_are_elsewhere(root):
    units = [str(u) for u in (root / "opt/h/lib/systemd/system").iterdir()]
    answer = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True,
                            timeout=60, check=False)
    said = [line for line in answer.stderr.splitlines()
            if "is not executable: No such file" not in line and "'man " not in line]
    assert said == []
