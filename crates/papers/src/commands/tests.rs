//! Tests of commands.

use super::*;
use results::Coordinate;

fn command(text: &str) -> CommandData {
    toml::from_str(text).unwrap()
}

#[test]
fn a_run_for_each_value_and_seed() {
    let data = command(
        "name = 'y'\nrun = 'compare yield:{x} --policy cfs'\nx = [2, 8.5, 'w']\nseeds = \
         2\nquick = { seeds = 1, x = [4], run = 'compare yield:{x}' }",
    );
    let folder = Folder::find("pslist").unwrap();
    let (key, why) = data.clone().cover(&folder).unwrap_err();
    assert!(
        key == "run"
            && why.contains("`compare yield:8.5 --policy cfs --seed 1`")
            && why.contains("give a whole number"),
        "{why}"
    );
    let full = data.replicates(Settings { quick: false, seed: 7, ..Settings::default() });
    assert_eq!((full.len(), full[0].len()), (2, 3));
    assert_eq!(full[1][0].key(), "schedlab compare yield:2 --policy cfs --seed 8");
    assert_eq!(
        full[0].iter().map(|run| run.x).collect::<Vec<_>>(),
        [2.0, 8.5, 2.0],
        "a word is placed by its position"
    );
    let quick = data.replicates(Settings { quick: true, seed: 1, ..Settings::default() });
    assert_eq!(
        quick,
        [vec![Run {
            x: 4.0,
            words: ["compare", "yield:4", "--seed", "1"].map(str::to_string).into()
        }]]
    );
    let of_program = command("name = 'y'\nrun = 'compare --on host -- sh x.sh'")
        .replicates(Settings { quick: true, seed: 1, ..Settings::default() });
    assert_eq!(of_program[0][0].key(), "schedlab compare --on host --seed 1 -- sh x.sh");
    for (text, key) in [
        ("name = 'y'\nrun = 'compare yield:{x}'", "run"),
        ("name = 'y'\nrun = 'compare yield'\nx = [1]", "x"),
        ("name = 'y'\nrun = 'rm -r x'", "run"),
        ("name = 'y'\nrecorded = 'none.csv'", "recorded"),
        ("name = 'y'\nrecorded = 'none.csv'\nrun = 'compare yield'", "run"),
        ("name = 'y'\nrun = 'compare yield:{x}'\nx = [1]\nquick = { run = 'rm' }", "quick.run"),
    ] {
        assert_eq!(
            command(text).cover(&folder).map_err(|(key, _)| key),
            Err(key.to_string()),
            "{text}"
        );
    }
}

#[test]
fn a_quick_run_says_what_it_leaves_out() {
    let long = [command("name = 'y'\nrun = 'compare yield'\nquick.skipped = 'it takes an hour'")];
    let binding: Binding = toml::from_str("command = 'y'\nmetric = 'cpu_share'").unwrap();
    let folder = Folder::find("pslist").unwrap();
    let why = |quick| {
        let settings = Settings { quick, seed: 1, ..Settings::default() };
        Measured::new(&long, &folder, &Ensembles::default(), settings).curves(&binding).unwrap_err()
    };
    assert_eq!(
        [why(true), why(false)],
        ["only --full measures it: it takes an hour", "was not run"]
    );
    assert!(
        long[0].replicates(Settings { quick: true, seed: 1, ..Settings::default() }).is_empty()
    );
}

#[test]
fn a_series_comes_from_the_rows_and_missing_rows_give_an_error() {
    let row = |policy: &str, tasks: &str, value: Option<f64>| Row {
        candidate: policy.to_string(),
        value,
        note: value.is_none().then(|| "too short".to_string()),
        ..Row::new(World::Sim, Metric::cpu_share).at("tasks", Coordinate::read(tasks))
    };
    let run = Run { x: 3.0, words: vec!["compare".to_string()] };
    let rows = [
        row("cfs", "2", Some(1.0)),
        row("cfs", "8", Some(2.0)),
        row("rr", "2", Some(5.0)),
        row("rr", "8", None),
    ];
    let points = |text: &str| {
        toml::from_str::<Binding>(&format!("command = 'y'\nmetric = 'cpu_share'\n{text}"))
            .unwrap()
            .points(&run, &rows, None)
    };
    assert_eq!(points("policy = 'cfs'\nx = 'tasks'"), Ok(vec![(2.0, 1.0), (8.0, 2.0)]));
    assert_eq!(points("policy = 'rr'\nat.tasks = '2'"), Ok(vec![(3.0, 5.0)]));
    assert_eq!(points("policy = 'rr'\nx = 'tasks'"), Err("too short".to_string()));
    assert!(points("policy = 'cfs'").unwrap_err().contains("several"));
    let of = |name: &str| {
        toml::from_str::<Binding>(&format!(
            "command = 'y'\nmetric = 'cpu_share'\nworkload = '{name}'"
        ))
        .unwrap()
    };
    let called =
        Row { workload: "hackbench:1?threads=yes&loops=5".to_string(), ..row("cfs", "2", None) };
    assert!(
        ["hackbench", "hackbench:1", "hackbench:1?threads=yes"]
            .iter()
            .all(|name| of(name).is_about(&called))
    );
    assert!(
        ["hack", "hackbench:10", "hackbench:1?threads=no"]
            .iter()
            .all(|name| !of(name).is_about(&called))
    );
    assert!(points("policy = 'fifo'").unwrap_err().contains("no cpu_share"));
}
