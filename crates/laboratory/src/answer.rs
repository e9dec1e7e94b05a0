//! The answer in plain words: what helps, by how much, which program, at which price, with which
//! confidence, and the command to use it.
//!
//! A pure function of final rows; the verdicts are those of the rows. A candidate *helps* if one of
//! its rows is better in a metric that a user notices (times, response ratios, fairness,
//! throughput). Counts, such as switches, are only means to that end. A loss of one program or
//! metric is the price.

mod words;

use super::{Fidelity, Section};
use results::{Metric, Row, SubjectKind, Verdict, World as Name, counted, quantity};
use statistics::Replay;
use std::cmp::Ordering;
use std::fmt::Write;
use words::{and, by, noun, percent, times};
use worlds::setting::Focus;
use worlds::{Program, World, setting};

/// The question.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The metrics in the tables, the most important first.
    pub shown: &'a [Metric],
    /// The program of interest, if there is one.
    pub focus: Option<&'a Focus>,
    /// The error of the replay as a share, if there is a replay.
    pub replay_error: Option<f64>,
}

/// The gains and costs of a candidate.
struct Opinion<'r> {
    candidate: &'r str,
    /// The improvements, the most important first.
    gains: Vec<&'r Row>,
    /// The losses, the largest first.
    costs: Vec<&'r Row>,
    runs: u32,
}

/// Prefixes of metrics that are only means to an end.
const MEANS: [&str; 6] =
    ["switches", "migration", "idle_waste", "population", "cpu_inflation", "overhead"];
/// The number of effects that are named.
const NAMED: usize = 2;

/// The answer for `rows` of one workload in one world on one number of CPUs; none if nothing was
/// compared.
pub fn answer(rows: &[&Row], question: &Question<'_>) -> Option<String> {
    let judged: Vec<&Row> = rows.iter().copied().filter(|row| row.verdict.is_some()).collect();
    let baseline = judged.iter().find_map(|row| row.baseline.as_deref())?;
    if let Some(focus) = question
        .focus
        .filter(|focus| !judged.iter().any(|row| program(row) == Some(&focus.program)))
    {
        return Some(format!(
            "What happens to {} alone was not compared: give --by comm as well, where it is \
             measured.\n",
            focus.program
        ));
    }
    let compared: Vec<&Row> = judged.iter().copied().filter(|row| question.is_about(row)).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &judged {
        if !names.contains(&row.candidate.as_str()) {
            names.push(&row.candidate);
        }
    }
    let opinions: Vec<Opinion<'_>> =
        names.iter().map(|name| question.opinion(name, &compared)).collect();
    let mut helpful: Vec<&Opinion<'_>> =
        opinions.iter().filter(|opinion| !opinion.gains.is_empty()).collect();
    helpful.sort_by(|one, other| question.order(one, other));
    let measured = compared.first().is_some_and(|row| row.world != Name::Sim);
    let [best, ..] = helpful[..] else {
        return Some(question.nothing(&opinions));
    };
    match question.focus {
        Some(focus) if question.exceeds(best) => Some(question.too_dear(best, focus)),
        _ => Some(question.helps(best, baseline, measured)),
    }
}

/// The answers of an experiment, one for each workload, world and number of CPUs; with headings if
/// there are several.
pub(super) fn all(
    programs: &[Program],
    worlds: &[Box<dyn World + '_>],
    sections: &[Section<'_>],
    focus: Option<&Focus>,
) -> String {
    let mut answers: Vec<(String, String)> = Vec::new();
    for section in sections {
        let Some(trial) = section.trials.first() else { continue };
        let measures = worlds[section.world].measures(trial.program, trial.cpus);
        let shown: Vec<Metric> = measures
            .iter()
            .filter(|measure| measure.title.is_some())
            .map(|measure| measure.metric)
            .collect();
        let mut counts: Vec<u16> = section.trials.iter().map(|trial| trial.cpus).collect();
        counts.dedup();
        for cpus in counts {
            let rows: Vec<&Row> = section.rows.iter().filter(|row| row.cpus == cpus).collect();
            let question = Question {
                shown: &shown,
                focus,
                replay_error: error_of(&section.fidelity, &shown),
            };
            let heading = format!(
                "{} ({}, {})",
                programs[section.program].name(),
                worlds[section.world].name(),
                counted(cpus.into(), "CPU")
            );
            answers.extend(answer(&rows, &question).map(|answer| (heading, answer)));
        }
    }
    match &answers[..] {
        [(_, one)] => one.clone(),
        several => {
            let named: Vec<String> =
                several.iter().map(|(heading, answer)| format!("{heading}: {answer}")).collect();
            named.join("\n")
        }
    }
}

/// The error of the replay in the first metric that is shown and recorded.
fn error_of(fidelity: &[Fidelity], shown: &[Metric]) -> Option<f64> {
    let of = shown.iter().find_map(|metric| fidelity.iter().find(|of| of.metric == *metric))?;
    if let Replay::Share(error) = of.error() { Some(error) } else { None }
}

impl Question<'_> {
    /// Whether a row is relevant to the question.
    fn is_about(&self, row: &Row) -> bool {
        let is_end = !MEANS.iter().any(|begin| row.metric.id().starts_with(begin));
        match row.subject_kind {
            None => is_end && (self.shown.is_empty() || self.shown.contains(&row.metric)),
            Some(SubjectKind::Program) => is_end,
            Some(_) => false,
        }
    }

    fn opinion<'r>(&self, candidate: &'r str, compared: &[&'r Row]) -> Opinion<'r> {
        let own = || compared.iter().copied().filter(|row| row.candidate == candidate);
        let is_wanted =
            |row: &&Row| self.focus.is_none_or(|focus| program(row) == Some(&focus.program));
        let mut gains: Vec<&Row> =
            own().filter(|row| row.verdict == Some(Verdict::Better)).filter(is_wanted).collect();
        gains.sort_by(|one, other| {
            self.rank(one).cmp(&self.rank(other)).then_with(|| size(other).total_cmp(&size(one)))
        });
        let mut costs: Vec<&Row> =
            own().filter(|row| row.verdict == Some(Verdict::Worse)).collect();
        costs.sort_by(|one, other| size(other).total_cmp(&size(one)));
        Opinion { candidate, gains, costs, runs: own().map(|row| row.runs).max().unwrap_or(0) }
    }

    /// The importance of a row: first numbers of the complete run, then those of programs; first
    /// times, then ratios; then the order in the tables.
    fn rank(&self, row: &Row) -> (bool, bool, usize) {
        let place =
            self.shown.iter().position(|metric| *metric == row.metric).unwrap_or(self.shown.len());
        (row.subject_kind.is_some() && self.focus.is_none(), row.unit() != "ns", place)
    }

    /// Sorts the better opinion first: a gain of the complete run before gains of single programs,
    /// then no costs before costs. Then the more important gain comes first, then the larger one.
    /// If the complete run gains, losses of single programs are its price and do not affect this
    /// order.
    fn order(&self, one: &Opinion<'_>, other: &Opinion<'_>) -> Ordering {
        let is_of_parts = |opinion: &Opinion<'_>| {
            self.focus.is_none() && opinion.gains.iter().all(|row| row.subject_kind.is_some())
        };
        let price = |opinion: &Opinion<'_>| match self.focus {
            None => (
                is_of_parts(opinion),
                opinion.costs.iter().any(|row| row.subject_kind.is_none() || is_of_parts(opinion)),
            ),
            Some(_) => (false, self.exceeds(opinion)),
        };
        let first = |opinion: &Opinion<'_>| {
            opinion
                .gains
                .first()
                .map_or(((true, true, usize::MAX), 0.0), |row| (self.rank(row), size(row)))
        };
        let ((rank, gain), (other_rank, other_gain)) = (first(one), first(other));
        price(one).cmp(&price(other)).then(rank.cmp(&other_rank)).then(other_gain.total_cmp(&gain))
    }

    /// Whether another program loses more than allowed.
    fn exceeds(&self, opinion: &Opinion<'_>) -> bool {
        self.focus.is_some_and(|focus| {
            let others = opinion.costs.iter().filter(|row| is_of_another(row, focus));
            others.map(|row| size(row)).any(|loss| loss > focus.others_lose)
        })
    }

    fn helps(&self, best: &Opinion<'_>, baseline: &str, measured: bool) -> String {
        let verb = if measured { "helps" } else { "would help" };
        let whom = self.focus.map_or(String::new(), |focus| format!(" {} most", focus.program));
        let mut text =
            format!("`{}` {verb}{whom}: {}.", best.candidate, effects(&best.gains, self.focus));
        match best.costs.is_empty() {
            true => text += " Nothing that was compared gets worse.",
            false => {
                let _ = write!(text, " The price: {}.", effects(&best.costs, None));
            }
        }
        let _ = write!(
            text,
            "\nHow sure: {} against {baseline}",
            if best.runs == 1 { "1 run".to_string() } else { format!("{} runs each", best.runs) }
        );
        if best.gains.iter().any(|row| row.effect_low.or(row.difference_low).is_some()) {
            text += ", 95 % intervals in brackets";
        }
        match self.replay_error {
            Some(error) => {
                text += &format!(
                    "; differences below the replay's error in the same metric (first of all {}) \
                     do not count.\n",
                    percent(error)
                )
            }
            None => text += ".\n",
        }
        let commands = setting::switch_on(best.candidate);
        match &commands[..] {
            [] => text += "No command switches it on: it is a model.\n",
            [one] => text += &format!("Switch it on: {one}\n"),
            several => {
                text += "Switch it on:\n";
                several.iter().for_each(|line| text += &format!("  {line}\n"));
            }
        }
        text
    }

    /// The answer if what helps the program costs others more than allowed.
    fn too_dear(&self, best: &Opinion<'_>, focus: &Focus) -> String {
        let allowed = percent(focus.others_lose);
        let dear: Vec<&Row> =
            best.costs.iter().copied().filter(|row| is_of_another(row, focus)).collect();
        format!(
            "Nothing tried here helps {} while every other program loses at most {allowed}: keep \
             what you have.\n`{}` would help it ({}), at this price: {}.\n",
            focus.program,
            best.candidate,
            effects(&best.gains, None),
            effects(&dear, None)
        )
    }

    fn nothing(&self, opinions: &[Opinion<'_>]) -> String {
        let whom = self.focus.map_or(String::new(), |focus| format!(" {}", focus.program));
        let beyond = self.replay_error.map_or(String::new(), |error| {
            format!(" beyond the replay's error ({})", percent(error))
        });
        let mut text = match opinions {
            [one] => {
                format!("`{}` does not help{whom}{beyond}: keep what you have.", one.candidate)
            }
            _ => format!("Nothing tried here helps{whom}{beyond}: keep what you have."),
        };
        let harmful: Vec<&Opinion<'_>> =
            opinions.iter().filter(|opinion| !opinion.costs.is_empty()).collect();
        match (&harmful[..], opinions.len()) {
            ([], _) => {}
            ([one], _) => {
                text +=
                    &format!(" `{}` makes it worse: {}.", one.candidate, effects(&one.costs, None))
            }
            ([_, _], 2) => text += " Both candidates make something worse.",
            (several, all) if several.len() == all => {
                text += &format!(" All {all} candidates make something worse.")
            }
            (several, all) => {
                text += &format!(" {} of {all} candidates make something worse.", several.len())
            }
        }
        text + "\n"
    }
}

fn program(row: &Row) -> Option<&String> {
    row.subject.as_ref().filter(|_| row.subject_kind == Some(SubjectKind::Program))
}

fn is_of_another(row: &Row, focus: &Focus) -> bool {
    program(row).is_some_and(|name| *name != focus.program)
}

/// The absolute size of the difference. A difference without a share of the baseline counts as
/// larger than all others.
fn size(row: &Row) -> f64 {
    let beyond = if row.difference.is_some_and(|difference| difference != 0.0) {
        f64::INFINITY
    } else {
        0.0
    };
    row.effect.map_or(beyond, f64::abs)
}

/// The first of `rows` in words.
fn effects(rows: &[&Row], focus: Option<&Focus>) -> String {
    let mut all: Vec<String> = rows.iter().take(NAMED).map(|row| effect(row, focus)).collect();
    match rows.len().saturating_sub(NAMED) {
        0 => {}
        1 => all.push("1 number more".to_string()),
        more => all.push(format!("{more} numbers more")),
    }
    and(&all)
}

/// `makespan 12 % shorter (9 to 15 %)`.
fn effect(row: &Row, focus: Option<&Focus>) -> String {
    let whose = program(row)
        .filter(|name| focus.is_none_or(|focus| focus.program != **name))
        .map_or(String::new(), |name| format!("{name}'s "));
    let noun = noun(row.metric);
    if let (None, Some(difference)) = (row.effect, row.difference) {
        return format!("{whose}{noun} {}", in_units(row, difference));
    }
    let Some(size) = row.effect else {
        let adverb = if row.verdict == Some(Verdict::Better) { "better" } else { "worse" };
        return format!("{whose}{noun} {adverb}");
    };
    let interval = row.effect_low.zip(row.effect_high);
    if size > 1.0 {
        let ends = interval
            .map_or(String::new(), |(low, high)| format!(" ({} to {})", times(low), times(high)));
        return format!("{whose}{noun} {} times as {}{ends}", times(size), by(row.metric).2);
    }
    let (less, more, _) = by(row.metric);
    let word = if size < 0.0 { less } else { more };
    let ends = interval.map_or(String::new(), |(low, high)| {
        let (near, far) = if size < 0.0 { (-high, -low) } else { (low, high) };
        format!(" ({} to {})", percent(near).trim_end_matches(" %"), percent(far))
    });
    format!("{whose}{noun} {} {word}{ends}", percent(size.abs()))
}

/// `1.20ms longer (1.10ms to 1.30ms)`.
fn in_units(row: &Row, difference: f64) -> String {
    let (less, more, _) = by(row.metric);
    let word = if difference < 0.0 { less } else { more };
    let show = |difference: f64| quantity(difference.abs(), row.unit());
    let ends = row.difference_low.zip(row.difference_high).map_or(String::new(), |(low, high)| {
        let (near, far) = if difference < 0.0 { (high, low) } else { (low, high) };
        format!(" ({} to {})", show(near), show(far))
    });
    format!("{} {word}{ends}", show(difference))
}

#[cfg(test)]
mod tests;
