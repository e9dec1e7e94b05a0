//! Results directories: what is in them, read back, and the bad ones; the report that is made of
//! them.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const REDIS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/redis.perf-script.txt.zst");

/// A directory of results of this test's own, removed when it is dropped.
struct Results(PathBuf);

impl Results {
    /// Redis under two policies.
    fn compared(test: &str) -> Results {
        let results = Results(
            std::env::temp_dir().join(format!("schedlab-report-{test}-{}", std::process::id())),
        );
        let output = schedlab(&[
            "compare",
            REDIS,
            "--policy",
            "take:rr",
            "--ci",
            "100%",
            "-o",
            &results.path(""),
        ]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        results
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).expect("a file of the results")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).expect("JSON")
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut json = self.json(name);
        change(&mut json);
        fs::write(self.0.join(name), json.to_string()).expect("a file of the results");
    }

    /// `schedlab report` must fail with `code` and say all of `words`.
    fn report_fails(&self, more: &[&str], code: i32, words: &[&str]) {
        let dir = self.path("");
        let output = schedlab(&[&["report", &dir], more].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        words
            .iter()
            .for_each(|word| assert!(message.contains(word), "{word:?} is not in {message:?}"));
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn schedlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn parquet_has_the_rows_of_the_json_and_its_provenance() {
    let results = Results::compared("parquet");
    let json = results.json("results.json");
    let reader = SerializedFileReader::new(
        fs::File::open(results.0.join("results.parquet")).expect("the file"),
    )
    .expect("Parquet");
    let metadata =
        reader.metadata().file_metadata().key_value_metadata().expect("provenance").clone();
    let provenance = |key: &str| {
        metadata.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.clone())
    };
    assert_eq!(provenance("schedlab.schema"), Some(json["schema"].to_string()));
    for key in ["version", "command", "reproduce", "kernel", "cpu"] {
        assert_eq!(provenance(&format!("schedlab.{key}")).as_deref(), json[key].as_str());
    }
    let rows: Vec<_> =
        reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
    let expected = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        for (name, field) in row.get_column_iter() {
            let expected = &expected[name];
            match field {
                Field::Null => assert_eq!(expected, &Value::Null, "{name}"),
                Field::Double(value) => assert_eq!(expected.as_f64(), Some(*value), "{name}"),
                Field::UShort(value) => {
                    assert_eq!(expected.as_u64(), Some(u64::from(*value)), "{name}")
                }
                Field::UInt(value) => {
                    assert_eq!(expected.as_u64(), Some(u64::from(*value)), "{name}")
                }
                Field::ULong(value) => assert_eq!(expected.as_u64(), Some(*value), "{name}"),
                Field::Str(text) => assert_eq!(
                    expected.as_str().map_or_else(|| expected.to_string(), str::to_string),
                    *text,
                    "{name}"
                ),
                other => panic!("{name} is {other:?}"),
            }
        }
    }
}

#[test]
fn a_directory_holds_traces_distributions_and_a_report_of_everything() {
    let results = Results::compared("all");
    for file in ["recorded-2cpu", "eevdf-2cpu", "take_rr-2cpu"]
        .iter()
        .flat_map(|name| [format!("{name}.trace"), format!("{name}.pftrace")])
    {
        assert!(results.0.join("traces").join(&file).is_file(), "{file}");
    }
    assert!(!results.0.join("UNFINISHED").exists());
    let distributions = results.json("distributions.json");
    let latency = distributions["distributions"]
        .as_array()
        .expect("distributions")
        .iter()
        .find(|one| one["of"] == "wakeup_latency");
    assert_eq!(latency.expect("latencies")["candidate"], "recorded");
    let html = results.read("report.html");
    for word in ["take:rr", "<table", "Reproduce", "default-src 'none'", "uPlot"] {
        assert!(html.contains(word), "{word}");
    }
    assert!(
        !html.contains("<script src") && !html.contains("<link rel=stylesheet"),
        "the report refers to nothing"
    );
    // Of the same results comes the same report.
    assert!(schedlab(&["report", &results.path("")]).status.success());
    assert_eq!(results.read("report.html"), html);
}

#[test]
fn results_of_a_killed_command_are_refused_with_the_command() {
    let results = Results::compared("killed");
    fs::write(results.0.join("UNFINISHED"), "schedlab compare something -o here\n")
        .expect("the mark");
    results.report_fails(
        &[],
        3,
        &["did not finish", "run it again: schedlab compare something -o here"],
    );
}

#[test]
fn files_that_were_cut_off_are_refused() {
    let results = Results::compared("cut");
    let json = results.read("results.json");
    fs::write(results.0.join("results.json"), &json[..json.len() / 2]).expect("half a file");
    results.report_fails(&[], 3, &["results.json", "damaged"]);
    fs::write(results.0.join("results.json"), &json).expect("the whole file");
    let trace = results.0.join("traces/eevdf-2cpu.trace");
    let bytes = fs::read(&trace).expect("the trace");
    fs::write(&trace, &bytes[..bytes.len() / 2]).expect("half a trace");
    results.report_fails(&[], 3, &["eevdf-2cpu.trace", "cut off"]);
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let results = Results::compared("newer");
    results.change("results.json", |json| {
        json["schema"] = 99.into();
        json["version"] = "7.0.0".into();
        json["rows"] = "in some other shape".into();
    });
    results.report_fails(
        &[],
        3,
        &["results.json", "schema is version 99", "schedlab 7.0.0", "install the newer"],
    );
}

#[test]
fn an_older_schema_is_refused_by_name() {
    let results = Results::compared("older");
    results.change("results.json", |json| json["schema"] = 1.into());
    results.report_fails(
        &[],
        3,
        &["results.json", "schema is version 1,", "reads version 2", "write the results again"],
    );
}

#[test]
fn results_of_two_versions_are_refused() {
    let results = Results::compared("mixed");
    results.change("distributions.json", |json| json["version"] = "0.0.1".into());
    results.report_fails(
        &[],
        3,
        &["distributions.json", "0.0.1", "write them again: schedlab compare"],
    );
}

#[test]
fn a_window_outside_the_run_is_refused_with_the_length_of_the_run() {
    let results = Results::compared("window");
    results.report_fails(&["--window", "100s..200s"], 2, &["outside the runs", "ms"]);
    results.report_fails(&["--window", "20ms..10ms"], 2, &["ends before it begins"]);
    results.report_fails(&["--window", "10..20"], 2, &["unit"]);
    let output = schedlab(&["report", &results.path(""), "--window", "10ms..20ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(results.read("report.html").contains("\"exact\":[10000000,20000000]"));
}

#[test]
fn a_directory_without_results_is_named_and_so_is_one_that_cannot_be_written() {
    let nowhere = Results(PathBuf::from("/nowhere/at/all"));
    nowhere.report_fails(&[], 3, &["/nowhere/at/all", "no such directory"]);
    let empty =
        Results(std::env::temp_dir().join(format!("schedlab-report-empty-{}", std::process::id())));
    fs::create_dir_all(&empty.0).expect("a directory");
    empty.report_fails(&[], 3, &["results.json", "there are no results here"]);
    let file = empty.path("file");
    fs::write(&file, "").expect("a file");
    let output =
        schedlab(&["compare", REDIS, "--policy", "take:rr", "-o", &format!("{file}/results")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("give a place that can be written to")
    );
    assert!(!Path::new(&file).is_dir());
}
