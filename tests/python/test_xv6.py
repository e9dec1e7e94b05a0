"""tools/xv6: what was measured of xv6 is what its files say, and a lie in them is found. With $SCHEDLAB_XV6, a clone of xv6-public, it is measured again."""

import csv
import os
import re
import subprocess

import pytest


@pytest.fixture(scope="module")
def xv6(module_of):
    return module_of("xv6")


@pytest.fixture
def costs(root):
    with (root / "kernel" / "xv6" / "costs.csv").open() as file:
        return list(csv.DictReader(file))


def rows(windows):
    """Two rows for each of (window, instructions, nanoseconds)."""
    seen, all_rows = {}, []
    for window, instructions, ns in windows:
        seen[window] = seen.get(window, 0) + 1
        point = {"window": window, "repetition": seen[window]}
        all_rows += [{"metric": "window_instructions", "point": point, "value": instructions}, {"metric": "window_ns", "point": point, "value": ns}]
    return all_rows


def test_a_window_is_summed_up_and_time_that_is_not_instructions_shows(xv6):
    windows = [(1, 10, 11), (1, 30, 31), (1, 20, 21), (2, 5, 6), (3, 7, 8), (4, 9, 12)]
    lines = list(csv.reader(xv6.summary(rows(windows)).splitlines()))
    assert lines[1][1:] == ["3", "10", "20", "30", "1"]
    assert lines[4][-1] == "3", "three nanoseconds beyond the instructions"
    with pytest.raises(SystemExit, match="other windows"):
        xv6.summary(rows(windows[:-1]))


def test_the_page_and_the_table_agree_and_time_is_exact(root, xv6, costs):
    page = (root / "kernel" / "xv6" / "README.md").read_text()
    assert [cost["window"] for cost in costs] == list(xv6.WINDOWS.values())
    for cost in costs:
        numbers = [cost[column] for column in xv6.COLUMNS[1:5]]
        assert f"| {cost['window']} | {' | '.join(numbers)} |" in page
        assert cost[xv6.COLUMNS[-1]] == "1", "an instruction takes a nanosecond, and the begin is in the time"
    switches, trips = (int(cost["times"]) for cost in costs[:2])
    assert switches >= 2 * trips, "a round trip is two switches"


def test_the_patch_marks_every_window(root):
    patch = (root / "kernel" / "xv6" / "xv6.patch").read_text()
    for name in ("SWITCH", "ROUND_TRIP", "GETPID", "FORK"):
        assert re.search(rf"^\+.*\bBEGIN\({name}\)", patch, re.M) and re.search(rf"^\+.*\bEND\({name}\)", patch, re.M)


def test_without_the_source_it_says_what_is_missing(root, tmp_path):
    for options in ([], ["--source", tmp_path]):
        run = subprocess.run([root / "tools" / "xv6", *options], capture_output=True, text=True)
        assert run.returncode == 77 and "xv6-public" in run.stderr


def test_it_is_measured_again(root):
    source = os.environ.get("SCHEDLAB_XV6")
    if not source:
        pytest.skip("SCHEDLAB_XV6 is no clone of mit-pdos/xv6-public")
    run = subprocess.run([root / "tools" / "xv6", "--source", source, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
