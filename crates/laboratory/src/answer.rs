//! The answer in plain words: what helps, by how much, which program, at which price, with which
//! confidence, and the command to use it.
//!
//! A pure function of final rows; the verdicts are those of the rows. A candidate *helps* if one of
//! its rows is better in a metric that a user notices (times, response ratios, fairness,
//! throughput). Counts, such as switches, are only means to that end. A loss of one program or
//! metric is the price. If the largest loss is a larger share than the largest gain, the candidate
//! is a *trade*, no help. A replay that is not like its recording gives no advice.

mod words;

use super::{Fidelity, Section};
use results::{Metric, Row, SubjectKind, Verdict, World as Name, counted, quantity};
use statistics::Replay;
use std::cmp::Ordering;
use std::fmt::Write;
use words::{and, by, noun, percent, times};
use worlds::setting::{Focus, SwitchOn};
use worlds::{Program, World};

/// The question.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The metrics in the tables, the most important first.
    pub shown: &'a [Metric],
    /// The program of interest, if there is one.
    pub focus: Option<&'a Focus>,
    /// The replay that the rows are of, if they are of one.
    pub replay: Option<Replayed<'a>>,
}

/// A replay of a recording.
#[derive(Clone, Copy)]
pub struct Replayed<'a> {
    /// How well the baseline reproduces the recording.
    pub fidelity: &'a [Fidelity],
    /// Whether the recording says why tasks wait.
    pub has_causes: bool,
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
/// A replay with a larger error in the first metric is not like its recording. What a candidate
/// does to it says little about the program.
const UNLIKE: f64 = 0.5;
/// How far a replay without causes is to be trusted.
const GUESS: &str = "The recording has no causes, so its schedule is replayed: how a change moves \
                     its waits is a guess";

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
    if let Some((whose, error)) = question.first_error().filter(|(_, error)| *error > UNLIKE) {
        return Some(question.unlike(baseline, &whose, error));
    }
    let opinions: Vec<Opinion<'_>> =
        names.iter().map(|name| question.opinion(name, &compared)).collect();
    let mut gaining: Vec<&Opinion<'_>> =
        opinions.iter().filter(|opinion| !opinion.gains.is_empty()).collect();
    gaining.sort_by(|one, other| question.order(one, other));
    let measured = compared.first().is_some_and(|row| row.world != Name::Sim);
    let [best, ..] = gaining[..] else {
        return Some(question.nothing(&opinions));
    };
    match question.focus {
        Some(focus) if question.exceeds(best) => Some(question.too_dear(best, focus)),
        _ => Some(question.advice(best, baseline, measured)),
    }
}

/// The answer where nothing could be compared because candidates failed; none if none failed.
fn failed(section: &Section<'_>, cpus: u16) -> Option<String> {
    let names = section.failed.iter().filter(|failed| failed.cpus == cpus);
    let names: Vec<String> = names.map(|failed| format!("`{}`", failed.candidate)).collect();
    let reason = if names.len() == 1 { "The reason is" } else { "The reasons are" };
    (!names.is_empty())
        .then(|| format!("Nothing was compared: {} failed. {reason} below.\n", and(&names)))
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
            let replay = match &programs[section.program] {
                Program::Replay(replay) if !section.fidelity.is_empty() => Some(Replayed {
                    fidelity: &section.fidelity,
                    has_causes: replay.recorded.recording.report.causes > 0,
                }),
                _ => None,
            };
            let question = Question { shown: &shown, focus, replay };
            let heading = format!(
                "{} ({}, {})",
                programs[section.program].name(),
                worlds[section.world].name(),
                counted(cpus.into(), "CPU")
            );
            let said = answer(&rows, &question).or_else(|| failed(section, cpus));
            answers.extend(said.map(|answer| (heading, answer)));
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

impl Question<'_> {
    /// The replay's error as a share, in the first metric that is shown and recorded. It is of the
    /// program in question, if that has such a metric.
    fn first_error(&self) -> Option<(String, f64)> {
        let fidelity = self.replay?.fidelity;
        let first = |subject: Option<&String>| {
            self.shown.iter().find_map(|metric| {
                fidelity.iter().find(|of| of.metric == *metric && of.subject.as_ref() == subject)
            })
        };
        let own = self.focus.and_then(|focus| Some((first(Some(&focus.program))?, focus)));
        let (of, whose) = match own {
            Some((of, focus)) => (of, format!("{}'s {}", focus.program, noun(of.metric))),
            None => first(None).map(|of| (of, noun(of.metric).to_string()))?,
        };
        Some((whose, of.error().share()?))
    }

    /// Whether a schedule is replayed, and no program.
    fn lacks_causes(&self) -> bool {
        self.replay.is_some_and(|replay| !replay.has_causes)
    }

    /// The answer if the replay is not like the recording.
    fn unlike(&self, baseline: &str, whose: &str, error: f64) -> String {
        let mut text = format!(
            "No advice: the replay is not like the recording. Under {baseline} it is off by up \
             to {} in {whose}.\nWhat a candidate does to it says little about the program.",
            percent(error)
        );
        if self.lacks_causes() {
            text += " Record it with causes: schedlab record -o NAME.rec -- COMMAND.";
        }
        text + "\n"
    }

    /// Whether the candidate loses more than it gains: of the complete run if that gains, of the
    /// focus if there is one.
    fn is_trade(&self, opinion: &Opinion<'_>) -> bool {
        let matters = |row: &&&Row| match self.focus {
            Some(focus) => program(row) == Some(&focus.program),
            None => row.subject_kind.is_none() || self.is_of_parts(opinion),
        };
        let largest =
            |rows: &mut dyn Iterator<Item = &&Row>| rows.map(|row| size(row)).fold(0.0, f64::max);
        largest(&mut opinion.costs.iter().filter(matters)) > largest(&mut opinion.gains.iter())
    }

    /// Whether only numbers of single programs gain.
    fn is_of_parts(&self, opinion: &Opinion<'_>) -> bool {
        self.focus.is_none() && opinion.gains.iter().all(|row| row.subject_kind.is_some())
    }

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

    /// Sorts the better opinion first. A help comes before a trade, and a gain of the complete run
    /// before gains of single programs. Then come no costs before costs, the more important gain
    /// before others, and the larger gain.
    /// If the complete run gains, losses of single programs are its price and do not affect this
    /// order.
    fn order(&self, one: &Opinion<'_>, other: &Opinion<'_>) -> Ordering {
        let has_costs = |opinion: &Opinion<'_>| match self.focus {
            None => {
                let is_of_parts = self.is_of_parts(opinion);
                opinion.costs.iter().any(|row| row.subject_kind.is_none() || is_of_parts)
            }
            Some(_) => self.exceeds(opinion),
        };
        let price = |opinion: &Opinion<'_>| {
            (self.is_trade(opinion), self.is_of_parts(opinion), has_costs(opinion))
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

    fn advice(&self, best: &Opinion<'_>, baseline: &str, measured: bool) -> String {
        let whom = self.focus.map_or(String::new(), |focus| format!(" {}", focus.program));
        let (gains, costs) = (effects(&best.gains, self.focus), effects(&best.costs, None));
        let is_trade = self.is_trade(best);
        let mut text = match (is_trade, measured) {
            (true, _) => {
                let whom = self.focus.map_or(String::new(), |of| format!(" for {}", of.program));
                format!(
                    "Nothing tried here gains more{whom} than it loses.\n`{}` is a trade: \
                     {gains}, but {costs}.",
                    best.candidate
                )
            }
            (false, true) => format!("`{}` helps{}: {gains}.", best.candidate, most(&whom)),
            (false, false) => format!("`{}` would help{}: {gains}.", best.candidate, most(&whom)),
        };
        match best.costs.is_empty() {
            true => text += " Nothing that was compared gets worse.",
            false if is_trade => {}
            false => {
                let _ = write!(text, " The price: {costs}.");
            }
        }
        text += &self.how_sure(best, baseline);
        let on = SwitchOn::of(best.candidate);
        let needs = if on.sched_ext { " (a kernel with sched_ext)" } else { "" };
        let switch = if is_trade { "To have it anyway" } else { "Switch it on" };
        match &on.commands[..] {
            [] if on.sched_ext => {
                text += "Its own loader switches it on, in a kernel with sched_ext.\n"
            }
            [] => text += "No command switches it on: it is a model.\n",
            [one] => text += &format!("{switch}{needs}: {one}\n"),
            several => {
                let _ = writeln!(text, "{switch}:");
                several.iter().for_each(|line| text += &format!("  {line}\n"));
            }
        }
        text
    }

    /// How often it was run, and what the replay's own error is in the metrics that are named.
    fn how_sure(&self, best: &Opinion<'_>, baseline: &str) -> String {
        let mut text = format!(
            "\nHow sure: {} against {baseline}",
            if best.runs == 1 { "1 run".to_string() } else { format!("{} runs each", best.runs) }
        );
        if best.gains.iter().any(|row| row.effect_low.or(row.difference_low).is_some()) {
            text += ", 95 % intervals in brackets";
        }
        let Some(replay) = self.replay else { return text + ".\n" };
        let mut errors: Vec<String> = Vec::new();
        for row in best.gains.iter().take(NAMED) {
            let is_of =
                |of: &&Fidelity| of.metric == row.metric && of.subject.as_ref() == program(row);
            let error = match replay.fidelity.iter().find(is_of).map(Fidelity::error) {
                Some(Replay::Share(error)) => percent(error),
                Some(Replay::Fixed(error)) => quantity(error, row.unit()),
                _ => continue,
            };
            errors.push(format!("{error} in {}", whose(row, self.focus)));
        }
        if !errors.is_empty() {
            text += &format!(
                ". Unchanged, the replay is off by up to {}: no smaller change of the mean counts",
                and(&errors)
            );
        }
        if self.lacks_causes() {
            text = text + ". " + GUESS;
        }
        text + ".\n"
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
        let beyond = self.first_error().map_or(String::new(), |(whose, error)| {
            format!(" beyond the replay's error ({} in {whose})", percent(error))
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
                text += &format!(
                    " `{}` makes something worse: {}.",
                    one.candidate,
                    effects(&one.costs, None)
                )
            }
            ([_, _], 2) => text += " Both candidates make something worse.",
            (several, all) if several.len() == all => {
                text += &format!(" All {all} candidates make something worse.")
            }
            (several, all) => {
                text += &format!(" {} of {all} candidates make something worse.", several.len())
            }
        }
        if self.lacks_causes() {
            text = text + " " + GUESS + ".";
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

/// ` redis most`, for the focus that gains more than the others.
fn most(whom: &str) -> String {
    if whom.is_empty() { String::new() } else { format!("{whom} most") }
}

/// `xz's run delay`; the focus is not named.
fn whose(row: &Row, focus: Option<&Focus>) -> String {
    let whose = program(row)
        .filter(|name| focus.is_none_or(|focus| focus.program != **name))
        .map_or(String::new(), |name| format!("{name}'s "));
    whose + &noun(row.metric)
}

/// `makespan 12 % shorter (9 to 15 %)`.
fn effect(row: &Row, focus: Option<&Focus>) -> String {
    let noun = whose(row, focus);
    if let (None, Some(difference)) = (row.effect, row.difference) {
        return format!("{noun} {}", in_units(row, difference));
    }
    let Some(size) = row.effect else {
        let adverb = if row.verdict == Some(Verdict::Better) { "better" } else { "worse" };
        return format!("{noun} {adverb}");
    };
    let interval = row.effect_low.zip(row.effect_high);
    if size > 1.0 {
        let ends = interval
            .map_or(String::new(), |(low, high)| format!(" ({} to {})", times(low), times(high)));
        return format!("{noun} {} times as {}{ends}", times(size), by(row.metric).2);
    }
    let (less, more, _) = by(row.metric);
    let word = if size < 0.0 { less } else { more };
    let ends = interval.map_or(String::new(), |(low, high)| {
        let (near, far) = if size < 0.0 { (-high, -low) } else { (low, high) };
        format!(" ({} to {})", percent(near).trim_end_matches(" %"), percent(far))
    });
    format!("{noun} {} {word}{ends}", percent(size.abs()))
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
