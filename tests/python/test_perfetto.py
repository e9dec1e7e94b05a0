"""Our Perfetto files, read with Perfetto's own message classes."""

import json

import pytest
from perfetto_trace import PerfettoTrace

RECORDINGS = ["cargo-build.perf-script.txt.zst", "hackbench.perf-script.txt.zst", "redis.perf-script.txt.zst", "sqlite-and-xz.perf.data.zst"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_cpu_time_of_every_task_is_the_metrics_to_the_nanosecond(schedlab, root, tmp_path, name):
    recording = root / "workloads" / name
    file = tmp_path / "trace.pftrace"
    schedlab("export", recording, "-o", file)
    inspected = json.loads(schedlab("inspect", recording, "--format", "json"))
    ours = {int(row["point"]["pid"]): row["value"] for row in inspected["rows"] if row["metric"] == "task_cpu_time_ns" and row["value"] > 0}
    trace = PerfettoTrace(file)
    assert trace.cpu_time_by_task() == ours
    assert f"sched_waking: {trace.wakings}\n" in schedlab("inspect", recording)
    assert set(ours) <= set(trace.threads)


@pytest.fixture
def simulated(schedlab, root, tmp_path):
    """A simulation, which lacks no switch: its Perfetto file, and what `inspect` says of its perf script text, where overhead is CPU time."""
    own, text, file = (tmp_path / f"own.{ending}" for ending in ("trace", "txt", "pftrace"))
    recording = root / "workloads" / "hackbench.perf-script.txt.zst"
    schedlab("run", recording, "--policy", "take:rr", "--switch-cost", "2us", "--trace", own)
    schedlab("export", own, "-o", text)
    schedlab("export", own, "-o", file)
    return PerfettoTrace(file), json.loads(schedlab("inspect", text, "--format", "json"))["rows"]


def test_queue_lengths_have_the_metrics_mean(simulated):
    trace, rows = simulated
    queues = {track.name: uuid for uuid, track in trace.tracks.items() if track.HasField("counter")}
    means = [row for row in rows if row["metric"] == "cpu_ready_length_mean"]
    assert len(means) == len(queues) == 2
    for row in means:
        changes = trace.counters[queues[f"ready queue of CPU {row['subject']}"]]
        area = sum(length * (until - since) for (since, length), (until, _) in zip(changes, changes[1:]))
        assert area / trace.end == pytest.approx(row["value"], rel=1e-12)


def test_a_simulation_exports_with_its_overhead(simulated):
    trace, rows = simulated
    ours = {int(row["point"]["pid"]): row["value"] for row in rows if row["metric"] == "task_cpu_time_ns" and row["value"] > 0}
    assert trace.cpu_time_by_task() == ours
    overheads = [track for track in trace.tracks.values() if track.name.startswith("overhead of CPU")]
    assert len(overheads) == 2
