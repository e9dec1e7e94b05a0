//! The costs of a machine from a recording that was made there to show them.

use formats::import::{Options, Recording};
use program::Error;
use recording::Calibration;
use schedsim::trace::Observer;
use schedsim::workload::{
    CallCost, CallCostEstimator, CallEstimates, CostEstimator, Costs, Estimate, LatencyEstimates,
};
use schedsim::{Nanos, Spread};
use std::path::Path;
use std::slice::from_mut;

/// What a recording shows of its machine. It stands in for what another one cannot tell.
#[derive(Clone, Debug)]
pub struct KnownCosts {
    /// The file.
    pub name: String,
    costs: Costs,
    calls: CallEstimates,
    latencies: LatencyEstimates,
}

impl KnownCosts {
    /// Reads the recording at `path` by `read`.
    pub fn load(
        path: &Path,
        read: impl Fn(&Path, Options, Vec<&mut dyn Observer>) -> Result<Recording, Error>,
    ) -> Result<KnownCosts, Error> {
        let (mut costs, mut calls) = (CostEstimator::new(), CallCostEstimator::new(true));
        let options = Options { allow_lost: true, ..Options::default() };
        let recording = read(path, options, vec![&mut costs, &mut calls])?;
        let (mut calls, mut latencies) = (calls.finish(), costs.latencies());
        let mut costs = costs.finish().with_calls(&calls);
        KnownCosts::of(&recording.calibrations).fill(&mut costs, &mut calls, &mut latencies);
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(KnownCosts { name, costs, calls, latencies })
    }

    /// What was measured beside a recording.
    pub fn of(calibrations: &[Calibration]) -> KnownCosts {
        let (mut calls, mut latencies) = (CallEstimates::default(), LatencyEstimates::default());
        let found = |name: &str| {
            let of = calibrations.iter().find(|of| of.name == name && !of.values.is_empty())?;
            Some((Spread::of(of.values.iter().copied().map(Nanos).collect()), of.n))
        };
        for (name, cost) in named_calls(&mut calls) {
            if let Some((spread, n)) = found(name) {
                let median = Estimate::of_spread(&spread, n);
                *cost = CallCost { spread, median, unknown: None, is_weak: false };
            }
        }
        for (name, spreads, median) in named_latencies(&mut latencies) {
            let (classes, mut all) = (spreads.len(), Vec::new());
            for (class, spread) in spreads.iter_mut().enumerate() {
                if let Some((found, n)) = found(&of_class(name, class, classes)) {
                    all.extend_from_slice(found.values());
                    median.samples = n;
                    *spread = found;
                }
            }
            *median = Estimate::of_spread(&Spread::of(all), median.samples);
        }
        let mut costs = Costs::default().with_calls(&calls);
        (costs.idle_exit, costs.waking) = (latencies.idle_away, latencies.idle_here);
        KnownCosts { name: "its calibration".to_string(), costs, calls, latencies }
    }

    /// The same, to be written beside a recording.
    pub fn calibrations(mut self) -> Vec<Calibration> {
        let mut all = Vec::new();
        let mut add = |name: String, spread: &Spread, n: u64| {
            let values: Vec<u64> = spread.values().iter().map(|value| value.0).collect();
            if !values.is_empty() {
                all.push(Calibration { name, n, values });
            }
        };
        for (name, cost) in named_calls(&mut self.calls) {
            add(name.to_string(), &cost.spread, cost.median.samples);
        }
        for (name, spreads, median) in named_latencies(&mut self.latencies) {
            for (class, spread) in spreads.iter().enumerate() {
                add(of_class(name, class, spreads.len()), spread, median.samples);
            }
        }
        all
    }

    /// Fills in what is unknown. Returns what that was, in words.
    pub fn fill(
        &self,
        costs: &mut Costs,
        calls: &mut CallEstimates,
        latencies: &mut LatencyEstimates,
    ) -> Vec<&'static str> {
        let mut filled = costs.fill(&self.costs);
        filled.extend(calls.fill(&self.calls));
        *costs = costs.with_calls(calls);
        filled.extend(latencies.fill(&self.latencies));
        filled
    }
}

/// What calls cost, by the name of its [`Calibration`].
fn named_calls(calls: &mut CallEstimates) -> [(&'static str, &mut CallCost); 6] {
    let CallEstimates { block, switch, wake_here, wake_away, wake_idle, preempt, own: _ } = calls;
    [
        ("block", block),
        ("switch", switch),
        ("wake-here", wake_here),
        ("wake-away", wake_away),
        ("wake-idle", wake_idle),
        ("preempt", preempt),
    ]
}

/// How late CPUs choose, by the name of its [`Calibration`]; where there are classes of idle time,
/// their numbers follow it.
fn named_latencies(
    latencies: &mut LatencyEstimates,
) -> [(&'static str, &mut [Spread], &mut Estimate); 4] {
    let LatencyEstimates { latency, idle_here, idle_away, busy_here, busy_away } = latencies;
    [
        ("idle-here", &mut latency.idle_here.0, idle_here),
        ("idle-away", &mut latency.idle_away.0, idle_away),
        ("stop-here", from_mut(&mut latency.busy_here), busy_here),
        ("stop-away", from_mut(&mut latency.busy_away), busy_away),
    ]
}

/// The name of one class of several.
fn of_class(name: &str, class: usize, classes: usize) -> String {
    if classes == 1 { name.to_string() } else { format!("{name}-{class}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_written_beside_a_recording_and_read_again() {
        let calibration = |name: &str, first: u64| Calibration {
            name: name.to_string(),
            n: 400,
            values: (first..first + 32).collect(),
        };
        let names = ["block", "switch", "wake-idle", "idle-away-2", "idle-away-6", "stop-away"];
        let all: Vec<Calibration> =
            names.iter().zip(1..).map(|(name, place)| calibration(name, 1_000 * place)).collect();
        let known = KnownCosts::of(&all);
        assert_eq!(known.clone().calibrations(), all);
        let (mut costs, mut calls, mut latencies) =
            (Costs::default(), CallCostEstimator::new(true).finish(), LatencyEstimates::default());
        let filled = known.fill(&mut costs, &mut calls, &mut latencies);
        assert!(filled.contains(&"a waking on an idle CPU"), "{filled:?}");
        assert_eq!(calls.block.median.value, Some(Nanos(1_016)));
        assert_eq!(costs.switch_cost(), Nanos(2_016));
        // A class of idle time between two known ones is like the longer.
        assert_eq!(latencies.whole().idle_away.0[4].values()[0], Nanos(5_000));
        assert!(latencies.whole().busy_here.values().is_empty());
    }
}
