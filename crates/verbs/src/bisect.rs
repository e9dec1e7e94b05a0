//! `schedlab bisect`: in which kernel, or in which commit of a scheduler, a number changed.

mod scheduler;

use crate::output::Format;
use crate::{Caller, Measuring};
use clap::{Args, Subcommand};
use laboratory::bisect::{Change, Judge, Shown, bisect};
use program::Error;
use results::{Align, Answer, Better, Metric, Results, Row, Table, find_metric};
use std::path::PathBuf;
use worlds::vm::catalogue;
use worlds::vm::commits::Commits;
use worlds::vm::release::{Release, numbers};

/// Finds the version in which a number changed
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  schedlab bisect kernel --good 6.12 --bad 7.3 -- compare yield:8\n  \
                  schedlab bisect scheduler --good v1.0 --bad main -- compare yield:8 --policy \
                  'scx:{}/src/mine.bpf.c'"
)]
pub struct Bisect {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    Kernel(OfKernels),
    Scheduler(scheduler::OfSchedulers),
}

impl Bisect {
    /// Bisects and prints the result.
    pub fn run(self) -> Result<(), Error> {
        match self.what {
            What::Kernel(of) => of.question.format.answer(of.answer()?),
            What::Scheduler(of) => of.question.format.answer(of.answer()?),
        }
    }
}

/// In which kernel release a measurement changed
///
/// A guest's counts are exact, so that each step is decided by one run. Releases between the two
/// are those that Debian's mirror has; one that does not boot, or is gone, is skipped. The number
/// of a release is bad on the bad one's side of the middle, or of --threshold. With --git the
/// commits between the two are built, each as a minimal kernel, along first parents; one that does
/// not build is skipped.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab bisect kernel --good 6.12 --bad 7.3 -- compare \
                        yield:8\n  schedlab bisect kernel --good 6.17 --bad 7.3 --metric \
                        makespan_ns --threshold 20ms -- compare hackbench:1\n  schedlab bisect \
                        kernel --good a/bzImage --bad c/bzImage --among b/bzImage -- compare \
                        yield:8\n  schedlab bisect kernel --git linux --good v6.5 --bad v6.6 -- \
                        compare yield:8")]
struct OfKernels {
    /// A kernel whose number is good: a series or release of Debian's, or the path of a bzImage;
    /// with --git a commit
    #[arg(long, value_name = "KERNEL")]
    good: String,
    /// A kernel whose number is bad, of the same flavour
    #[arg(long, value_name = "KERNEL")]
    bad: String,
    /// The kernels between the two, in their order, separated by commas [default: all releases
    /// between them]
    #[arg(long, value_name = "KERNEL,…", value_delimiter = ',')]
    among: Vec<String>,
    /// A git tree of Linux, whose commits are built
    #[arg(long, value_name = "DIR", conflicts_with = "among")]
    git: Option<PathBuf>,
    /// With --git: fragments of a configuration over the minimal one, separated by commas
    #[arg(long, value_name = "FILE", value_delimiter = ',', requires = "git")]
    kconfig: Vec<PathBuf>,
    #[command(flatten)]
    question: Question,
}

/// What is measured of each version, and which numbers are bad.
#[derive(Args, Debug)]
struct Question {
    /// The metric [default: instructions_per_yield, if that is measured, else makespan_ns]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// What divides good numbers from bad ones, with a unit if it is a time [default: the middle
    /// of the two]
    #[arg(long, value_name = "NUMBER", value_parser = threshold)]
    threshold: Option<f64>,
    /// Which numbers are bad [default: those of the bad one's side]
    #[arg(long, value_enum)]
    bad_is: Option<Side>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// A comparison with one row of the metric, as in compare yield:8
    #[arg(last = true, required = true, value_name = "MEASUREMENT")]
    measurement: Vec<String>,
}

/// A side of the threshold.
#[derive(Clone, Copy, clap::ValueEnum, Debug)]
enum Side {
    /// High numbers are bad.
    Higher,
    /// Low numbers are bad.
    Lower,
}

/// A number, or a duration in nanoseconds.
fn threshold(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    let duration = || text.parse::<schedsim::Nanos>().ok().map(|duration| duration.0 as f64);
    number.or_else(duration).ok_or_else(|| {
        "give a number, as in 2500, or a duration with a unit, as in 20ms".to_string()
    })
}

impl OfKernels {
    fn answer(&self) -> Result<Answer, Error> {
        command(&self.question.measurement, "")?;
        self.question.metric(&Measuring::read(&self.question.measurement)?)?;
        let open = |git: &PathBuf| Commits::between(git, &self.good, &self.bad, &self.kconfig);
        let commits = self.git.as_ref().map(open).transpose()?;
        let kernels = commits.as_ref().map_or_else(|| self.kernels(), |of| Ok(of.names()))?;
        let mut measure = |at: usize| match &commits {
            None => self.measure(&kernels[at]),
            Some(commits) => {
                let mut row = self.measure(&commits.kernel(at, &program::say)?.name)?;
                row.point.set("commit", commits.hash(at));
                Ok(row)
            }
        };
        self.question.answer("kernel", &kernels, &mut measure)
    }

    /// The kernels, from the good one to the bad one.
    fn kernels(&self) -> Result<Vec<String>, Error> {
        let read = |name: &str| Release::read(name);
        let (good, bad) = match (read(&self.good), read(&self.bad)) {
            _ if !self.among.is_empty() => {
                let ends = [&self.good, &self.bad];
                let all = [&ends[..1], &self.among.iter().collect::<Vec<_>>(), &ends[1..]].concat();
                return Ok(all.into_iter().cloned().collect());
            }
            (Some(good), Some(bad)) => (good, bad),
            _ => {
                return Err(Error::Usage(
                    "only releases of Debian's have known ones between them: give those between \
                     your own kernels, as in --among b/bzImage,c/bzImage"
                        .to_string(),
                ));
            }
        };
        between(&good, &bad, &catalogue::known_or_looked_up()?)
    }

    /// The row of the metric with this kernel.
    fn measure(&self, kernel: &str) -> Result<Row, Error> {
        self.question.measure(&command(&self.question.measurement, kernel)?)
    }
}

impl Question {
    /// Where the number changes between the first and the last of `versions`, each a `kind`.
    fn answer(
        &self,
        kind: &str,
        versions: &[String],
        measure: &mut dyn FnMut(usize) -> Result<Row, Error>,
    ) -> Result<Answer, Error> {
        let last = versions.len() - 1;
        let mut rows: Vec<Row> = Vec::new();
        let mut measure = |at: usize| -> Result<f64, Error> {
            program::complain!("schedlab: measuring {kind} {}", versions[at]);
            let row = measure(at)?;
            let value = row.value.unwrap_or_default();
            rows.push(row);
            Ok(value)
        };
        let (good, bad) = (measure(0)?, measure(last)?);
        let better = self.bad_is.map(|side| match side {
            Side::Higher => Better::Lower,
            Side::Lower => Better::Higher,
        });
        let judge = Judge::between(good, bad, self.threshold, better).map_err(Error::Usage)?;
        let change = bisect(last, judge, &mut |at| match measure(at) {
            Ok(number) => Ok(Shown::Number(number)),
            // It does not build, does not boot, hangs, is ejected, or is no longer to be had.
            Err(why @ (Error::Input(_) | Error::Missing(_) | Error::Check(_))) => {
                Ok(Shown::Skipped(why.to_string()))
            }
            Err(other) => Err(other),
        })?;
        let text = text(kind, versions, (good, bad), judge, &change);
        Ok(Answer::new(Results::new(rows), text))
    }

    /// The metric that was asked for. Called before anything is built or measured, for its errors.
    fn metric(&self, measuring: &Measuring) -> Result<Option<Metric>, Error> {
        let printed = measuring.printed();
        let named = |name: &String| find_metric(name, printed);
        let found = self.metric.as_ref().map(named).transpose();
        found.map_err(|why| Error::Usage(format!("--metric: {why}")))
    }

    /// The row of the metric in the answer of `command`.
    fn measure(&self, command: &[String]) -> Result<Row, Error> {
        let measuring = Measuring::read(command)?;
        let asked = self.metric(&measuring)?;
        let answer = measuring.answer(&Caller::default())?;
        answer.end?;
        let with_value = |row: &&Row| row.value.is_some() && row.subject.is_none();
        let rows: Vec<&Row> = answer.results.rows.iter().filter(with_value).collect();
        let usual = [Metric::instructions_per_yield, Metric::makespan_ns];
        let is_there = |metric: &&Metric| rows.iter().any(|row| row.metric == **metric);
        let metric = match asked {
            Some(metric) => Some(metric).filter(|metric| is_there(&metric)),
            None => usual.iter().find(is_there).copied(),
        };
        let asked = self.metric.as_deref().unwrap_or("that has a direction");
        let metric = metric.ok_or_else(|| {
            let mut names: Vec<&str> = rows.iter().map(|row| row.metric.id()).collect();
            names.sort_unstable();
            names.dedup();
            Error::Usage(format!(
                "`{}` has no metric {asked}; it has {}",
                self.measurement.join(" "),
                names.join(", ")
            ))
        })?;
        let of_metric: Vec<&&Row> = rows.iter().filter(|row| row.metric == metric).collect();
        match of_metric[..] {
            [row] => Ok((*row).clone()),
            _ => Err(Error::Usage(format!(
                "`{}` has {} rows of {}: give one workload, one policy and one number of CPUs",
                self.measurement.join(" "),
                of_metric.len(),
                metric.id()
            ))),
        }
    }
}

/// The command line of a measurement with one kernel.
fn command(measurement: &[String], kernel: &str) -> Result<Vec<String>, Error> {
    let has = |name: &str| {
        let is = |word: &String| word == name || word.starts_with(&format!("{name}="));
        measurement.iter().any(is)
    };
    if measurement.first().is_none_or(|verb| verb != "compare") {
        return Err(Error::Usage(
            "a measurement is a comparison, as in -- compare yield:8".to_string(),
        ));
    }
    if has("--kernel") || has("--kernel-source") {
        return Err(Error::Usage("leave --kernel out: each step has its own".to_string()));
    }
    let mut words = measurement.to_vec();
    // Counts are exact: one member decides.
    for (name, value) in [("--on", "vm"), ("--ensemble", "1"), ("--kernel", kernel)] {
        if !has(name) {
            words.extend([name.to_string(), value.to_string()]);
        }
    }
    Ok(words)
}

/// The releases from `good` to `bad`, rising or falling.
fn between(
    good: &Release,
    bad: &Release,
    known: &[(String, Vec<Release>)],
) -> Result<Vec<String>, Error> {
    if good.flavour != bad.flavour {
        return Err(Error::Usage(format!("{good} and {bad} are of two flavours: give one")));
    }
    let mut all: Vec<&Release> = known
        .iter()
        .flat_map(|(_, releases)| releases)
        .filter(|release| release.flavour == good.flavour)
        .collect();
    all.sort_by_key(|release| numbers(&release.version));
    all.dedup();
    let place = |of: &Release| {
        let is_meant = |release: &&Release| {
            let rest = release.version.strip_prefix(of.version.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
        };
        all.iter().rposition(is_meant).ok_or_else(|| {
            Error::Missing(format!(
                "there is no kernel {of} to be had: `schedlab list kernels --refresh` lists them"
            ))
        })
    };
    let (first, last) = (place(good)?, place(bad)?);
    if first == last {
        return Err(Error::Usage(format!("{good} and {bad} are the same release")));
    }
    let names = |from: usize, to: usize| -> Vec<String> {
        all[from..=to].iter().map(|release| release.to_string()).collect()
    };
    Ok(if first < last {
        names(first, last)
    } else {
        names(last, first).into_iter().rev().collect()
    })
}

fn text(kind: &str, kernels: &[String], ends: (f64, f64), judge: Judge, change: &Change) -> String {
    let mut table = Table::new([(kind, Align::Left), ("number", Align::Right), ("", Align::Left)]);
    let last = kernels.len() - 1;
    let mut lines: Vec<(usize, String, String)> = vec![
        (0, format!("{:.1}", ends.0), "good, as given".to_string()),
        (last, format!("{:.1}", ends.1), "bad, as given".to_string()),
    ];
    lines.extend(change.steps.iter().map(|step| match &step.shown {
        Shown::Number(number) => {
            let is_bad = if step.is_bad == Some(true) { "bad" } else { "good" };
            (step.at, format!("{number:.1}"), is_bad.to_string())
        }
        Shown::Skipped(why) => {
            let why = why.lines().next().unwrap_or_default();
            (step.at, "-".to_string(), format!("skipped: {why}"))
        }
    }));
    lines.sort_by_key(|(at, ..)| *at);
    for (at, number, what) in lines {
        table.row([kernels[at].clone(), number, what]);
    }
    let side = if judge.bad_is_above { "above" } else { "below" };
    let (good, bad) = (&kernels[change.last_good], &kernels[change.first_bad]);
    let skipped = &kernels[change.last_good + 1..change.first_bad];
    let found = match skipped {
        [] => format!("It changed between {good} and {bad}."),
        _ => format!(
            "It changed between {good} and {bad}; {} between them cannot be measured.",
            skipped.join(", ")
        ),
    };
    format!("{table}\nBad is what is {side} {:.1}. {found}\n", judge.threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laboratory::bisect::Step;

    fn known() -> Vec<(String, Vec<Release>)> {
        let read = |names: &[&str]| names.iter().map(|name| Release::read(name).unwrap()).collect();
        vec![
            ("backports".to_string(), read(&["6.18.9", "6.18.9-rt", "6.18.15", "7.2.1"])),
            ("stable".to_string(), read(&["6.1.0-47", "6.1.0-50", "6.12.7", "7.2.1"])),
        ]
    }

    #[test]
    fn all_releases_of_a_flavour_between_the_two_are_taken_in_their_order() {
        let of = |good: &str, bad: &str| {
            let read = |name: &str| Release::read(name).unwrap();
            between(&read(good), &read(bad), &known()).map(|names| names.join(" "))
        };
        assert_eq!(of("6.1", "7.2").unwrap(), "6.1.0-50 6.12.7 6.18.9 6.18.15 7.2.1");
        assert_eq!(of("7.2.1", "6.18.9").unwrap(), "7.2.1 6.18.15 6.18.9");
        for (good, bad, word) in [
            ("6.1", "6.18-rt", "flavours"),
            ("6.18", "6.18.15", "the same release"),
            ("6.1", "6.17", "no kernel 6.17"),
        ] {
            assert!(of(good, bad).unwrap_err().to_string().contains(word), "{word}");
        }
    }

    #[test]
    fn a_measurement_is_completed_and_one_with_a_kernel_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let complete = |text: &str| command(&words(text), "6.1").map(|words| words.join(" "));
        assert_eq!(
            complete("compare yield:8").unwrap(),
            "compare yield:8 --on vm --ensemble 1 --kernel 6.1"
        );
        assert_eq!(
            complete("compare hackbench:1 --on=vm --ensemble 4").unwrap(),
            "compare hackbench:1 --on=vm --ensemble 4 --kernel 6.1"
        );
        assert!(complete("queue").is_err());
        assert!(complete("compare yield:8 --kernel 6.1").is_err());
        assert_eq!((threshold("2500"), threshold("20ms")), (Ok(2500.0), Ok(2e7)));
        assert!(threshold("soon").is_err() && threshold("NaN").is_err());
    }

    #[test]
    fn the_answer_shows_every_step_and_what_was_skipped() {
        let kernels = ["1.0", "1.1", "1.2", "1.3", "1.4"].map(str::to_string);
        let judge = Judge { threshold: 15.0, bad_is_above: true };
        let step = |at, shown: Shown, is_bad| Step { at, shown, is_bad };
        let change = Change {
            last_good: 1,
            first_bad: 3,
            steps: vec![
                step(2, Shown::Skipped("it panicked\nat length".to_string()), None),
                step(1, Shown::Number(10.0), Some(false)),
                step(3, Shown::Number(20.0), Some(true)),
            ],
        };
        let text = text("kernel", &kernels, (10.0, 20.0), judge, &change);
        assert!(text.contains("Bad is what is above 15.0. It changed between 1.1 and 1.3; 1.2"));
        assert!(text.contains("skipped: it panicked") && !text.contains("at length"), "{text}");
        let numbers: Vec<&str> =
            text.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(numbers[1..6], ["1.0", "1.1", "1.2", "1.3", "1.4"]);
    }
}
