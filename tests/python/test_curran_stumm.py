"""The simulator's Central Queue baseline against an independent model in SimPy, within the intervals of both."""

import csv
import math
import statistics
import subprocess

import pytest
from curran_stumm import simulate

LOAD, TASKS, RUNS = 0.6, 1000, 10
# Student's t, 99.9 % for 2 * RUNS - 2 = 18 degrees of freedom: a false alarm in a thousand, but the seeds are fixed.
T = 3.922


@pytest.fixture(scope="module")
def simulator(root):
    """The rows of the example `unix1990`, for Central Queue."""
    command = ["cargo", "run", "--locked", "-q", "--example", "unix1990", "--", str(LOAD), str(TASKS), str(RUNS)]
    out = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(out.splitlines(), delimiter="\t"))
    return [row for row in rows if row["policy"] == "central:rr"]


@pytest.fixture(scope="module")
def model():
    """GRR and migration rate of each run of the SimPy model."""
    return [simulate(LOAD, TASKS, TASKS // 10, seed) for seed in range(1, RUNS + 1)]


def agree(ours, theirs):
    half_width = T * math.sqrt((statistics.variance(ours) + statistics.variance(theirs)) / RUNS)
    difference = statistics.mean(ours) - statistics.mean(theirs)
    print(f"ours {statistics.mean(ours):.4f}, SimPy {statistics.mean(theirs):.4f}, difference {difference:+.4f} ± {half_width:.4f}")
    assert abs(difference) <= half_width
    return half_width / statistics.mean(theirs)


def test_the_response_ratio_agrees(simulator, model):
    assert len(simulator) == RUNS
    width = agree([float(row["grr"]) for row in simulator], [grr for grr, _ in model])
    assert width < 0.05, "an interval that wide says nothing"


def test_the_migration_rate_agrees(simulator, model):
    width = agree([float(row["migration_rate"]) for row in simulator], [rate for _, rate in model])
    assert width < 0.10, "an interval that wide says nothing"
