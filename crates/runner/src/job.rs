//! Runs a job: makes its tasks, lets them begin together, ends them and reports.
//!
//! A job has a process of its own, so that its tasks end with it. All tasks are made first and wait
//! at a gate: the measurement begins when all exist.

use crate::clock::Tick;
use crate::oversight::Oversight;
use crate::service::Service;
use crate::stage::Stage;
use crate::sync::Heir;
use crate::tracing::Tracing;
use crate::usage::{Migrations, Usage};
use crate::{attributes, cgroups, clock, guest, outcome, sync, task};
use phases::SchedulingPolicy;
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use schedlab_runner::session::{Host, Job};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Tasks at the gate may still have to fall asleep there, where the scheduler prefers this thread
/// as soon as they wake it.
const ARRIVAL: Duration = Duration::from_millis(20);

/// A task that has reported its end takes less to exit.
const EXIT: Duration = Duration::from_micros(300);

/// Runs a job and reports it. Called in a process of its own.
pub fn run(
    number: usize,
    job: &Job,
    host: Option<&Host>,
    services: &[Service],
    report: &dyn Fn(&Event),
) -> Result<(), String> {
    let mut oversight = job.overseen.as_ref().map(|steps| Oversight::begin(steps, services));
    cgroups::make(number, &job.workload.cgroups.values().copied().collect::<Vec<_>>())?;
    let stage: &'static Stage = Box::leak(Box::new(Stage::new(number, job, host)?));
    clock::calibrate();
    if stage.program.mutexes.iter().any(|mutex| matches!(mutex, Heir::FirstToSee(_))) {
        sync::calibrate();
    }
    if guest::is_guest() {
        guest::wake_in_time();
    }
    // Other tasks of the system that wait meanwhile run until all tasks are at the gate.
    if let Some(Tick { ns, took_ns }) =
        (guest::has_one_cpu() && job.windows.is_none()).then(clock::tick).flatten()
    {
        report(&Event::Tick { job: number, ns, took_ns });
    }
    let migrations = if stage.is_detailed { Migrations::count() } else { None };
    let tracing = job.trace.then(Tracing::prepare).transpose()?;
    prepare(stage)?;
    if guest::is_guest() {
        std::thread::sleep(ARRIVAL + Duration::from_nanos(job.nudge.start_ns));
        clock::run_instructions(job.nudge.span.into());
    }
    report(&Event::JobStart { job: number, name: job.name.clone(), ns: clock::now() });
    tracing.as_ref().map_or(Ok(()), Tracing::start)?;
    let before = Usage::of_process();
    let marked = job.marked.then(|| {
        let begin = clock::now();
        clock::mark(true);
        begin
    });
    services.iter().for_each(Service::announce_job);
    // Beside real-time tasks an ordinary thread does not run in time to end them. Elsewhere this one
    // stays ordinary: a scheduler sees its tasks begin as those of any program.
    let is_late = (guest::is_guest() || host.is_some()) && has_real_time_tasks(job);
    if let Some(oversight) = &mut oversight {
        open_gate(stage);
        wait_until_done(stage, Some(oversight));
        oversight.done.drain(..).for_each(|done| report(&done));
    } else if is_late && stage.program.duration.is_some() {
        attributes::become_experimenter();
        open_gate(stage);
        attributes::become_alarm();
        wait_until_done(stage, None);
        attributes::become_experimenter();
    } else {
        open_gate(stage);
        wait_until_done(stage, None);
    }
    let marked = marked.map(|begin| {
        clock::mark(false);
        clock::now() - begin
    });
    let used = stage.shared.used.with(Usage::of_process().since(before));
    if let Some(tracing) = &tracing {
        if guest::is_guest() && !guest::has_one_cpu() && stage.program.duration.is_none() {
            // The last task exits on another CPU.
            std::thread::sleep(EXIT);
        }
        tracing.stop()?;
    }
    let end = outcome::end(stage, number);
    stage.failure()?;
    outcome::samples(stage, number).iter().for_each(report);
    if let Some(ns) = marked {
        let operations = stage.shared.total(stage.program.sampled);
        report(&Event::Sample { job: number, ns, operations });
    }
    if let Some(tracing) = tracing {
        match tracing.lost()? {
            0 => {}
            events => report(&Event::TraceLost { job: number, events }),
        }
        tracing.lines(|line| report(&Event::Trace { job: number, line: line.to_string() }))?;
    }
    if stage.reports_usage {
        report(&outcome::usage(stage, number, used, migrations.as_ref()));
    }
    report(&end);
    Ok(())
}

fn has_real_time_tasks(job: &Job) -> bool {
    let is_real_time = matches!(job.class, Class::Fifo(_) | Class::Rr(_) | Class::Deadline { .. });
    let policies = job.workload.tasks.iter().map(|task| task.policy);
    is_real_time
        || policies
            .into_iter()
            .any(|policy| matches!(policy, SchedulingPolicy::Fifo | SchedulingPolicy::Rr))
}

/// Makes the tasks and waits until they are all at the gate.
fn prepare(stage: &'static Stage) -> Result<(), String> {
    // SAFETY: ended children leave no zombies behind; nothing calls `wait` for them.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let templates = stage.program.templates.iter().enumerate();
    let mut tasks: Vec<(usize, usize)> = templates
        .filter(|(_, template)| !template.forked)
        .flat_map(|(index, template)| {
            (0..template.count).map(move |number| (index, template.first + number))
        })
        .collect();
    stage.nudge.shuffle(&mut tasks);
    let made = tasks.len() as u32;
    for (index, number) in tasks {
        stage.shared.families[index].alive.fetch_add(1, SeqCst);
        stage.shared.families[index].begun.fetch_add(1, SeqCst);
        if !stage.program.templates[index].daemon {
            stage.shared.board.remaining.fetch_add(1, SeqCst);
        }
        task::begin(stage, number, true);
    }
    let board = stage.shared.board;
    loop {
        stage.failure()?;
        match board.ready.load(SeqCst) {
            ready if ready == made => return Ok(()),
            ready => sync::wait(&board.ready, ready, None),
        }
    }
}

fn open_gate(stage: &Stage) {
    let board = stage.shared.board;
    board.begin_monotonic.store(clock::read(libc::CLOCK_MONOTONIC), SeqCst);
    board.begin_ns.store(clock::now(), SeqCst);
    board.gate.store(1, SeqCst);
    sync::wake(&board.gate, sync::ALL);
}

/// Waits until the job is over, and does the steps of an overseen one. A job with a duration may
/// take longer than a guest's watchdog waits for a report.
fn wait_until_done(stage: &Stage, mut oversight: Option<&mut Oversight<'_>>) {
    let board = stage.shared.board;
    let begin = stage.monotonic_begin();
    let end = stage.program.duration.map(|duration| begin + duration);
    let mut has_waited = false;
    while board.done.load(SeqCst) == 0 {
        let now = clock::read(libc::CLOCK_MONOTONIC);
        let due = oversight.as_ref().and_then(|oversight| oversight.due()).map(|at| begin + at);
        if let (Some(oversight), true) = (&mut oversight, due.is_some_and(|due| due <= now)) {
            oversight.step(stage, stage.number);
            continue;
        }
        if end.is_some_and(|end| end <= now) {
            return stage.finish();
        }
        let next = [due, end].into_iter().flatten().min();
        let left = next.map(|next| Duration::from_nanos(next - now));
        if guest::is_guest() && has_waited && left.is_some() {
            guest::reassure();
        }
        sync::wait(&board.done, 0, left.map(|left| left.min(guest::patience())));
        has_waited = true;
    }
}
