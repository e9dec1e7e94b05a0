//! What the recorder measures before it records: costs of operations, and its own.

use super::{Read, record};
use recording::{Calibration, What};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The exercise does the operations that it says, and costs that are given are written.
pub fn calibrations(folder: &Path) {
    let (file, costs) = (folder.join("exercise.rec"), folder.join("costs.json"));
    let recorder = env!("CARGO_BIN_EXE_schedlab-recorder");
    let (read, _) = record(&file, &[], &[recorder, "--exercise"]);
    assert!(read.machine.conditions.calibrations.is_empty());
    let of = |wanted: u32| {
        let calls = read.events.iter().filter(
            |event| matches!(event.what, What::Call { number, .. } if u32::from(number) == wanted),
        );
        calls.count()
    };
    let is_alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
    // A byte passes twice in each round trip, and ends at the end of the pipe.
    let (writes, sleeps) = (if is_alone { 760 } else { 1_660 }, 300);
    assert!(of(1) >= writes && of(0) >= writes, "{} writes, {} reads", of(1), of(0));
    assert_eq!(of(230), sleeps, "calls of clock_nanosleep");
    let one = Calibration { name: "block".to_string(), n: 40, values: vec![900, 1_000, 1_100] };
    fs::write(&costs, Calibration::to_json(std::slice::from_ref(&one))).expect("a file");
    let option = format!("--costs={}", costs.display());
    let (read, _) = record(&file, &[&option], &["true"]);
    assert_eq!(read.machine.conditions.calibrations, [one]);
}

/// The command runs twice for each pair, and once more.
pub fn light_runs(folder: &Path) {
    let file = folder.join("light.rec");
    let runs = folder.join("runs");
    let command = format!(
        "echo >>{}; dd if=/dev/zero of=/dev/null bs=1 count=200000 2>/dev/null",
        runs.display()
    );
    let (read, _) = record(&file, &["--light-run=2"], &["sh", "-c", &command]);
    assert_eq!(fs::read(&runs).expect("the command ran").len(), 5);
    let light = read.machine.light.expect("it was measured");
    let ratios = [light.wall, light.cpu, light.own_cpu];
    let in_order =
        |of: &recording::Ratio| of.low > 0.0 && of.low <= of.median && of.median <= of.high;
    assert!(light.pairs == 2 && ratios.iter().all(in_order), "{light:?}");
    // 400,000 calls that do nothing: recording them takes more than they do.
    assert!(light.cpu.median > 1.2, "{light:?}");
    let (read, _) = record(&file, &[], &["true"]);
    assert_eq!(read.machine.light, None);
}

/// The floor: what it takes to reach a program on a call. It is below the cost of recording it, in
/// the mean of nine pairs. On a busy machine single costs are off by more than their difference,
/// which is some 130 ns; those of a pair are off alike.
pub fn floor(folder: &Path) {
    let file = folder.join("floor.rec");
    let cost = |read: &Read| read.machine.overhead.expect("it was measured").call_ns;
    let pair = || {
        let (empty, _) = record(&file, &["--empty-calls"], &["true"]);
        assert!(
            !empty.counts().emitted.contains_key("call") && empty.counts().disagreement().is_none()
        );
        let (full, _) = record(&file, &[], &["true"]);
        (cost(&empty), cost(&full))
    };
    let pairs: Vec<(f64, f64)> = std::iter::repeat_with(pair).take(9).collect();
    let more: f64 = pairs.iter().map(|(floor, cost)| cost - floor).sum::<f64>() / 9.0;
    println!("      recording takes {more:.0} ns more than the floor");
    assert!(more > 0.0, "{pairs:?}");
}

/// 40 tasks at a time, and places for 8: the calls of the rest are not recorded, and counted.
pub fn places(folder: &Path) {
    let file = folder.join("places.rec");
    let command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 \
                   28 29 30 31 32 33 34 35 36 37 38 39 40; do (read x; exec true) & done; wait";
    let without = |read: &Read| {
        let found = read.counts().unresolved.iter().find(|(what, _)| what.contains("table"));
        found.map_or(0, |(_, count)| *count)
    };
    let callers = |read: &Read| {
        let calls = read.events.iter().filter(|event| matches!(event.what, What::Call { .. }));
        calls.map(|event| event.tid).collect::<BTreeSet<u32>>().len() as u64
    };
    let (read, _) = record(&file, &[], &["sh", "-c", command]);
    assert_eq!(without(&read), 0);
    let (read, _) = record(&file, &["--places=8"], &["sh", "-c", command]);
    assert_eq!(read.counts().disagreement(), None);
    assert!(without(&read) > 0 && callers(&read) > 0, "{:?}", read.counts());
    // The shell and its children: each either has a place, or is counted.
    assert!(callers(&read) + without(&read) >= 41, "{:?}", read.counts());
}

/// A buffer of a page: most calls of a program that does nothing else find no room.
pub fn overrun(folder: &Path) {
    let file = folder.join("overrun.rec");
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=50000", "status=none"];
    let (read, _) = record(&file, &["--buffer=4096"], &command);
    let counts = read.counts();
    // What was handed over arrived, and what was not is known.
    assert_eq!(counts.disagreement(), None);
    let calls = |all: &BTreeMap<String, u64>| all.get("call").copied().unwrap_or(0);
    assert!(calls(&counts.lost) > 1_000, "{counts:?}");
    assert!(calls(&counts.lost) + calls(&counts.emitted) >= 100_000, "{counts:?}");
    let by_cpu: u64 = counts.lost_by_cpu.values().sum();
    assert!(by_cpu >= calls(&counts.lost) && by_cpu <= counts.lost(), "{counts:?}");
    let most = counts.lost_by_task.values().max().copied().unwrap_or(0);
    assert!(most > 1_000, "{counts:?}");
    let (read, _) = record(&file, &[], &["true"]);
    assert_eq!(calls(&read.counts().lost), 0);
}
