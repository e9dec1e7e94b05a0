//! Calls on files: what they slept for is a request to a device.

use super::ReplayBuilder;
use super::log::{Deed, Did};
use super::sleeps::By;
use super::within::Within;
use crate::workload::{Operation, Shared};
use crate::{TaskId, Time};

/// How many sleeps for a device there were at the same time. Each has its begin and its end.
pub(super) fn most_at_once(requests: &[(Time, Time)]) -> u16 {
    let begins = requests.iter().map(|(begin, _)| (*begin, true));
    let mut moments: Vec<(Time, bool)> =
        begins.chain(requests.iter().map(|(_, end)| (*end, false))).collect();
    moments.sort_unstable(); // an end comes before a begin at the same time
    let (mut at_once, mut most) = (0_u16, 1);
    for (_, begins) in moments {
        at_once = if begins { at_once.saturating_add(1) } else { at_once.saturating_sub(1) };
        most = most.max(at_once);
    }
    most
}

impl ReplayBuilder {
    /// A call on a file that began at `since` has ended. Sleeps that an interrupt or a thread of the
    /// kernel ended were for its device: what the cache has makes no sleep.
    pub(super) fn stored(&mut self, sleeper: TaskId, since: Time, device: u32) {
        let sleeps = std::mem::take(&mut self.tasks[sleeper.index()].calls.sleeps);
        for sleep in sleeps.iter().filter(|sleep| sleep.start >= since) {
            let waker = self.tasks.get(sleep.waker.index());
            let is_by_device = match sleep.by {
                By::Softirq => true,
                // A task without calls is none of the program.
                _ if sleep.waker != TaskId::NONE => waker.is_some_and(|of| !of.calls.traced),
                _ => true,
            };
            if !is_by_device {
                self.tasks[sleeper.index()].log.is_within(sleep.at, Within::File);
                continue;
            }
            let begin = sleep.start;
            self.requests.entry(device).or_default().push((begin, begin + sleep.length));
            self.explain(sleeper, *sleep, None);
            let did = Did::Operation(Operation::Io { device, service: sleep.length });
            self.report.operations += 1;
            self.tasks[sleeper.index()].put(Deed::Called { at: sleep.at, did });
        }
        let calls = &mut self.tasks[sleeper.index()].calls;
        calls.sleeps = sleeps;
        calls.clear();
    }

    /// The device that page faults wait for, if there is only one.
    pub(super) fn device_of_pages(&mut self, shared: &Shared) -> Option<u32> {
        let is_only = shared.devices.len() == 1 && shared.devices[0].channels == 0;
        if !is_only || self.paged.is_empty() {
            return None;
        }
        self.requests.entry(0).or_default().extend(&self.paged);
        Some(0)
    }

    /// A device serves as many requests at a time as it ever had: what was recorded contains no
    /// waiting for others then.
    pub(super) fn count_channels(&mut self, shared: &mut Shared) {
        for (number, requests) in std::mem::take(&mut self.requests) {
            let Some(device) = shared.devices.get_mut(number as usize) else { continue };
            if device.channels > 0 {
                continue;
            }
            device.channels = most_at_once(&requests);
        }
        // A device for which no task waited has one channel.
        for device in &mut shared.devices {
            device.channels = device.channels.max(1);
        }
    }
}
