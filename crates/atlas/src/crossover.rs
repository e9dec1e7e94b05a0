//! Finds the number of tasks from which another structure is cheaper.

use super::callgrind::Counted;
use super::measure::{Plan, Source, filled};
use super::rig::Cell;
use super::structure::Structure;
use results::{Metric, Row};

/// Porter's numbers of tasks.
pub const GRID: [u32; 20] =
    [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200];

/// The begin of the note of a row that found none: such a row has no value, but was measured.
const NO_CROSSOVER: &str = "no crossover";

/// Why none could be searched for, if `row` says so.
pub fn unmeasured(row: &Row) -> Option<&str> {
    let is_crossover = row.metric == Metric::crossover_tasks && row.value.is_none();
    row.note.as_deref().filter(|note| is_crossover && !note.starts_with(NO_CROSSOVER))
}

/// The row of `a` against `b`: the number of tasks at which the other becomes cheaper, over the
/// plan's assignments.
pub fn find(plan: &Plan, source: &Source, a: &'static Structure, b: &'static Structure) -> Row {
    let points: Vec<(u32, Vec<Cell>, Vec<Cell>)> = plan
        .tasks
        .iter()
        .map(|&tasks| (tasks, plan.cells(a, tasks), plan.cells(b, tasks)))
        .collect();
    let cells: Vec<Cell> = points.iter().flat_map(|(_, a, b)| a.iter().chain(b).cloned()).collect();
    let mut row = plan.row(a, 0, source.world(), Metric::crossover_tasks);
    row.workload = "yield".to_string();
    row.candidate = format!("{} | {}", a.name, b.name);
    row.point.set("strides", plan.strides.name());
    let counted: Result<Vec<f64>, String> =
        source.count(&cells).and_then(|counted| counted.iter().map(instructions).collect());
    let counted = match counted {
        Ok(counted) => counted,
        Err(why) => return filled(row, &Err(why)),
    };
    let assignments = points.first().map_or(0, |(_, a, _)| a.len());
    let curve = |assignment: usize| -> Vec<(f64, f64)> {
        let difference = |(point, &(tasks, ..)): (usize, &(u32, _, _))| {
            let at = point * 2 * assignments + assignment;
            (f64::from(tasks), counted[at] - counted[at + assignments])
        };
        points.iter().enumerate().map(difference).collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = (0..assignments).map(curve).collect();
    let found: Vec<f64> = curves.iter().filter_map(|curve| sign_change(curve)).collect();
    let (first, last) =
        (plan.tasks.first().copied().unwrap_or(0), plan.tasks.last().copied().unwrap_or(0));
    let cheaper_at_first = curves
        .first()
        .and_then(|curve| curve.first())
        .is_some_and(|&(_, difference)| difference < 0.0);
    let (before, after) = if cheaper_at_first { (a.name, b.name) } else { (b.name, a.name) };
    if found.is_empty() {
        row.note = Some(format!(
            "{NO_CROSSOVER} from {first} to {last} tasks: {before} is cheaper throughout"
        ));
        return row;
    }
    let share = if found.len() < assignments {
        format!(" (in {} of {assignments} assignments)", found.len())
    } else {
        String::new()
    };
    row = filled(row, &Ok(found));
    row.note = Some(format!("{before} is cheaper below, {after} above{share}"));
    row
}

fn instructions(counted: &Counted) -> Result<f64, String> {
    counted
        .as_ref()
        .map_err(Clone::clone)?
        .per_slice(&["Ir"])
        .ok_or_else(|| "instructions were not counted".to_string())
}

/// The x where a curve first changes sign, by linear interpolation between two points.
pub fn sign_change(curve: &[(f64, f64)]) -> Option<f64> {
    curve
        .windows(2)
        .find(|pair| pair[0].1 * pair[1].1 < 0.0 || (pair[1].1 == 0.0 && pair[0].1 != 0.0))
        .map(|pair| {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            x0 + (x1 - x0) * y0 / (y0 - y1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossing_is_interpolated_linearly() {
        assert_eq!(
            sign_change(&[(10.0, -3.0), (20.0, -1.0), (30.0, 1.0), (40.0, 5.0)]),
            Some(25.0)
        );
        assert_eq!(sign_change(&[(10.0, 3.0), (20.0, 0.0), (30.0, -1.0)]), Some(20.0));
        assert_eq!(sign_change(&[(10.0, 3.0), (20.0, 1.0)]), None);
    }
}
