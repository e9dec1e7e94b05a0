//! Splits a run by program, task or demand: the same metrics as for all of it.

use super::{Run, resolved};
use results::{Row, SubjectKind, World as Name, registered};
use schedsim::TaskId;
use schedsim::metrics::{PART_CATALOGUE, Part, Summary, slowdown};
use schedsim::trace::TaskInfo;
use std::collections::BTreeMap;

/// What numbers are split by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum By {
    /// By program: all tasks of one command name.
    Comm,
    /// By task.
    Task,
    /// By demand, the CPU time that a task wants at a time: slowdowns by powers of ten.
    Demand,
}

/// Tasks that belong together, by name.
pub type Groups = BTreeMap<String, Vec<TaskId>>;

/// The tasks by command name.
pub fn programs(tasks: &[TaskInfo]) -> Groups {
    grouped(tasks, |_, task| task.name.clone())
}

fn grouped(tasks: &[TaskInfo], name: impl Fn(u32, &TaskInfo) -> String) -> Groups {
    let mut groups = Groups::new();
    for (index, task) in (0..).zip(tasks) {
        groups.entry(name(index, task)).or_default().push(TaskId(index));
    }
    groups
}

/// The name of a single task, the same in each run: its number in the recorded system, or its place
/// in the workload.
fn single(index: u32, task: &TaskInfo) -> String {
    if task.pid == 0 {
        format!("{} #{index}", task.name)
    } else {
        format!("{} {}", task.name, task.pid)
    }
}

/// Rows of each part of `summary`, whose tasks are `tasks` in order of id. A part without events
/// has none.
pub fn rows(summary: &Summary, tasks: &[TaskInfo], by: By, world: &Name) -> Vec<Row> {
    let (kind, groups) = match by {
        By::Comm => (SubjectKind::Program, programs(tasks)),
        By::Task => (SubjectKind::Task, grouped(tasks, single)),
        By::Demand => return of_demands(summary, world),
    };
    let parts = groups.into_iter().map(|(name, ids)| (name, summary.part(ids)));
    parts
        .filter(|(_, part)| !part.tasks.is_empty())
        .flat_map(|(name, part)| of_part(&part, kind, &name, world))
        .collect()
}

fn of_part(part: &Part, kind: SubjectKind, name: &str, world: &Name) -> Vec<Row> {
    let row = |metric: &schedsim::metrics::PartMetric| {
        let read = metric.read(part);
        Row {
            value: read.value,
            note: read.note.map(str::to_string),
            ..Row::new(world.clone(), registered(metric.id))
        }
        .of(kind, name)
    };
    PART_CATALOGUE.iter().map(row).collect()
}

fn of_demands(summary: &Summary, world: &Name) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, samples) in summary.distributions.slowdowns.classes() {
        for (id, percent) in
            [("slowdown_p50", 50.0), ("slowdown_p95", 95.0), ("slowdown_p99", 99.0)]
        {
            let read = slowdown(samples, percent, "");
            let row = Row {
                value: read.value,
                note: read.note.map(str::to_string),
                ..Row::new(world.clone(), registered(id))
            };
            rows.push(row.of(SubjectKind::Class, name));
        }
    }
    rows
}

impl Run {
    /// Its rows by part; none where its events were not seen.
    pub fn parts(&self, by: By, world: &Name) -> Vec<Row> {
        let summary = self.summary.as_ref();
        let rows = summary.map_or(Vec::new(), |summary| rows(summary, &self.tasks, by, world));
        rows.into_iter().map(|row| resolved(row, self.resolution)).collect()
    }

    /// The names of the tasks that are runnable or running when it ends; each name once per task.
    pub fn unfinished(&self) -> Vec<String> {
        let tasks = self
            .summary
            .iter()
            .flat_map(|summary| &summary.tasks)
            .filter(|task| task.is_unfinished);
        tasks
            .filter_map(|task| self.tasks.get(task.task.index()))
            .map(|task| task.name.clone())
            .collect()
    }

    /// The programs that starve in it, compared with the run of `baseline`.
    pub fn starves(&self, baseline: &Run) -> Vec<String> {
        let Some((own, base)) = self.summary.as_ref().zip(baseline.summary.as_ref()) else {
            return Vec::new();
        };
        let of_base = programs(&baseline.tasks);
        let starves = |(name, ids): (String, Vec<TaskId>)| {
            let base = base.part(of_base.get(&name)?.iter().copied());
            own.part(ids).starves(&base, own.length()).then_some(name)
        };
        programs(&self.tasks).into_iter().filter_map(starves).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Nanos;

    fn task(name: &str, pid: u32) -> TaskInfo {
        TaskInfo { name: name.to_string(), pid, tgid: pid, prio: 120 }
    }

    #[test]
    fn a_time_below_the_resolution_is_null_with_the_reason_and_nothing_else_is() {
        let row = |metric, value| {
            let row = Row { value: Some(value), ..Row::new(Name::Sim, registered(metric)) };
            resolved(row, Nanos(8_000))
        };
        let short = row("wakeup_latency_ns_p50", 7_999.0);
        assert_eq!(short.value, None);
        assert!(short.note.is_some_and(|note| note.contains("below 8.00us")));
        assert_eq!(row("wakeup_latency_ns_p50", 8_000.0).value, Some(8_000.0));
        assert_eq!(row("starvation_ns", 0.0).value, Some(0.0), "nobody starves");
        assert_eq!(row("switches", 3.0).value, Some(3.0));
    }

    #[test]
    fn tasks_of_one_name_are_a_program_and_each_has_a_name_of_its_own() {
        let tasks =
            [task("xz", 7), task("redis", 8), task("xz", 9), task("hog", 0), task("hog", 0)];
        let found = programs(&tasks);
        assert_eq!(found["xz"], [TaskId(0), TaskId(2)]);
        assert_eq!(found.len(), 3);
        let singles = grouped(&tasks, single);
        assert_eq!(
            singles.keys().collect::<Vec<_>>(),
            ["hog #3", "hog #4", "redis 8", "xz 7", "xz 9"]
        );
    }
}
