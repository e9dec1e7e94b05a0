"""tools/quiet: what a quiet machine is."""

import subprocess

import pytest


@pytest.fixture(scope="module")
def quiet(module_of):
    return module_of("quiet")


def test_waiting_for_a_disk_is_idle_and_another_s_time_is_not(quiet):
    before = "cpu 10 0 10 100 10 0 0 0 0 0"
    assert quiet.idle_share(before, "cpu 10 0 10 190 20 0 0 0 0 0") == 1.0
    assert quiet.idle_share(before, "cpu 12 0 11 190 10 0 0 7 0 0") == 0.9
    assert quiet.idle_share(before, before) == 0.0


def test_it_names_a_paper_that_is_none_and_says_what_it_would_run(root):
    run = lambda *words: subprocess.run([root / "tools" / "quiet", *words], capture_output=True, text=True)
    assert "papers/st-andrew/record.csv" in run("st-andrew", "A-CLM06-host").stderr
    dry = run("st-andrews", "A-CLM06-host,A-CLM06-program", "--dry-run")
    assert dry.returncode == 0 and "quiet" in dry.stdout and "--full --anew --only A-CLM06-host,A-CLM06-program" in dry.stderr
