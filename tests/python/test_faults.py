"""The table of faults is complete, the tool that makes it sees what is wrong, and a few of its cells hold here."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def faults(root, program):
    def run(*words):
        return subprocess.run([root / "tools/faults", *words], capture_output=True, text=True, env={**os.environ, "SCHEDLAB": str(program)})

    return run


def test_every_command_and_fault_is_in_the_table(root, faults, tmp_path):
    done = faults("--check")
    assert done.returncode == 0, done.stderr
    (tmp_path / "docs").mkdir()
    for name in ("FAULTS.md", "faults.json"):
        shutil.copy(root / "docs" / name, tmp_path / "docs")
    page = tmp_path / "docs/FAULTS.md"
    page.write_text(page.read_text().replace("| full disk |", "| disk |", 1))
    assert faults("--check", "--root", tmp_path).returncode == 4
    kept = tmp_path / "docs/faults.json"
    kept.write_text(kept.read_text().replace('"SIGTERM"', '"SIGNONE"', 1))
    done = faults("--check", "--root", tmp_path)
    assert done.returncode == 4 and "nothing on compare × SIGTERM" in done.stderr, done.stderr


def test_a_command_that_does_wrong_is_caught(faults):
    done = faults("--canaries")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_few_cells(faults):
    wanted = ["SIGTERM", "SIGKILL", "quota", "full device", "full pipe", "two at once"]
    done = faults("compare", "--dry", "--moments", "1", *(word for name in wanted for word in ("--fault", name)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": pass 1") == len(wanted), done.stdout


def test_an_unknown_name_is_refused(faults):
    for words in (["compair"], ["compare", "--fault", "SIGNONE"]):
        done = faults(*words)
        assert done.returncode == 2 and "known: " in done.stderr, done.stderr
