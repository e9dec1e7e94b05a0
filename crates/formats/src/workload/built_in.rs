//! The built-in workloads: `name`, `name:argument` or `name:argument?option=value&option=value`.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod drawn;
mod programs;

use super::{ClosedWorkload, Template, Workload};
use crate::toml_file::TomlFile;
use program::{Error, no_such};
use schedsim::Nanos;
use schedsim::policy::split_options;
use schedsim::workload::Closed;
use std::collections::BTreeMap;

/// A built-in workload.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// The argument after a colon, the value of the first option.
    pub argument: &'static str,
    /// A one-sentence summary.
    pub summary: &'static str,
    /// The options after a question mark.
    pub options: &'static [BuiltInOption],
    make: Make,
}

/// An option of a built-in workload.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInOption {
    /// Its name.
    pub name: &'static str,
    /// Its default value.
    pub default: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
}

const fn option(name: &'static str, default: &'static str, meaning: &'static str) -> BuiltInOption {
    BuiltInOption { name, default, meaning }
}

#[derive(Clone, Copy, Debug)]
enum Make {
    /// The text of a file.
    Stochastic(&'static str),
    Closed(fn(&Given) -> Result<Closed, Error>),
}

/// The given options of a built-in workload, with defaults for the rest.
#[derive(Debug)]
struct Given<'a> {
    name: &'a str,
    values: BTreeMap<&'static str, &'a str>,
}

/// All built-in workloads.
pub const ALL: &[BuiltIn] = &[
    BuiltIn {
        name: "unix1990",
        argument: "TASKS",
        summary: "Curran & Stumm's Baseline System: tasks of a Unix of 1990 on four processors, \
                  drawn at random; without TASKS its options are the parameters below",
        options: drawn::OPTIONS,
        make: Make::Stochastic("base = \"unix1990\"\n"),
    },
    programs::YIELD,
    programs::HACKBENCH,
    programs::PYTHAGORAS,
    programs::TWO_THREADS,
    programs::FILEIO,
    programs::HOGS,
    programs::PERIODIC,
    programs::PING_PONG,
];

/// The built-in workload with this name, with its argument and options; `None` if the name is
/// unknown.
pub fn find(text: &str) -> Option<Result<Workload, Error>> {
    let (front, options) = split_options(text);
    let (name, argument) =
        front.split_once(':').map_or((front, None), |(name, argument)| (name, Some(argument)));
    let built_in = ALL.iter().find(|built_in| built_in.name == name)?;
    Some(built_in.make(text, argument, options))
}

impl BuiltIn {
    fn make<'a>(
        &self,
        text: &str,
        argument: Option<&'a str>,
        options: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Result<Workload, Error> {
        let options: Vec<(&str, Option<&str>)> = options.collect();
        if let (Make::Stochastic(file), None, false) =
            (self.make, argument, options.iter().any(|(key, _)| *key == self.options[0].name))
        {
            let template = Template::read(TomlFile::of(self.name, file))?;
            return drawn::preset(template, text, &options).map(Workload::Stochastic);
        }
        let given = self.given(argument, options.into_iter())?;
        match self.make {
            Make::Stochastic(file) => Ok(Workload::Closed(Box::new(ClosedWorkload::built_in(
                text.to_string(),
                drawn::draw(&given, file)?,
            )))),
            Make::Closed(make) => Ok(Workload::Closed(Box::new(ClosedWorkload::built_in(
                text.to_string(),
                make(&given)?,
            )))),
        }
    }

    fn given<'a>(
        &self,
        argument: Option<&'a str>,
        options: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    ) -> Result<Given<'a>, Error> {
        let name = self.name;
        let mut values: BTreeMap<&str, &str> =
            self.options.iter().map(|option| (option.name, option.default)).collect();
        if let Some(argument) = argument {
            values.insert(self.options[0].name, argument);
        }
        for (key, value) in options {
            let known =
                || self.options.iter().map(|option| option.name.to_string()).collect::<Vec<_>>();
            let Some(option) = self.options.iter().find(|option| option.name == key) else {
                return Err(Error::Usage(no_such(
                    &format!("option of {name}"),
                    key,
                    &known(),
                    "`schedlab list workloads` shows them all.",
                )));
            };
            values.insert(option.name, value.unwrap_or_default());
        }
        Ok(Given { name, values })
    }
}

impl Given<'_> {
    fn get(&self, option: &str) -> &str {
        self.values.get(option).copied().unwrap_or_default()
    }

    fn wrong(&self, option: &str, what: &str) -> Error {
        Error::Usage(format!("{}: {option} = `{}`: {what}", self.name, self.get(option)))
    }

    /// An integer from one to `most`.
    fn count<T: TryFrom<u64>>(&self, option: &str, most: u64) -> Result<T, Error> {
        let number = self.get(option).parse().ok().filter(|number| (1..=most).contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| self.wrong(option, &format!("give a whole number from 1 to {most}")))
    }

    fn span(&self, option: &str) -> Result<Nanos, Error> {
        self.get(option).parse().map_err(|error| self.wrong(option, &format!("{error}")))
    }

    fn is_on(&self, option: &str) -> Result<bool, Error> {
        Ok(self.choice(option, &["yes", "no"])? == 0)
    }

    /// The index of the value in `choices`.
    fn choice(&self, option: &str, choices: &[&str]) -> Result<usize, Error> {
        let found = choices.iter().position(|choice| *choice == self.get(option));
        found.ok_or_else(|| self.wrong(option, &format!("it can be {}", choices.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::{TaskId, workload};

    fn closed(text: &str) -> Box<ClosedWorkload> {
        match find(text) {
            Some(Ok(Workload::Closed(closed))) => closed,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn scripts(text: &str) -> workload::Workload {
        closed(text).scripts(4).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_built_in_workload_runs_and_its_json_describes_the_same() {
        for built_in in ALL.iter().filter(|built_in| matches!(built_in.make, Make::Closed(_))) {
            let closed = closed(built_in.name);
            assert!(closed.scripts(closed.cpus()).is_ok(), "{}", built_in.name);
            let json = serde_json::to_string(closed.description()).expect("json");
            assert_eq!(
                &serde_json::from_str::<Closed>(&json).expect("a description"),
                closed.description()
            );
        }
    }

    #[test]
    fn hackbench_10_is_400_processes_and_400_000_messages() {
        let scripts = scripts("hackbench:10");
        assert_eq!(scripts.tasks.len(), 400);
        assert_eq!(scripts.shared.pipes.len(), 200);
        // One microsecond for each message at each end.
        assert_eq!(scripts.demand(), Nanos::from_millis(2 * 400));
    }

    #[test]
    fn pythagoras_does_the_same_work_for_any_number_of_jobs_and_every_variant() {
        let work = |text: &str| {
            let scripts = scripts(text);
            let (main, others) = scripts.tasks.split_last().expect("tasks");
            let jobs = others.iter().map(|task| task.script.demand()).sum::<Nanos>();
            (jobs, main.script.demand(), others.len())
        };
        let second = Nanos::from_millis(1_000);
        for jobs in [1, 100, 10_000] {
            assert_eq!(
                work(&format!("pythagoras:{jobs}?work=1s&create=0us")),
                (second, Nanos::ZERO, jobs)
            );
            assert_eq!(
                work(&format!("pythagoras:{jobs}?work=1s&create=0us&variant=sleepers")).0,
                second
            );
        }
        assert_eq!(work("pythagoras:1000?work=1s&variant=threads").1, Nanos::from_micros(15_000));
        assert_eq!(
            work("pythagoras:1000?work=1s&variant=processes").1,
            Nanos::from_micros(100_000)
        );
        assert_eq!(closed("pythagoras:1000?variant=pool").description().tasks[0].count, 4);
    }

    #[test]
    fn an_argument_is_the_first_option_and_errors_name_the_option() {
        assert_eq!(
            closed("yield:3?run=2us").description(),
            closed("yield?tasks=3&run=2us").description()
        );
        assert_eq!(
            scripts("hogs:3?nice=-5,5").tasks.iter().map(|task| task.info.prio).collect::<Vec<_>>(),
            [115, 125, 115]
        );
        let wrong = |text: &str| find(text).expect(text).expect_err(text).to_string();
        assert!(wrong("yield:0").contains("tasks = `0`: give a whole number from 1 to"));
        assert!(wrong("yield:8?rum=1us").contains("Did you mean `run`?"));
        assert!(wrong("yield:8?run=1").contains("`1`"));
        assert!(
            wrong("pythagoras?variant=fibers")
                .contains("it can be threads, pool, processes, sleepers")
        );
        assert!(wrong("hogs?nice=20").contains("nice"));
        assert!(find("yields").is_none());
        assert_eq!(scripts("two-threads?policy=fifo").tasks[TaskId(1).index()].info.prio, 29);
    }
}
