//! Reduces the output of a guest to the numbers of a run.

use super::{Booted, NO_TIME, UNTIMED, changes};
use crate::vm::closed::{Measured, Traced, shares};
use crate::vm::functions::Split;
use crate::vm::lockstep::{Lockstep, VALIDATED};
use crate::vm::yields;
use crate::{Run, resolved, rows_of, write_trace};
use program::Error;
use results::{CALLBACKS, Metric, Row, SubjectKind, World as Name};
use schedlab_runner::class::Class;
use schedsim::metrics::{Metrics, Summary};
use schedsim::{Nanos, Time};

impl Booted<'_> {
    /// The result of a yield of `tasks` tasks: in all and, if requested, by function.
    pub(super) fn yields(&self, tasks: u32, by_function: bool) -> Result<Run, Error> {
        let cost = yields::cost(&self.proved.transcript, 0);
        let mut cost = cost.ok_or_else(|| {
            Error::Internal(format!(
                "kernel {} took no samples of {tasks} tasks",
                self.guest().kernel.name
            ))
        })?;
        // A deadline task that yields waits for its next period: the CPU idles, and the clock skips
        // that time.
        let idles = matches!(self.driver.class(), Class::Deadline { .. });
        let mut split = Split::default();
        if by_function || idles {
            split = self.functions()?;
        }
        if idles {
            cost = cost.executed(split.all());
        }
        let (low, high) = cost.range;
        let note = format!("windows from {low:.1} to {high:.1}, {} yields", cost.yields);
        let all = Row {
            value: Some(cost.instructions),
            // Of several members the interval says more.
            note: self.session.member.is_none().then_some(note),
            ..self.row(Metric::instructions_per_yield)
        };
        let metrics =
            [Metric::instructions_per_yield_in_function, Metric::instructions_per_yield_of_side];
        let rows = std::iter::once(all).chain(self.parts(&split, metrics, cost.yields)).collect();
        Ok(self.run(rows, None))
    }

    /// The result of a workload: undisturbed, with the kernel's scheduling events, and, if requested,
    /// by function.
    pub(super) fn closed(&self, by_function: bool) -> Result<Run, Error> {
        let measured = self.measured()?;
        let traced = measured.events()?;
        if let (Some(traced), Some(to)) = (&traced, &self.session.trace) {
            write_trace(to, self.session, &traced.recording.tasks, &traced.events)?;
        }
        let mut rows = real(self, &measured, traced.as_ref());
        if by_function {
            let metrics = [Metric::instructions_in_function, Metric::instructions_of_side];
            rows.extend(self.parts(&self.functions()?, metrics, 1));
        }
        let (summary, tasks) = traced
            .map_or((None, Vec::new()), |traced| (Some(traced.summary), traced.recording.tasks));
        Ok(Run { tasks, ..self.run(rows, summary) })
    }

    /// The parts of what an operation took, of `operations`: by function and by side, and the calls
    /// of callbacks.
    fn parts(&self, split: &Split, metrics: [Metric; 2], operations: u64) -> Vec<Row> {
        let [in_function, of_side] = metrics;
        let part = |metric, kind, subject: &str, instructions: u64| {
            let value = Some(instructions as f64 / operations as f64);
            Row { value, ..self.row(metric) }.of(kind, subject.to_string())
        };
        let functions = split.functions.iter().map(|function| {
            part(in_function, SubjectKind::Function, &function.name, function.instructions)
        });
        let sides = split.sides().into_iter().map(|(side, instructions)| {
            part(of_side, SubjectKind::Side, side.name(), instructions)
        });
        let calls = split.calls.iter().flat_map(|calls| {
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| calls.quantile(share) as f64);
            let values = [calls.count() as f64 / operations as f64, calls.mean(), p50, p99, max];
            CALLBACKS.into_iter().zip(values).map(|((metric, _), value)| {
                Row { value: Some(value), ..self.row(metric) }
                    .of(SubjectKind::Callback, calls.callback.clone())
            })
        });
        functions.chain(sides).chain(calls).collect()
    }

    /// The results of the guest's first two jobs, which are those of a workload.
    pub fn measured(&self) -> Result<Measured, Error> {
        let none = || Error::Internal(format!("kernel {} ended no job", self.guest().kernel.name));
        Measured::of(&self.proved.transcript, 0).ok_or_else(none)
    }

    pub(super) fn run(&self, rows: Vec<Row>, summary: Option<Summary>) -> Run {
        let summary = summary.filter(|_| self.guest().cpus <= VALIDATED);
        let resolution = self.guest().lockstep.map_or(Nanos::ZERO, Lockstep::resolution);
        let rows = rows.into_iter().map(|row| resolved(row, resolution)).collect();
        let random = self.session.member.is_some();
        // A first member alone is proved by the record that it is held against.
        let is_alone = self.nudges.is_some() && !random;
        let repeats = self.proved.repeats + u32::from(is_alone);
        Run { rows, random, repeats, summary, resolution, ..Run::default() }
    }

    fn row(&self, metric: Metric) -> Row {
        let mut row = Row::new(Name::Vm { kernel: self.guest().kernel.name.clone() }, metric);
        row.point = self.point();
        row
    }

    /// The coordinates of its results.
    pub fn point(&self) -> results::Point {
        let mut point = self.identity.point();
        changes::state(&self.proved.transcript, &mut point);
        if self.guest().nodes > 1 {
            point.set("numa_nodes", format!("{}, artificial", self.guest().nodes));
        }
        if let Some(nudges) = &self.nudges {
            point.set("nudges", nudges.to_string());
        }
        point
    }
}

impl Measured {
    /// Its events, if none were lost.
    pub fn events(&self) -> Result<Option<Traced>, Error> {
        if self.lost == 0 { self.read().map(Some) } else { Ok(None) }
    }

    fn lost_note(&self) -> Option<String> {
        (self.lost > 0).then(|| {
            format!(
                "the guest's buffer had no room for {} events; give a shorter workload",
                self.lost
            )
        })
    }
}

/// The metrics of a workload in a guest, and the CPU share of each task.
pub fn real(booted: &Booted<'_>, measured: &Measured, traced: Option<&Traced>) -> Vec<Row> {
    let name = Name::Vm { kernel: booted.guest().kernel.name.clone() };
    let summary =
        traced.map_or_else(|| Metrics::new(0).finish(Time::ZERO), |traced| traced.summary.clone());
    let of_metric = |row: Row| {
        let row = match (row.metric, traced) {
            // Without the kernel's recording.
            (Metric::makespan_ns, _) => {
                Row { value: Some(measured.makespan.0 as f64), note: None, ..row }
            }
            (_, None) => Row { value: None, note: measured.lost_note(), ..row },
            _ => row,
        };
        let is_null = booted.guest().cpus > VALIDATED && !UNTIMED.contains(&row.metric.id());
        if is_null { Row { value: None, note: Some(NO_TIME.to_string()), ..row } } else { row }
    };
    let share = |(number, (task, share)): (usize, (String, f64))| {
        Row { value: Some(share), ..Row::new(name.clone(), Metric::cpu_share) }
            .of(SubjectKind::Task, task)
            .at("number", number)
    };
    let shares = shares(&measured.tasks).into_iter().enumerate().map(share);
    let stamped = |mut row: Row| {
        row.point.extend(booted.point());
        row
    };
    rows_of(&summary, &name).into_iter().map(of_metric).chain(shares).map(stamped).collect()
}
