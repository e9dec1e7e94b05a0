//! Which tasks exist, are ready and run, as the events say.

use crate::format::{Event, MAX_TASKS, Op};

/// The tasks of a vector so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// By number.
    tasks: Vec<Life>,
    /// Who runs, if one does.
    pub running: Option<u32>,
    at: i64,
    began: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Unknown,
    /// Was never in the queue.
    Fresh,
    Sleeps,
    /// Waits or runs.
    Ready,
    Ended,
}

impl Ledger {
    /// The event happens; at `pick`, `runs` runs from now on. The error is a sentence.
    pub fn apply(&mut self, event: &Event, runs: Option<u32>) -> Result<(), String> {
        if event.at < self.at {
            return Err(format!("{} is before {}; sort the events by time", event.at, self.at));
        }
        self.at = event.at;
        if self.began == matches!(event.op, Op::Reset { .. }) {
            return Err("the first event, and no other, is `reset`; begin with it".into());
        }
        self.began = true;
        match event.op {
            Op::Reset { .. } | Op::Tick => {}
            Op::Task { task, .. } => {
                self.demand(task, &[Life::Unknown], "exists; declare each task once")?;
                self.set(task, Life::Fresh);
            }
            Op::Wake { task } => {
                self.demand(task, &[Life::Fresh, Life::Sleeps], "does not sleep; wake sleepers")?;
                self.set(task, Life::Ready);
            }
            Op::New { task } => {
                self.demand(task, &[Life::Fresh], "is not new; use `wake`")?;
                self.set(task, Life::Ready);
            }
            Op::Weight { task, .. } | Op::Slice { task, .. } => {
                let known = [Life::Fresh, Life::Sleeps, Life::Ready];
                self.demand(task, &known, "is unknown or has ended; declare it with `task`")?;
            }
            Op::Block | Op::Exit => {
                let task = self.running.take().ok_or_else(nothing_runs)?;
                self.set(task, if event.op == Op::Exit { Life::Ended } else { Life::Sleeps });
            }
            Op::Yield => {
                self.running.ok_or_else(nothing_runs)?;
            }
            Op::Pick => match runs {
                None => return Err("`pick` needs `runs`; add it".into()),
                Some(task) if task != 0 && !self.knows(task) => {
                    return Err(format!("task {task} is unknown; declare it with `task` first"));
                }
                Some(task) => self.running = Some(task).filter(|&task| task != 0),
            },
        }
        Ok(())
    }

    /// Why `runs` cannot be picked, if a CPU never idles, nor runs a sleeper, while a task is
    /// ready: who should run, and who does.
    pub fn wrong_pick(&self, runs: u32) -> Option<(String, String)> {
        let expected = match self.ready().next() {
            _ if self.is_ready(runs) => return None,
            None if runs == 0 => return None,
            None => "nobody runs".into(),
            Some(ready) => format!("task {ready} or another ready one runs"),
        };
        let got = match runs {
            0 => "nobody runs".into(),
            task => format!("task {task} runs, which is not ready"),
        };
        Some((expected, got))
    }

    /// Whether `task` waits or runs.
    pub fn is_ready(&self, task: u32) -> bool {
        self.life(task) == Life::Ready
    }

    /// Whether `task` was declared.
    pub fn knows(&self, task: u32) -> bool {
        self.life(task) != Life::Unknown
    }

    /// The tasks that wait or run.
    pub fn ready(&self) -> impl Iterator<Item = u32> {
        (1..=MAX_TASKS)
            .zip(self.tasks.iter().skip(1))
            .filter(|(_, life)| **life == Life::Ready)
            .map(|(task, _)| task)
    }

    fn life(&self, task: u32) -> Life {
        self.tasks.get(task as usize).copied().unwrap_or(Life::Unknown)
    }

    fn set(&mut self, task: u32, life: Life) {
        let len = self.tasks.len().max(task as usize + 1);
        self.tasks.resize(len, Life::Unknown);
        self.tasks[task as usize] = life;
    }

    fn demand(&self, task: u32, lives: &[Life], fault: &str) -> Result<(), String> {
        match self.life(task) {
            Life::Unknown if !lives.contains(&Life::Unknown) => {
                Err(format!("task {task} is unknown; declare it with `task` first"))
            }
            life if lives.contains(&life) => Ok(()),
            _ => Err(format!("task {task} {fault}")),
        }
    }
}

fn nothing_runs() -> String {
    "nobody runs; put a `pick` that says who before this".into()
}
