//! Small workloads, of which each shows what a kernel takes for something.

use crate::prediction::all_at_once;
use formats::toml_file::TomlFile;
use formats::workload::ClosedWorkload;
use program::Error;
use results::Metric;
use schedsim::workload::{Phase, Tasks};
use schedsim::{Machine, Nanos};
use worlds::load::Closed;
use worlds::{Program, Run};

/// Calls that cost alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Yield,
    Pipe,
    Socket,
    Counter,
    Lock,
    Condition,
    Set,
    /// Creates a thread.
    Fork,
    /// Creates a process.
    Process,
    Sleep,
}

/// A workload whose makespan grows by what a round takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// One task that calls, and does not wait for another; of conditions, two that meet.
    Alone(Kind),
    /// A task that only calculates.
    Work,
    /// Two tasks that yield.
    Yields,
    /// Pairs of tasks that wake each other and wait, on one CPU.
    Talk,
    /// One pair on two CPUs. Each works before it wakes the other, so that that one sleeps by then.
    TalkAcross,
    /// A task that sleeps beside one that calculates.
    Beside,
}

/// The additional time, and the additional switches of the second run.
#[derive(Clone, Copy, Debug)]
pub struct Slope {
    /// In nanoseconds a round.
    pub time: f64,
    /// By round.
    pub switches: f64,
    /// The median wakeup latency of the second run, if tasks were woken.
    pub wakeup: Option<f64>,
}

/// The rounds of the first run of a probe.
pub const ROUNDS: u64 = 200;
/// The work of a forked task.
pub const CHILD: Nanos = Nanos(1_000);
/// How long a task sleeps in each round.
pub const SLEEP: Nanos = Nanos(200_000);
/// The work of a round of [`Probe::Work`].
pub const WORK: Nanos = Nanos(500_000);

/// The pairs of [`Probe::Talk`]: with one, the kernel has no task to choose, and its work is less.
pub const PAIRS: u16 = 2;
/// The work of a task of [`Probe::TalkAcross`] before it wakes the other one.
pub const APART: Nanos = Nanos(20_000);

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Yield,
        Kind::Pipe,
        Kind::Socket,
        Kind::Counter,
        Kind::Lock,
        Kind::Condition,
        Kind::Set,
        Kind::Fork,
        Kind::Process,
        Kind::Sleep,
    ];

    /// Of a phase among these tasks; `None` where it makes no call, or one that is not measured.
    pub fn of(phase: &Phase, tasks: &[Tasks]) -> Option<Kind> {
        match phase {
            Phase::Run(_) | Phase::Loop(_) | Phase::Exec(_) | Phase::Join(_) | Phase::Io(_) => None,
            Phase::Yield => Some(Kind::Yield),
            Phase::Sleep(_) | Phase::SleepUntil(_) | Phase::Timer(_) => Some(Kind::Sleep),
            Phase::Lock(_) | Phase::Unlock(_) => Some(Kind::Lock),
            Phase::Wait { .. } | Phase::Signal(_) | Phase::Broadcast(_) | Phase::Barrier(_) => {
                Some(Kind::Condition)
            }
            Phase::Read { .. } | Phase::Write { .. } => Some(Kind::Pipe),
            Phase::Send { .. } | Phase::Receive { .. } => Some(Kind::Socket),
            Phase::Post { .. } | Phase::Take { .. } => Some(Kind::Counter),
            Phase::Serve(_) | Phase::EventLoop(_) | Phase::Poll(_) | Phase::Watch(_) => {
                Some(Kind::Set)
            }
            Phase::Fork(name) => {
                let is_process = tasks.iter().any(|tasks| tasks.name == *name && tasks.process);
                Some(if is_process { Kind::Process } else { Kind::Fork })
            }
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Yield => "yield",
            Kind::Pipe => "pipe",
            Kind::Socket => "socket",
            Kind::Counter => "event counter",
            Kind::Lock => "mutex",
            Kind::Condition => "condition",
            Kind::Set => "epoll",
            Kind::Fork => "thread",
            Kind::Process => "process",
            Kind::Sleep => "sleep",
        }
    }

    /// The phases of a round, and how many calls of this kind they make. A round of `Set` makes two
    /// of an event counter as well. In a round of `Condition`, the first of two tasks waits for the
    /// second at a barrier.
    pub fn round(self) -> (String, f64) {
        let (phases, calls) = match self {
            Kind::Yield => ("'yield'", 1.0),
            Kind::Pipe => {
                ("{ write = { pipe = 'p', bytes = 1 } }, { read = { pipe = 'p', bytes = 1 } }", 2.0)
            }
            Kind::Socket => (
                "{ send = { socket = 's', bytes = 1 } }, { receive = { socket = 's', bytes = 1 } }",
                2.0,
            ),
            Kind::Counter => ("{ post = { eventfd = 'e' } }, { take = { eventfd = 'e' } }", 2.0),
            Kind::Lock => ("{ lock = 'm' }, { unlock = 'm' }", 2.0),
            Kind::Condition => ("{ barrier = 'b' }", 2.0),
            Kind::Set => (
                "{ post = { eventfd = 'e' } }, { serve = { epoll = 'q' } }, { take = { eventfd = 'e' } }",
                1.0,
            ),
            Kind::Fork | Kind::Process => ("{ fork = 'child' }, { join = 'child' }", 1.0),
            Kind::Sleep => return (format!("{{ sleep = '{}ns' }}", SLEEP.0), 1.0),
        };
        (phases.to_string(), calls)
    }
}

impl Probe {
    /// All that show something on this many CPUs.
    pub fn all(cpus: u16) -> Vec<Probe> {
        let mut all: Vec<Probe> = Kind::ALL.map(Probe::Alone).to_vec();
        all.extend([Probe::Work, Probe::Yields, Probe::Talk, Probe::Beside]);
        all.extend((cpus > 1).then_some(Probe::TalkAcross));
        all
    }

    /// The workload, as a file has it.
    fn text(self, rounds: u64) -> String {
        let task = |name: &str, cpu: u16, phases: &str| {
            format!(
                "[[task]]\nname = '{name}'\naffinity = [{cpu}]\nphases = [{{ loop = {{ times = \
                 {rounds}, phases = [{phases}] }} }}]\n"
            )
        };
        let write = |pipe: &str| format!("{{ write = {{ pipe = '{pipe}', bytes = 1 }} }}");
        let read = |pipe: &str| format!("{{ read = {{ pipe = '{pipe}', bytes = 1 }} }}");
        let talk = |pair: u16, cpu: u16, work: &str| {
            let [to, from] = ["to", "from"].map(|pipe| format!("{pipe}-{pair}"));
            let asks = format!("{work}{}, {}", write(&to), read(&from));
            let answers = format!("{}, {work}{}", read(&to), write(&from));
            task(&format!("asks-{pair}"), 0, &asks)
                + &task(&format!("answers-{pair}"), cpu, &answers)
        };
        let both =
            |kind: Kind| ["one", "other"].map(|name| task(name, 0, &kind.round().0)).concat();
        match self {
            Probe::Alone(Kind::Set) => {
                let set = "[epoll.q]\nsources = [{ eventfd = 'e' }]\n";
                task("calls", 0, &Kind::Set.round().0) + set
            }
            Probe::Alone(kind @ (Kind::Fork | Kind::Process)) => {
                task("calls", 0, &kind.round().0)
                    + &format!(
                        "[[task]]\nname = 'child'\ncount = {rounds}\nforked = true\nprocess = \
                         {}\naffinity = [0]\nphases = [{{ run = '{}ns' }}]\n",
                        kind == Kind::Process,
                        CHILD.0
                    )
            }
            Probe::Alone(Kind::Condition) => both(Kind::Condition),
            Probe::Alone(kind) => task("calls", 0, &kind.round().0),
            Probe::Work => task("works", 0, &format!("{{ run = '{}ns' }}", WORK.0)),
            Probe::Yields => both(Kind::Yield),
            Probe::Talk => (0..PAIRS).map(|pair| talk(pair, 0, "")).collect(),
            Probe::TalkAcross => talk(0, 1, &format!("{{ run = '{}ns' }}, ", APART.0)),
            Probe::Beside => {
                // As much work in both runs, longer than all sleeps.
                let work = 4 * ROUNDS * SLEEP.0;
                task("sleeps", 0, &Kind::Sleep.round().0)
                    + &format!(
                        "[[task]]\nname = 'works'\naffinity = [0]\nphases = [{{ run = '{work}ns' }}]\n"
                    )
            }
        }
    }

    pub fn program(self, rounds: u64, cpus: u16) -> Result<Program, Error> {
        let file = TomlFile::of(&format!("{self:?}-{rounds}.toml"), &self.text(rounds));
        let workload = all_at_once(&ClosedWorkload::read(file)?);
        Closed::on(workload, Machine::ideal(cpus)).map(Box::new).map(Program::Closed)
    }
}

impl Slope {
    /// Of a probe's two trials, of one run each.
    pub fn of(trials: &[Vec<Run>]) -> Result<Slope, Error> {
        let value = |trial: usize, metric| trials.get(trial)?.first()?.value(metric);
        let more = |metric| Some((value(1, metric)? - value(0, metric)?) / ROUNDS as f64);
        let slope = || {
            Some(Slope {
                time: more(Metric::makespan_ns)?,
                switches: more(Metric::switches)?,
                wakeup: value(1, Metric::wakeup_latency_ns_p50),
            })
        };
        slope().ok_or_else(|| {
            Error::Internal(
                "a kernel's costs are differences of makespans, and one has none".into(),
            )
        })
    }
}
