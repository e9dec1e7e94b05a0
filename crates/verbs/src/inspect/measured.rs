//! What the recorder measured about itself and the machine, as rows.

use formats::import::{Measured, Measurement};
use results::{Metric, Row};

/// The row of a measurement; `row` makes one of the recording. Its interval is that of a median if
/// there are several pairs of runs; other ranges are in the note.
pub fn row(of: &Measurement, row: impl Fn(Metric, Option<f64>) -> Row) -> Row {
    let Measurement { median, range, samples, .. } = *of;
    let metric = match of.of {
        Measured::Call => Metric::recorded_call_ns,
        Measured::Lock => Metric::recorded_lock_ns,
        Measured::Time => Metric::recorded_time_ratio,
        Measured::CpuTime => Metric::recorded_cpu_time_ratio,
        Measured::OwnCpuTime => Metric::recorder_cpu_time_ratio,
        Measured::Calibrated(_) => Metric::calibrated_ns,
    };
    let runs = samples.try_into().unwrap_or(u32::MAX);
    let made = Row { runs, ..row(metric, Some(median)) };
    let is_between = |what: &str| {
        range.map(|(low, high)| format!("{what} of {samples} samples: {low:.0} to {high:.0}"))
    };
    match &of.of {
        Measured::Call | Measured::Lock => Row { note: is_between("middle half"), ..made },
        Measured::Time | Measured::CpuTime | Measured::OwnCpuTime => {
            Row { ci_low: range.map(|(low, _)| low), ci_high: range.map(|(_, high)| high), ..made }
        }
        Measured::Calibrated(cost) => {
            Row { note: is_between("middle 90 %"), ..made.at("cost", cost.as_str()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    fn rows(of: Measured, range: Option<(f64, f64)>) -> Row {
        let of = Measurement { of, median: 1.5, range, samples: 6 };
        row(&of, |metric, value| Row { value, ..Row::new(World::Recorded, metric) })
    }

    #[test]
    fn a_ratio_of_pairs_has_an_interval_and_a_calibration_its_name() {
        let time = rows(Measured::Time, Some((1.4, 1.7)));
        assert_eq!((time.metric, time.value), (Metric::recorded_time_ratio, Some(1.5)));
        assert_eq!((time.ci_low, time.ci_high, time.runs), (Some(1.4), Some(1.7), 6));
        assert_eq!(rows(Measured::Time, None).ci_low, None);
        let calibrated = rows(Measured::Calibrated("block".into()), Some((6.0, 96.0)));
        assert_eq!((calibrated.ci_low, calibrated.runs), (None, 6));
        let text = serde_json::to_string(&calibrated).unwrap();
        for word in ["\"block\"", "middle 90 % of 6 samples: 6 to 96"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
