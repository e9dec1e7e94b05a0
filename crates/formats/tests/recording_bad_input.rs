//! Recordings with causes that lie, lack something or are large: a message, or an approximation that
//! is counted. Each test breaks a small recording in one way.

mod import_support;

use formats::import::{Options, Recording, read};
use import_support::Temporary;
use recording::{Class, Counts, End, Event, Machine, What, Writer, member};
use schedsim::workload::{
    Action, Operation, Recorded, ReplayBuilder, ReplayOptions, ReplayReport, Workload,
};
use schedsim::{Nanos, Time};

/// Numbers of system calls of x86-64.
const READ: u16 = 0;
const WRITE: u16 = 1;
const WAIT4: u16 = 61;

/// The object of a pipe.
const PIPE: u64 = 1;

/// Events on CPU 0, one a microsecond.
#[derive(Default)]
struct Tape(Vec<Event>);

impl Tape {
    fn push(&mut self, tid: u32, what: What) -> &mut Tape {
        let time = 1_000 * (self.0.len() as u64 + 1);
        self.0.push(Event { time, cpu: 0, context: 0, tid, what });
        self
    }

    /// `next` runs in place of `prev`, which stays runnable (0), sleeps (1) or has ended (2).
    fn switch(&mut self, prev: u32, state: u8, next: u32, object: u64) -> &mut Tape {
        let (prev_prio, next_prio) = (120, 120);
        self.push(prev, What::Switch { state, prev_prio, next, next_prio, prev_tgid: prev, object })
    }

    fn pipe(&mut self) -> &mut Tape {
        self.push(7, What::Object { id: PIPE, class: Class::Pipe, inode: 99, peer: 65_536 })
    }

    fn call(&mut self, tid: u32, number: u16, object: u64, result: i64) -> &mut Tape {
        self.push(tid, What::Call { object, result, number, op: 0, duration: 1_500 })
    }

    fn wakes(&mut self, tid: u32, task: u32, object: u64) -> &mut Tape {
        self.push(tid, What::Waking { task, target: 0, prio: 120, call: 2, object })
    }

    fn fork(&mut self, parent: u32, child: u32) -> &mut Tape {
        self.push(parent, What::Fork { parent, child, child_tgid: child, number: 0, namespace: 0 })
    }

    /// Task 7 reads from the pipe, and sleeps until 8 has written to it.
    fn talk(&mut self) -> &mut Tape {
        self.switch(0, 0, 7, 0).pipe();
        self.switch(7, 1, 8, PIPE).wakes(8, 7, PIPE);
        self.0.push(Event {
            time: 1_000 * (self.0.len() as u64 + 1),
            cpu: 0,
            context: 0,
            tid: 8,
            what: What::Call { object: PIPE, result: 5, number: WRITE, op: 0, duration: 1_500 },
        });
        self.switch(8, 0, 7, 0)
            .push(7, What::Call { object: PIPE, result: 5, number: READ, op: 0, duration: 4_500 })
    }

    fn bytes(&self, change: impl FnOnce(&mut Machine, &mut Counts)) -> Vec<u8> {
        let mut machine =
            Machine { cpus: 1, architecture: "x86_64".to_string(), ..Machine::default() };
        let mut counts = Counts::default();
        for event in &self.0 {
            *counts.written.entry(event.what.name().to_string()).or_default() += 1;
        }
        counts.emitted = counts.written.clone();
        change(&mut machine, &mut counts);
        let mut writer = Writer::new(Vec::new(), &machine).unwrap();
        for some in self.0.chunks(4096) {
            writer.events(some).unwrap();
        }
        writer.end(&End { counts, status: Some(0) }).unwrap()
    }

    fn read(&self) -> Read {
        self.read_with(|_, _| {}).unwrap()
    }

    fn read_with(&self, change: impl FnOnce(&mut Machine, &mut Counts)) -> Result<Read, String> {
        import(&self.bytes(change), false)
    }
}

struct Read {
    recording: Recording,
    workload: Workload,
    report: ReplayReport,
}

impl Read {
    /// The operations of the task with this thread id, the last if several have it.
    fn operations(&self, pid: u32) -> Vec<Operation> {
        let has_pid = |task: &schedsim::trace::TaskInfo| task.pid == pid;
        let task = self.recording.tasks.iter().rposition(has_pid).unwrap();
        let steps = self.workload.tasks[task].script.steps();
        let operation =
            |then| if let Action::Do(operation) = then { Some(operation) } else { None };
        steps.filter_map(|step| operation(step.then)).collect()
    }

    fn warns(&self, of: &str) -> bool {
        self.recording.report.warnings.iter().any(|warning| warning.contains(of))
    }
}

fn import(bytes: &[u8], allow_lost: bool) -> Result<Read, String> {
    let file = Temporary::new(bytes);
    let mut builder = ReplayBuilder::new(ReplayOptions { program: true, ..Default::default() });
    let options = Options { allow_lost, ..Options::default() };
    let mut recording =
        read(&file.0, &options, vec![&mut builder]).map_err(|error| error.to_string())?;
    builder.share(std::mem::take(&mut recording.objects));
    let (workload, report) = builder.finish(Recorded {
        recorders: &[],
        tasks: &recording.tasks,
        cpus: recording.cpus,
        end: Time(recording.duration.0),
        switch_cost: Nanos::ZERO,
    });
    Ok(Read { recording, workload, report })
}

/// What the other tests break.
#[test]
fn a_recording_of_a_talk_is_explained() {
    let read = Tape::default().talk().read();
    assert!(matches!(read.operations(7).as_slice(), [Operation::Read { bytes: 5, .. }]));
    assert!(matches!(read.operations(8).as_slice(), [Operation::Write { bytes: 5, .. }]));
    let wakeups = read.report.wakeups;
    assert_eq!((wakeups.objects, wakeups.tokens, read.report.doubted_objects), (1, 0, 0));
}

#[test]
fn a_reused_pid_is_another_task() {
    let mut tape = Tape::default();
    tape.talk().push(7, What::Exit { task: 7, prio: 120 }).switch(7, 2, 8, 0);
    tape.fork(8, 7).push(8, What::WakeupNew { task: 7, target: 0, prio: 120 });
    tape.switch(8, 0, 7, 0).call(7, WRITE, PIPE, 3).call(7, READ, PIPE, 3);
    let read = tape.read();
    assert_eq!((read.recording.report.pids_reused, read.recording.tasks.len()), (1, 3));
    assert!(matches!(
        read.operations(7).as_slice(),
        [Operation::Write { bytes: 3, .. }, Operation::Read { bytes: 3, .. }]
    ));
}

/// A descriptor that was passed (`SCM_RIGHTS`) has the object of the one that was opened.
#[test]
fn who_got_a_descriptor_from_another_talks_through_the_same_object() {
    let mut tape = Tape::default();
    tape.switch(0, 0, 7, 0)
        .push(7, What::Object { id: 5, class: Class::UnixSocket, inode: 50, peer: 6 });
    tape.0.clear();
    // Only 8 has opened the pipe: 7 got it, and reads from it.
    let read = tape.talk().read();
    assert_eq!(read.report.wakeups.objects, 1);
    // The other end went to a task that is not recorded: the pipe explains nothing, and is counted.
    let mut tape = Tape::default();
    tape.talk();
    tape.0.retain(|event| !matches!(event.what, What::Call { number: WRITE, .. }));
    let read = tape.read();
    assert_eq!((read.report.wakeups.tokens, read.report.doubted_objects), (1, 1));
    assert!(read.operations(7).is_empty());
}

#[test]
fn a_thread_that_executes_a_program_goes_on_under_the_pid_of_its_leader() {
    let mut tape = Tape::default();
    tape.talk().switch(7, 0, 8, 0).call(8, WRITE, PIPE, 9).push(8, What::Exec { task: 6, old: 8 });
    tape.call(6, READ, PIPE, 9);
    let read = tape.read();
    let operations = read.operations(6);
    assert_eq!(operations.len(), 3, "those before and after it: {operations:?}");
}

#[test]
fn clocks_out_of_order_are_refused_and_corrected_ones_are_counted() {
    let mut tape = Tape::default();
    tape.talk();
    let message = tape
        .read_with(|_, counts| counts.late = 3)
        .map(|read| read.warns("3 events came too late to be put in order"));
    assert_eq!(message, Ok(true));
    tape.0[3].time = 10;
    let Err(message) = tape.read_with(|_, _| {}) else { panic!("it is read") };
    assert!(message.contains("is before the one's before it"), "{message}");
}

/// In another namespace of pids, `wait4` returns numbers that are others' here.
#[test]
fn a_wait_for_a_pid_of_another_namespace_waits_for_nobody_else() {
    let mut tape = Tape::default();
    tape.switch(0, 0, 9, 0).fork(9, 7).switch(9, 1, 7, 0);
    tape.switch(7, 1, 8, 0).push(8, What::Exit { task: 8, prio: 120 });
    tape.switch(8, 2, 9, 0).call(9, WAIT4, 0, 7).call(9, WAIT4, 0, 8);
    let read = tape.read();
    // 7 is alive, so the call waited for another; 8 has ended.
    assert_eq!(read.operations(9).len(), 1, "{:?}", read.operations(9));
    assert_eq!(read.report.doubted_objects, 1);
}

#[test]
fn calls_of_32_bit_tasks_are_named() {
    let mut tape = Tape::default();
    let named = "calls of 32-bit tasks are not recorded";
    let read = tape
        .talk()
        .read_with(|_, counts| counts.unresolved = [(named.to_string(), 12)].into())
        .unwrap();
    assert!(read.warns("12 calls of 32-bit tasks"), "{:?}", read.recording.report.warnings);
}

#[test]
fn calls_of_an_unknown_architecture_are_not_guessed() {
    let mut tape = Tape::default();
    let read = tape.talk().read_with(|machine, _| machine.architecture = "vax".into()).unwrap();
    assert!(read.warns("of the architecture vax are not known"));
    assert_eq!((read.report.wakeups.objects, read.report.wakeups.tokens), (0, 1));
}

#[test]
fn a_task_that_never_sleeps_is_one_run() {
    let mut tape = Tape::default();
    tape.switch(0, 0, 7, 0);
    for _ in 0..10 {
        tape.switch(7, 0, 7, 0);
    }
    tape.call(7, READ, 0, 0).push(7, What::Exit { task: 7, prio: 120 }).switch(7, 2, 0, 0);
    let read = tape.read();
    let steps: Vec<_> = read.workload.tasks[0].script.steps().collect();
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].run, steps[0].then), (Nanos(13_000), Action::Exit));
    assert_eq!(read.report.wakeups.shares(), None);
}

#[test]
fn a_million_tasks_are_read() {
    const FIRST: u32 = 10;
    let mut tape = Tape::default();
    tape.switch(0, 0, 7, 0);
    for child in FIRST..FIRST + 1_000_000 {
        tape.fork(7, child);
    }
    tape.call(7, WAIT4, 0, i64::from(FIRST)).switch(7, 2, 0, 0);
    let read = tape.read();
    assert_eq!(read.workload.tasks.len(), 1_000_001);
    assert_eq!(read.operations(7).len(), 0, "none of them has ended");
}

#[test]
fn another_version_is_refused_by_its_number() {
    let mut bytes = Tape::default().talk().bytes(|_, _| {});
    let at = recording::MAGIC.len();
    bytes[at] = bytes[at].wrapping_add(41);
    let Err(message) = import(&bytes, false) else { panic!("it is read") };
    assert!(message.contains("version"), "{message}");
}

#[test]
fn overrun_buffers_are_refused_unless_allowed() {
    let mut tape = Tape::default();
    let bytes = tape.talk().bytes(|_, counts| counts.lost = [("waking".to_string(), 9)].into());
    let Err(message) = import(&bytes, false) else { panic!("it is read") };
    assert!(message.contains("9") && message.contains("lost"), "{message}");
    assert_eq!(import(&bytes, true).unwrap().recording.report.lost, 9);
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused_or_named() {
    let bytes = Tape::default().talk().bytes(|_, _| {});
    for length in 0..bytes.len() {
        match import(&bytes[..length], false) {
            Ok(read) => assert!(read.warns("was killed, or the file was cut"), "{length}"),
            Err(message) => {
                let is_empty = message.contains("no scheduling events");
                assert!(!message.is_empty(), "{length}");
                assert!(!is_empty || message.contains("ends at byte"), "{length}: {message}");
            }
        }
    }
}

/// Numbers of objects and tasks beyond all bounds, and members of calls that do not exist.
#[test]
fn members_without_a_call_change_nothing() {
    let mut tape = Tape::default();
    for op in [0, 1, member::SECOND, member::ACCEPTED, member::AWAITED, 255] {
        tape.push(7, What::Member { set: u64::MAX, object: u64::MAX, events: 1, op });
    }
    tape.push(7, What::Timer { object: u64::MAX, expiry: u64::MAX, interval: u64::MAX });
    tape.push(7, What::Setting { task: 7, which: 0, value: 0 });
    let read = tape.talk().read();
    assert_eq!((read.report.wakeups.objects, read.report.wakeups.tokens), (1, 0));
}
