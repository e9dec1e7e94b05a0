//! Pairs of Unix sockets: streams of bytes or datagrams, in both directions.
//!
//! Each message is charged to its sender until it has been received, with the memory that the
//! kernel takes for it. A sender that finds the buffer full waits. All such senders of an end are
//! woken as soon as at most a quarter of it is in use. The receivers of a stream are all woken by
//! each message, those of datagrams one at a time. Senders and receivers of one end wait in one
//! queue. A task that waits for an answer is also woken, in vain, when its question has been
//! received.
//!
//! Source: Linux 6.18, `net/unix/af_unix.c`, `net/core/sock.c`, `net/core/skbuff.c`.

use super::Engine;
use super::step::{Done, Off};
use super::wait_queue::{News, WaitQueue};
use crate::policy::Policy;
use crate::trace::Sink;
use crate::workload::{Action, Operation, SocketKind, Until};
use crate::{CpuId, TaskId};
use std::collections::VecDeque;

/// `net.core.wmem_default`.
const BUFFER: u64 = 212_992;
/// The bytes of a message that fit beside its description into one page.
const IN_A_PAGE: u64 = 4096 - DESCRIPTION;
/// The largest part of a stream that goes as one message.
const PART: u64 = IN_A_PAGE + (32 << 10);
/// The largest datagram of which no part is in pages of its own.
const IN_FOUR_PAGES: u64 = 4 * 4096 - DESCRIPTION;
/// The most pages of a message.
const MOST_PAGES: u64 = 17;
/// `struct skb_shared_info`.
const DESCRIPTION: u64 = 320;
/// `struct sk_buff`, in whole cache lines.
const HEADER: u64 = 256;
const CACHE_LINE: u64 = 64;
const PAGE: u64 = 4096;

/// An end of a pair; the other one is its neighbour.
#[derive(Debug)]
pub struct EndState {
    kind: SocketKind,
    /// What can be received here.
    messages: VecDeque<Message>,
    /// What the messages that were sent from here are charged.
    charged: u64,
    /// Who waits here for messages, or for room to send one from here.
    waiters: WaitQueue,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Message {
    bytes: u64,
    charge: u64,
}

impl EndState {
    pub fn new(kind: SocketKind) -> EndState {
        EndState { kind, messages: VecDeque::new(), charged: 0, waiters: WaitQueue::default() }
    }

    pub fn has_data(&self) -> bool {
        !self.messages.is_empty()
    }

    /// Whether whoever waits for room hears that there is some.
    pub fn has_room(&self) -> bool {
        // A reference counts as a byte.
        (self.charged + 1) * 4 <= BUFFER
    }

    pub fn waiters(&mut self) -> &mut WaitQueue {
        &mut self.waiters
    }
}

/// The next message of what is left to send.
fn message(kind: SocketKind, left: u64) -> Message {
    let (bytes, in_pages) = match kind {
        SocketKind::Stream => {
            let bytes = left.min(PART);
            (bytes, bytes.saturating_sub(IN_A_PAGE).next_multiple_of(PAGE).min(bytes))
        }
        SocketKind::Datagram => {
            let beyond = left.saturating_sub(IN_FOUR_PAGES).min(MOST_PAGES * PAGE);
            (left, beyond.next_multiple_of(PAGE))
        }
    };
    let block = (bytes - in_pages).next_multiple_of(CACHE_LINE) + DESCRIPTION;
    let charge = block.next_power_of_two() + HEADER + in_pages.next_multiple_of(PAGE);
    Message { bytes, charge }
}

impl<P: Policy, S: Sink> Engine<'_, P, S> {
    /// Sends from an end, message by message, and waits where the buffer is full.
    pub(super) fn send(&mut self, cpu: CpuId, task: TaskId, end: u32, bytes: u64) -> Done {
        let (own, peer) = (end as usize, end as usize ^ 1);
        let mut left = bytes;
        while left > 0 {
            let from = &mut self.sync.ends[own];
            if from.charged >= BUFFER {
                from.waiters.add(task);
                self.tasks[task.index()].then = Action::Do(Operation::Send { end, bytes: left });
                return Done::Blocks(Off::Waits);
            }
            let message = message(from.kind, left);
            from.charged += message.charge;
            left -= message.bytes;
            self.sync.ends[peer].messages.push_back(message);
            self.report(peer, News::In, cpu);
        }
        Done::Yes
    }

    /// Receives at an end, and waits if there is nothing or if bytes are missing.
    pub(super) fn receive(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        end: u32,
        bytes: u64,
        until: Until,
    ) -> Done {
        let own = end as usize;
        let is_stream = self.sync.ends[own].kind == SocketKind::Stream;
        let mut left = bytes;
        while let Some(first) = self.sync.ends[own].messages.front_mut().filter(|_| left > 0) {
            if !is_stream {
                self.consume(cpu, own);
                return Done::Yes;
            }
            let part = first.bytes.min(left);
            first.bytes -= part;
            left -= part;
            if first.bytes == 0 {
                self.consume(cpu, own);
            }
        }
        if left == 0 || until == Until::Any && left < bytes {
            return Done::Yes;
        }
        let waiters = &mut self.sync.ends[own].waiters;
        if is_stream {
            waiters.add(task)
        } else {
            waiters.add_exclusive(task, News::In)
        }
        self.tasks[task.index()].then = Action::Do(Operation::Receive { end, bytes: left, until });
        Done::Blocks(Off::Waits)
    }

    /// The first message of an end has been received: its sender is not charged for it any more.
    fn consume(&mut self, cpu: CpuId, own: usize) {
        let Some(message) = self.sync.ends[own].messages.pop_front() else { return };
        let from = &mut self.sync.ends[own ^ 1];
        from.charged -= message.charge;
        // Two references count as a byte each at this moment.
        if (from.charged + 2) * 4 <= BUFFER {
            self.report(own ^ 1, News::Out, cpu);
        }
    }

    /// Wakes who waits at an end for these news.
    fn report(&mut self, end: usize, news: News, cpu: CpuId) {
        let sync = &mut self.sync;
        let mut woken = std::mem::take(&mut sync.woken);
        let has_waiter = |source| sync.epolls.has_waiter(source);
        sync.ends[end].waiters.wake(news, &mut woken, has_waiter);
        woken.drain(..).for_each(|who| self.tell(who, cpu, true));
        self.sync.woken = woken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_charged_what_the_kernel_takes_for_it() {
        let charge = |kind, bytes| message(kind, bytes).charge;
        for (bytes, expected) in [
            (1, 768),
            (100, 768),
            (192, 768),
            (193, 1280),
            (704, 1280),
            (1728, 2304),
            (3776, 4352),
            // The part beyond a page is in a page; what is left of it, too, if it fits there.
            (3777, 768 + 4096),
            (4096, 768 + 4096),
            (4097, 768 + 4096),
            (7872, 4352 + 4096),
            (PART, 4352 + 8 * 4096),
            (PART + 1, 4352 + 8 * 4096),
        ] {
            assert_eq!(charge(SocketKind::Stream, bytes), expected, "{bytes}");
        }
        assert_eq!(charge(SocketKind::Datagram, 100), 768);
        assert_eq!(charge(SocketKind::Datagram, 4096), 8192 + 256);
        assert_eq!(charge(SocketKind::Datagram, IN_FOUR_PAGES), 16_384 + 256);
        assert_eq!(message(SocketKind::Stream, 1 << 20).bytes, PART);
        assert_eq!(message(SocketKind::Datagram, 200_000).bytes, 200_000);
    }
}
