"""tools/quiet: what a quiet machine is, and that only what was measured gets into the record."""

import json
import subprocess

import pytest

HEAD = "workload,point,metric,value\n"


@pytest.fixture(scope="module")
def quiet(module_of):
    return module_of("quiet")


def row(claim, value, metric="check"):
    point = json.dumps({"claim": claim}).replace('"', '""')
    return f'w,"{point}",{metric},{value}\n'


def test_waiting_for_a_disk_is_idle_and_another_s_time_is_not(quiet):
    before = "cpu 10 0 10 100 10 0 0 0 0 0"
    assert quiet.idle_share(before, "cpu 10 0 10 190 20 0 0 0 0 0") == 1.0
    assert quiet.idle_share(before, "cpu 12 0 11 190 10 0 0 7 0 0") == 0.9
    assert quiet.idle_share(before, before) == 0.0


def test_rows_take_the_place_of_those_of_the_same_claim_and_no_others(quiet):
    record = HEAD + row("A", 1) + row("B", 2) + row("B", 3) + row("C", 4)
    measured = HEAD + row("B", 7) + row("B", 8) + row("C", 9)
    assert quiet.replaced(record, measured, ["B"]) == HEAD + row("A", 1) + row("B", 7) + row("B", 8) + row("C", 4)
    assert quiet.replaced(record, measured, ["B", "C"]).endswith(row("B", 8) + row("C", 9))
    assert quiet.replaced(HEAD + row("A", 1), measured, ["B"]) == HEAD + row("A", 1) + row("B", 7) + row("B", 8)


@pytest.mark.parametrize(("measured", "why"), [(row("A", 1), "nothing was measured of B"), (row("B", ""), "no number for B"), (row("B", 1, "makespan_ns"), "nothing was measured")])
def test_what_was_not_measured_leaves_the_record_alone(quiet, measured, why):
    with pytest.raises(SystemExit, match=why):
        quiet.replaced(HEAD + row("B", 2), HEAD + measured, ["B"])


def test_it_names_a_paper_that_is_none_and_says_what_it_would_run(root):
    run = lambda *words: subprocess.run([root / "tools" / "quiet", *words], capture_output=True, text=True)
    assert "papers/st-andrew/record.csv" in run("st-andrew", "A-CLM06-host").stderr
    dry = run("st-andrews", "A-CLM06-host,A-CLM06-program", "--dry-run")
    assert dry.returncode == 0 and "quiet" in dry.stdout and "--full --anew --only A-CLM06-host,A-CLM06-program" in dry.stderr
