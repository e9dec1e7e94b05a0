//! Writes a synthetic recording as `perf script --ns` text: `synthetic_trace EVENTS > trace.txt`.
//!
//! It is similar to hackbench: groups of senders and receivers on eight CPUs wake each other,
//! sleep, are preempted and migrate. The same number of events gives the same bytes on every
//! machine. The recording is consistent: a task is switched out only after it was switched in.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};

const CPUS: usize = 8;
const TASKS: usize = 400;
const FIRST_PID: usize = 2000;

/// A small generator (xorshift64*), enough to mix events.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound
    }
}

/// Idle is `None`.
type Task = Option<usize>;

struct Machine<W> {
    output: W,
    random: Random,
    clock: u64,
    running: [Task; CPUS],
    ready: [VecDeque<usize>; CPUS],
    asleep: VecDeque<usize>,
    events_left: u64,
}

impl<W: Write> Machine<W> {
    fn step(&mut self) -> io::Result<()> {
        let cpu = self.random.below(CPUS as u64) as usize;
        self.clock += 200 + self.random.below(2_000);
        match self.random.below(8) {
            0..4 => self.wake(cpu)?,
            4..7 if self.running[cpu].is_some() => {
                let sleeps = self.running[cpu];
                self.switch(cpu, "S")?;
                self.asleep.extend(sleeps);
            }
            _ if !self.ready[cpu].is_empty() => {
                let preempted = self.running[cpu];
                let state = if preempted.is_some() { "R+" } else { "R" };
                self.switch(cpu, state)?;
                self.ready[cpu].extend(preempted);
            }
            _ => {}
        }
        Ok(())
    }

    /// The task on `cpu` wakes a task, possibly on another CPU.
    fn wake(&mut self, cpu: usize) -> io::Result<()> {
        let Some(task) = self.asleep.pop_front() else { return Ok(()) };
        let home = task % CPUS;
        let target =
            if self.random.below(10) == 0 { self.random.below(CPUS as u64) as usize } else { home };
        let (name, pid) = (name(Some(task), 0), FIRST_PID + task);
        self.event(
            cpu,
            "sched_waking",
            format_args!("comm={name} pid={pid} prio=120 target_cpu={home:03}"),
        )?;
        if target != home {
            let fields =
                format_args!("comm={name} pid={pid} prio=120 orig_cpu={home} dest_cpu={target}");
            self.event(cpu, "sched_migrate_task", fields)?;
        }
        self.event(
            cpu,
            "sched_wakeup",
            format_args!("comm={name} pid={pid} prio=120 target_cpu={target:03}"),
        )?;
        self.ready[target].push_back(task);
        Ok(())
    }

    fn switch(&mut self, cpu: usize, state: &str) -> io::Result<()> {
        let (prev, next) = (self.running[cpu], self.ready[cpu].pop_front());
        let (prev_name, next_name) = (name(prev, cpu), name(next, cpu));
        let (prev_pid, next_pid) = (pid(prev), pid(next));
        let fields = format_args!(
            "prev_comm={prev_name} prev_pid={prev_pid} prev_prio=120 prev_state={state} ==> \
             next_comm={next_name} next_pid={next_pid} next_prio=120"
        );
        self.event(cpu, "sched_switch", fields)?;
        self.running[cpu] = next;
        Ok(())
    }

    fn event(
        &mut self,
        cpu: usize,
        event: &str,
        fields: std::fmt::Arguments<'_>,
    ) -> io::Result<()> {
        if self.events_left == 0 {
            return Ok(());
        }
        self.events_left -= 1;
        self.clock += 100 + self.random.below(400);
        let (task, event) = (self.running[cpu], format!("sched:{event}"));
        let comm = if task.is_some() { name(task, cpu) } else { "swapper".to_owned() };
        let (pid, seconds, nanos) =
            (pid(task), self.clock / 1_000_000_000, self.clock % 1_000_000_000);
        writeln!(
            self.output,
            "{comm:>16} {pid:>5}/{pid:<5} [{cpu:03}] {seconds:>5}.{nanos:09}: {event:>24}: \
             {fields}"
        )
    }
}

fn name(task: Task, cpu: usize) -> String {
    match task {
        Some(task) if task % 10 == 0 => format!("kworker/{}:{}", task % CPUS, task / CPUS),
        Some(_) => "hackbench".to_owned(),
        None => format!("swapper/{cpu}"),
    }
}

fn pid(task: Task) -> usize {
    task.map_or(0, |task| FIRST_PID + task)
}

fn main() -> io::Result<()> {
    let Some(events_left) = std::env::args().nth(1).and_then(|count| count.parse().ok()) else {
        eprintln!("usage: synthetic_trace EVENTS > trace.txt");
        std::process::exit(2)
    };
    let mut machine = Machine {
        output: BufWriter::with_capacity(1 << 20, io::stdout().lock()),
        random: Random(0x5ced_1ab0),
        clock: 1_000_000_000_000,
        running: [None; CPUS],
        ready: Default::default(),
        asleep: (0..TASKS).collect(),
        events_left,
    };
    while machine.events_left > 0 {
        machine.step()?;
    }
    machine.output.flush()
}
