//! Compiled schedulers before the judge, in the simulator.

use super::{FAULTS, object, workload};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn a_compiled_scheduler_is_judged_without_a_guest_and_its_faults_are_verdicts() {
    let place = TempDir::new().expect("a folder");
    let Some(object) = object(place.path()) else { return };
    workload(place.path(), 2);
    let suite = "baseline = 'rr'\ntraining = ['load2.toml']\nseeds = 2\n\n[[score]]\nmetric = \
                 'wakeup_latency_ns_mean'\n";
    std::fs::write(place.path().join("suite.toml"), suite).expect("a file");
    let object = object.display();
    let mut lines = vec![
        format!(r#"{{"id": "bare", "bpf": "{object}"}}"#),
        format!(r#"{{"id": "named", "policy": "scx:{object}"}}"#),
        format!(r#"{{"id": "short", "policy": "scx:{object} slice_ns=1ms"}}"#),
        r#"{"id": "none", "bpf": "load2.toml"}"#.to_string(),
        format!(r#"{{"id": "constant", "policy": "scx:{object} no_such=1"}}"#),
    ];
    for (constant, ..) in FAULTS {
        lines.push(format!(r#"{{"id": "{constant}", "policy": "scx:{object} {constant}"}}"#));
    }
    std::fs::write(place.path().join("candidates.jsonl"), lines.join("\n")).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["judge", "suite.toml", "candidates.jsonl"])
        .current_dir(place.path())
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let judged: BTreeMap<String, Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|row| (row["id"].as_str().expect("an id").to_string(), row))
        .collect();
    let score = |id: &str| judged[id]["score"].as_f64().unwrap_or_else(|| panic!("{}", judged[id]));
    assert_eq!(score("bare"), score("named"));
    assert!(score("short") > score("named"), "a shorter slice, and who wakes waits less");
    for id in ["none", "constant"] {
        assert_eq!(judged[id]["verdict"], "not-a-policy", "{}", judged[id]);
    }
    for (constant, _, said) in FAULTS.iter().filter(|(_, cpus, _)| *cpus == 1) {
        let row = &judged[*constant];
        assert!(["crash", "contract"].contains(&row["verdict"].as_str().unwrap_or("")), "{row}");
        let begin = said.split(|letter: char| letter.is_ascii_digit()).next().unwrap_or(said);
        assert!(row["reason"].as_str().is_some_and(|reason| reason.contains(begin)), "{row}");
    }
}
