"""Our Perfetto files, read with Perfetto's own message classes, and files that those wrote, read by us."""

import json
import re
import subprocess
import zlib

import pyarrow
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages
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


# A recording of trace-cmd, as `trace-cmd report -t` prints it.
REPORT = "crates/formats/tests/data/ls.report.txt.zst"
LINE = re.compile(r"^ *(.+)-(\d+) +\[(\d+)\].* (\d+)\.(\d{9}): (sched_\w+): +(.*)$")
SWITCH = re.compile(r"(.+):(\d+) \[(\d+)\] (\S+) ==> (.+):(\d+) \[(\d+)\]")
WOKEN = re.compile(r"(.+):(\d+) \[(\d+)\] CPU:(\d+)")
STATES = {"R": 0, "R+": 0x100, "S": 1, "D": 2, "X": 0x10, "Z": 0x20, "I": 0x80, "W": 0x80}


def plain(text):
    """By CPU, each event of the report in Perfetto's plain form."""
    cpus = {}
    for line in text.splitlines():
        if not (found := LINE.match(line)):
            continue
        pid, cpu, seconds, ns, name, fields = found.groups()[1:]
        event = messages.FtraceEvent(timestamp=int(seconds) * 10**9 + int(ns), pid=int(pid))
        own = dict(re.findall(r"(\w+)=(\S+)", fields))
        match name:
            case "sched_switch":
                comm, tid, prio, state, *after = SWITCH.match(fields).groups()
                of = event.sched_switch
                of.prev_comm, of.prev_pid, of.prev_prio, of.prev_state = comm, int(tid), int(prio), STATES[state]
                of.next_comm, of.next_pid, of.next_prio = after[0], int(after[1]), int(after[2])
            case "sched_waking" | "sched_wakeup" | "sched_wakeup_new":
                comm, tid, prio, target = WOKEN.match(fields).groups() if "CPU:" in fields else (own["comm"], own["pid"], own["prio"], own["target_cpu"])
                of = getattr(event, name)
                of.comm, of.pid, of.prio, of.target_cpu = comm, int(tid), int(prio), int(target)
            case "sched_migrate_task":
                of = event.sched_migrate_task
                of.comm, of.pid, of.prio, of.orig_cpu, of.dest_cpu = own["comm"], int(own["pid"]), int(own["prio"]), int(own["orig_cpu"]), int(own["dest_cpu"])
            case "sched_process_fork":
                of = event.sched_process_fork
                of.parent_comm, of.parent_pid, of.child_comm, of.child_pid = own["comm"], int(own["pid"]), own["child_comm"], int(own["child_pid"])
            case "sched_process_exec":
                of = event.sched_process_exec
                of.filename, of.pid, of.old_pid = own["filename"], int(own["pid"]), int(own["old_pid"])
            case "sched_process_exit":
                of = event.sched_process_exit
                of.comm, of.pid, of.prio = own["comm"], int(own["pid"]), int(own["prio"])
        cpus.setdefault(int(cpu), []).append(event)
    return cpus


def trace_of(cpus, size=9, pack=None, lost=None):
    """A trace with bundles of `size` events, those of the last CPU first; `pack` packs ten packets at a time into one."""
    packets = []
    for cpu, events in sorted(cpus.items(), reverse=True):
        for begin in range(0, len(events), size):
            packet = messages.TracePacket(trusted_packet_sequence_id=3)
            packet.ftrace_events.cpu = cpu
            packet.ftrace_events.event.extend(events[begin : begin + size])
            if lost == (cpu, begin):
                packet.ftrace_events.lost_events = True
            packets.append(packet)
    trace = messages.Trace(packet=packets)
    if pack:
        name, packed = pack
        parts = [messages.Trace(packet=packets[begin : begin + 10]).SerializeToString() for begin in range(0, len(packets), 10)]
        trace = messages.Trace(packet=[messages.TracePacket(**{name: packed(part)}) for part in parts])
    return trace.SerializeToString()


@pytest.fixture(scope="module")
def report(root):
    return subprocess.run(["zstd", "-dc", root / REPORT], capture_output=True, text=True, check=True).stdout


PACKED = {"zlib": ("compressed_packets", zlib.compress), "zstd": ("zstd_compressed_packets", lambda part: pyarrow.compress(part, codec="zstd", asbytes=True))}


@pytest.mark.parametrize("pack", [None, *PACKED])
def test_a_trace_that_others_wrote_has_the_events_of_the_text(schedlab, root, tmp_path, report, pack):
    if pack == "zstd" and "zstd_compressed_packets" not in messages.TracePacket.DESCRIPTOR.fields_by_name:
        pytest.skip("this package of Perfetto does not know packets packed by zstd")
    cpus = plain(report)
    assert sum(map(len, cpus.values())) == 217
    file = tmp_path / "others.pftrace"
    file.write_bytes(trace_of(cpus, pack=PACKED.get(pack)))
    ours, theirs = tmp_path / "ours.txt", tmp_path / "theirs.txt"
    schedlab("export", root / REPORT, "-o", ours)
    schedlab("export", file, "-o", theirs)
    assert theirs.read_text() == ours.read_text()
    assert "format: Perfetto" in schedlab("inspect", file)


def test_what_we_write_in_the_compact_form_comes_back(schedlab, root, tmp_path):
    recording = root / "crates/formats/tests/data/ls.7.trace.dat.zst"
    file, ours, theirs = (tmp_path / name for name in ("own.pftrace", "ours.txt", "theirs.txt"))
    schedlab("export", recording, "-o", file)
    schedlab("export", recording, "-o", ours)
    schedlab("export", file, "-o", theirs)
    read = lambda path: {tuple(re.search(r"(\d+\.\d{9}): (.*)", line).groups()) for line in path.read_text().splitlines() if ": sched" in line}
    before, after = read(ours), read(theirs)
    assert before == after
    text = schedlab("inspect", file)
    assert "do not say from which task" not in text and re.search(r"woken by: task 9, softirq 29, hardirq 3, unknown 0", text), text


def test_lost_events_sessions_at_the_same_time_and_damage_are_said(schedlab, tmp_path, report):
    cpus = plain(report)
    file = tmp_path / "t.pftrace"
    file.write_bytes(trace_of(cpus, lost=(1, 9)))
    assert "lost events: 1 " in schedlab("inspect", file)
    twice = messages.Trace.FromString(trace_of(cpus))
    again = [messages.TracePacket.FromString(packet.SerializeToString()) for packet in twice.packet]
    for packet in again:
        packet.trusted_packet_sequence_id = 4
    twice.packet.extend(again)
    file.write_bytes(twice.SerializeToString())
    text = schedlab("inspect", file)
    assert "imported: 217 of 217" in text and "2 CPUs more than once" in text
    whole = trace_of(cpus)
    for length in (1, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        said = schedlab("inspect", file, code=3)
        assert "t.pftrace" in said, said
    bad = messages.Trace.FromString(whole)
    bad.packet[0].ftrace_events.event[0].sched_waking.target_cpu = 5000
    file.write_bytes(bad.SerializeToString())
    assert "names a CPU above 4095" in schedlab("inspect", file, code=3)
