//! The costs of a machine from a recording that was made there to show them.

use formats::import::{Options, Recording};
use program::Error;
use schedsim::trace::Observer;
use schedsim::workload::{
    CallCostEstimator, CallEstimates, CostEstimator, Costs, LatencyEstimates,
};
use std::path::Path;

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
        read(
            path,
            Options { allow_lost: true, ..Options::default() },
            vec![&mut costs, &mut calls],
        )?;
        let (calls, latencies) = (calls.finish(), costs.latencies());
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(KnownCosts { name, costs: costs.finish().with_calls(&calls), calls, latencies })
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
        filled.extend(latencies.fill(&self.latencies));
        filled
    }
}
