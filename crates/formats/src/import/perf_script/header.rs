//! Parses the columns of a `perf script` line before the event's fields: task, CPU, time and event.

use schedsim::CpuId;
use schedsim::trace::WakeContext;

use crate::import::record;
use crate::import::record::Current;

/// The columns before an event's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header<'a> {
    /// The CPU on which the event was seen.
    pub cpu: CpuId,
    /// The recorded clock, in nanoseconds.
    pub time: u64,
    /// From the latency flags, if the text has them.
    pub context: WakeContext,
    /// The text before the CPU: the task's name and ids.
    pub task: &'a [u8],
    /// The event's name.
    pub event: &'a [u8],
    /// The event's fields and any text after them.
    pub fields: &'a [u8],
}

impl<'a> Header<'a> {
    /// Splits a line. Names may contain anything, including brackets and colons. So the first
    /// position where CPU, time and event all match is used.
    #[inline]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        for open in memchr::memchr_iter(b'[', line) {
            let (before, behind) = line.split_at(open);
            if before.last().is_some_and(|&byte| byte != b' ') {
                continue;
            }
            let Some((cpu, rest)) = number(&behind[1..]) else { continue };
            let Some(rest) = rest.strip_prefix(b"] ") else { continue };
            if let Some(header) = Header::after_cpu(before, cpu, rest) {
                return Some(header);
            }
        }
        Header::with_bare_cpu(line)
    }

    /// The ids of the running task, if the text has them as `pid/tid`, or as ftrace's
    /// `comm-tid (pid)`.
    #[inline]
    pub fn current(&self) -> Option<Current> {
        let task = self.task.trim_ascii_end();
        if let Some(task) = task.strip_suffix(b")") {
            let (task, tgid) = task.split_at(memchr::memrchr(b'(', task)?);
            let (tgid, b"") = number(tgid[1..].trim_ascii_start())? else { return None };
            let task = task.trim_ascii_end();
            let (pid, b"") = number(&task[memchr::memrchr(b'-', task)?.saturating_add(1)..])?
            else {
                return None;
            };
            return Current::of(tgid, pid);
        }
        let ids = &task[memchr::memrchr(b' ', task).map_or(0, |space| space.saturating_add(1))..];
        let (tgid, rest) = number(ids)?;
        let (pid, rest) = number(rest.strip_prefix(b"/")?)?;
        if rest.is_empty() { Current::of(tgid, pid) } else { None }
    }

    /// `rest` begins after the CPU column. Latency flags or other words, such as `misc`, may come
    /// before the time.
    #[inline]
    fn after_cpu(task: &'a [u8], cpu: u64, rest: &'a [u8]) -> Option<Self> {
        let cpu = record::cpu(cpu)?;
        let mut rest = rest.trim_ascii_start();
        let mut context = WakeContext::Unknown;
        for _ in 0..4 {
            if let Some((time, behind)) = timestamp(rest) {
                let (event, fields) = event(behind)?;
                return Some(Header { cpu, time, context, task, event, fields });
            }
            if rest.first() == Some(&b'[') {
                return None;
            }
            let end = memchr::memchr(b' ', rest)?;
            if let Some(flags) = latency_flags(&rest[..end]) {
                context = flags;
            }
            rest = rest[end..].trim_ascii_start();
        }
        None
    }

    /// `perf script -L` prints the CPU without brackets: the text before the time is then `pid cpu`
    /// or `pid cpu flags`.
    #[cold]
    fn with_bare_cpu(line: &'a [u8]) -> Option<Self> {
        let mut before: [(usize, &[u8]); 3] = [(0, b""); 3];
        for (start, word) in words(line) {
            if timestamp(word).is_some() {
                let [_, ids, cpu] = if latency_flags(before[2].1).is_some() {
                    [before[2], before[0], before[1]]
                } else {
                    before
                };
                let is_pid = !ids.1.is_empty()
                    && ids.1.iter().all(|byte| byte.is_ascii_digit() || b"/-".contains(byte));
                if is_pid && let Some((number, b"")) = number(cpu.1) {
                    return Header::after_cpu(
                        &line[..cpu.0],
                        number,
                        &line[cpu.0.saturating_add(cpu.1.len())..],
                    );
                }
            }
            before = [before[1], before[2], (start, word)];
        }
        None
    }
}

/// Splits off a decimal number of at most 19 digits.
#[inline]
pub(super) fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut length) = (0u64, 0);
    for byte in bytes.iter().take(19) {
        let digit = byte.wrapping_sub(b'0');
        if digit >= 10 {
            break;
        }
        // 19 digits fit into 64 bits.
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        length = usize::saturating_add(length, 1);
    }
    (length > 0).then(|| (value, &bytes[length..]))
}

/// Splits off `seconds.fraction: ` in nanoseconds. The fraction has six digits, or nine with
/// `--ns`.
#[inline]
fn timestamp(bytes: &[u8]) -> Option<(u64, &[u8])> {
    const SCALE: [u64; 10] =
        [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let (seconds, rest) = number(bytes)?;
    let fraction = rest.strip_prefix(b".")?;
    let (value, rest) = number(fraction)?;
    let digits = fraction.len().saturating_sub(rest.len());
    let scale = SCALE.get(digits)?;
    let rest = rest.strip_prefix(b":")?;
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(value.checked_mul(*scale)?)?, rest))
}

/// The event's name and its fields: `[period] name: fields`, or `PERF_RECORD_… …` for other
/// records.
#[inline]
fn event(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes.trim_ascii_start();
    if rest.starts_with(b"PERF_RECORD_") {
        return Some(split_perf_record(rest));
    }
    if let Some((_, behind)) = number(rest)
        && behind.first() == Some(&b' ')
    {
        rest = behind.trim_ascii_start();
    }
    // perf prints a space after the colon even without fields; a line without it was cut within the
    // name.
    let end = memchr::memchr(b' ', rest)?;
    let name = rest[..end].strip_suffix(b":")?;
    (!name.is_empty()).then(|| (name, &rest[end..]))
}

/// Splits the name of a `PERF_RECORD_…` from the text after it.
pub(super) fn split_perf_record(bytes: &[u8]) -> (&[u8], &[u8]) {
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    bytes.split_at(bytes.iter().take_while(|byte| is_name(byte)).count())
}

/// The kernel's latency flags: irqs off, need resched, context, preemption depth and, on newer
/// kernels, migration depth: `d.h1.`.
fn latency_flags(word: &[u8]) -> Option<WakeContext> {
    let [irqs, resched, context, depth, rest @ ..] = word else {
        return None;
    };
    let fits = b"dDbBX.".contains(irqs)
        && b"NnpPLlBb.".contains(resched)
        && (*depth == b'.' || depth.is_ascii_hexdigit())
        && rest.len() <= 1
        && rest.iter().all(|byte| *byte == b'.' || byte.is_ascii_hexdigit());
    match context {
        _ if !fits => None,
        b'h' | b'H' | b'z' | b'Z' => Some(WakeContext::Hardirq),
        b's' => Some(WakeContext::Softirq),
        b'.' => Some(WakeContext::Task),
        _ => None,
    }
}

/// The words of a line, each with its position.
fn words(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0usize;
    let words = line.split(|byte| *byte == b' ').map(move |word| {
        let start = at;
        at = start.saturating_add(word.len()).saturating_add(1);
        (start, word)
    });
    words.filter(|(_, word)| !word.is_empty())
}
