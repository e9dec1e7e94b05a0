"""Wakeups in sync on two CPUs: the simulator switches as often as the kernel in a guest does."""

import csv
import io

import pytest

# The workload, the largest difference of a count as a share, and the number of switches in a simulator that takes all wakeups alike.
WORKLOADS = [("ping-pong:2?times=2000", 0.02, 13784), ("workloads/board/pipeline.toml", 0.1, 194)]


def counts(text):
    rows = [row for row in csv.DictReader(io.StringIO(text)) if not row["subject"] and row["runs"] != "0"]
    return {row["metric"]: float(row["value"]) for row in rows if row["metric"] in ("switches", "dispatches")}


def is_near(count, truth, share):
    return abs(count - truth) <= share * truth


@pytest.mark.long
@pytest.mark.parametrize(("workload", "share", "all_alike"), WORKLOADS)
def test_the_simulator_switches_as_often_as_the_kernel(schedlab, root, workload, share, all_alike):
    workload = str(root / workload) if workload.endswith(".toml") else workload
    common = ["compare", workload, "--cpus", "2", "--format", "csv"]
    guest = counts(schedlab(*common, "--on", "vm", "--policy", "kernel:other", "--ensemble", "8"))
    simulated = counts(schedlab(*common, "--policy", "eevdf", "--ensemble", "16"))
    assert guest.keys() == simulated.keys() == {"switches", "dispatches"}
    for metric, truth in guest.items():
        assert is_near(simulated[metric], truth, share), (metric, simulated, guest)
    assert not is_near(all_alike, guest["switches"], share)
