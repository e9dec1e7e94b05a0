//! What the recorder measured about itself and the machine, in words and in numbers.

use crate::import::{Measured, Measurement};
use ::recording::{Calibration, Machine, Ratio};
use schedsim::Nanos;

/// One line for each measurement.
pub(super) fn lines(machine: &Machine) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(of) = machine.overhead {
        lines.push(format!(
            "recording a call takes {:.0} ns (quartiles {:.0} and {:.0} of {} batches), taken off",
            of.call_ns, of.call_ns_q1, of.call_ns_q3, of.batches
        ));
    }
    if let Some(lock_ns) = machine.overhead.and_then(|of| of.lock_ns) {
        lines.push(format!("recording a call of a lock takes {lock_ns:.0} ns, taken off"));
    }
    if let Some(light) = machine.light {
        let [wall, cpu, own] = [light.wall, light.cpu, light.own_cpu].map(|ratio| {
            let Ratio { median, low, high } = ratio;
            if light.pairs > 1 {
                format!("{median:.2} [{low:.2}, {high:.2}]")
            } else {
                format!("{median:.2} (no interval: one pair)")
            }
        });
        lines.push(format!(
            "with the recorder ÷ without, {} pairs of runs: time {wall}, CPU time {cpu}; the \
             recorder's own CPU time {own} of the command's",
            light.pairs
        ));
    }
    lines.extend(calibrated(&machine.conditions.calibrations));
    lines
}

/// The same as numbers.
pub(super) fn numbers(machine: &Machine) -> Vec<Measurement> {
    let mut numbers = Vec::new();
    let mut add = |of, median, range, samples| {
        numbers.push(Measurement { of, median, range, samples });
    };
    if let Some(of) = machine.overhead {
        let batches = u64::from(of.batches);
        add(Measured::Call, of.call_ns, Some((of.call_ns_q1, of.call_ns_q3)), batches);
        if let Some(lock_ns) = of.lock_ns {
            add(Measured::Lock, lock_ns, None, batches);
        }
    }
    if let Some(light) = machine.light {
        let ratios = [
            (Measured::Time, light.wall),
            (Measured::CpuTime, light.cpu),
            (Measured::OwnCpuTime, light.own_cpu),
        ];
        for (of, Ratio { median, low, high }) in ratios {
            let range = (light.pairs > 1).then_some((low, high));
            add(of, median, range, light.pairs.into());
        }
    }
    for of in &machine.conditions.calibrations {
        let at = |share| of.at(share).map(|value| value as f64);
        if let Some(median) = at(0.5) {
            let measured = Measured::Calibrated(of.name.clone());
            add(measured, median, at(0.05).zip(at(0.95)), of.n);
        }
    }
    numbers
}

/// One line for all: the medians by name.
fn calibrated(calibrations: &[Calibration]) -> Option<String> {
    let medians = calibrations.iter().filter_map(|of| {
        let median = Nanos(of.at(0.5)?);
        Some(format!("{} {median} ({})", of.name, of.n))
    });
    let medians: Vec<String> = medians.collect();
    let list = medians.join(", ");
    (!medians.is_empty()).then(|| format!("calibrated, medians (samples): {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::recording::{Conditions, LightRun, Overhead};

    #[test]
    fn each_measurement_has_a_line_with_its_uncertainty() {
        let block = Calibration { name: "block".into(), n: 300, values: (1_001..=1_021).collect() };
        let ratio = |median| Ratio { median, low: median - 0.1, high: median + 0.2 };
        let mut machine = Machine {
            overhead: Some(Overhead {
                call_ns: 430.0,
                call_ns_q1: 410.0,
                call_ns_q3: 440.0,
                batches: 32,
                lock_ns: None,
            }),
            light: Some(LightRun {
                pairs: 6,
                wall: ratio(1.5),
                cpu: ratio(1.4),
                own_cpu: ratio(0.2),
            }),
            conditions: Conditions { calibrations: vec![block], ..Conditions::default() },
            ..Machine::default()
        };
        let all = lines(&machine);
        assert!(all[0].contains("430 ns (quartiles 410 and 440 of 32"), "{all:?}");
        assert!(all[1].contains("6 pairs") && all[1].contains("time 1.50 [1.40, 1.70]"), "{all:?}");
        assert!(all[2].contains("medians (samples): block 1.01us (300)"), "{all:?}");
        let numbers: Vec<_> = numbers(&machine)
            .into_iter()
            .map(|Measurement { of, median, range, samples }| (of, median, range, samples))
            .collect();
        let block = Measured::Calibrated("block".into());
        let about = |ratio: f64| Some((ratio - 0.1, ratio + 0.2));
        let expected = [
            (Measured::Call, 430.0, Some((410.0, 440.0)), 32),
            (Measured::Time, 1.5, about(1.5), 6),
            (Measured::CpuTime, 1.4, about(1.4), 6),
            (Measured::OwnCpuTime, 0.2, about(0.2), 6),
            (block, 1_011.0, Some((1_002.0, 1_020.0)), 300),
        ];
        assert_eq!(numbers, expected);
        machine.light = Some(LightRun { pairs: 1, ..LightRun::default() });
        assert!(lines(&machine)[1].contains("no interval"));
        assert_eq!(lines(&Machine::default()), [""; 0]);
    }
}
