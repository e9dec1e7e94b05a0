//! What the recorder measured about itself and the machine, in words and in numbers.

use crate::import::{Measured, Measurement};
use ::recording::{Calibration, Clock, Machine, Ratio};

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
    lines.extend(machine.conditions.calibrations.iter().filter(|of| of.n > 0).map(calibration));
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
    for of in machine.conditions.calibrated() {
        let operation = of.measured.name().to_string();
        let clock = if of.clock == Clock::Cpu { "cpu" } else { "wall" }.to_string();
        let measured = Measured::Calibrated { operation, clock, recorded: of.recorded };
        add(measured, of.ns.at(0.5), Some((of.ns.at(0.05), of.ns.at(0.95))), of.samples);
    }
    numbers
}

fn calibration(of: &Calibration) -> String {
    let at = |share| of.at(share).map_or("-".to_string(), |value| format!("{value:.0}"));
    format!(
        "calibrated: {} {} {} ({} time, {} of {} to {} in 9 of 10), {}",
        of.name,
        at(0.5),
        of.unit,
        of.clock,
        of.n,
        at(0.05),
        at(0.95),
        if of.recorded { "with the recorder" } else { "without the recorder" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::recording::{Conditions, LightRun, Overhead};

    #[test]
    fn each_measurement_has_a_line_with_its_uncertainty() {
        let quantiles = Calibration::quantiles_of((1..=101).map(f64::from).collect());
        let [name, unit, clock] = ["yield", "ns", "cpu"].map(String::from);
        let yields =
            Calibration { name, unit, clock, recorded: true, batch: 64, n: 101, quantiles };
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
            conditions: Conditions { calibrations: vec![yields], ..Conditions::default() },
            ..Machine::default()
        };
        let all = lines(&machine);
        assert!(all[0].contains("430 ns (quartiles 410 and 440 of 32"), "{all:?}");
        assert!(all[1].contains("6 pairs") && all[1].contains("time 1.50 [1.40, 1.70]"), "{all:?}");
        assert!(all[2].contains("yield 51 ns (cpu time, 101 of 6 to 96"), "{all:?}");
        let numbers: Vec<_> = numbers(&machine)
            .into_iter()
            .map(|Measurement { of, median, range, samples }| (of, median, range, samples))
            .collect();
        let ([operation, clock], recorded) = (["yield", "cpu"].map(String::from), true);
        let yields = Measured::Calibrated { operation, clock, recorded };
        let about = |ratio: f64| Some((ratio - 0.1, ratio + 0.2));
        let expected = [
            (Measured::Call, 430.0, Some((410.0, 440.0)), 32),
            (Measured::Time, 1.5, about(1.5), 6),
            (Measured::CpuTime, 1.4, about(1.4), 6),
            (Measured::OwnCpuTime, 0.2, about(0.2), 6),
            (yields, 51.0, Some((6.0, 96.0)), 101),
        ];
        assert_eq!(numbers, expected);
        machine.light = Some(LightRun { pairs: 1, ..LightRun::default() });
        assert!(lines(&machine)[1].contains("no interval"));
        assert_eq!(lines(&Machine::default()), [""; 0]);
    }
}
