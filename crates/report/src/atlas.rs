//! The cost atlas as curves over the number of tasks, one chart for each metric and mix. Each has
//! the numbers of tasks from which another structure is cheapest.

use atlas::crossover::sign_change;
use results::{Metric, Row, counted};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The costs of all structures in one metric under the same conditions.
#[derive(Serialize)]
pub struct Chart {
    metric: &'static str,
    unit: &'static str,
    /// The other coordinates, as in `levels=10, mix=random`.
    conditions: String,
    /// Numbers of tasks, ascending.
    tasks: Vec<f64>,
    structures: Vec<Curve>,
    crossovers: Vec<Crossover>,
}

/// The costs of one structure, by number of tasks.
#[derive(Serialize)]
struct Curve {
    name: String,
    value: Vec<Option<f64>>,
    ci_low: Vec<Option<f64>>,
    ci_high: Vec<Option<f64>>,
}

/// Another structure is cheapest from about `tasks` on.
#[derive(Serialize, PartialEq, Debug)]
struct Crossover {
    tasks: f64,
    cost: f64,
    from: String,
    to: String,
    /// Whether the intervals on both sides confirm it.
    certain: bool,
}

const CHEAPEST: [Metric; 2] =
    [Metric::cheapest_instructions_per_op, Metric::cheapest_time_ns_per_op];

/// A chart for each metric and mix that has values at two numbers of tasks or more.
pub fn charts(rows: &[Row]) -> Vec<Chart> {
    let mut groups: Vec<((Metric, String), Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| {
        row.value.is_some() && row.tasks_of_yield().is_some() && !CHEAPEST.contains(&row.metric)
    }) {
        let shared = row.point.iter().filter(|(key, _)| *key != "strides");
        let conditions: Vec<String> = shared.map(|(key, value)| format!("{key}={value}")).collect();
        let key = (row.metric, conditions.join(", "));
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    // A wait is no cost.
    groups.sort_by_key(|((metric, _), _)| *metric == Metric::longest_wait_slices);
    groups
        .into_iter()
        .map(|((metric, conditions), rows)| Chart::new(metric, conditions, &rows))
        .filter(|chart| chart.tasks.len() > 1)
        .collect()
}

impl Chart {
    /// Which structure is the cheapest, in a sentence.
    pub fn sentence(&self) -> String {
        // Costs differ most at the largest number of tasks.
        let at = |curve: &&Curve| curve.value.last().copied().flatten().unwrap_or(f64::INFINITY);
        let cheapest = self.structures.iter().min_by(|a, b| at(a).total_cmp(&at(b)));
        let (first, tasks) = match (self.crossovers.first(), cheapest) {
            (Some(crossover), _) => (&crossover.from, self.tasks.first()),
            (None, Some(curve)) => (&curve.name, self.tasks.last()),
            _ => return "No structure was measured.".to_string(),
        };
        let tasks = counted(tasks.map_or(0, |tasks| *tasks as usize), "task");
        let doubt =
            |certain: bool| if certain { "" } else { " (undecided: the intervals overlap)" };
        let then: String = self
            .crossovers
            .iter()
            .map(|one| {
                format!("; from about {:.0} on, `{}`{}", one.tasks, one.to, doubt(one.certain))
            })
            .collect();
        let conditions = match self.conditions.as_str() {
            "" => String::new(),
            conditions => format!(" ({conditions})"),
        };
        format!(
            "At {tasks} `{first}` is the cheapest in {}{conditions}{then}.",
            self.metric.replace('_', " ")
        )
    }

    fn new(metric: Metric, conditions: String, rows: &[&Row]) -> Chart {
        let numbers: Vec<u32> = rows
            .iter()
            .filter_map(|row| row.tasks_of_yield())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let mut names: Vec<&str> = Vec::new();
        let mut cells: BTreeMap<(&str, u32), &Row> = BTreeMap::new();
        for row in rows {
            if !names.contains(&row.candidate.as_str()) {
                names.push(&row.candidate);
            }
            if let Some(tasks) = row.tasks_of_yield() {
                cells.insert((&row.candidate, tasks), row);
            }
        }
        let column = |name: &str, of: fn(&Row) -> Option<f64>| {
            numbers.iter().map(|&tasks| of(cells.get(&(name, tasks))?)).collect()
        };
        let curve = |name: &&str| Curve {
            name: name.to_string(),
            value: column(name, |row| row.value),
            ci_low: column(name, |row| row.ci_low),
            ci_high: column(name, |row| row.ci_high),
        };
        let structures: Vec<Curve> = names.iter().map(curve).collect();
        let tasks: Vec<f64> = numbers.iter().map(|&tasks| f64::from(tasks)).collect();
        let crossovers = crossovers(&tasks, &structures);
        Chart {
            metric: metric.id(),
            unit: metric.unit(),
            conditions,
            tasks,
            structures,
            crossovers,
        }
    }
}

/// The numbers of tasks where the cheapest structure changes, by linear interpolation. A tie is not
/// a change.
fn crossovers(tasks: &[f64], structures: &[Curve]) -> Vec<Crossover> {
    let cheapest = |point: usize, before: Option<usize>| {
        let costs = structures
            .iter()
            .enumerate()
            .filter_map(|(index, curve)| Some((index, curve.value[point]?)));
        costs
            .min_by(|a, b| {
                a.1.total_cmp(&b.1).then_with(|| (Some(a.0) != before).cmp(&(Some(b.0) != before)))
            })
            .map(|(index, _)| index)
    };
    let mut found = Vec::new();
    let mut now = tasks.first().and_then(|_| cheapest(0, None));
    for point in 1..tasks.len() {
        let next = cheapest(point, now);
        if let (Some(from), Some(to)) = (now, next)
            && from != to
            && let Some(crossover) = crossover(tasks, point, &structures[from], &structures[to])
        {
            found.push(crossover);
        }
        now = next;
    }
    found
}

fn crossover(tasks: &[f64], point: usize, from: &Curve, to: &Curve) -> Option<Crossover> {
    let difference = |at: usize| Some((tasks[at], from.value[at]? - to.value[at]?));
    let at = sign_change(&[difference(point - 1)?, difference(point)?])?;
    let share = (at - tasks[point - 1]) / (tasks[point] - tasks[point - 1]);
    let cost = from.value[point - 1]? + share * (from.value[point]? - from.value[point - 1]?);
    let certain = from.is_surely_below(to, point - 1) && to.is_surely_below(from, point);
    Some(Crossover { tasks: at, cost, from: from.name.clone(), to: to.name.clone(), certain })
}

impl Curve {
    /// Whether its interval at a point ends below the start of the other's.
    fn is_surely_below(&self, other: &Curve, point: usize) -> bool {
        let high = self.ci_high[point].or(self.value[point]);
        let low = other.ci_low[point].or(other.value[point]);
        high.zip(low).is_some_and(|(high, low)| high < low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, value: &[f64]) -> Curve {
        let none = vec![None; value.len()];
        Curve {
            name: name.to_string(),
            value: value.iter().copied().map(Some).collect(),
            ci_low: none.clone(),
            ci_high: none,
        }
    }

    #[test]
    fn a_crossover_is_where_another_structure_becomes_the_cheapest() {
        let structures = [
            curve("list", &[10.0, 20.0, 60.0]),
            curve("tree", &[30.0, 30.0, 30.0]),
            curve("never", &[40.0, 25.0, 40.0]),
        ];
        let found = crossovers(&[1.0, 11.0, 21.0], &structures);
        assert_eq!(
            found,
            [Crossover {
                tasks: 13.5,
                cost: 30.0,
                from: "list".to_string(),
                to: "tree".to_string(),
                certain: true
            }]
        );
    }

    #[test]
    fn a_crossover_within_the_intervals_is_not_certain() {
        let (list, mut tree) =
            (curve("list", &[10.0, 20.0, 60.0]), curve("tree", &[30.0, 30.0, 30.0]));
        tree.ci_high = vec![Some(31.0), Some(31.0), Some(61.0)];
        assert!(!crossovers(&[1.0, 11.0, 21.0], &[list, tree])[0].certain);
    }

    #[test]
    fn the_sentence_is_of_a_cost_where_structures_differ_most() {
        let row = |candidate: &str, tasks: u32, metric, value| Row {
            candidate: candidate.to_string(),
            workload: format!("yield:{tasks}"),
            value: Some(value),
            ..Row::new(results::World::Sim, metric)
        };
        let mut rows = Vec::new();
        for (tasks, slow, fast) in [(1, 2.0, 2.0), (10, 20.0, 3.0)] {
            for metric in [Metric::longest_wait_slices, Metric::elements_walked_per_op] {
                rows.extend([row("slow", tasks, metric, slow), row("fast", tasks, metric, fast)]);
            }
        }
        let sentence = charts(&rows)[0].sentence();
        assert!(
            sentence.contains("`fast` is the cheapest in elements walked per op"),
            "{sentence}"
        );
        assert!(sentence.starts_with("At 10 tasks "), "{sentence}");
    }

    #[test]
    fn a_tie_is_not_a_crossover() {
        let structures = [curve("a", &[10.0, 20.0]), curve("b", &[10.0, 20.0])];
        assert_eq!(crossovers(&[1.0, 10.0], &structures), []);
        let structures = [curve("a", &[30.0, 20.0]), curve("b", &[10.0, 20.0])];
        assert_eq!(crossovers(&[1.0, 10.0], &structures), []);
    }
}
