"""The statistics of `compare --on host`, computed again with SciPy from the single runs that it keeps."""

import csv
import json
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

POLICIES = ["kernel:other", "kernel:batch", "kernel:idle"]
BETTER = {"makespan_ns": -1, "cpu_time_ns": -1, "run_delay_ns": -1, "throughput": 1}
MARGIN, ALPHA, ROUNDS = 0.02, 0.05, 8


@pytest.fixture(scope="module")
def measured(schedlab, tmp_path_factory):
    """Rows by (policy, metric), and the single runs. Time for one look only: at the end."""
    out = tmp_path_factory.mktemp("host")
    policies = ["--policy", ",".join(POLICIES), "--ensemble", ROUNDS]
    schedlab("compare", "hogs:3?work=3ms", "--on", "host", *policies, "-o", out, code=0)
    rows = json.loads((out / "results.json").read_text())["rows"]
    runs = defaultdict(dict)
    for run in csv.DictReader((out / "runs.csv").open()):
        runs[run["policy"], run["metric"]][int(run["round"])] = float(run["value"])
    return {(row["candidate"], row["metric"]): row for row in rows if not row["point"] and not row["subject"]}, runs


def test_means_and_intervals_are_students(measured):
    rows, runs = measured
    for policy in POLICIES:
        for metric in BETTER:
            values = list(runs[policy, metric].values())
            row = rows[policy, metric]
            assert row["runs"] == len(values) == ROUNDS
            low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
            assert row["value"] == pytest.approx(np.mean(values), rel=1e-9)
            assert row["ci_low"] == pytest.approx(low, rel=1e-6) and row["ci_high"] == pytest.approx(high, rel=1e-6)


def test_the_median_is_between_bootstrap_bounds(measured):
    rows, runs = measured
    for policy in POLICIES:
        values = np.array(list(runs[policy, "makespan_ns"].values()))
        row = rows[policy, "makespan_ns_median"]
        assert row["value"] == pytest.approx(np.median(values))
        theirs = stats.bootstrap((values,), np.median, method="percentile", n_resamples=2000, rng=1).confidence_interval
        # Two draws of 2,000 samples: their bounds differ by a few of the values at most.
        spread = values.max() - values.min()
        assert abs(row["ci_low"] - theirs.low) <= 0.35 * spread and abs(row["ci_high"] - theirs.high) <= 0.35 * spread


def test_paired_differences_are_a_paired_t_test(measured):
    rows, runs = measured
    base = np.array(list(runs[POLICIES[0], "makespan_ns"].values()))
    for policy in POLICIES[1:]:
        difference = stats.ttest_rel(np.array(list(runs[policy, "makespan_ns"].values())), base).confidence_interval(0.95)
        row = rows[policy, "makespan_difference"]
        assert row["ci_low"] == pytest.approx(difference.low / base.mean(), rel=1e-6)
        assert row["ci_high"] == pytest.approx(difference.high / base.mean(), rel=1e-6)


def holm(values):
    order = np.argsort(values)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1, np.maximum.accumulate((len(values) - np.arange(len(values))) * np.array(values)[order]))
    return corrected


def test_verdicts_follow_from_the_rule(measured):
    rows, runs = measured
    pairs, different, beyond, differ = [], [], [], []
    for policy in POLICIES[1:]:
        for metric in BETTER:
            base = np.array(list(runs[POLICIES[0], metric].values()))
            differences = np.array(list(runs[policy, metric].values())) - base
            margin = MARGIN * base.mean()
            pairs.append((policy, metric))
            differ.append(differences)
            different.append(stats.ttest_1samp(differences, 0).pvalue)
            beyond.append(
                max(
                    stats.ttest_1samp(differences, margin, alternative="less").pvalue,
                    stats.ttest_1samp(differences, -margin, alternative="greater").pvalue,
                )
            )
    # One look has half of the level, and each family half of that. The program corrects over more metrics than these: what it decides must be decided here as well.
    level = ALPHA / 2 / 2
    for (policy, metric), differences, p_different, p_beyond in zip(pairs, differ, holm(different), holm(beyond)):
        row, mean = rows[policy, metric], differences.mean()
        if row["verdict"] == "equivalent":
            assert p_beyond <= level or not differences.any(), (policy, metric, p_beyond)
        elif row["verdict"] in ("better", "worse"):
            assert p_different <= level and (differences * mean > 0).all(), (policy, metric, p_different)
            assert (row["verdict"] == "better") == (math.copysign(1, mean) == BETTER[metric])
        else:
            assert row["verdict"] == "undecided" and row["reason"], (policy, metric)
        effect = mean / np.mean(list(runs[POLICIES[0], metric].values()))
        # Ten times the baseline and more is no share of it: a small run delay on a machine that others use.
        assert row["effect"] == (pytest.approx(effect, rel=1e-6) if abs(effect) < 10 else None)
