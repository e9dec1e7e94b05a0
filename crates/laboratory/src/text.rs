//! The text of an experiment: a table for each workload, world and number of CPUs, its meaning, and
//! remarks.

mod parts;
pub(super) mod programs;
mod sizes;

use super::plan::Plan;
use super::{Fidelity, Section, Settings, failed, starving, unfinished};
use results::{Align, Metric, Row, Table, Verdict, counted, open_cell, quantity};
use statistics::{Replay, median};
use std::collections::BTreeSet;
use std::fmt::Write;
use worlds::{Measure, Program, Trial, World};

/// The data of the text.
pub(super) struct ExperimentText<'a, 'w> {
    pub programs: &'a [Program],
    pub worlds: &'a [Box<dyn World + 'w>],
    pub sections: &'a [Section<'a>],
    pub plans: &'a [Plan<'a>],
    pub settings: &'a Settings,
}

impl ExperimentText<'_, '_> {
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (index, world) in self.worlds.iter().enumerate() {
            text += &self.matrix(index, &**world);
        }
        for (index, program) in self.programs.iter().enumerate() {
            let sections = self.sections.iter().filter(|section| section.program == index);
            let sections: Vec<&Section<'_>> =
                sections.filter(|section| !self.is_matrix(section)).collect();
            if sections.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text += "\n";
            }
            text += &program.headline();
            sections.iter().for_each(|section| text += &self.section(section));
        }
        text += &self.own_cpus();
        for refusal in self.plans.iter().flat_map(|plan| &plan.refusals) {
            let _ = writeln!(
                text,
                "\n{}: {} is not run under {}: {}",
                refusal.world, refusal.workload, refusal.candidate, refusal.error
            );
        }
        if self.settings.check && self.sections.iter().all(|section| section.failed.is_empty()) {
            text += "\nAll checks held in every run, and every first run repeated itself.\n";
        }
        text + &self.legend()
    }

    /// Says where worlds run a workload on different numbers of CPUs.
    fn own_cpus(&self) -> String {
        let mut text = String::new();
        for (index, program) in self.programs.iter().enumerate() {
            let of_world = |section: &Section<'_>| {
                let cpus: BTreeSet<u16> = section.trials.iter().map(|trial| trial.cpus).collect();
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                (self.world(section).name().to_string(), cpus.join(", "))
            };
            let own = self.sections.iter().filter(|section| section.program == index);
            let own: Vec<(String, String)> = own.map(of_world).collect();
            if own.iter().any(|(_, cpus)| *cpus != own[0].1) {
                let each: Vec<String> =
                    own.iter().map(|(world, cpus)| format!("{cpus} in {world}")).collect();
                let _ = writeln!(
                    text,
                    "\n{} runs on the CPUs that each world has for it: {}. Such numbers are not \
                     comparable; --cpus gives all worlds the same.",
                    program.name(),
                    each.join(", ")
                );
            }
        }
        text
    }

    fn world(&self, section: &Section<'_>) -> &dyn World {
        &*self.worlds[section.world]
    }

    /// Whether only one number of each workload is shown.
    fn is_matrix(&self, section: &Section<'_>) -> bool {
        self.titled(section).len() == 1
    }

    /// The metrics in tables for people.
    fn titled(&self, section: &Section<'_>) -> Vec<(Measure, &'static str)> {
        let trial = section.trials.first();
        let measures = trial
            .map_or(Vec::new(), |trial| self.world(section).measures(trial.program, trial.cpus));
        measures.into_iter().filter_map(|measure| Some((measure, measure.title?))).collect()
    }

    /// The metrics of these that have a value, or that were asked for.
    fn columns(&self, section: &Section<'_>) -> Vec<(Measure, &'static str)> {
        let has_value = |metric: Metric| {
            section
                .rows
                .iter()
                .any(|row| row.metric == metric && row.subject.is_none() && row.value.is_some())
        };
        let is_wanted = |metric: Metric| matches!(metric, Metric::printed(_)) || has_value(metric);
        self.titled(section).into_iter().filter(|(measure, _)| is_wanted(measure.metric)).collect()
    }

    fn section(&self, section: &Section<'_>) -> String {
        let world = self.world(section);
        let mut text = String::new();
        if self.worlds.len() > 1 {
            let _ = writeln!(text, "\n{}:", world.name());
        }
        text += &world.about(&section.trials);
        if let (Some(trial), Some(baseline)) = (
            section.trials.first(),
            section.baseline.as_ref().filter(|_| !section.fidelity.is_empty()),
        ) {
            text += &fidelity(trial.program, &section.fidelity, baseline);
            text += trial.program.change().unwrap_or_default();
        }
        let columns = self.columns(section);
        let mut counts: Vec<u16> = section.trials.iter().map(|trial| trial.cpus).collect();
        counts.dedup();
        for cpus in counts {
            let rows: Vec<&Row> = section
                .rows
                .iter()
                .filter(|row| row.cpus == cpus && row.subject.is_none() && !is_recorded(row))
                .collect();
            let trials: Vec<&Trial<'_>> =
                section.trials.iter().filter(|trial| trial.cpus == cpus).collect();
            let against = section
                .baseline
                .as_ref()
                .map_or(String::new(), |baseline| format!(", against {baseline}"));
            let runs = rows.iter().map(|row| row.runs).max().filter(|runs| *runs > 1);
            let runs = runs.map_or(String::new(), |runs| format!(", {runs} runs each"));
            let _ = writeln!(text, "\n{}{against}{runs}:\n", counted(cpus.into(), "CPU"));
            text += &table(&trials, &rows, &columns);
            let candidates: Vec<String> =
                trials.iter().map(|trial| trial.candidate.to_string()).collect();
            let sizes = sizes::text(&candidates, &rows, &columns);
            if !sizes.is_empty() {
                let _ = write!(text, "\n{sizes}");
            }
            text += &unfinished::lines(section, cpus);
        }
        text += &failed::lines(section);
        text += &starving::lines(section);
        if let Some(by) = self.settings.by {
            let recorded = self.programs[section.program].recorded_parts(by);
            let focus = self.settings.focus.as_ref().map(|focus| focus.program.as_str());
            text += &programs::text(section, &recorded, by, focus);
        }
        text += &parts::recorded(section);
        text += &parts::shares(section);
        text += &parts::functions(&[section], self.settings.parts);
        if !section.notes.is_empty() {
            let _ = write!(text, "\n{}", section.notes);
        }
        text
    }

    /// The table of a world whose workloads show one number each: a line for each workload, a
    /// column for each candidate.
    fn matrix(&self, index: usize, world: &dyn World) -> String {
        let own = self
            .sections
            .iter()
            .filter(|section| section.world == index && self.is_matrix(section));
        let sections: Vec<&Section<'_>> = own.collect();
        let Some(first) = sections.first() else { return String::new() };
        let Some((measure, title)) = self.titled(first).into_iter().next() else {
            return String::new();
        };
        let titles = first.trials.iter().map(|trial| (trial.candidate.to_string(), Align::Right));
        let mut table = Table::new(std::iter::once((title.to_string(), Align::Left)).chain(titles));
        for section in &sections {
            let cell = |trial: &Trial<'_>| {
                let row = section.rows.iter().find(|row| {
                    row.metric == measure.metric && is_of(row, trial) && row.subject.is_none()
                });
                row.map_or("- ".to_string(), open_cell)
            };
            table.row(
                std::iter::once(self.programs[section.program].name())
                    .chain(first.trials.iter().map(cell)),
            );
        }
        let trials: Vec<Trial<'_>> =
            sections.iter().flat_map(|section| section.trials.iter().cloned()).collect();
        let runs = sections.iter().flat_map(|section| &section.rows).map(|row| row.runs).max();
        let runs = runs.filter(|runs| *runs > 1);
        let runs = runs.map_or(String::new(), |runs| format!("{runs} runs each\n"));
        let mut text = format!("{}: {}{runs}\n{table}\n", world.name(), world.about(&trials));
        sections.iter().for_each(|section| text += &failed::lines(section));
        text += &parts::fits(&sections);
        text + &parts::functions(&sections, self.settings.parts)
    }

    fn legend(&self) -> String {
        let rows = || self.sections.iter().flat_map(|section| &section.rows);
        if rows().all(|row| row.verdict.is_none()) {
            // A candidate that failed has no run.
            let is_single = rows().any(|row| row.baseline.is_some() && row.runs == 1);
            return if is_single {
                "\nA single run gets no verdict; use --ensemble 16 to get one.\n".to_string()
            } else {
                String::new()
            };
        }
        "\n+12% -12% difference from the baseline, where it is decided   \
         = equivalent (within 2 %)   ~ undecided\n\
         ±3% half of a 95 % interval, where above 1 %\n"
            .to_string()
    }
}

/// Whether a row is a number of this trial's runs.
fn is_of(row: &Row, trial: &Trial<'_>) -> bool {
    row.candidate == trial.candidate.to_string() && row.cpus == trial.cpus
}

/// Whether a row is of an extra, recorded run.
fn is_recorded(row: &Row) -> bool {
    row.point.get("recorded").is_some()
}

/// The distance of the replay from the recording.
fn fidelity(program: &Program, fidelity: &[Fidelity], baseline: &str) -> String {
    let Program::Replay(replay) = program else { return String::new() };
    let mut table = Table::new([
        ("metric", Align::Left),
        ("recorded", Align::Right),
        ("replayed", Align::Right),
        ("error", Align::Right),
    ]);
    for (metric, title) in results::headline() {
        let Some(fidelity) = fidelity
            .iter()
            .find(|fidelity| fidelity.metric == metric && fidelity.subject.is_none())
        else {
            continue;
        };
        let show = |value| quantity(value, metric.unit());
        let mut replayed = fidelity.replayed.clone();
        table.row([
            title.to_string(),
            show(fidelity.recorded),
            show(median(&mut replayed)),
            errors(fidelity),
        ]);
    }
    let (cpus, runs) = (
        replay.recorded.recording.cpus,
        fidelity.iter().map(|fidelity| fidelity.replayed.len()).max().unwrap_or(0),
    );
    let note = "The replays' median; nine of ten replays have at most the error in the last \
                column, which a difference must exceed.\n";
    let note = if runs > 1 { note } else { "" };
    format!(
        "\nFidelity: the recording on {}, and {} under {baseline}\n\n{table}{note}",
        counted(cpus.into(), "CPU"),
        counted(runs, "replay")
    )
}

/// The errors of the replays: from the smallest to the one that decides.
fn errors(fidelity: &Fidelity) -> String {
    let least = fidelity.errors().into_iter().fold(f64::INFINITY, f64::min);
    match fidelity.error() {
        Replay::Share(error) if error - least < 5e-4 => format!("{:.1}%", 100.0 * error),
        Replay::Share(error) => format!("{:.1}-{:.1}%", 100.0 * least, 100.0 * error),
        _ => "-".to_string(),
    }
}

/// One line for each candidate, one column for each metric; reasons for missing numbers below.
fn table(trials: &[&Trial<'_>], rows: &[&Row], columns: &[(Measure, &'static str)]) -> String {
    let in_rounds = rows.iter().any(|row| {
        row.metric == Metric::makespan_difference || row.metric == Metric::same_makespan_difference
    });
    let more: &[&str] = if in_rounds { &["runs", "makespan by pairs"] } else { &[] };
    let titles = more
        .iter()
        .copied()
        .chain(columns.iter().map(|(_, title)| *title))
        .map(|title| (title, Align::Right));
    let mut table = Table::new(std::iter::once(("policy", Align::Left)).chain(titles));
    let mut decided = Vec::new();
    for verdict in [Verdict::Better, Verdict::Worse] {
        for (at, (measure, _)) in columns.iter().enumerate() {
            let is = |row: &&Row| row.metric == measure.metric && row.verdict == Some(verdict);
            if rows.iter().any(is) {
                decided.push(1 + more.len() + at);
            }
        }
    }
    table.keep(decided);
    let mut notes = String::new();
    for trial in trials {
        let of = |metric: Metric| {
            rows.iter().copied().find(|row| row.metric == metric && is_of(row, trial))
        };
        let mut cells = vec![trial.candidate.to_string()];
        if in_rounds {
            cells.push(of(Metric::makespan_ns).map_or("-".to_string(), |row| row.runs.to_string()));
            cells.push(of(Metric::makespan_difference).map_or("-".to_string(), percent));
        }
        cells.extend(
            columns.iter().map(|(measure, _)| of(measure.metric).map_or(String::new(), open_cell)),
        );
        table.row(cells);
        // A reason that applies to most numbers is shown as a remark.
        let missing = columns
            .iter()
            .filter_map(|(measure, _)| of(measure.metric))
            .filter(|row| row.value.is_none());
        let missing: Vec<&Row> = missing.collect();
        for row in &missing {
            if let (Metric::printed(printed), Some(note)) = (row.metric, &row.note) {
                let _ = writeln!(notes, "{}: {}: {note}", trial.candidate, printed.name());
            }
        }
        let missing: Vec<&str> =
            missing.into_iter().filter_map(|row| row.note.as_deref()).collect();
        if let Some(most) = missing
            .iter()
            .filter(|note| !note.starts_with(failed::NOTE))
            .find(|note| 2 * missing.iter().filter(|other| other == note).count() > columns.len())
        {
            let _ = writeln!(notes, "{}: {most}", trial.candidate);
        }
    }
    format!("{table}{notes}")
}

fn percent(row: &Row) -> String {
    let half = row.ci_low.zip(row.ci_high).map_or(f64::NAN, |(low, high)| (high - low) / 2.0);
    row.value
        .map_or("-".to_string(), |value| format!("{:+.2}% ±{:.2}%", 100.0 * value, 100.0 * half))
}
