//! The loop that runs instructions.

use crate::fault::{Fault, FaultKind};
use crate::instruction::{COMPARE, Code, EXCHANGE, Instruction};
use crate::lines::Place;
use crate::machine::outside::{Called, Outside};
use crate::machine::{FRAME, Machine};
use crate::memory::Address;
use crate::object::FunctionId;
use std::sync::Arc;

/// How often all loops with `may_goto` of a run may go round.
const ROUNDS: u32 = 8 << 20;

/// What a call keeps of its caller.
#[derive(Clone, Copy)]
pub(crate) struct Saved {
    /// Where it continues.
    at: usize,
    /// Its registers r6 to r10.
    registers: [u64; 5],
}

impl Machine {
    /// Runs instructions from `start` until the function returns.
    pub(crate) fn execute<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        start: usize,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let code = Arc::clone(&self.code);
        let (depth, saved) = (self.depth, self.saved.len());
        let frame = self.frame().map_err(|fault| self.locate(fault, start))?;
        self.depth += 1;
        let mut registers = [0; 16];
        registers[1..6].copy_from_slice(&arguments);
        registers[10] = Address::of(frame).plus(FRAME as u64).0;
        let result = self.interpret(outside, &code, start, &mut registers, saved);
        self.depth = depth;
        self.saved.truncate(saved);
        result
    }

    fn interpret<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        code: &[Instruction],
        start: usize,
        registers: &mut [u64; 16],
        bottom: usize,
    ) -> Result<u64, Fault> {
        let mut at = start;
        let mut left = self.left;
        let mut rounds = ROUNDS;
        loop {
            let Some(&Instruction { code, target, source, extra, offset, immediate }) =
                code.get(at)
            else {
                return Err(Fault::of(FaultKind::Missing, "runs out of its code"));
            };
            if left == 0 {
                self.left = 0;
                return Err(self.exhausted(at));
            }
            left -= 1;
            outside.step(self, Place(at));
            let target = usize::from(target & 15);
            let a = registers[target];
            let b = registers[usize::from(source & 15)].wrapping_add(immediate as u64);
            let (low_a, low_b) = (a as u32, b as u32);
            macro_rules! set {
                ($value:expr) => {
                    registers[target] = $value
                };
            }
            macro_rules! branch {
                ($condition:expr) => {
                    if $condition {
                        at = at.wrapping_add_signed(offset as isize);
                    }
                };
            }
            macro_rules! load {
                ($kind:ty, $wide:ty) => {{
                    let address = b.wrapping_add_signed(i64::from(offset));
                    match self.memory.load(address) {
                        Some(bytes) => set!(<$kind>::from_le_bytes(bytes) as $wide as u64),
                        None => {
                            self.left = left;
                            self.failed_load(at, address, size_of::<$kind>())?;
                            set!(0);
                        }
                    }
                }};
            }
            macro_rules! store {
                ($kind:ty) => {{
                    let address = a.wrapping_add_signed(i64::from(offset));
                    if self.memory.store(address, (b as $kind).to_le_bytes()).is_none() {
                        self.left = left;
                        return Err(self.failed(at, address, size_of::<$kind>(), "writes"));
                    }
                    outside.stores(self, Address(address), size_of::<$kind>());
                }};
            }
            match code {
                Code::Long => {
                    set!(b);
                    at += 1;
                }
                Code::Add64 => set!(a.wrapping_add(b)),
                Code::Sub64 => set!(a.wrapping_sub(b)),
                Code::Mul64 => set!(a.wrapping_mul(b)),
                Code::Div64 => set!(a.checked_div(b).unwrap_or(0)),
                Code::SignedDiv64 => set!(match b {
                    0 => 0,
                    _ => a.cast_signed().wrapping_div(b.cast_signed()) as u64,
                }),
                Code::Or64 => set!(a | b),
                Code::And64 => set!(a & b),
                Code::ShiftLeft64 => set!(a.wrapping_shl(low_b)),
                Code::ShiftRight64 => set!(a.wrapping_shr(low_b)),
                Code::ShiftSigned64 => set!(a.cast_signed().wrapping_shr(low_b) as u64),
                Code::Negate64 => set!(a.wrapping_neg()),
                Code::Mod64 => set!(a.checked_rem(b).unwrap_or(a)),
                Code::SignedMod64 => set!(match b {
                    0 => a,
                    _ => a.cast_signed().wrapping_rem(b.cast_signed()) as u64,
                }),
                Code::Xor64 => set!(a ^ b),
                Code::Move64 => set!(b),
                Code::Add32 => set!(u64::from(low_a.wrapping_add(low_b))),
                Code::Sub32 => set!(u64::from(low_a.wrapping_sub(low_b))),
                Code::Mul32 => set!(u64::from(low_a.wrapping_mul(low_b))),
                Code::Div32 => set!(u64::from(low_a.checked_div(low_b).unwrap_or(0))),
                Code::SignedDiv32 => set!(match low_b {
                    0 => 0,
                    _ => u64::from(low_a.cast_signed().wrapping_div(low_b.cast_signed()) as u32),
                }),
                Code::Or32 => set!(u64::from(low_a | low_b)),
                Code::And32 => set!(u64::from(low_a & low_b)),
                Code::ShiftLeft32 => set!(u64::from(low_a.wrapping_shl(low_b))),
                Code::ShiftRight32 => set!(u64::from(low_a.wrapping_shr(low_b))),
                Code::ShiftSigned32 => {
                    set!(u64::from(low_a.cast_signed().wrapping_shr(low_b) as u32));
                }
                Code::Negate32 => set!(u64::from(low_a.wrapping_neg())),
                Code::Mod32 => set!(u64::from(low_a.checked_rem(low_b).unwrap_or(low_a))),
                Code::SignedMod32 => set!(match low_b {
                    0 => u64::from(low_a),
                    _ => u64::from(low_a.cast_signed().wrapping_rem(low_b.cast_signed()) as u32),
                }),
                Code::Xor32 => set!(u64::from(low_a ^ low_b)),
                Code::Move32 => set!(u64::from(low_b)),
                Code::Extend8To64 => set!(b as i8 as i64 as u64),
                Code::Extend16To64 => set!(b as i16 as i64 as u64),
                Code::Extend32To64 => set!(b as i32 as i64 as u64),
                Code::Extend8To32 => set!(u64::from(b as i8 as i32 as u32)),
                Code::Extend16To32 => set!(u64::from(b as i16 as i32 as u32)),
                Code::Low16 => set!(a & 0xffff),
                Code::Low32 => set!(u64::from(low_a)),
                Code::Swap16 => set!(u64::from((a as u16).swap_bytes())),
                Code::Swap32 => set!(u64::from(low_a.swap_bytes())),
                Code::Swap64 => set!(a.swap_bytes()),
                Code::Jump => branch!(true),
                Code::Equal64 => branch!(a == b),
                Code::Greater64 => branch!(a > b),
                Code::GreaterEqual64 => branch!(a >= b),
                Code::Set64 => branch!(a & b != 0),
                Code::NotEqual64 => branch!(a != b),
                Code::SignedGreater64 => branch!(a.cast_signed() > b.cast_signed()),
                Code::SignedGreaterEqual64 => branch!(a.cast_signed() >= b.cast_signed()),
                Code::Less64 => branch!(a < b),
                Code::LessEqual64 => branch!(a <= b),
                Code::SignedLess64 => branch!(a.cast_signed() < b.cast_signed()),
                Code::SignedLessEqual64 => branch!(a.cast_signed() <= b.cast_signed()),
                Code::Equal32 => branch!(low_a == low_b),
                Code::Greater32 => branch!(low_a > low_b),
                Code::GreaterEqual32 => branch!(low_a >= low_b),
                Code::Set32 => branch!(low_a & low_b != 0),
                Code::NotEqual32 => branch!(low_a != low_b),
                Code::SignedGreater32 => branch!(low_a.cast_signed() > low_b.cast_signed()),
                Code::SignedGreaterEqual32 => branch!(low_a.cast_signed() >= low_b.cast_signed()),
                Code::Less32 => branch!(low_a < low_b),
                Code::LessEqual32 => branch!(low_a <= low_b),
                Code::SignedLess32 => branch!(low_a.cast_signed() < low_b.cast_signed()),
                Code::SignedLessEqual32 => branch!(low_a.cast_signed() <= low_b.cast_signed()),
                Code::MayGoto => match rounds {
                    0 => branch!(true),
                    _ => rounds -= 1,
                },
                Code::Load8 => load!(u8, u64),
                Code::Load16 => load!(u16, u64),
                Code::Load32 => load!(u32, u64),
                Code::Load64 => load!(u64, u64),
                Code::LoadSigned8 => load!(i8, i64),
                Code::LoadSigned16 => load!(i16, i64),
                Code::LoadSigned32 => load!(i32, i64),
                Code::Store8 => store!(u8),
                Code::Store16 => store!(u16),
                Code::Store32 => store!(u32),
                Code::Store64 => store!(u64),
                Code::Atomic32 | Code::Atomic64 => {
                    let address = a.wrapping_add_signed(i64::from(offset));
                    let is_wide = code == Code::Atomic64;
                    let fetched = if is_wide {
                        self.atomic64(address, extra, b, registers[0])
                    } else {
                        self.atomic32(address, extra, low_b, registers[0] as u32)
                    };
                    let Some(before) = fetched else {
                        let size = if is_wide { 8 } else { 4 };
                        self.left = left;
                        return Err(self.failed(at, address, size, "changes"));
                    };
                    outside.stores(self, Address(address), if is_wide { 8 } else { 4 });
                    if extra == COMPARE {
                        registers[0] = before;
                    } else if extra & 1 != 0 {
                        registers[usize::from(source & 15)] = before;
                    }
                }
                Code::Call => {
                    let frame = match self.frame() {
                        Ok(frame) => frame,
                        Err(fault) => {
                            self.left = left;
                            return Err(self.locate(fault, at));
                        }
                    };
                    self.depth += 1;
                    let kept = [6, 7, 8, 9, 10].map(|register: usize| registers[register]);
                    self.saved.push(Saved { at: at + 1, registers: kept });
                    registers[10] = Address::of(frame).plus(FRAME as u64).0;
                    at = immediate as usize;
                    outside.calls(self, Called::Own(Place(at)), first_five(registers));
                    continue;
                }
                Code::Function | Code::Helper => {
                    self.left = left;
                    let arguments = first_five(registers);
                    let number = immediate as u32;
                    let called = match code {
                        Code::Helper => Called::Helper(number),
                        _ => Called::Function(FunctionId(number)),
                    };
                    outside.calls(self, called, arguments);
                    let result = if code == Code::Helper {
                        self.helper(outside, number, arguments)
                    } else {
                        self.kernel_function(outside, FunctionId(number), arguments)
                    };
                    match result {
                        Ok(value) => registers[0] = value,
                        Err(fault) => return Err(self.locate(fault, at)),
                    }
                    outside.returns(self, registers[0]);
                    left = self.left;
                }
                Code::Exit => {
                    if self.saved.len() <= bottom {
                        self.left = left;
                        return Ok(registers[0]);
                    }
                    if let Some(saved) = self.saved.pop() {
                        registers[6..11].copy_from_slice(&saved.registers);
                        self.depth -= 1;
                        at = saved.at;
                        outside.returns(self, registers[0]);
                        continue;
                    }
                }
                Code::Nothing | Code::Refused | Code::Linked => {
                    self.left = left;
                    return Err(self.refused(at, code, immediate));
                }
            }
            at += 1;
        }
    }

    fn kernel_function<O: Outside + ?Sized>(
        &mut self,
        outside: &mut O,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        if !self.has_function[function.0 as usize] {
            let name = &self.object.functions()[function.0 as usize].name;
            let what = format!("calls the kernel function `{name}`, which is not there");
            return Err(Fault::of(FaultKind::Missing, what));
        }
        outside.function(self, function, arguments)
    }

    fn atomic64(&mut self, address: u64, kind: u8, value: u64, expected: u64) -> Option<u64> {
        let before = u64::from_le_bytes(self.memory.load(address)?);
        let after = after_atomic(kind, before, value, expected);
        self.memory.store(address, after.to_le_bytes())?;
        Some(before)
    }

    fn atomic32(&mut self, address: u64, kind: u8, value: u32, expected: u32) -> Option<u64> {
        let before = u32::from_le_bytes(self.memory.load(address)?);
        let after = after_atomic(kind, before.into(), value.into(), expected.into()) as u32;
        self.memory.store(address, after.to_le_bytes())?;
        Some(u64::from(before))
    }

    #[cold]
    fn exhausted(&self, at: usize) -> Fault {
        let what = format!("goes round in circles: it ran more than {} instructions", self.budget);
        self.locate(Fault::of(FaultKind::Budget, what), at)
    }

    #[cold]
    fn failed(&self, at: usize, address: u64, size: usize, verb: &str) -> Fault {
        self.locate(self.memory.why(address, size, verb), at)
    }

    #[cold]
    fn failed_load(&self, at: usize, address: u64, size: usize) -> Result<(), Fault> {
        if self.null_reads_are_zero && address >> 32 == 0 {
            return Ok(());
        }
        Err(self.failed(at, address, size, "reads"))
    }

    #[cold]
    fn refused(&self, at: usize, code: Code, immediate: i64) -> Fault {
        let why = match code {
            Code::Refused => self.object.refusals.get(immediate as usize).map(String::as_str),
            _ => None,
        };
        let why = why.unwrap_or("jumps into the middle of an instruction");
        self.locate(Fault::of(FaultKind::Missing, why), at)
    }
}

/// The arguments of a call.
#[inline(always)]
fn first_five(registers: &[u64; 16]) -> [u64; 5] {
    [1, 2, 3, 4, 5].map(|register: usize| registers[register])
}

/// What memory holds after an atomic instruction. One of 32 bits keeps the lower half.
fn after_atomic(kind: u8, before: u64, value: u64, expected: u64) -> u64 {
    match kind {
        EXCHANGE => value,
        COMPARE if before == expected => value,
        COMPARE => before,
        _ => match kind & !1 {
            0x00 => before.wrapping_add(value),
            0x40 => before | value,
            0x50 => before & value,
            _ => before ^ value,
        },
    }
}
