//! Runs cells through the counters and makes rows of the counts.

use super::callgrind::{Callgrind, Counted, Events};
use super::mix::Mix;
use super::rig::{Body, Cell};
use super::structure::{Examined, StrideRule, Structure};
use super::threads::Part;
use super::{hardware, mix, steps, structure, timing};
use indicatif::ProgressBar;
use program::progress;
use results::{Metric, Row, World};
use statistics::Estimate;
use std::collections::BTreeMap;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The structures.
    pub structures: Vec<&'static Structure>,
    /// The numbers of tasks.
    pub tasks: Vec<u32>,
    /// The distribution of tasks over levels.
    pub mix: Mix,
    /// The number of levels.
    pub levels: u16,
    /// The rates of the levels.
    pub strides: StrideRule,
    /// The seed of the assignments.
    pub seed: u64,
    /// The number of assignments.
    pub assignments: u32,
    /// The number of timed runs.
    pub runs: u32,
    /// The number of slices; the rig chooses if absent.
    pub slices: Option<u64>,
}

/// The counter of instructions.
#[derive(Clone, Debug)]
pub enum Source {
    /// Valgrind's simulated CPU.
    Callgrind(Callgrind),
    /// The CPU's own counter.
    Hardware,
}

impl Source {
    /// Counts `cells`; an error means that the source is not available.
    pub fn count(&self, cells: &[Cell]) -> Result<Vec<Counted>, String> {
        let effort = cells.iter().map(Cell::effort).sum();
        self.count_with(cells, &progress::bar("counting instructions", effort))
    }

    /// The same, with progress: each counted cell adds its [`Cell::effort`].
    pub fn count_with(
        &self,
        cells: &[Cell],
        progress: &ProgressBar,
    ) -> Result<Vec<Counted>, String> {
        match self {
            Source::Callgrind(callgrind) => callgrind.count(cells, progress),
            Source::Hardware => hardware::count(cells, progress),
        }
    }

    /// Everything that determines its counts besides the cell.
    pub fn description(&self) -> String {
        match self {
            Source::Callgrind(Callgrind { binary, cache, .. }) => {
                let changed = std::fs::metadata(binary).and_then(|file| file.modified());
                format!(
                    "callgrind of {} {changed:?}{}",
                    binary.display(),
                    if *cache { " with caches" } else { "" }
                )
            }
            Source::Hardware => "hardware".to_string(),
        }
    }

    /// The world of its numbers.
    pub fn world(&self) -> World {
        match self {
            Source::Callgrind(_) => World::Callgrind,
            Source::Hardware => World::Hardware,
        }
    }
}

/// The additional rows from callgrind's cache simulation: the metric and the events to sum.
const CACHE_METRICS: [(Metric, &[&str]); 4] = [
    (Metric::data_accesses_per_op, &["Dr", "Dw"]),
    (Metric::d1_misses_per_op, &["D1mr", "D1mw"]),
    (Metric::i1_misses_per_op, &["I1mr"]),
    (Metric::ll_misses_per_op, &["ILmr", "DLmr", "DLmw"]),
];

impl Plan {
    /// The cells of one structure and number of tasks, one for each assignment.
    pub fn cells(&self, structure: &Structure, tasks: u32) -> Vec<Cell> {
        let assignments = if self.mix.is_random() { self.assignments } else { 1 };
        let cell = |assignment| Cell {
            mix: self.mix.clone(),
            levels: self.levels,
            strides: self.strides,
            seed: self.seed,
            assignment,
            slices: self.slices,
            ..Cell::new(structure.name, tasks)
        };
        (0..assignments).map(cell).collect()
    }

    /// Every structure with every number of tasks.
    fn points(&self) -> impl Iterator<Item = (&'static Structure, u32)> + '_ {
        self.tasks
            .iter()
            .flat_map(|&tasks| self.structures.iter().map(move |&structure| (structure, tasks)))
    }

    /// Rows of instructions, and of cache misses if the source simulates caches.
    pub fn instructions(&self, source: &Source) -> Vec<Row> {
        let mut cells = vec![Cell::empty_loop()];
        let points: Vec<_> = self
            .points()
            .map(|(structure, tasks)| (structure, tasks, self.cells(structure, tasks)))
            .collect();
        cells.extend(points.iter().flat_map(|(_, _, cells)| cells.iter().cloned()));
        let counted = source.count(&cells).unwrap_or_else(|why| vec![Err(why); cells.len()]);
        let (empty, mut rest) =
            counted.split_first().map_or((&[][..], &[][..]), |(_, rest)| (&counted[..1], rest));
        let empty = empty
            .first()
            .and_then(|empty| empty.as_ref().ok())
            .and_then(|empty| empty.per_slice(&["Ir"]));
        let mut rows = Vec::new();
        for (structure, tasks, cells) in &points {
            let (mine, others) = rest.split_at(cells.len());
            rest = others;
            let row = |metric: Metric| self.row(structure, *tasks, source.world(), metric);
            let gross = sample(mine, |events| events.per_slice(&["Ir"]));
            let net = match (&gross, empty) {
                (Ok(gross), Some(empty)) => Ok(gross.iter().map(|gross| gross - empty).collect()),
                (Ok(_), None) => Err("the empty loop was not counted".to_string()),
                (Err(why), _) => Err(why.clone()),
            };
            rows.push(filled(row(Metric::instructions_per_op), &net));
            rows.push(filled(row(Metric::instructions_per_op_gross), &gross));
            if let Source::Callgrind(Callgrind { cache: true, .. }) = source {
                for (metric, kinds) in CACHE_METRICS {
                    rows.push(filled(row(metric), &sample(mine, |events| events.per_slice(kinds))));
                }
            }
        }
        rows
    }

    /// Rows of time, with the loop: on a modern CPU overlapping work cannot be subtracted.
    pub fn times(&self) -> Vec<Row> {
        let points: Vec<_> = self.points().collect();
        // Each run uses the next assignment, so the interval covers runs and assignments.
        let progress = progress::bar("timing", u64::from(self.runs) * points.len() as u64);
        let mut times = vec![Ok(Vec::new()); points.len()];
        for run in 0..self.runs {
            let cells: Vec<Cell> = points
                .iter()
                .map(|(structure, tasks)| Cell {
                    assignment: run,
                    ..self.cells(structure, *tasks)[0].clone()
                })
                .collect();
            for (times, time) in times.iter_mut().zip(timing::time(&cells, &progress)) {
                match (&mut *times, time) {
                    (Ok(all), Ok(time)) => all.push(time),
                    (_, Err(why)) => *times = Err(why),
                    (Err(_), Ok(_)) => {}
                }
            }
        }
        points
            .iter()
            .zip(&times)
            .map(|((structure, tasks), times)| {
                filled(self.row(structure, *tasks, World::Host, Metric::time_ns_per_op), times)
            })
            .collect()
    }

    /// Rows of real threads: the cost that switch, queue, accounting and the check for real-time
    /// threads add to a slice.
    pub fn threads(&self, source: &Source) -> Vec<Row> {
        let points: Vec<_> = self
            .points()
            .map(|(structure, tasks)| (structure, tasks, self.cells(structure, tasks)))
            .collect();
        let with = |&part| {
            points
                .iter()
                .flat_map(|(_, _, cells)| cells.clone())
                .map(move |cell| Cell { body: Body::Thread { part, work: 0 }, ..cell })
        };
        let cells: Vec<Cell> = Part::ALL.iter().flat_map(with).collect();
        let counted = source.count(&cells).unwrap_or_else(|why| vec![Err(why); cells.len()]);
        let parts: Vec<&[Counted]> =
            counted.chunks(counted.len().div_ceil(Part::ALL.len()).max(1)).collect();
        let mut rows = Vec::new();
        let mut begin = 0;
        for (structure, tasks, cells) in &points {
            let mine = |part: usize| {
                sample(&parts[part][begin..begin + cells.len()], |events| events.per_slice(&["Ir"]))
            };
            for (index, part) in Part::ALL.iter().enumerate() {
                let added = match index.checked_sub(1) {
                    None => mine(index),
                    Some(before) => mine(index).and_then(|all| {
                        Ok(all
                            .iter()
                            .zip(mine(before)?)
                            .map(|(all, before)| all - before)
                            .collect())
                    }),
                };
                let row = self.row(
                    structure,
                    *tasks,
                    source.world(),
                    Metric::thread_instructions_per_slice,
                );
                rows.push(filled(row.at("part", part.name()), &added));
            }
            begin += cells.len();
        }
        rows
    }

    /// Rows of counts that do not depend on the machine.
    pub fn steps(&self) -> Vec<Row> {
        let progress = progress::bar("counting steps", self.points().count() as u64);
        let mut rows = Vec::new();
        for (structure, tasks) in self.points() {
            let counted: Result<Vec<steps::Steps>, String> =
                self.cells(structure, tasks).iter().map(steps::count).collect();
            progress.inc(1);
            let row = |metric: Metric| self.row(structure, tasks, World::Model, metric);
            if let Some(metric) = structure.examined.metric() {
                rows.push(filled(
                    row(metric),
                    &counted
                        .as_ref()
                        .map(|all| all.iter().map(|one| one.examined_per_op).collect())
                        .map_err(Clone::clone),
                ));
            } else if structure.examined == Examined::Unknown {
                rows.push(filled(
                    row(Metric::entries_examined_per_op),
                    &Err("not counted in published crates".to_string()),
                ));
            }
            for (level, waits) in waits_by_level(counted.iter().flatten()) {
                rows.push(filled(
                    row(Metric::longest_wait_slices).at("level", mix::level_name(level)),
                    &waits,
                ));
            }
        }
        rows
    }

    /// An empty row of a cell.
    pub fn row(&self, structure: &Structure, tasks: u32, world: World, metric: Metric) -> Row {
        Row {
            workload: format!("yield:{tasks}"),
            candidate: structure.name.to_string(),
            cpus: 1,
            seed: Some(self.seed),
            ..Row::new(world, metric)
        }
        .at("levels", self.levels)
        .at("mix", self.mix.to_string())
        .at("strides", structure.rates(self.strides).to_string())
    }
}

/// The longest wait of each level, one for each assignment with tasks there; of many levels only
/// the first and the last.
fn waits_by_level<'a>(
    counted: impl Iterator<Item = &'a steps::Steps>,
) -> BTreeMap<u16, Result<Vec<f64>, String>> {
    let mut waits: BTreeMap<u16, Result<Vec<f64>, String>> = BTreeMap::new();
    for &(level, wait) in counted.flat_map(|one| &one.longest_wait) {
        let waits = waits.entry(level).or_insert_with(|| Ok(Vec::new()));
        match (wait, &mut *waits) {
            (0, waits) => *waits = Err("a task starves: it never ran twice".to_string()),
            (_, Ok(waits)) => waits.push(wait as f64),
            (_, Err(_)) => {}
        }
    }
    let (first, last) = (waits.keys().next().copied(), waits.keys().next_back().copied());
    let few = waits.len() <= 26;
    waits.retain(|level, _| few || Some(*level) == first || Some(*level) == last);
    waits
}

/// One value for each assignment.
fn sample(counted: &[Counted], value: impl Fn(&Events) -> Option<f64>) -> Result<Vec<f64>, String> {
    counted
        .iter()
        .map(|one| {
            one.as_ref()
                .map_err(Clone::clone)
                .and_then(|events| value(events).ok_or_else(|| "was not counted".to_string()))
        })
        .collect()
}

/// Fills the row with its estimate, or with the reason why there is none.
pub fn filled(mut row: Row, values: &Result<Vec<f64>, String>) -> Row {
    match values {
        Ok(values) => {
            let estimate = Estimate::of(values);
            row.value = estimate.map(|estimate| estimate.mean);
            let half_width = estimate.and_then(|estimate| estimate.half_width);
            row.ci_low = row.value.zip(half_width).map(|(mean, half_width)| mean - half_width);
            row.ci_high = row.value.zip(half_width).map(|(mean, half_width)| mean + half_width);
            row.runs = values.len() as u32;
        }
        Err(why) => row.note = Some(why.clone()),
    }
    row
}

/// The structures with these names; all if there are no names.
pub fn select(names: &[String]) -> Result<Vec<&'static Structure>, String> {
    if names.is_empty() {
        return Ok(structure::STRUCTURES.iter().collect());
    }
    let known: Vec<String> =
        structure::STRUCTURES.iter().map(|structure| structure.name.to_string()).collect();
    let one = |name: &String| {
        structure::find(name)
            .ok_or_else(|| program::no_such("queue", name, &known, "See `schedlab queue --list`."))
    };
    names.iter().map(one).collect()
}
