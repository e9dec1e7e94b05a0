//! What the recorder measures before it records: costs of operations, and its own.

use super::{Read, record};
use std::fs;
use std::path::Path;

/// The probes count what the calibrator does while they are attached; without it they count nothing.
pub fn calibrations(folder: &Path) {
    let file = folder.join("calibrated.rec");
    let discarded =
        |read: &Read, kind: &str| read.counts().discarded.get(kind).copied().unwrap_or(0);
    let (plain, _) = record(&file, &[], &["true"]);
    assert!(plain.machine.conditions.calibrations.is_empty());
    assert_eq!(discarded(&plain, "timer"), 0);
    let (read, _) = record(&file, &["--calibrate"], &["true"]);
    assert_eq!(read.counts().disagreement(), None);
    let calibrations = &read.machine.conditions.calibrations;
    let names: Vec<&str> =
        calibrations.iter().filter(|of| of.recorded).map(|of| of.name.as_str()).collect();
    assert!(names.len() * 2 == calibrations.len() && [5, 7].contains(&names.len()), "{names:?}");
    for of in calibrations {
        let values: Vec<f64> = of.quantiles.iter().map(|(_, value)| *value).collect();
        assert!(of.n == 400 && of.unit == "ns" && values.is_sorted(), "{of:?}");
        assert!(of.name == "sleep-late" || values[0] > 0.0, "{of:?}");
    }
    // 50 samples before the 400 are not kept. Others make events meanwhile, so these are the least.
    let (sleeps, forks) = (450, 450 + names.len() as u64);
    assert!(discarded(&read, "timer") >= sleeps);
    assert!(discarded(&read, "fork") >= discarded(&plain, "fork") + forks);
    let round_trips = 450 * 16 * (names.len() as u64 - 3);
    assert!(discarded(&read, "call") >= 4 * round_trips + 450 * 64, "{:?}", read.counts());
    // Across CPUs a task may find its byte before it sleeps; on one CPU it cannot.
    let on_one_cpu = 450 * 16 * 2;
    assert!(discarded(&read, "waking") >= 2 * on_one_cpu, "{:?}", read.counts());
    assert!(discarded(&read, "switch") >= 450 * 64 + 2 * on_one_cpu, "{:?}", read.counts());
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
