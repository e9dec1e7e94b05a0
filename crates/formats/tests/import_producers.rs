//! Several clocks and machines in one file, losses, and files of machines of other kinds.

mod import_support;

use import_support::{Imported, complaint, contents, import_bytes};
use schedsim::trace::{EventKind, PrevState, WakeContext};
use schedsim::{CpuId, TaskId};

/// What a recording machine is like.
#[derive(Clone, Copy)]
struct Producer {
    big_endian: bool,
    /// The bytes of a `long`.
    long: u64,
}

impl Producer {
    fn number(self, number: u64, size: usize) -> Vec<u8> {
        match self.big_endian {
            true => number.to_be_bytes()[8 - size..].to_vec(),
            false => number.to_le_bytes()[..size].to_vec(),
        }
    }

    /// Sized text, as `format` files are stored.
    fn sized(self, text: &str) -> Vec<u8> {
        [self.number(text.len() as u64, 8), text.as_bytes().to_vec()].concat()
    }

    /// An event: the first word has its length in words and the time since the last one.
    fn event(self, delta: u64, fields: &[u8]) -> Vec<u8> {
        let words = fields.len() as u64 / 4;
        let head = match self.big_endian {
            true => words << 27 | delta,
            false => words | delta << 5,
        };
        [self.number(head, 4), fields.to_vec()].concat()
    }

    fn word(self, number: u64) -> Vec<u8> {
        self.number(number, 4)
    }

    /// What perf and trace-cmd copy from the kernel: byte order and sizes, the format of a page, and
    /// those of two tracepoints.
    fn described(self) -> Vec<u8> {
        let common = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
            \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
        let long = self.long;
        let switch = format!(
            "name: sched_switch\nID: 300\nformat:\n{common}\
             \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
             \tfield:long prev_state;\toffset:32;\tsize:{long};\tsigned:1;\n\
             \tfield:char next_comm[16];\toffset:{};\tsize:16;\tsigned:0;\n\
             \tfield:pid_t next_pid;\toffset:{};\tsize:4;\tsigned:1;\n\
             \tfield:int next_prio;\toffset:{};\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n",
            32 + long,
            48 + long,
            52 + long
        );
        let waking = format!(
            "name: sched_waking\nID: 301\nformat:\n{common}\
             \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
             \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
             \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"
        );
        let header = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: char data;\toffset:{};\tsize:{};\tsigned:1;\n",
            8 + long,
            4096 - 8 - long
        );
        [
            vec![self.big_endian.into(), long as u8],
            self.word(4096),
            b"header_page\0".to_vec(),
            self.sized(&header),
            b"header_event\0".to_vec(),
            self.sized(""),
            self.word(0), // ftrace's own events
            self.word(1),
            b"sched\0".to_vec(),
            self.word(2),
            self.sized(&switch),
            self.sized(&waking),
        ]
        .concat()
    }

    /// On CPU 0 `a` is woken by a hardware interrupt, runs for 5 µs and sleeps: the time since the
    /// last event, and the fields of each.
    fn events(self) -> [(u64, Vec<u8>); 3] {
        let name = |name: &str| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.resize(16, 0);
            bytes
        };
        let begin =
            |id: u64, flags: u64| [self.number(id, 2), vec![flags as u8, 0], self.word(0)].concat();
        let task = |comm: &str, pid: u64| [name(comm), self.word(pid), self.word(120)].concat();
        let switched = |from: (&str, u64), state: u64, to: (&str, u64)| {
            let state = self.number(state, self.long as usize);
            [begin(300, 0), task(from.0, from.1), state, task(to.0, to.1)].concat()
        };
        let woken = [begin(301, 8), task("a", 7), self.word(0)].concat();
        [
            (0, woken),
            (1000, switched(("swapper/0", 0), 0, ("a", 7))),
            (5000, switched(("a", 7), 1, ("swapper/0", 0))),
        ]
    }

    /// A perf.data with two events, each with the clock that its attribute names, if any.
    fn perf_data(self, clocks: [Option<u64>; 2]) -> Vec<u8> {
        const ATTRIBUTE: usize = 112;
        let long = |number: u64| self.number(number, 8);
        let mut data = Vec::new();
        let mut time = 1_000_000;
        for (delta, fields) in self.events() {
            time += delta;
            let raw = (fields.len() as u64 + 4).next_multiple_of(8) as usize - 4;
            let mut fields = fields;
            fields.resize(raw, 0);
            // Of the ids `{ pid, tid }`, the time, the CPU, and the raw fields.
            let sample = [self.word(7), self.word(7), long(time), self.word(0), self.word(0)];
            let sample = [sample.concat(), self.word(raw as u64), fields].concat();
            let head = [self.word(9), self.number(0, 2), self.number(sample.len() as u64 + 8, 2)];
            data.extend([head.concat(), sample].concat());
        }
        let attributes = [300, 301].into_iter().zip(clocks).map(|(id, clock)| {
            let mut attribute = vec![0; ATTRIBUTE];
            let mut put = |at: usize, bytes: Vec<u8>| {
                attribute[at..at + bytes.len()].copy_from_slice(&bytes);
            };
            put(0, self.word(2));
            put(4, self.word(ATTRIBUTE as u64));
            put(8, long(id));
            put(24, long(2 | 4 | 128 | 1024));
            let bit = if self.big_endian { 38 } else { 25 };
            put(40, long(u64::from(clock.is_some()) << bit));
            put(92, self.word(clock.unwrap_or(0)));
            [attribute, self.word(0), self.word(8), b"event\0\0\0".to_vec()].concat()
        });
        let described = [self.word(2), self.word(ATTRIBUTE as u64)].concat();
        let described = [described, attributes.collect::<Vec<_>>().concat()].concat();
        let tracing = [b"\x17\x08\x44tracing0.6\0".to_vec(), self.described()].concat();
        let section =
            |offset: usize, size: usize| [long(offset as u64), long(size as u64)].concat();
        let (begin, end) = (104, 104 + data.len());
        let places =
            [section(end + 32, tracing.len()), section(end + 32 + tracing.len(), described.len())];
        let magic = if self.big_endian { b"2ELIFREP" } else { b"PERFILE2" };
        [
            [magic.to_vec(), long(104), long(ATTRIBUTE as u64)].concat(),
            [section(0, 0), section(begin, data.len()), section(0, 0)].concat(),
            // The formats of tracepoints, and the descriptions of events.
            [long(1 << 1 | 1 << 12), long(0), long(0), long(0)].concat(),
            data,
            places.concat(),
            tracing,
            described,
        ]
        .concat()
    }

    /// A `trace.dat` of version 6 with the given options.
    fn trace_dat(self, options: &[(u64, &[u8])]) -> Vec<u8> {
        let (long, n) = (self.long, |number: u64| self.word(number));
        let events = self.events().map(|(delta, fields)| self.event(delta, &fields)).concat();
        let mut file = [
            b"\x17\x08\x44tracing6\0".to_vec(),
            self.described(),
            n(0),
            n(0),
            self.number(0, 8),
            n(1), // CPUs
            b"options  \0".to_vec(),
        ]
        .concat();
        for (id, value) in options {
            file.extend(self.number(*id, 2));
            file.extend(n(value.len() as u64));
            file.extend_from_slice(value);
        }
        file.extend(self.number(0, 2));
        file.extend_from_slice(b"flyrecord\0");
        let place = (file.len() as u64 + 16).next_multiple_of(4096);
        file.extend([self.number(place, 8), self.number(4096, 8)].concat());
        file.resize(place as usize, 0);
        file.extend(self.number(1_000_000, 8));
        file.extend(self.number(events.len() as u64, long as usize));
        file.extend(events);
        file.resize(place as usize + 4096, 0);
        file
    }
}

const USUAL: Producer = Producer { big_endian: false, long: 8 };

fn expect_events(imported: &Imported) {
    let a = TaskId(0);
    let switch = |prev, next, prev_state| EventKind::SchedSwitch { prev, next, prev_state };
    let woken = EventKind::SchedWaking { task: a, target: CpuId(0), context: WakeContext::Hardirq };
    let got: Vec<_> = imported.events.iter().map(|event| (event.time.0, event.kind)).collect();
    assert_eq!(
        got,
        [
            (0, woken),
            (1000, switch(TaskId::NONE, a, PrevState::Runnable)),
            (6000, switch(a, TaskId::NONE, PrevState::Blocked)),
        ]
    );
    assert_eq!((imported.recording.tasks[0].name.as_str(), imported.recording.cpus), ("a", 1));
}

#[test]
fn a_trace_dat_of_any_producer_is_read() {
    for big_endian in [false, true] {
        for long in [4, 8] {
            let file = Producer { big_endian, long }.trace_dat(&[]);
            let imported = import_bytes(&file).unwrap_or_else(|error| panic!("{long}: {error}"));
            expect_events(&imported);
            for length in (11..file.len()).step_by(7) {
                let message = complaint(&file[..length]);
                assert!(message.contains("cut off"), "{length}: {message}");
            }
        }
    }
}

#[test]
fn a_perf_data_of_any_producer_is_read() {
    for big_endian in [false, true] {
        for long in [4, 8] {
            let producer = Producer { big_endian, long };
            for clocks in [[None, None], [Some(1), Some(1)]] {
                let file = producer.perf_data(clocks);
                let imported = import_bytes(&file).unwrap_or_else(|error| panic!("{error}"));
                expect_events(&imported);
                assert_eq!(imported.recording.tasks[0].tgid, 7);
                for length in (9..file.len()).step_by(7) {
                    let message = complaint(&file[..length]);
                    assert!(message.contains("cut off"), "{length}: {message}");
                }
            }
            for clocks in [[Some(1), None], [Some(1), Some(4)]] {
                let message = complaint(&producer.perf_data(clocks));
                assert!(message.contains("times of several clocks"), "{message}");
            }
        }
    }
}

/// Options that shift a guest's times to its host's, that name guests of a host, and the offset to
/// the time of day, change nothing in a file that is read alone.
#[test]
fn options_of_other_machines_change_nothing() {
    let guest = [&b"guest\0"[..], &[0; 12]].concat();
    let options: [(u64, &[u8]); 5] = [
        (4, b"[local] global counter uptime perf mono"),
        (7, b"1600000000000\0"),
        (11, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (12, &[9; 40]),
        (13, &guest),
    ];
    expect_events(&import_bytes(&USUAL.trace_dat(&options)).unwrap());
}

#[test]
fn a_clock_that_counts_no_nanoseconds_is_refused_by_name() {
    for (clock, name) in [("local [counter] mono", "counter"), ("local [x86-tsc] mono", "x86-tsc")]
    {
        let message = complaint(&USUAL.trace_dat(&[(4, clock.as_bytes())]));
        let says = format!("its clock `{name}` does not count nanoseconds");
        assert!(message.contains(&says) && message.contains("-C mono"), "{message}");
    }
    // Unless it says how many nanoseconds a cycle has: here 3 × 2⁻¹, before or behind the name.
    let factor = [3u32.to_le_bytes(), 1u32.to_le_bytes(), [0; 4], [0; 4]].concat();
    let name: (u64, &[u8]) = (4, b"local [x86-tsc] mono");
    for options in [[name, (14, &factor)], [(14, &factor[..]), name]] {
        let imported = import_bytes(&USUAL.trace_dat(&options)).unwrap();
        let times: Vec<_> = imported.events.iter().map(|event| event.time.0).collect();
        assert_eq!(times, [0, 1500, 9000]);
    }
}

/// The place of the event descriptions in a perf.data.
fn descriptions(file: &[u8]) -> usize {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let sections = (number(40) + number(48)) as usize;
    let before = (number(72) & ((1 << 12) - 1)).count_ones() as usize;
    number(sections + before * 16) as usize
}

#[test]
fn a_perf_data_with_several_clocks_is_refused() {
    let mut file = contents("sort-z.perf.data");
    let at = descriptions(&file);
    let size = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
    assert!(u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) > 1 && size > 96);
    // The first of its events says that its clock is CLOCK_MONOTONIC.
    let attribute = at + 8;
    file[attribute + 40 + 3] |= 2;
    file[attribute + 92..attribute + 96].copy_from_slice(&1u32.to_le_bytes());
    let message = complaint(&file);
    assert!(message.contains("times of several clocks"), "{message}");
    assert!(message.contains("perf record -k mono"), "{message}");
}

#[test]
fn a_perf_data_with_guests_is_refused() {
    let mut file = contents("sort.perf.data.zst");
    let mut at = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    while file[at] != 9 {
        at += usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
    }
    // In place of a sample, an index of no ids, or of one of the host, and then one of a guest.
    file[at] = 69;
    file[at + 8..at + 16].copy_from_slice(&0u64.to_le_bytes());
    file[at + 16..at + 24].copy_from_slice(&4711u64.to_le_bytes());
    let message = complaint(&file);
    assert!(message.contains("it has the events of guests, too"), "{message}");
    let size = usize::from(u16::from_le_bytes([file[at + 6], file[at + 7]]));
    file[at + 16..at + size].fill(0);
    assert!(import_bytes(&file).is_ok());
}

/// A field of protobuf.
fn field(id: u64, value: &[u8]) -> Vec<u8> {
    [varint(id << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn number(id: u64, value: u64) -> Vec<u8> {
    [varint(id << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A packet of Perfetto: a bundle of a CPU with a switch to task 7, and fields beside the event.
fn packet(cpu: u64, time: u64, in_bundle: &[u8], in_packet: &[u8]) -> Vec<u8> {
    let switch = [field(1, b"swapper"), number(2, 0), number(3, 120), number(4, 0)].concat();
    let switch = [switch, field(5, b"a"), number(6, 7), number(7, 120)].concat();
    let event = field(2, &[number(1, time), field(4, &switch)].concat());
    let bundle = [number(1, cpu), event, in_bundle.to_vec()].concat();
    field(1, &[field(1, &bundle), number(10, 1), in_packet.to_vec()].concat())
}

#[test]
fn clocks_of_perfetto_are_one_or_refused() {
    let both = |first: &[u8], second: &[u8]| {
        [packet(0, 1000, first, &[]), packet(1, 2000, second, &[])].concat()
    };
    assert_eq!(import_bytes(&both(&[], &[])).unwrap().events.len(), 2);
    // The global clock of old kernels.
    assert!(import_bytes(&both(&number(5, 2), &number(5, 2))).is_ok());
    let message = complaint(&both(&[], &number(5, 2)));
    assert!(message.contains("times of several clocks"), "{message}");
    let message = complaint(&both(&number(5, 1), &number(5, 1)));
    assert!(message.contains("times of an unknown clock"), "{message}");
    let local = import_bytes(&both(&number(5, 3), &number(5, 3))).unwrap().recording.report;
    assert!(local.to_string().contains("each CPU had a clock of its own"), "{local}");
}

#[test]
fn other_machines_in_a_trace_of_perfetto_are_left_out() {
    let guest = packet(0, 1500, &[], &number(98, 77));
    let file = [packet(0, 1000, &[], &[]), guest.clone()].concat();
    let imported = import_bytes(&file).unwrap();
    assert_eq!(imported.events.len(), 1);
    let report = imported.recording.report.to_string();
    assert!(report.contains("1 bundles of events are of other machines"), "{report}");
    let message = complaint(&guest);
    assert!(message.contains("no scheduling events (1 bundles"), "{message}");
}

/// A buffer that wraps overwrites its oldest events: both formats say so in their own way.
#[test]
fn overwritten_events_are_counted() {
    let statistics = b"CPU: 0\nentries: 3\noverrun: 5\ncommit overrun: 0\n";
    let message = complaint(&USUAL.trace_dat(&[(2, statistics)]));
    assert!(message.contains("5 events were lost while recording"), "{message}");
    let lost = [packet(0, 1000, &[], &[]), packet(0, 2000, &number(3, 1), &[])].concat();
    let message = complaint(&lost);
    assert!(message.contains("1 events were lost while recording"), "{message}");
}

/// A recording that begins in the middle: the first that is seen of a task is that it stops.
#[test]
fn a_recording_may_begin_in_the_middle() {
    for name in ["ls.6.trace.dat.zst", "ls.compact.pftrace.zst", "ls.report.txt.zst"] {
        let imported = import_bytes(&contents(name)).unwrap();
        let first = imported.events.iter().find_map(|event| match event.kind {
            EventKind::SchedSwitch { prev, .. } => Some(prev),
            _ => None,
        });
        let report = &imported.recording.report;
        // The compact form does not say who it was, and the report says that.
        let is_said = report.to_string().contains("do not say from which task");
        assert_eq!(first == Some(TaskId::NONE), is_said, "{name}: {report}");
        assert_eq!(report.unseen_switch_ins(), 0, "{name}");
    }
}

/// What each CPU can do stands in a packet of its own.
#[test]
fn capacities_of_perfetto_make_speeds() {
    let cpu = |most: u64, capacity: u64| {
        let frequencies = [number(2, most / 2), number(2, most)].concat();
        field(1, &[field(1, b"ARMv8"), frequencies, number(3, capacity)].concat())
    };
    let info = field(67, &[cpu(1_800_000, 256), cpu(2_800_000, 1024)].concat());
    let file = [field(1, &info), packet(0, 1000, &[], &[]), packet(1, 2000, &[], &[])].concat();
    let speeds = |file: &[u8]| -> Vec<f64> {
        let imported = import_bytes(file).unwrap();
        imported.recording.speeds.iter().map(|speed| speed.relative).collect()
    };
    assert_eq!(speeds(&file), [0.25, 1.0]);
    // CPU 1 runs at half of its frequency from the beginning on.
    let slow = field(11, &[number(1, 1_400_000), number(2, 1)].concat());
    let slow = field(2, &[number(1, 1500), slow].concat());
    let full = field(11, &[number(1, 1_800_000), number(2, 0)].concat());
    let full = field(2, &[number(1, 900), full].concat());
    let events = [
        packet(0, 1000, &full, &[]),
        packet(1, 2000, &slow, &[]),
        packet(1, 3000, &[], &[]),
        packet(0, 3000, &[], &[]),
    ];
    let file = [field(1, &info), events.concat()].concat();
    assert_eq!(speeds(&file), [0.5, 1.0]);
}
