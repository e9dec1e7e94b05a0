//! The program of a recording with causes, for what it says of wakeups.

use schedsim::trace::{Call, Event, Observer};
use schedsim::workload::{
    KernelWork, Recorded, ReplayBuilder, ReplayOptions, ReplayReport, Shared,
};

/// The most events before the first call: a recording with more of them has no causes, and its
/// program would only take memory.
const MOST: usize = 4 << 20;

/// Builds the program, as long as there may be one.
pub(super) struct Causes {
    builder: Option<ReplayBuilder>,
    has_calls: bool,
    events: usize,
}

impl Causes {
    pub fn new() -> Causes {
        let options = ReplayOptions { program: true, ..ReplayOptions::default() };
        Causes { builder: Some(ReplayBuilder::new(options)), has_calls: false, events: 0 }
    }

    /// What the program says of the recording; `work` is the kernel's and none of its own.
    pub fn finish(self, work: KernelWork, shared: Shared, recorded: Recorded<'_>) -> ReplayReport {
        let Some(mut builder) = self.builder else { return ReplayReport::default() };
        builder.take_off(work);
        builder.share(shared);
        builder.finish(recorded).1
    }
}

impl Observer for Causes {
    fn events(&mut self, chunk: &[Event]) {
        self.events = self.events.saturating_add(chunk.len());
        if self.events > MOST && !self.has_calls {
            self.builder = None;
        }
        if let Some(builder) = &mut self.builder {
            builder.events(chunk);
        }
    }

    fn hears_calls(&self) -> bool {
        true
    }

    fn call(&mut self, call: &Call) {
        self.has_calls = true;
        if let Some(builder) = &mut self.builder {
            builder.call(call);
        }
    }
}
