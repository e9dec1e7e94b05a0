//! The first tasks of a stochastic workload, drawn once: tasks that go through phases, which real
//! threads can do, too.

use super::{BuiltInOption, Given, option};
use crate::toml_file::TomlFile;
use crate::workload::{Parameters, Template};
use program::Error;
use schedsim::Nanos;
use schedsim::workload::{Action, Closed, Phase, Start, Tasks};

const MOST_TASKS: u64 = 10_000;
/// Options that are parameters of the stochastic workload.
const PARAMETERS: [&str; 4] = ["load", "cpus", "bursts", "pause"];

pub(super) const OPTIONS: &[BuiltInOption] = &[
    option("tasks", "", "only the first so many tasks, drawn once: for real kernels, too"),
    option("load", "0.7", "of these, the offered load"),
    option("cpus", "4", "of these, the number of CPUs that the load is for"),
    option("bursts", "50", "of these, the mean number of bursts of a task"),
    option("pause", "70ms", "of these, the mean pause"),
    option("seed", "0", "of these, the seed"),
];

/// The stochastic workload with these options as parameters: `unix1990?bursts=2&pause=30ms`.
pub(super) fn preset(
    template: Template,
    text: &str,
    options: &[(&str, Option<&str>)],
) -> Result<Template, Error> {
    if options.is_empty() {
        return Ok(template);
    }
    let parameters: Parameters = options
        .iter()
        .map(|(key, value)| format!("{key}={}", value.unwrap_or_default()).parse::<Parameters>())
        .collect::<Result<_, String>>()
        .map_err(|message| Error::Usage(format!("{text}: {message}")))?;
    template.preset(text, parameters)
}

/// The first tasks of the workload in `file`, each with the times that its stream draws.
pub(super) fn draw(given: &Given, file: &str) -> Result<Closed, Error> {
    let tasks: u64 = given.count("tasks", MOST_TASKS)?;
    let seed: u64 = given
        .get("seed")
        .parse()
        .map_err(|error| given.wrong("seed", &format!("give a whole number: {error}")))?;
    let template = Template::read(TomlFile::of(given.name, file))?;
    let mut parameters = Parameters::default();
    for key in PARAMETERS {
        let text = given.get(key);
        let number = text.parse::<i64>().map(toml::Value::from);
        let number = number.or_else(|_| text.parse::<f64>().map(toml::Value::from));
        parameters.insert(key, number.unwrap_or_else(|_| toml::Value::from(text)));
    }
    let stochastic = template.with(&parameters)?;
    let drawn = stochastic.model.scripts(seed, usize::try_from(tasks).unwrap_or(usize::MAX));
    let task = |(number, task): (usize, &schedsim::workload::TaskSpec)| {
        let phases = task.script.steps().flat_map(|step| {
            let pause = match step.then {
                Action::Sleep(pause) => Some(Phase::Sleep(pause)),
                _ => None,
            };
            [Some(Phase::Run(step.run)), pause].into_iter().flatten()
        });
        let start = match task.start {
            Start::At(time) => Nanos(time.0),
            _ => Nanos::ZERO,
        };
        Tasks {
            program: Some(task.info.name.clone()),
            nice: Some(i32::from(task.info.prio).saturating_sub(120)).filter(|nice| *nice != 0),
            start,
            ..Tasks::new(&format!("{}.{number}", task.info.name), phases.collect())
        }
    };
    let tasks = drawn.tasks.iter().enumerate().map(task).collect();
    Ok(Closed { cpus: Some(stochastic.machine.cpus), tasks, ..Closed::default() })
}

#[cfg(test)]
mod tests {
    use crate::workload::{Parameters, Workload, built_in};
    use schedsim::Nanos;
    use schedsim::workload::{Closed, Phase};

    fn drawn(text: &str) -> Closed {
        match built_in::find(text) {
            Some(Ok(Workload::Closed(closed))) => closed.description().clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn work(closed: &Closed) -> Vec<u64> {
        let run = |phase: &Phase| if let Phase::Run(run) = phase { run.0 } else { 0 };
        closed.tasks.iter().map(|tasks| tasks.phases.iter().map(run).sum()).collect()
    }

    #[test]
    fn tasks_offer_the_load_and_another_load_moves_only_their_arrivals() {
        let (closed, half) = (drawn("unix1990:2000"), drawn("unix1990:2000?load=0.35"));
        let last = |closed: &Closed| closed.tasks.last().map_or(Nanos::ZERO, |last| last.start);
        let offered = work(&closed).iter().sum::<u64>() as f64 / (4 * last(&closed).0) as f64;
        assert!((offered / 0.7 - 1.0).abs() < 0.1, "{offered}");
        assert_eq!(work(&closed), work(&half));
        assert!((last(&half).0 as f64 / last(&closed).0 as f64 - 2.0).abs() < 1e-3);
        assert_ne!(work(&closed), work(&drawn("unix1990:2000?seed=1")));
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (text, says) in [
            ("unix1990:0", "tasks = `0`"),
            ("unix1990:5?load=fast", "load"),
            ("unix1990:5?seed=-1", "seed"),
            ("unix1990?load=x", "invalid type: string \"x\""),
            ("unix1990?lod=0.5", "Did you mean `load`?"),
            ("unix1990?class=1", "no parameter named `class`"),
            ("unix1990?bursts", "invalid type"),
            ("unix1990?burst-tail=-1", "the parameter burst-tail: -1 is out of range"),
            ("unix1990?burst-head=2", "the parameter burst-head: 2 is out of range"),
            ("unix1990?burst-scale=0", "the parameter burst-scale: 0 is out of range"),
            ("unix1990?pause-variation=-1", "the parameter pause-variation: -1 is out of range"),
            ("unix1990?bursts=2.5&bursts-law=constant", "must be whole, not 2.5"),
            ("unix1990?bursts-law=poisson", "there is no choice named `poisson`"),
            ("unix1990?burst=5ms&burst-tail=2", "`burst` replaces it"),
        ] {
            let error = built_in::find(text).unwrap().unwrap_err();
            assert!(error.to_string().contains(says) && error.exit_code() == 2, "{error}");
        }
    }

    #[test]
    fn without_a_number_of_tasks_options_are_parameters() {
        let stochastic = |text: &str| match built_in::find(text) {
            Some(Ok(Workload::Stochastic(template))) => {
                template.with(&Parameters::default()).expect(text)
            }
            other => panic!("{text}: {other:?}"),
        };
        let bursts = |text: &str| stochastic(text).model.classes()[0].bursts.mean();
        assert_eq!(bursts("unix1990?bursts=50"), bursts("unix1990"));
        assert_eq!(bursts("unix1990?bursts=4&bursts-law=constant"), 4.0);
        let given = stochastic("unix1990?tmc=2ms&burst-tail=3");
        assert_eq!(given.name, "unix1990?tmc=2ms&burst-tail=3");
        assert_eq!(given.machine.migration_cost, Nanos::from_millis(2));
        // A parameter of the command line or of a grid replaces the workload's own.
        let Some(Ok(Workload::Stochastic(template))) = built_in::find("unix1990?bursts=4") else {
            panic!("not stochastic")
        };
        let again = template.with(&"bursts=9".parse().unwrap()).unwrap();
        assert_eq!(again.model.classes()[0].bursts.mean(), 9.0);
    }
}
