//! Any bytes as a recording: read or refused with a place in the file, never a panic, and what is
//! read is consumed without one.

#![no_main]

use formats::export::Occupancy;
use formats::import::{Options, read};
use libfuzzer_sys::fuzz_target;
use schedlab_fuzz::scratch;
use schedsim::metrics::Metrics;
use schedsim::trace::{Event, Observer, TraceHash};
use schedsim::workload::{CostEstimator, Recorded, ReplayBuilder, ReplayOptions};
use schedsim::{Nanos, Time};

#[derive(Default)]
struct Intervals(Occupancy);

impl Observer for Intervals {
    fn events(&mut self, chunk: &[Event]) {
        chunk.iter().for_each(|event| {
            self.0.event(event);
        });
    }
}

fuzz_target!(|bytes: &[u8]| {
    let path = scratch("import", bytes);
    let (mut metrics, mut hash, mut costs) =
        (Metrics::new(0), TraceHash::new(), CostEstimator::new());
    let (mut replay, mut intervals) = (
        ReplayBuilder::new(ReplayOptions { program: true, ..ReplayOptions::default() }),
        Intervals::default(),
    );
    let options = Options { allow_lost: true, ..Options::default() };
    let recording = match read(
        &path,
        &options,
        vec![&mut metrics, &mut hash, &mut costs, &mut replay, &mut intervals],
    ) {
        Ok(recording) => recording,
        Err(error) => {
            return assert!(
                error.to_string().contains(&*path.to_string_lossy()),
                "{error} does not name the file"
            );
        }
    };
    let end = Time(recording.duration.0);
    let summary = metrics.finish(end);
    assert!(summary.tasks.iter().all(|task| task.cpu_time <= recording.duration));
    let recorded = Recorded {
        tasks: &recording.tasks,
        cpus: recording.cpus,
        end,
        switch_cost: Nanos::ZERO,
        recorders: recording.report.format.recorders(),
    };
    replay.share(recording.objects);
    let (workload, _) = replay.finish(recorded);
    assert!(
        workload.demand() <= Nanos(recording.duration.0.saturating_mul(u64::from(recording.cpus)))
    );
});
