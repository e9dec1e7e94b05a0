//! Holds any scheduler of a guest to what a general-purpose scheduler owes: `schedlab conform`.
//!
//! Each check is a job in one session of one boot. The kernel records it, and the runner, which no
//! scheduler of sched_ext schedules, does what the check needs (switches CPUs, stops tasks, changes
//! their CPUs). A scheduler that the kernel ends, or under which the guest hangs, fails the check
//! that ran; those after it are not asked.

mod course;
mod judged;
mod owed;
mod report;

pub use judged::Verdict;
pub use owed::{CHECKS, NOT_ASKED};
pub use report::{Answered, Report, known};

use course::Course;
use judged::{AtEnd, Done, Found, Scene};
use owed::Owed;
use program::{Error, progress};
use schedlab_runner::event::{Event, SchedExt, TaskResult};
use schedlab_runner::session::Job;
use worlds::driver::Driver;
use worlds::guest::GuestWorld;
use worlds::guest::overseen::Overseen;
use worlds::vm::{Transcript, closed};

/// What to ask of which scheduler.
pub struct Conform {
    /// The guests.
    pub world: GuestWorld,
    /// The scheduler.
    pub driver: Driver,
    /// The number of CPUs.
    pub cpus: u16,
    /// The seed, from which the nudges of the jobs are drawn.
    pub seed: u64,
    /// How many boots must say the same: 1 or 2.
    pub boots: u32,
    /// The checks to ask; all if it is empty.
    pub checks: Vec<String>,
}

impl Conform {
    /// Asks, and judges the answers.
    ///
    /// # Errors
    /// If something is missing, the boots do not say the same, or the scheduler was never ready. A
    /// check that does not hold is no error.
    pub fn run(mut self) -> Result<Report, Error> {
        let is_asked = |owed: &Owed| {
            self.checks.is_empty() || self.checks.iter().any(|check| check == owed.check)
        };
        let asked: Vec<Owed> = owed::all(self.cpus).into_iter().filter(is_asked).collect();
        let is_sched_ext = self.driver.is_sched_ext();
        let has = |check: &str| asked.iter().any(|owed| owed.check == check);
        let has_reference = is_sched_ext && has("weights") && has("unloading");
        // The kernel's own class has nothing to unload.
        let is_run = |owed: &&Owed| is_sched_ext || owed.check != "unloading";
        let jobs = asked.iter().filter(is_run).map(|owed| owed.job.clone());
        let jobs = jobs.chain(has_reference.then(owed::reference));
        let jobs: Vec<Job> = jobs.collect();
        let bar = progress::bar("conform", jobs.len() as u64);
        let follow = |event: &Event| match event {
            Event::JobStart { name, .. } => bar.set_message(name.clone()),
            Event::Overseen { .. } => bar.inc(1),
            _ => {}
        };
        let overseen =
            self.world.oversee(&self.driver, self.cpus, self.seed, self.boots, jobs, &follow);
        bar.finish_and_clear();
        let overseen = overseen?;
        self.expect_loaded(&overseen)?;
        let answers = self.judged(&asked, &overseen)?;
        let reference = if has_reference { reference(&overseen.transcript) } else { None };
        let pair = |(one, other): &(&str, &str)| (one.to_string(), other.to_string());
        let input = |input: &results::Input| (input.name.clone(), input.sha256.clone());
        Ok(Report {
            scheduler: self.driver.to_string(),
            kernel: overseen.release,
            cpus: self.cpus,
            seed: self.seed,
            boots: self.boots,
            identity: overseen.identity.to_string(),
            build: program::build().to_string(),
            command: program::command_line(std::env::args_os().skip(1)),
            answers,
            reference,
            never_asked: NOT_ASKED.iter().map(pair).collect(),
            inputs: overseen.inputs.iter().map(input).collect(),
        })
    }

    /// Refuses a scheduler that the kernel never loaded.
    fn expect_loaded(&self, overseen: &Overseen) -> Result<(), Error> {
        let loads = After::of(&overseen.transcript, 0).map(|after| after.loads);
        // A guest that ends in its first job has not counted, but the job began after the load.
        let is_loaded = loads.map_or(has_begun(&overseen.transcript, 0), |loads| loads > 0);
        if is_loaded || !self.driver.is_sched_ext() {
            return Ok(());
        }
        overseen.end.clone()?;
        self.driver.judge(&overseen.transcript.events, &overseen.transcript.console)?;
        Err(Error::Check(format!("{}: the kernel has not loaded it", self.driver)))
    }

    fn judged(&self, asked: &[Owed], overseen: &Overseen) -> Result<Vec<Answered>, Error> {
        let transcript = &overseen.transcript;
        let (mut answers, mut number, mut loads, mut gone) = (Vec::new(), 0, None, None::<String>);
        for owed in asked {
            if owed.check == "unloading" && !self.driver.is_sched_ext() {
                let why = "a class of the kernel's own cannot be unloaded";
                answers.push(Answered::of(owed, Found::not_asked(why)));
                continue;
            }
            let job = number;
            number += 1;
            let after = After::of(transcript, job);
            let found = match (&gone, &after) {
                (Some(why), _) if owed.check != "unloading" => Found::not_asked(why.clone()),
                (_, None) if !has_begun(transcript, job) => {
                    Found::not_asked("the guest ended before")
                }
                (_, None) => {
                    let end = overseen.end.as_ref().err().map(Error::to_string);
                    let end = end.unwrap_or_else(|| "without a reason".to_string());
                    match owed.check {
                        // The emulator takes part in it, and fair schedulers have hung there, too.
                        "hotplug" => Found::not_asked(format!(
                            "the guest hung while a CPU was switched; that has happened under \
                             schedulers that give what they owe, so it says nothing of this one: \
                             {end}"
                        )),
                        _ => Found::broken(format!("the guest ended: {end}")),
                    }
                }
                (before, Some(after)) => {
                    let mut found = self.found(owed, job, transcript, after, loads)?;
                    if let Some(why) = before {
                        found.measured = format!("{why}; {}", found.measured);
                    }
                    found
                }
            };
            if let Some(after) = after {
                if self.driver.is_sched_ext() && !after.now.is_enabled() && gone.is_none() {
                    gone = Some(format!("the scheduler was gone after `{}`", owed.job.name));
                }
                loads = Some(after.loads);
            }
            answers.push(Answered::of(owed, found));
        }
        Ok(answers)
    }

    /// Judges one job that the guest survived.
    fn found(
        &self,
        owed: &Owed,
        job: usize,
        transcript: &Transcript,
        after: &After<'_>,
        loads: Option<u64>,
    ) -> Result<Found, Error> {
        let is_sched_ext = self.driver.is_sched_ext();
        let loaded = after.loads.saturating_sub(loads.unwrap_or(after.loads));
        let at_end =
            is_sched_ext.then(|| AtEnd { is_enabled: after.now.is_enabled(), loads: loaded });
        let may_go = ["hotplug", "unloading"].contains(&owed.check);
        let is_gone = at_end.is_some_and(|end| !end.is_enabled || end.loads > 0);
        if is_gone && !may_go {
            return Ok(Found::broken(format!("the kernel ended the scheduler{}", after.said())));
        }
        if let Some(message) = after.failed {
            return Ok(Found::broken(message));
        }
        let recorded = match closed::recorded(transcript, job) {
            Ok(recorded) => recorded,
            Err(Error::Input(why)) => return Ok(Found::not_asked(format!("no recording: {why}"))),
            Err(error) => return Err(error),
        };
        let (Some((zero, traced)), Some((ns, tasks))) = (recorded, end(transcript, job)) else {
            return Ok(Found::broken("the job did not end"));
        };
        let steps = owed.job.overseen.as_deref().unwrap_or_default();
        let done = transcript.events.iter().filter_map(|event| match event {
            Event::Act { job: of, step, ns, took_ns, error } if *of == job => Some(Done {
                act: &steps.get(*step)?.act,
                ns: *ns,
                took_ns: *took_ns,
                error: error.as_deref(),
            }),
            _ => None,
        });
        let left = transcript.events.iter().find_map(|event| match event {
            Event::Left { before, after } => Some((before, after)),
            _ => None,
        });
        let scene = Scene {
            bound: owed.bound,
            cpus: self.cpus,
            course: Course::of(&traced.events, zero, self.cpus),
            numbers: traced.numbers,
            pids: traced.recording.tasks.iter().map(|task| task.pid).collect(),
            tasks,
            ns,
            done: done.collect(),
            kernel_threads: after.kernel_threads.iter().copied().collect(),
            at_end,
            left,
        };
        let mut found = (owed.judge)(&scene);
        if is_gone && found.verdict == Verdict::DoesNotHold {
            found.measured += &after.said();
        }
        Ok(found)
    }
}

/// What the runner reported after a job.
struct After<'a> {
    now: &'a SchedExt,
    loads: u64,
    kernel_threads: &'a [u32],
    log: &'a [String],
    failed: Option<&'a str>,
}

impl<'a> After<'a> {
    fn of(transcript: &'a Transcript, number: usize) -> Option<After<'a>> {
        let failed = transcript.events.iter().find_map(|event| match event {
            Event::JobFailed { job, message } if *job == number => Some(message.as_str()),
            _ => None,
        });
        transcript.events.iter().find_map(|event| match event {
            Event::Overseen { job, now, loads, kernel_threads, log } if *job == number => {
                Some(After { now, loads: *loads, kernel_threads, log, failed })
            }
            _ => None,
        })
    }

    /// What the kernel said of its scheduler meanwhile.
    fn said(&self) -> String {
        let is_said = |line: &&String| line.contains("sched_ext") && !line.ends_with(" enabled");
        let lines = self.log.iter().filter(is_said);
        lines.fold(String::new(), |text, line| format!("{text}; {line}"))
    }
}

fn has_begun(transcript: &Transcript, number: usize) -> bool {
    let is_it = |event: &Event| matches!(event, Event::JobStart { job, .. } if *job == number);
    transcript.events.iter().any(is_it)
}

fn end(transcript: &Transcript, number: usize) -> Option<(u64, &[TaskResult])> {
    transcript.events.iter().find_map(|event| match event {
        Event::JobEnd { job, ns, tasks } if *job == number => Some((*ns, tasks.as_slice())),
        _ => None,
    })
}

/// The shares under the kernel's own scheduler: those of the last job.
fn reference(transcript: &Transcript) -> Option<String> {
    let last = transcript.events.iter().rev().find_map(|event| match event {
        Event::JobEnd { tasks, .. } => Some(tasks),
        _ => None,
    });
    last.map(|tasks| judged::ratio(tasks).1)
}
