//! Perfetto's protobuf: CPU rows and tasks from ftrace events, a counter for each ready queue,
//! tracks for overhead and jobs.
//!
//! Switches and wakeups use the compact form of `FtraceEventBundle`, a few bytes each; other
//! tracepoints use the plain form. A compact switch does not say who ran before. So each CPU gets a
//! plain switch to idle at zero, and then one to its first task, if any. If a recording lacks a
//! switch, the one that the metrics infer is written, with a flag that the kernel does not have
//! ([`crate::import::INFERRED`]). If a task appears on another CPU, its old CPU becomes idle. Thus
//! the rows add up to the metrics' CPU time, and a reader of ours leaves out what was added.
//!
//! Events of one time stay in order: a reader takes them by packet, in it by CPU, and on a CPU by
//! [form](bundle::Form). An event that would come too early begins a new packet.

mod bundle;
mod wire;

use super::queue_lengths::QueueLength;
use super::{Export, Names, Occupancy, Omitted, QueueLengths};
use bundle::{Bundle, Form};
use schedsim::trace::{Event, EventKind, PrevState, WakeContext};
use schedsim::{CpuId, TaskId, Time};
use std::io::{self, Write};
use wire::Message;

/// Field numbers of `TracePacket`.
mod packet {
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const TRACK_DESCRIPTOR: u32 = 60;
}

/// Field numbers of `TrackEvent`, and its type values.
mod track_event {
    pub const TYPE: u32 = 9;
    pub const TRACK: u32 = 11;
    pub const NAME: u32 = 23;
    pub const COUNTER_VALUE: u32 = 30;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// The packet sequence; all packets belong to one.
const SEQUENCE: u64 = 1;

/// Track ids; those of one kind are consecutive.
#[derive(Clone, Copy)]
enum Track {
    ReadyQueues,
    Overheads,
    Jobs,
    ReadyQueue(CpuId),
    Overhead(CpuId),
    Job(TaskId),
}

impl Track {
    fn uuid(self) -> u64 {
        match self {
            Track::ReadyQueues => 1,
            Track::Overheads => 2,
            Track::Jobs => 3,
            Track::ReadyQueue(cpu) => 0x1_0000 + u64::from(cpu.0),
            Track::Overhead(cpu) => 0x2_0000 + u64::from(cpu.0),
            Track::Job(task) => 0x1_0000_0000 + u64::from(task.0),
        }
    }
}

/// Writes a trace as Perfetto's protobuf.
pub struct Perfetto<'a> {
    out: &'a mut dyn Write,
    names: Names,
    occupancy: Occupancy,
    queue_lengths: QueueLengths,
    /// By CPU: events not yet written.
    bundles: Vec<Bundle>,
    /// The time and CPU of the last ftrace event.
    last: Option<(Time, CpuId)>,
    /// Packets not yet written.
    packets: Message,
    /// The optional tracks already introduced: overhead tracks by CPU, job tracks by task.
    overhead_tracks: Vec<bool>,
    job_tracks: Vec<bool>,
}

impl<'a> Perfetto<'a> {
    /// Begins the file.
    pub fn new(out: &'a mut dyn Write, names: Names, cpus: u16) -> io::Result<Perfetto<'a>> {
        let mut perfetto = Perfetto {
            out,
            names,
            occupancy: Occupancy::new(),
            queue_lengths: QueueLengths::new(cpus),
            bundles: Vec::new(),
            last: None,
            packets: Message::default(),
            overhead_tracks: Vec::new(),
            job_tracks: Vec::new(),
        };
        perfetto.process_tree();
        perfetto.track(Track::ReadyQueues, "Ready queues", None);
        if let Some(last) = cpus.checked_sub(1) {
            perfetto.make_room(CpuId(last));
        }
        Ok(perfetto)
    }

    #[inline]
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.make_room(event.cpu);
        let packets = &mut self.packets;
        self.queue_lengths.event(event, |length| counter(packets, length));
        if !matches!(event.kind, EventKind::SchedSwitch { .. }) {
            self.occupancy.event(event);
        }
        let time = event.time;
        match event.kind {
            EventKind::SchedSwitch { prev, next, prev_state } => {
                self.switch(event, prev, next, prev_state)?;
            }
            EventKind::SchedWaking { task, target, context } => {
                self.in_order(event, Form::Waking, context)?;
                let name = self.names.of(task);
                self.bundles[event.cpu.index()].waking(time, task, name, target, context);
            }
            EventKind::Overhead { kind, spent, .. } => {
                let name = kind.name();
                if !introduced(&mut self.overhead_tracks, event.cpu.index()) {
                    self.overhead_track(event.cpu);
                }
                let track = Track::Overhead(event.cpu);
                self.track_event(time, track, track_event::SLICE_BEGIN, name);
                self.track_event(time + spent, track, track_event::SLICE_END, "");
            }
            EventKind::JobRelease { task } => self.job(time, task, "release"),
            EventKind::JobComplete { task, .. } => self.job(time, task, "complete"),
            EventKind::ContentionBegin { task, .. } => self.job(time, task, "waits for a mutex"),
            EventKind::SchedPiSetprio { task, .. } => self.job(time, task, "priority changes"),
            _ => {
                self.in_order(event, Form::Plain, WakeContext::Unknown)?;
                self.bundles[event.cpu.index()].plain(event, &self.names);
            }
        }
        if self.bundles[event.cpu.index()].is_full() {
            self.flush_bundle(event.cpu)?;
        }
        if self.packets.len() > 1 << 16 { self.flush_packets() } else { Ok(()) }
    }

    #[inline]
    fn switch(
        &mut self,
        event: &Event,
        prev: TaskId,
        next: TaskId,
        prev_state: PrevState,
    ) -> io::Result<()> {
        let idle = TaskId::NONE;
        let own = event.cpu.index();
        let closed = self.occupancy.event(event).to_vec();
        // A run without a recorded beginning: it started with the trace, or it is inferred.
        for interval in closed.iter().filter(|interval| interval.cpu == event.cpu) {
            if interval.task != self.bundles[own].running() {
                self.inferred(event.cpu, interval.start, interval.task)?;
            }
        }
        for interval in closed.iter().filter(|interval| interval.cpu != event.cpu) {
            self.inferred(interval.cpu, interval.end, idle)?;
        }
        let is_compact = prev == self.bundles[own].running();
        let form = if is_compact { Form::Switch } else { Form::Plain };
        self.in_order(event, form, WakeContext::Unknown)?;
        let (bundle, name) = (&mut self.bundles[own], self.names.of(next));
        if is_compact {
            bundle.switch(event.time, next, name, prev_state);
        } else {
            bundle.full_switch(event.time, (self.names.of(prev), prev_state), next, name);
        }
        Ok(())
    }

    /// Appends a switch that was not recorded.
    fn inferred(&mut self, cpu: CpuId, time: Time, next: TaskId) -> io::Result<()> {
        if !self.bundles[cpu.index()].has_place(time, Form::Plain, WakeContext::Unknown) {
            self.flush_bundle(cpu)?;
        }
        let (bundle, names) = (&mut self.bundles[cpu.index()], &self.names);
        let before = names.of(bundle.running());
        bundle.inferred_switch(time, before, next, names.of(next));
        Ok(())
    }

    /// Writes what must be in a packet before that of this event, so that it is read after it.
    #[inline]
    fn in_order(&mut self, event: &Event, form: Form, context: WakeContext) -> io::Result<()> {
        if self.last.is_some_and(|(time, cpu)| time == event.time && cpu != event.cpu) {
            for cpu in (0..self.bundles.len()).filter(|&cpu| cpu != event.cpu.index()) {
                if self.bundles[cpu].latest() == Some(event.time) {
                    self.flush_bundle(CpuId(cpu as u16))?;
                }
            }
        }
        self.last = Some((event.time, event.cpu));
        if self.bundles[event.cpu.index()].has_place(event.time, form, context) {
            Ok(())
        } else {
            self.flush_bundle(event.cpu)
        }
    }

    fn make_room(&mut self, cpu: CpuId) {
        while cpu.index() >= self.bundles.len() {
            let new = CpuId(self.bundles.len() as u16);
            // The trace begins at zero, whenever its first event is.
            let (mut bundle, idle) = (Bundle::new(new), self.names.of(TaskId::NONE));
            bundle.inferred_switch(Time::ZERO, idle, TaskId::NONE, idle);
            self.bundles.push(bundle);
            self.ready_queue_track(new);
            let none = QueueLength { time: Time::ZERO, cpu: new, length: 0 };
            counter(&mut self.packets, none);
        }
    }

    // Packets.

    fn track_event(&mut self, time: Time, track: Track, kind: u64, name: &str) {
        self.packets.nested(1, |packet| {
            packet.number(packet::TIMESTAMP, time.0);
            packet.number(packet::SEQUENCE, SEQUENCE);
            packet.nested(packet::TRACK_EVENT, |event| {
                event.number(track_event::TYPE, kind);
                event.number(track_event::TRACK, track.uuid());
                if !name.is_empty() {
                    event.text(track_event::NAME, name);
                }
            });
        });
    }

    fn job(&mut self, time: Time, task: TaskId, what: &str) {
        if !introduced(&mut self.job_tracks, task.index()) {
            self.track(Track::Jobs, "Jobs", None);
            let name = self.names.of(task);
            let name = format!("{} {}", name.comm, name.tid);
            self.track(Track::Job(task), &name, Some(Track::Jobs));
        }
        self.track_event(time, Track::Job(task), track_event::INSTANT, what);
    }

    fn ready_queue_track(&mut self, cpu: CpuId) {
        self.packets.nested(1, |packet| {
            packet.number(packet::SEQUENCE, SEQUENCE);
            packet.nested(packet::TRACK_DESCRIPTOR, |track| {
                track.number(1, Track::ReadyQueue(cpu).uuid());
                track.text(2, &format!("ready queue of CPU {}", cpu.0));
                track.number(5, Track::ReadyQueues.uuid());
                track.nested(8, |counter| counter.text(6, "tasks"));
            });
        });
    }

    fn overhead_track(&mut self, cpu: CpuId) {
        self.track(Track::Overheads, "Scheduling overhead", None);
        self.track(
            Track::Overhead(cpu),
            &format!("overhead of CPU {}", cpu.0),
            Some(Track::Overheads),
        );
    }

    /// Introduces a track; a repetition is harmless.
    fn track(&mut self, track: Track, name: &str, parent: Option<Track>) {
        self.packets.nested(1, |packet| {
            packet.number(packet::SEQUENCE, SEQUENCE);
            packet.nested(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.number(1, track.uuid());
                descriptor.text(2, name);
                if let Some(parent) = parent {
                    descriptor.number(5, parent.uuid());
                }
            });
        });
    }

    /// The processes and tasks.
    fn process_tree(&mut self) {
        let names = &self.names;
        self.packets.nested(1, |packet| {
            packet.number(packet::TIMESTAMP, 0);
            packet.number(packet::SEQUENCE, SEQUENCE);
            packet.nested(packet::PROCESS_TREE, |tree| {
                for name in names.all().iter().filter(|name| name.tid == name.tgid) {
                    tree.nested(1, |process| {
                        process.number(1, u64::from(name.tgid));
                        process.text(3, &name.comm);
                    });
                }
                for name in names.all() {
                    tree.nested(2, |thread| {
                        thread.number(1, u64::from(name.tid));
                        thread.text(2, &name.comm);
                        thread.number(3, u64::from(name.tgid));
                    });
                }
            });
        });
    }

    fn flush_bundle(&mut self, cpu: CpuId) -> io::Result<()> {
        let bundle = &mut self.bundles[cpu.index()];
        if bundle.is_empty() {
            return Ok(());
        }
        self.packets.nested(1, |packet| {
            packet.number(packet::SEQUENCE, SEQUENCE);
            packet.nested(packet::FTRACE_EVENTS, |message| bundle.drain_into(message));
        });
        self.flush_packets()
    }

    fn flush_packets(&mut self) -> io::Result<()> {
        self.out.write_all(self.packets.bytes())?;
        self.packets.clear();
        Ok(())
    }
}

impl Export for Perfetto<'_> {
    fn write(&mut self, chunk: &[Event]) -> io::Result<()> {
        chunk.iter().try_for_each(|event| self.event(event))
    }

    fn finish(mut self: Box<Self>, end: Time) -> io::Result<Omitted> {
        let packets = &mut self.packets;
        self.queue_lengths.finish(|length| counter(packets, length));
        for index in 0..self.bundles.len() {
            let cpu = CpuId(index as u16);
            // Perfetto extends the last intervals to the last event of the file.
            counter(
                &mut self.packets,
                QueueLength { time: end, cpu, length: self.queue_lengths.length(cpu) },
            );
            self.flush_bundle(cpu)?;
        }
        self.flush_packets()?;
        Ok(Omitted::default())
    }
}

#[inline]
fn counter(packets: &mut Message, QueueLength { time, cpu, length }: QueueLength) {
    packets.nested(1, |packet| {
        packet.number(packet::TIMESTAMP, time.0);
        packet.number(packet::SEQUENCE, SEQUENCE);
        packet.nested(packet::TRACK_EVENT, |event| {
            event.number(track_event::TYPE, track_event::COUNTER);
            event.number(track_event::TRACK, Track::ReadyQueue(cpu).uuid());
            event.number(track_event::COUNTER_VALUE, u64::from(length));
        });
    });
}

/// Returns whether `index` was set before, and sets it.
fn introduced(all: &mut Vec<bool>, index: usize) -> bool {
    if index >= all.len() {
        all.resize(index + 1, false);
    }
    std::mem::replace(&mut all[index], true)
}
