//! What a job came to: samples, use of the machine, and the result of each task.

use crate::clock;
use crate::kind::KINDS;
use crate::program::Template;
use crate::shared::{Instance, Places, Reading};
use crate::stage::Stage;
use crate::usage::{self, Migrations, Usage};
use schedlab_runner::event::{Event, TaskResult};
use std::sync::atomic::Ordering::SeqCst;

/// The windows between the readings.
pub fn samples(stage: &Stage, job: usize) -> Vec<Event> {
    let windows = stage.shared.readings.windows(2);
    let taken = windows.take_while(|pair| pair[1].end_ns.load(SeqCst) > 0);
    let sample = |pair: &[Reading]| Event::Sample {
        job,
        ns: pair[1].end_ns.load(SeqCst) - pair[0].begin_ns.load(SeqCst),
        operations: pair[1].operations.load(SeqCst) - pair[0].operations.load(SeqCst),
    };
    taken.map(sample).collect()
}

pub fn usage(stage: &Stage, job: usize, used: Usage, migrations: Option<&Migrations>) -> Event {
    // The tasks that are still alive have not added their run delay.
    let alive = stage
        .shared
        .instances
        .iter()
        .filter(|instance| instance.ended_ns.load(SeqCst) == 0)
        .map(|instance| instance.tid.load(SeqCst));
    let waited = || {
        alive
            .filter(|&tid| tid > 0)
            .filter_map(|tid| usage::run_delay(&tid.to_string()))
            .sum::<u64>()
    };
    let is_kept = stage.is_detailed && usage::run_delay("thread-self").is_some();
    Event::Usage {
        job,
        pid: std::process::id(),
        user_ns: used.user_ns,
        system_ns: used.system_ns,
        voluntary: used.voluntary,
        involuntary: used.involuntary,
        migrations: migrations.and_then(Migrations::read),
        run_delay_ns: is_kept.then(|| stage.shared.used.run_delay_ns.load(SeqCst) + waited()),
    }
}

pub fn end(stage: &Stage, job: usize) -> Event {
    let begin = stage.shared.board.begin_ns.load(SeqCst);
    let results = stage
        .program
        .templates
        .iter()
        .flat_map(|template| results(stage, template, begin))
        .collect();
    Event::JobEnd { job, ns: stage.shared.board.end_ns.load(SeqCst) - begin, tasks: results }
}

/// The result of each task of a template; on a real machine with many tasks, their sum.
fn results(stage: &Stage, template: &Template, begin: u64) -> Vec<TaskResult> {
    let mut instances = stage.places_of(template);
    let mut results: Vec<TaskResult> = Vec::new();
    if stage.places == Places::GivenBack && template.forked {
        let family = &stage.shared.families[stage.program.index_of(template.first)];
        instances = &instances[..family.places.load(SeqCst) as usize];
        let tasks = family.ended.load(SeqCst);
        results.extend(
            (tasks > 0).then(|| TaskResult { tasks, ..result(template, &family.sum, begin) }),
        );
    }
    for instance in instances.iter().filter(|instance| instance.tid.load(SeqCst) > 0) {
        let result = result(template, instance, begin);
        match results.last_mut().filter(|_| stage.places == Places::GivenBack) {
            Some(sum) => add(sum, &result),
            None => results.push(result),
        }
    }
    results
}

fn result(template: &Template, instance: &Instance, begin: u64) -> TaskResult {
    let tid = instance.tid.load(SeqCst);
    let (began, ended) = (instance.began_ns.load(SeqCst), instance.ended_ns.load(SeqCst));
    let counts = KINDS
        .iter()
        .zip(&instance.counts)
        .map(|(kind, count)| (kind.to_string(), count.load(SeqCst)));
    TaskResult {
        name: template.name.clone(),
        tasks: 1,
        cpu_ns: if ended > 0 {
            instance.cpu_ns.load(SeqCst)
        } else {
            clock::cpu_of(tid, template.process)
        },
        began_ns: (began > 0).then(|| began.saturating_sub(begin)),
        ended_ns: (ended > 0).then(|| ended.saturating_sub(begin)),
        operations: counts.filter(|&(_, count)| count > 0).collect(),
        tid,
    }
}

fn add(sum: &mut TaskResult, result: &TaskResult) {
    sum.tasks += 1;
    sum.cpu_ns += result.cpu_ns;
    sum.began_ns = sum.began_ns.min(result.began_ns);
    // A task that is still alive leaves the end of the sum open.
    sum.ended_ns = sum.ended_ns.zip(result.ended_ns).map(|(one, other)| one.max(other));
    for (kind, count) in &result.operations {
        *sum.operations.entry(kind.clone()).or_default() += count;
    }
}
