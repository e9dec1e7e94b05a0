//! Calls on files: what they slept for is a request to a device.

use super::ReplayBuilder;
use super::log::{Deed, Did};
use super::sleeps::{By, Sleep};
use super::within::Within;
use crate::workload::{Operation, Shared};
use crate::{CpuId, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A sleep for a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    begin: Time,
    end: Time,
    /// Where the waking was, and the task had run.
    woken_on: CpuId,
    ran_on: CpuId,
}

impl Request {
    /// What a task slept for.
    pub(super) fn of(sleep: &Sleep) -> Request {
        let Sleep { start, length, woken_on, ran_on, .. } = *sleep;
        Request { begin: start, end: start + length, woken_on, ran_on }
    }
}

/// How many sleeps for a device there were at the same time. Each has its begin and its end.
pub(super) fn most_at_once(requests: &[Request]) -> u16 {
    let moments = requests.iter().flat_map(|of| [(of.begin, true), (of.end, false)]);
    let mut moments: Vec<(Time, bool)> = moments.collect();
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
            self.requests.entry(device).or_default().push(Request::of(sleep));
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
        self.requests.entry(0).or_default().extend(self.paged.iter().copied());
        Some(0)
    }

    /// A device serves as many requests at a time as it ever had: what was recorded contains no
    /// waiting for others then.
    pub(super) fn count_channels(&mut self, shared: &mut Shared) {
        for (number, requests) in std::mem::take(&mut self.requests) {
            let Some(device) = shared.devices.get_mut(number as usize) else { continue };
            device.interrupts = interrupts(&requests);
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

/// The CPU on which a device's interrupts arrive. At least nine tenths arrive there, and not
/// because the tasks had run there, as one at least had not.
fn interrupts(requests: &[Request]) -> Option<CpuId> {
    const ENOUGH: usize = 10;
    let mut on: BTreeMap<CpuId, usize> = BTreeMap::new();
    requests.iter().for_each(|request| *on.entry(request.woken_on).or_default() += 1);
    let (most, count) = on.into_iter().max_by_key(|&(cpu, count)| (count, Reverse(cpu)))?;
    let is_elsewhere = |request: &Request| request.woken_on == most && request.ran_on != most;
    let is_fixed = requests.len() >= ENOUGH
        && 10 * count >= 9 * requests.len()
        && requests.iter().any(is_elsewhere);
    is_fixed.then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_that_follow_the_tasks_have_no_cpu() {
        let of = |woken_on, ran_on| Request {
            begin: Time(1),
            end: Time(2),
            woken_on: CpuId(woken_on),
            ran_on: CpuId(ran_on),
        };
        assert_eq!(interrupts(&vec![of(1, 1); 20]), None);
        let mut one_elsewhere = vec![of(1, 1); 19];
        one_elsewhere.push(of(1, 0));
        assert_eq!(interrupts(&one_elsewhere), Some(CpuId(1)));
        assert_eq!(interrupts(&one_elsewhere[11..]), None, "too few");
        let follow: Vec<Request> = (0..20).map(|n| of(n % 2, n % 2)).collect();
        assert_eq!(interrupts(&follow), None);
    }
}
