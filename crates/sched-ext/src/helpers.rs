//! The helpers that a machine leaves to the kernel, by number.

use super::constants::HZ;
use super::core::{Answer, Timer};
use super::kernel::{EBUSY, EINVAL, ENOENT, Kernel, errno};
use super::memory;
use bpf::{Address, Called, Fault, FunctionId, Machine, Outside};
use schedsim::Time;

/// All of them.
pub const ALL: [u32; 19] =
    [5, 7, 8, 14, 15, 16, 35, 42, 55, 80, 118, 125, 158, 160, 169, 170, 171, 172, 208];

impl Outside for Kernel<'_> {
    #[inline]
    fn calls(&mut self, machine: &Machine, called: Called, arguments: [u64; 5]) {
        self.core.called += self.costs.of_call(machine, called, arguments[0]);
    }

    fn function(
        &mut self,
        machine: &mut Machine,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let called = self.functions.get(function.0 as usize).copied().flatten();
        match called {
            Some(known) if known.places.has(self.callback) => {
                (known.call)(self, machine, arguments)
            }
            Some(known) => {
                let name = &machine.object().functions()[function.0 as usize].name;
                let (here, places) = (self.callback.name(), known.places.names());
                self.core.error(format!("{name} called in {here}, only allowed in {places}"));
                Ok(0)
            }
            None => Err(Fault::new("calls a kernel function that is not there")),
        }
    }

    fn helper(
        &mut self,
        machine: &mut Machine,
        helper: u32,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let now = self.cx.now().0;
        Ok(match helper {
            5 | 125 | 160 | 208 => now,
            7 => self.cx.random().below(1 << 32),
            8 => self.core.this.0.into(),
            42 => self.core.node_of[self.core.this.index()].into(),
            118 => now / (1_000_000_000 / HZ) + u64::from(u32::MAX - 300 * HZ as u32 + 1),
            35 | 158 => self.core.current(self.core.this.0),
            14 => {
                let current = self.core.current(self.core.this.0);
                let pid = memory::get(machine, current, self.core.layout.pid)?;
                pid << 32 | pid
            }
            16 => {
                machine.write(Address(arguments[0]), &vec![0; arguments[1].min(16) as usize])?;
                0
            }
            15 => 0,
            // There are no hardware counters.
            55 => errno(ENOENT),
            80 => 1,
            169 => self.set_up(machine, arguments[0], arguments[1])?,
            170 => self.set_callback(machine, arguments[0], arguments[1])?,
            171 => self.start(arguments),
            172 => self.cancel(arguments[0]),
            _ => return Err(Fault::new(format!("calls helper {helper}, which is not there"))),
        })
    }

    fn print(&mut self, _: &mut Machine, text: &str) {
        if self.core.texts.len() < MOST_TEXTS {
            self.core.texts.push(text.to_string());
        }
    }
}

/// The most lines of what programs print that are kept.
const MOST_TEXTS: usize = 1 << 12;
/// A timer rings no earlier after it was started. A program takes no time here, so one that starts
/// its timer at once would ring for ever.
const SHORTEST: u64 = 1000;

/// The timer is to be started relative to now, or at a time (`BPF_F_TIMER_ABS`).
const ABSOLUTE: u64 = 1;

impl Kernel<'_> {
    /// `bpf_timer_init`.
    fn set_up(&mut self, machine: &mut Machine, timer: u64, map: u64) -> Answer<u64> {
        let of = machine.map_at(map)?;
        if machine.key_of(of, Address(timer)).is_none() {
            return Err(Fault::new("has a timer that is in no value of its map"));
        }
        if self.core.timed.contains_key(&timer) {
            return Ok(errno(EBUSY));
        }
        self.core.timed.insert(timer, map);
        Ok(0)
    }

    /// `bpf_timer_set_callback`: the timer is in the value of a map, which the callback gets.
    fn set_callback(&mut self, machine: &mut Machine, timer: u64, callback: u64) -> Answer<u64> {
        let Some(&at) = self.core.timed.get(&timer) else { return Ok(errno(EINVAL)) };
        let map = machine.map_at(at)?;
        let Some((bytes, value)) = machine.key_of(map, Address(timer)) else {
            return Err(Fault::new("has a timer that is in no value of its map"));
        };
        let key = match self.core.callbacks.get(&timer) {
            Some(Timer { arguments: [_, key, _], .. }) => Address(*key),
            None => machine.allocate("the key of a timer", bytes.len())?,
        };
        machine.write(key, &bytes)?;
        let arguments = [at, key.0, value.0];
        self.core.callbacks.insert(timer, Timer { callback, arguments });
        Ok(0)
    }

    /// `bpf_timer_start`.
    fn start(&mut self, [timer, after, flags, ..]: [u64; 5]) -> u64 {
        let Some(&callback) = self.core.callbacks.get(&timer) else { return errno(EINVAL) };
        self.cancel(timer);
        let from = if flags & ABSOLUTE != 0 { 0 } else { self.cx.now().0 };
        let soonest = self.cx.now().0.saturating_add(SHORTEST);
        let at = Time(from.saturating_add(after).max(soonest));
        self.core.timers.insert((at, timer), callback);
        0
    }

    /// `bpf_timer_cancel`: whether it ran.
    fn cancel(&mut self, timer: u64) -> u64 {
        let running: Vec<(Time, u64)> =
            self.core.timers.keys().filter(|(_, at)| *at == timer).copied().collect();
        running.iter().for_each(|key| _ = self.core.timers.remove(key));
        u64::from(!running.is_empty())
    }
}

/// A text as `scx_bpf_error` formats it.
pub fn formatted(machine: &Machine, format: u64, data: u64, size: u64) -> Answer<String> {
    let format = machine.text(Address(format), 1024)?;
    let data = match size {
        0 => Vec::new(),
        _ => machine.bytes(Address(data), size.min(96) as usize)?.to_vec(),
    };
    let words: Vec<u64> =
        data.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    machine.format(&format, &words)
}
