//! The helpers that need no kernel.

use crate::fault::{Fault, FaultKind};
use crate::machine::Machine;
use crate::machine::maps::error;
use crate::machine::outside::Outside;
use crate::memory::Address;
use crate::names::helper_name;
use crate::object::MapId;

/// The helpers that the machine does itself.
pub(crate) const BUILT_IN: [u32; 34] = [
    1, 2, 3, 4, 6, 25, 45, 87, 88, 89, 93, 94, 112, 113, 114, 115, 130, 131, 132, 133, 134, 153,
    154, 156, 157, 164, 165, 177, 181, 182, 194, 195, 210, 211,
];

/// The most rounds of `bpf_loop`.
const MOST_ROUNDS: u64 = 8 << 20;

impl Machine {
    /// Calls a helper: one of the machine, or one outside.
    pub(crate) fn helper<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        helper: u32,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let [first, second, third, fourth, fifth] = arguments;
        let done = |number: i64| Ok(number.cast_unsigned());
        match helper {
            1 => {
                let map = self.map_at(first)?;
                Ok(self.lookup_at(map, second, self.cpu)?.0)
            }
            2 => {
                let map = self.map_at(first)?;
                let (key, value) = self.sizes(map);
                let key = self.copy(second, key, "reads the key in")?;
                let value = self.copy(third, value, "reads the value in")?;
                done(self.map_update(map, &key, &value, fourth)?)
            }
            3 => {
                let map = self.map_at(first)?;
                let key = self.copy(second, self.sizes(map).0, "reads the key in")?;
                done(self.map_delete(map, &key)?)
            }
            195 => {
                let map = self.map_at(first)?;
                let cpu = u32::try_from(third).unwrap_or(u32::MAX);
                Ok(self.lookup_at(map, second, cpu)?.0)
            }
            87 => {
                let map = self.map_at(first)?;
                let value = self.copy(second, self.sizes(map).1, "reads the value in")?;
                done(self.queue_push(map, &value, third))
            }
            88 | 89 => self.pop(first, second, helper == 88),
            93 | 94 => Ok(0),
            156 | 210 => {
                let map = self.map_at(first)?;
                let existed = self.storage(map, Address(second), false)?;
                if !existed.is_null() || fourth & 1 == 0 {
                    return Ok(existed.0);
                }
                let value = self.storage(map, Address(second), true)?;
                if third != 0 && !value.is_null() {
                    let bytes = self.copy(third, self.sizes(map).1, "reads the value in")?;
                    self.write(value, &bytes)?;
                }
                Ok(value.0)
            }
            157 | 211 => {
                let map = self.map_at(first)?;
                done(self.storage_delete(map, Address(second)))
            }
            164 => self.for_each(outside, first, second, third),
            181 => self.rounds(outside, first, second, third),
            4 | 112 | 113 => self.probe(first, second as u32 as usize, third),
            45 | 114 | 115 => self.probe_text(first, second as u32 as usize, third),
            182 => self.compare(first, second as u32 as usize, third),
            194 => {
                let before = self.read_u64(Address(first))?;
                self.write_u64(Address(first), second)?;
                Ok(before)
            }
            153 | 154 => {
                let cpu = if helper == 154 { self.cpu } else { second as u32 };
                Ok(self.of_cpu(first, cpu).unwrap_or(Address::NULL).0)
            }
            25 | 130..=134 => self.records_of(outside, helper, arguments),
            6 | 165 | 177 => self.print(outside, helper, [first, second, third, fourth, fifth]),
            _ if self.has_helper.get(&helper) == Some(&true) => {
                outside.helper(self, helper, arguments)
            }
            _ => {
                let name = helper_name(helper).unwrap_or("of a name not known here");
                let what = format!("calls the helper {helper} (`{name}`), which is not there");
                Err(Fault::of(FaultKind::Missing, what))
            }
        }
    }

    /// The bytes of keys and values of a map.
    fn sizes(&self, map: MapId) -> (usize, usize) {
        let of = &self.maps[map.0 as usize].definition;
        (of.key_size as usize, of.value_size as usize)
    }

    fn copy(&self, address: u64, length: usize, verb: &str) -> Result<Vec<u8>, Fault> {
        let bytes = self.memory.bytes(address, length).map(<[u8]>::to_vec);
        bytes.ok_or_else(|| self.memory.why(address, length, verb))
    }

    fn pop(&mut self, map: u64, to: u64, takes: bool) -> Result<u64, Fault> {
        let map = self.map_at(map)?;
        let size = self.sizes(map).1;
        match self.queue_next(map, takes) {
            Some(value) => {
                self.write(Address(to), &value)?;
                Ok(0)
            }
            None => {
                // The kernel clears what it would have filled.
                self.write(Address(to), &vec![0; size])?;
                Ok(error::NOT_FOUND.cast_unsigned())
            }
        }
    }

    /// `bpf_for_each_map_elem`: calls back with map, key, value and context.
    fn for_each<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        address: u64,
        callback: u64,
        context: u64,
    ) -> Result<u64, Fault> {
        let map = self.map_at(address)?;
        let key_at = self.allocate("a key", self.sizes(map).0)?;
        let mut rounds = 0;
        let mut place = 0;
        let result = loop {
            let Some(key) = self.key_at(map, place) else { break Ok(rounds) };
            place += 1;
            let Some(key) = key else { continue };
            let value = self.map_lookup(map, &key)?;
            self.write(key_at, &key)?;
            rounds += 1;
            match self.call(outside, callback, [address, key_at.0, value.0, context, 0]) {
                Ok(0) => {}
                Ok(_) => break Ok(rounds),
                Err(fault) => break Err(fault),
            }
        };
        self.memory.free(key_at.tag());
        result
    }

    /// `bpf_loop`: calls back with the number of the round and the context.
    fn rounds<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        count: u64,
        callback: u64,
        context: u64,
    ) -> Result<u64, Fault> {
        let count = u64::from(count as u32);
        if count > MOST_ROUNDS {
            return Ok(error::TOO_BIG.cast_unsigned());
        }
        for round in 0..count {
            if self.call(outside, callback, [round, context, 0, 0, 0])? != 0 {
                return Ok(round + 1);
            }
        }
        Ok(count)
    }

    /// `bpf_probe_read_kernel`: an error, and zeros, where there is nothing to read.
    fn probe(&mut self, to: u64, size: usize, from: u64) -> Result<u64, Fault> {
        let bytes = self.memory.bytes(from, size).map(<[u8]>::to_vec);
        match bytes {
            Some(bytes) => {
                self.write(Address(to), &bytes)?;
                Ok(0)
            }
            None => {
                let Some(to_bytes) = self.memory.bytes_mut(to, size) else {
                    return Err(self.memory.why(to, size, "writes"));
                };
                to_bytes.fill(0);
                Ok(error::BAD_ADDRESS.cast_unsigned())
            }
        }
    }

    /// `bpf_probe_read_kernel_str`: the length with its zero, or an error.
    fn probe_text(&mut self, to: u64, size: usize, from: u64) -> Result<u64, Fault> {
        let region = self.memory.region((from >> 32) as u32);
        let rest = region.and_then(|region| region.get(from as u32 as usize..));
        let text = rest.filter(|rest| !rest.is_empty()).map(|rest| {
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
            rest[..end].to_vec()
        });
        if size == 0 {
            return Ok(0);
        }
        let Some(mut text) = text else {
            let zeros = self.memory.bytes_mut(to, size);
            let Some(zeros) = zeros else { return Err(self.memory.why(to, size, "writes")) };
            zeros.fill(0);
            return Ok(error::BAD_ADDRESS.cast_unsigned());
        };
        text.truncate(size - 1);
        text.push(0);
        if self.memory.bytes_mut(to, size).is_none() {
            return Err(self.memory.why(to, size, "writes"));
        }
        self.write(Address(to), &text)?;
        Ok(text.len() as u64)
    }

    /// `bpf_strncmp`: as in C, with the second text in read-only memory.
    fn compare(&self, first: u64, size: usize, second: u64) -> Result<u64, Fault> {
        let first = self.bytes(Address(first), size)?;
        for (place, &byte) in first.iter().enumerate() {
            let other = self.read_u8(Address(second).plus(place as u64))?;
            if byte != other || byte == 0 {
                return Ok((i64::from(byte) - i64::from(other)).cast_unsigned());
            }
        }
        Ok(0)
    }

    /// Ring buffers and perf event arrays: records go to the outside.
    fn records_of<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        helper: u32,
        [first, second, third, fourth, fifth]: [u64; 5],
    ) -> Result<u64, Fault> {
        match helper {
            25 => {
                let map = self.map_at(second)?;
                let bytes = self.copy(fourth, fifth as u32 as usize, "reads")?;
                self.hand(outside, map, &bytes);
                Ok(0)
            }
            130 => {
                let map = self.map_at(first)?;
                let bytes = self.copy(second, third as u32 as usize, "reads")?;
                self.hand(outside, map, &bytes);
                Ok(0)
            }
            131 => {
                let map = self.map_at(first)?;
                let most = u64::from(self.maps[map.0 as usize].definition.max_entries);
                if second == 0 || second > most {
                    return Ok(0);
                }
                let record = self.allocate("a record", second as usize)?;
                self.reserved.insert(record.tag(), map);
                Ok(record.0)
            }
            132 | 133 => {
                let Some(map) = self.reserved.remove(&Address(first).tag()) else {
                    let what = format!("hands on {first:#x}, which is no record");
                    return Err(Fault::of(FaultKind::Argument, what));
                };
                if helper == 132 {
                    let bytes = self.memory.region(Address(first).tag()).unwrap_or_default();
                    let bytes = bytes.to_vec();
                    self.hand(outside, map, &bytes);
                }
                self.memory.free(Address(first).tag());
                Ok(0)
            }
            _ => {
                let map = self.map_at(first)?;
                let size = u64::from(self.maps[map.0 as usize].definition.max_entries);
                // Nothing waits, as each record is taken at once.
                Ok(if second == 1 { size } else { 0 })
            }
        }
    }

    fn hand<O: Outside + ?Sized>(&mut self, outside: &mut O, map: MapId, bytes: &[u8]) {
        self.records += 1;
        outside.record(self, map, bytes);
    }
}
