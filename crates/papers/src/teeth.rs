//! Shows of every check that it can come out otherwise than on record.
//!
//! `limits.toml` and `limits.csv` of a paper say between which values each series can physically
//! lie. They do so by definition, or because policies and structures that are as bad and as good as
//! they come were measured. A counter-example gives each series of a check a [shape](shape::Shape)
//! within its limits such that the check contradicts its verdict on record. `counter-examples.csv`
//! keeps them. A check without a counter-example is vacuous: no measurement can contradict it.
//!
//! `UPDATE_TEETH=1 cargo test -p schedlab-papers --lib teeth` searches them again, and
//! `UPDATE_LIMITS=1` measures the limits of simulated commands again.

mod limits;
mod shape;

use crate::Paper;
use crate::binding::Binding;
use crate::claim::Claim;
use crate::evidence::Replicate;
use crate::expression::Check;
use crate::queues::binding::Binding as Queue;
use crate::series::Series;
use limits::{Limits, Range, path};
use results::{Row, Verdict};
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};

/// The most combinations of shapes that a search tries.
const MOST_TRIES: usize = 60_000;

/// A check as the search sees it: its series with their points and limits.
struct Subject<'a> {
    check: &'a Check,
    ranges: BTreeMap<String, Vec<Range>>,
    printed: BTreeMap<&'a str, Series>,
}

/// A shape for each series.
type Mutation = BTreeMap<String, Shape>;

/// A row of `counter-examples.csv`.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
struct CounterExample {
    claim: String,
    part: usize,
    /// `holds` or `does-not-hold`: the verdict that the mutated series get.
    comes_out: Verdict,
    /// The shape of each series.
    mutation: String,
    /// The left side of the comparison.
    value: f64,
}

impl Subject<'_> {
    /// The verdict and the value for these shapes; absent if a number does not exist.
    fn outcome(&self, mutation: &Mutation) -> Option<(Verdict, f64)> {
        let series: BTreeMap<&str, Series> = self
            .ranges
            .iter()
            .map(|(name, ranges)| {
                let shape = mutation.get(name)?;
                Some((name.as_str(), shape.series(ranges, self.printed.get(name.as_str()))?))
            })
            .collect::<Option<_>>()?;
        let outcome = self
            .check
            .evaluate(&Replicate {
                series: series.iter().map(|(&name, series)| (name, series)).collect(),
                printed: &self.printed,
            })
            .ok()?;
        let holds = match outcome.margin {
            margin if margin >= 0.0 => Verdict::Holds,
            margin if margin < 0.0 => Verdict::DoesNotHold,
            _ => return None,
        };
        Some((holds, outcome.value))
    }

    /// The first mutation that gets this verdict.
    fn search(&self, wanted: Verdict) -> Option<(Mutation, f64)> {
        let names: Vec<&String> = self.ranges.keys().collect();
        let shapes = Shape::all();
        let all = shapes.len().checked_pow(names.len() as u32).filter(|&all| all <= MOST_TRIES);
        let mut random = 1_u64;
        let mut draw = |place: usize, round: usize| match all {
            Some(_) => round / shapes.len().pow(place as u32) % shapes.len(),
            None => {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) as usize % shapes.len()
            }
        };
        (0..all.unwrap_or(MOST_TRIES)).find_map(|round| {
            let mutation: Mutation = names
                .iter()
                .enumerate()
                .map(|(place, &name)| (name.clone(), shapes[draw(place, round)]))
                .collect();
            let (verdict, value) = self.outcome(&mutation)?;
            (verdict == wanted).then_some((mutation, value))
        })
    }
}

/// The series of a check with their limits, or the series that has none.
fn subject<'a>(
    paper: &'a Paper,
    limits: &Limits,
    claim: &'a Claim,
    part: usize,
) -> Result<Subject<'a>, String> {
    let check = &claim.checks[part - 1];
    let known = paper.known(&claim.bindings).map_err(|(key, why)| format!("{key}: {why}"))?;
    let (mut ranges, mut printed) = (BTreeMap::new(), BTreeMap::new());
    for (name, binding) in claim.bindings.iter().filter(|(name, _)| check.uses(name)) {
        let axis = known[name].axis.clone();
        let axis = axis.unwrap_or_else(|| places(&claim.check[part - 1]));
        let of = |x: f64| limits.range(binding, x).map_err(|why| format!("{}: {why}", claim.id));
        ranges.insert(name.clone(), axis.into_iter().map(of).collect::<Result<_, String>>()?);
        if let Binding::Queue(Queue::Column(id)) = binding {
            let (table, column) = paper.column(id)?;
            printed.insert(name.as_str(), paper.printed.series(table, &column.name));
        }
    }
    Ok(Subject { check, ranges, printed })
}

/// The points of a series whose axis only a measurement shows: those that the check names and a
/// few between.
fn places(check: &str) -> Vec<f64> {
    let named = check.split('@').skip(1).chain(check.split('[').skip(1));
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<f64>().ok()
    };
    let upper = check.split("..").skip(1);
    let mut places: Vec<f64> = named.chain(upper).filter_map(digits).collect();
    let last = places.iter().copied().fold(200.0, f64::max);
    match last > 200.0 || check.contains("..254") {
        true => places.extend((0..=last as u32).map(f64::from)),
        false => places.extend([1.0, 2.0, 10.0, 20.0, 50.0, 100.0, 200.0]),
    }
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// The verdicts that a check must be able to get: the contrary of those on record, or both.
fn wanted(record: &[Row], claim: &Claim, part: usize) -> Vec<Verdict> {
    let on_record: BTreeSet<Verdict> = record
        .iter()
        .filter(|row| row.text("claim") == claim.id)
        .filter(|row| row.text("check") == claim.check[part - 1])
        .filter_map(|row| row.verdict)
        .collect();
    let is = |verdict| on_record.len() == 1 && on_record.contains(&verdict);
    match (is(Verdict::Holds), is(Verdict::DoesNotHold)) {
        (true, _) => vec![Verdict::DoesNotHold],
        (_, true) => vec![Verdict::Holds],
        _ => vec![Verdict::DoesNotHold, Verdict::Holds],
    }
}

fn text(mutation: &Mutation) -> String {
    let one = |(name, shape): (&String, &Shape)| format!("{name} = {shape}");
    mutation.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn parsed(text: &str) -> Option<Mutation> {
    text.split("; ")
        .map(|one| {
            let (name, shape) = one.split_once(" = ")?;
            Some((name.to_string(), shape.parse().ok()?))
        })
        .collect()
}

fn record(paper: &str) -> Vec<Row> {
    results::from_csv(&std::fs::read_to_string(path(paper, "record.csv")).unwrap()).unwrap()
}

/// Each check of a paper, with what the search needs.
fn parts(paper: &Paper) -> impl Iterator<Item = (&Claim, usize)> {
    paper.claims.iter().flat_map(|claim| (1..=claim.checks.len()).map(move |part| (claim, part)))
}

/// The counter-examples of a paper, and the checks that have none.
fn searched(paper: &Paper, limits: &Limits, record: &[Row]) -> (Vec<CounterExample>, Vec<String>) {
    let (mut found, mut vacuous) = (Vec::new(), Vec::new());
    for (claim, part) in parts(paper) {
        let subject = subject(paper, limits, claim, part).unwrap_or_else(|why| panic!("{why}"));
        for comes_out in wanted(record, claim, part) {
            match subject.search(comes_out) {
                Some((mutation, value)) => found.push(CounterExample {
                    claim: claim.id.clone(),
                    part,
                    comes_out,
                    mutation: text(&mutation),
                    value,
                }),
                None => vacuous.push(format!(
                    "{} ({part}) is vacuous: nothing within limits makes it {comes_out}: {}",
                    claim.id,
                    claim.check[part - 1]
                )),
            }
        }
    }
    (found, vacuous)
}

/// The faults of the counter-examples on record.
fn faults(paper: &Paper, limits: &Limits, record: &[Row], kept: &[CounterExample]) -> Vec<String> {
    let mut faults = Vec::new();
    for (claim, part) in parts(paper) {
        let subject = subject(paper, limits, claim, part).unwrap_or_else(|why| panic!("{why}"));
        for comes_out in wanted(record, claim, part) {
            let shown = kept
                .iter()
                .filter(|one| one.claim == claim.id && one.part == part)
                .filter(|one| one.comes_out == comes_out)
                .filter_map(|one| subject.outcome(&parsed(&one.mutation)?))
                .any(|(verdict, _)| verdict == comes_out);
            if !shown {
                faults.push(format!(
                    "{} ({part}) has no counter-example that makes it {comes_out}: {}",
                    claim.id,
                    claim.check[part - 1]
                ));
            }
        }
    }
    for one in kept {
        if !parts(paper).any(|(claim, part)| claim.id == one.claim && part == one.part) {
            faults.push(format!("{} ({}) is no check of {}", one.claim, one.part, paper.name));
        }
    }
    faults
}

mod tests;
