"""Reads the CPU rows of a Perfetto trace with Perfetto's published message classes, as its trace processor does."""

from collections import defaultdict
from itertools import accumulate

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


class PerfettoTrace:
    """The switches of each CPU, the counters, and how long each task ran."""

    def __init__(self, path):
        self.trace = Trace()
        self.trace.ParseFromString(path.read_bytes())
        self.switches = defaultdict(list)  # cpu -> [(time, tid, comm)]
        self.wakings = 0
        self.counters = defaultdict(list)  # track -> [(time, value)]
        self.tracks = {}
        self.threads = {}
        self.end = 0
        for packet in self.trace.packet:
            self._read(packet)

    def _read(self, packet):
        if packet.HasField("ftrace_events"):
            bundle = packet.ftrace_events
            compact = bundle.compact_sched
            times = accumulate(compact.switch_timestamp)
            names = (compact.intern_table[index] for index in compact.switch_next_comm_index)
            rows = list(zip(times, compact.switch_next_pid, names, strict=True))
            assert len(rows) == len(compact.switch_prev_state) == len(compact.switch_next_prio)
            # Of one time the trace processor takes the compact form first, and packets in their order.
            rows += [(event.timestamp, event.sched_switch.next_pid, event.sched_switch.next_comm) for event in bundle.event if event.HasField("sched_switch")]
            self.switches[bundle.cpu] = sorted(self.switches[bundle.cpu] + rows, key=lambda row: row[0])
            self.wakings += len(compact.waking_timestamp)
        if packet.HasField("process_tree"):
            for thread in packet.process_tree.threads:
                assert thread.tid not in self.threads, f"thread {thread.tid} twice"
                self.threads[thread.tid] = thread.name
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event") and packet.track_event.type == TrackEvent.TYPE_COUNTER:
            self.counters[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event.counter_value))
            self.end = max(self.end, packet.timestamp)

    def cpu_time_by_task(self):
        """Nanoseconds on a CPU by thread id."""
        time = defaultdict(int)
        for rows in self.switches.values():
            assert rows[0][1] == 0, "a CPU begins idle"
            ends = [start for start, _, _ in rows[1:]] + [self.end]
            for (start, tid, _), end in zip(rows, ends):
                assert start <= end, "a CPU's switches go backwards"
                if tid != 0:
                    time[tid] += end - start
        return {tid: spent for tid, spent in time.items() if spent > 0}
