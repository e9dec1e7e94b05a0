use super::*;
use crate::workload::format::WarmUp;
use schedsim::Nanos;
use schedsim::policy::PolicySpec;
use schedsim::workload::{self, Unix1990};

const CLASS: &str = "[[class]]\nbursts = { geometric = 50 }\nburst = { exponential = \"5ms\" \
                     }\npause = { exponential = \"70ms\" }\n";

fn read(text: &str) -> Result<Stochastic, Error> {
    Template::read(TomlFile::of("w.toml", text))?.with(&Parameters::default())
}

fn refused(text: &str, words: &str) {
    let error = read(text).expect_err(text);
    assert!(error.to_string().starts_with(words), "{text}\n{error}\nis not\n{words}");
    assert_eq!(error.exit_code(), 3);
}

#[test]
fn every_kind_of_distribution_can_be_written() {
    let all = [
        "{ constant = \"5ms\" }",
        "{ uniform = [\"1ms\", \"9ms\"] }",
        "{ exponential = \"5ms\" }",
        "{ hyperexponential = [{ share = 0.5, mean = \"1ms\" }, { share = 0.5, mean = \"9ms\" \
         }] }",
        "{ log-normal = { mean = \"5ms\", variation = 2 } }",
        "{ octaves = { first = \"2ms\", weights = [2, 1] } }",
        "{ histogram = [{ from = \"0ms\", to = \"4ms\", weight = 1 }, { from = \"6ms\", to = \
         \"10ms\", weight = 1 }] }",
        "{ empirical = [\"1ms\", \"9ms\"] }",
    ];
    for burst in all {
        let text = CLASS.replace("{ exponential = \"5ms\" }", burst);
        let workload = read(&format!("load = 0.7\ncpus = 4\n{text}")).expect(burst);
        let mean = workload.model.classes()[0].burst.mean();
        assert!((3.9e6..5.1e6).contains(&mean), "{burst}: {mean}");
        assert!((workload.model.offered_load(4) - 0.7).abs() < 1e-9);
    }
}

#[test]
fn invalid_numbers_are_refused_with_line_and_key() {
    let with = |head: &str| format!("{head}\n{CLASS}");
    for (head, words) in [
        (
            "load = 1.2\ncpus = 4",
            "w.toml:1: load: a load of 1.200 never reaches a steady state: give \
             population-limit",
        ),
        (
            "load = -0.5\ncpus = 4",
            "w.toml:1: load: -0.5 is out of range: give a number from 0.000001 to 1000000",
        ),
        (
            "load = nan\ncpus = 4",
            "w.toml:1: load: NaN is out of range: give a number from 0.000001",
        ),
        ("load = 0.5", "w.toml:1: cpus: the number of CPUs is missing"),
        ("cpus = 4", "w.toml:1: load: give the load, or the time between arrivals"),
        (
            "cpus = 0\nload = 0.5",
            "w.toml:1: cpus: 0 is out of range: give a whole number from 1 to 4096",
        ),
        (
            "cpus = -4\nload = 0.5",
            "w.toml:1: cpus: -4 is out of range: give a whole number from 1 to 4096",
        ),
        (
            "cpus = 4\narrivals = { constant = \"1ms\" }",
            "w.toml:2: arrivals: a load of 62.500 never reaches a steady state",
        ),
        (
            "cpus = 4\nload = 0.5\ntmc = \"5\"",
            "w.toml:3: tmc: \"5\" is not a duration: give a number and a unit",
        ),
        ("cpus = 4\nload = 0.5\ntmc = \"-1ms\"", "w.toml:3: tmc: \"-1ms\" is not a duration"),
        (
            "cpus = 4\nload = 0.5\ntmc = 5",
            "w.toml:3: tmc: invalid type: integer `5`, expected a duration",
        ),
        (
            "cpus = 4\nload = 0.5\n\nsmc = -0.1",
            "w.toml:4: smc: -0.1 is out of range: give a number from 0 to 1000000",
        ),
        ("cpus = 4\nload = 0.5\nremote = inf", "w.toml:3: remote: inf is out of range"),
        (
            "cpus = 4\nload = 0.5\nspeed = nan",
            "w.toml:3: speed: NaN is out of range: give a number from 0.001 to 1000",
        ),
        ("cpus = 4097\nload = 0.5", "w.toml:1: cpus: 4097 is out of range"),
        ("cpus = 99999999999999999999\nload = 0.5", "w.toml:1: "),
        ("cpus = 4\nload = 1e-300", "w.toml:2: load: 0.00"),
        ("cpus = 4\nload = inf", "w.toml:2: load: inf is out of range"),
        (
            "cpus = 4\nload = 0.5\ntasks = 9223372036854775807",
            "w.toml:3: tasks: 9223372036854775807 is out of range",
        ),
        ("cpus = 4\nload = 0.5\nwarm-up = -1", "w.toml:3: warm-up: -1 is out of range"),
        ("cpus = 4\nload = 0.5\nsmc = 1e300", "w.toml:3: smc: 1000"),
        (
            "cpus = 4\nload = 0.5\ntmc = \"99999999999999999999s\"",
            "w.toml:3: tmc: 99999999999999999999s is out of range: give a duration",
        ),
        (
            "cpus = 4\nload = 0.5\nquantum = \"0ms\"",
            "w.toml:3: quantum: a quantum must be above zero",
        ),
        (
            "cpus = 4\nload = 0.5\nrefill-half-life = \"0ms\"",
            "w.toml:3: refill-half-life: a half-life must be above zero",
        ),
        (
            "cpus = 4\nload = 0.5\ntasks = 0",
            "w.toml:3: tasks: 0 is out of range: give a whole number from 1 to",
        ),
        (
            "cpus = 4\nload = 0.5\npopulation-limit = 0",
            "w.toml:3: population-limit: 0 is out of range: give a whole number from 1 to \
             4194304",
        ),
        (
            "cpus = 4\nload = 0.5\nwarm-up = \"mser\"",
            "w.toml:3: warm-up: invalid value: string \"mser\", expected a number of tasks, \
             or \"mser-5\"",
        ),
        (
            "cpus = 4\nload = 0.5\nwarm-up = \"mser-5\"\ntasks = 4000",
            "w.toml:3: warm-up: MSER-5 takes batches of five from at least 5000",
        ),
        (
            "cpus = 4\nload = 0.5\nsaturation = \"drift\"\ntasks = 3000",
            "w.toml:3: saturation: drift needs at least 4000 tasks",
        ),
        (
            "cpus = 4\nload = 0.5\nintensive = 0.5",
            "w.toml:3: intensive: this belongs to base = \"unix1990\"",
        ),
        (
            "cpus = 4\nlaod = 0.5",
            "w.toml:2: laod: there is no key named `laod`. Did you mean `load`?",
        ),
        ("base = \"unix1990\"", "w.toml:2: class: a workload with a base has the classes"),
        (
            "base = \"unix1991\"",
            "w.toml:1: base: there is no choice named `unix1991`. Did you mean `unix1990`?",
        ),
    ] {
        refused(&with(head), words);
    }
    refused("cpus = 4\nload = 0.5\n", "w.toml:1: class: there is nothing to run");
    refused("cpus = 4\nload = ", "w.toml:2: ");
    refused(
        "base = \"unix1990\"\nbursts = 0.5\n",
        "w.toml:2: bursts: 0.5 is out of range: give a number from 1 to",
    );
    refused(
        "base = \"unix1990\"\nintensive = 1.5\n",
        "w.toml:2: intensive: the share of processor-intensive load",
    );
}

#[test]
fn invalid_classes_are_refused_with_line_and_key() {
    let refused = |from: &str, to: &str, words: &str| {
        let class = CLASS.replace(from, to);
        assert_ne!(class, CLASS);
        refused(&format!("cpus = 4\nload = 0.5\n{class}"), words);
    };
    let burst = "{ exponential = \"5ms\" }";
    refused(
        burst,
        "{ empirical = [] }",
        "w.toml:5: class[0].burst: an empirical distribution needs at least one sample",
    );
    refused(
        burst,
        "{ exponential = \"0ms\" }",
        "w.toml:5: class[0].burst: a mean must be a number above zero",
    );
    refused(
        burst,
        "{ log-normal = { mean = \"1ms\", variation = nan } }",
        "w.toml:5: class[0].burst: a coefficient of variation",
    );
    refused(
        burst,
        "{ octaves = { first = \"1ms\", weights = [0, 0] } }",
        "w.toml:5: class[0].burst: the sum of the weights",
    );
    refused(
        burst,
        "{ octaves = { first = \"1ms\", weights = [1, -1] } }",
        "w.toml:5: class[0].burst: a weight must be zero or more",
    );
    refused(
        burst,
        "{ uniform = [\"9ms\", \"1ms\"] }",
        "w.toml:5: class[0].burst: a uniform distribution needs an upper end above",
    );
    refused(
        burst,
        "{ hyperexponential = [{ share = 0.5, mean = \"1ms\" }, { share = 0.4, mean = \"9ms\" \
         }] }",
        "w.toml:5: class[0].burst: the probabilities sum to 0.9, not to one",
    );
    refused(
        burst,
        "{ weibull = \"5ms\" }",
        "w.toml:5: class[0].burst.weibull: there is no choice named `weibull`.",
    );
    refused(
        "{ geometric = 50 }",
        "{ geometric = 0.5 }",
        "w.toml:4: class[0].bursts: a geometric distribution counts from 1",
    );
    refused(
        "pause = { exponential = \"70ms\" }\n",
        "",
        "w.toml:3: class[0].pause: tasks of several bursts need pauses",
    );
    refused(
        "[[class]]\n",
        "[[class]]\nshare = 0.5\n",
        "w.toml:4: class[0].share: the shares sum to 0.5, not to one",
    );
    refused(
        "[[class]]\n",
        "[[class]]\nshare = nan\n",
        "w.toml:4: class[0].share: a share is a number from 0 to 1, not NaN",
    );
    refused(
        "[[class]]\n",
        "[[class]]\nshare = 1\nload-share = 1\n",
        "w.toml:4: class[0].share: give shares of the tasks or",
    );
    refused(
        "[[class]]\n",
        "[[class]]\npriority = 140\n",
        "w.toml:4: class[0].priority: 140 is out of range: give a whole number from 0 to 139",
    );
    let nan = "[[class]]\npriorities = [{ priority = 100, share = nan }]\n";
    refused("[[class]]\n", nan, "w.toml:4: class[0].priorities: the shares sum to NaN, not to one");
    refused(
        "[[class]]\n",
        "[[class]]\npriorities = []\n",
        "w.toml:4: class[0].priorities: the shares sum to 0, not to one",
    );
}

#[test]
fn parameters_replace_the_files_values_and_errors_name_them() {
    let template = Template::read(TomlFile::of("unix1990", "base = \"unix1990\"\n")).unwrap();
    let set = |text: &str| {
        text.split(' ').map(str::parse::<Parameters>).collect::<Result<Parameters, String>>()
    };
    let changed = template
        .with(
            &set("load=0.5 cpus=8 tmc=2ms smc=0.1 tasks=5000 warm-up=mser-5 intensive=0.25")
                .unwrap(),
        )
        .unwrap();
    assert!((changed.model.offered_load(8) - 0.5).abs() < 1e-9);
    assert_eq!(
        (changed.machine.migration_cost, changed.machine.sharing.slowdown),
        (Nanos::from_millis(2), 0.1)
    );
    assert_eq!((changed.model.classes().len(), changed.warm_up), (2, WarmUp::Mser5));
    assert_eq!(changed.parameters["tmc"], "2ms");
    assert_eq!(
        changed.policy(&PolicySpec::parse("take:rr").unwrap()).unwrap().to_string(),
        "take:rr?quantum=100000000ns"
    );
    for (bad, words) in [
        ("lod=0.5", "Did you mean `load`?"),
        ("load", "give KEY=VALUE"),
        ("load=x", "invalid type: string \"x\""),
        ("tmc=2", "expected a duration"),
        ("class=1", "no parameter named `class`"),
    ] {
        let message = set(bad).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
    let error = template.with(&set("load=1.5").unwrap()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the parameter load: a load of 1.500 never reaches a steady state")
            && error.exit_code() == 2,
        "{error}"
    );
    assert!(template.with(&set("load=1.5 population-limit=100").unwrap()).is_ok());
}

#[test]
fn the_built_in_baseline_equals_the_model() {
    let workload = read("base = \"unix1990\"\n").unwrap();
    let unix = Unix1990::default();
    assert_eq!(workload.machine, unix.machine());
    let (model, length) = (unix.model().unwrap(), workload.model.length());
    assert_eq!(
        (model.classes(), model.gap(), model.length()),
        (workload.model.classes(), workload.model.gap(), length)
    );
}

#[test]
fn a_class_may_have_a_share_of_the_load() {
    let heavy = CLASS.replace("5ms", "5s").replace("[[class]]", "[[class]]\nload-share = 0.25");
    let light = CLASS.replace("[[class]]", "[[class]]\nload-share = 0.75");
    let workload = read(&format!("cpus = 4\nload = 0.5\n{light}{heavy}")).unwrap();
    let model = &workload.model;
    let part = |class: &workload::Class| class.share * class.cpu_time() / model.mean_cpu_time();
    assert!(
        (part(&model.classes()[1]) - 0.25).abs() < 1e-9
            && (model.offered_load(4) - 0.5).abs() < 1e-9
    );
}
