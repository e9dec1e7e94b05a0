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
    ours = {int(row["params"]["pid"]): row["value"] for row in inspected["rows"] if row["metric"] == "task_cpu_time_ns" and row["value"] > 0}
    trace = PerfettoTrace(file)
    assert trace.cpu_time_by_task() == ours
    assert f"sched_waking: {trace.wakings}\n" in schedlab("inspect", recording)
    assert set(ours) <= set(trace.threads)


def test_queue_lengths_have_the_metrics_mean(schedlab, root, tmp_path):
    recording = root / "workloads" / RECORDINGS[1]
    file = tmp_path / "trace.pftrace"
    schedlab("export", recording, "-o", file)
    inspected = json.loads(schedlab("inspect", recording, "--format", "json"))
    trace = PerfettoTrace(file)
    queues = {track.name: uuid for uuid, track in trace.tracks.items() if track.HasField("counter")}
    for row in inspected["rows"]:
        if row["metric"] != "cpu_ready_length_mean":
            continue
        changes = trace.counters[queues[f"ready queue of CPU {row['params']['cpu']}"]]
        area = sum(length * (until - since) for (since, length), (until, _) in zip(changes, changes[1:]))
        assert area / trace.end == pytest.approx(row["value"], rel=1e-12)


def test_a_simulation_exports_with_its_overhead(schedlab, root, tmp_path):
    recording, own, file = root / "workloads" / RECORDINGS[1], tmp_path / "own.trace", tmp_path / "own.pftrace"
    run = json.loads(schedlab("run", recording, "--policy", "take:rr", "--switch-cost", "2us", "--format", "json", "--trace", own))
    schedlab("export", own, "-o", file)
    trace = PerfettoTrace(file)
    values = {row["metric"]: row["value"] for row in run["rows"]}
    # What is on the CPU is CPU time and overhead on the tasks' account; leaving idle is the idle task's.
    charged = values["switch_overhead_ns"] + values["migration_overhead_ns"]
    assert sum(trace.cpu_time_by_task().values()) == pytest.approx(values["cpu_time_ns"] + charged, abs=0)
    overheads = [track for track in trace.tracks.values() if track.name.startswith("overhead of CPU")]
    assert len(overheads) == 2
