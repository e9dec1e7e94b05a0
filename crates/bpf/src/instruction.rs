//! Instructions as the machine runs them, and how they are made from those of an object.

/// What an instruction does. `a` is the register `target`, `b` the register `source` plus the
/// `immediate`: of the two, one is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Not an instruction: the second half of a long one, or between functions.
    Nothing,
    /// Cannot be run: `immediate` is the number of the reason.
    Refused,
    /// `a = b`, of two slots.
    Long,
    /// As `Long`, with the address of the link `immediate`, which is set when a machine is made.
    Linked,
    Add64,
    Sub64,
    Mul64,
    Div64,
    SignedDiv64,
    Or64,
    And64,
    ShiftLeft64,
    ShiftRight64,
    ShiftSigned64,
    Negate64,
    Mod64,
    SignedMod64,
    Xor64,
    Move64,
    Add32,
    Sub32,
    Mul32,
    Div32,
    SignedDiv32,
    Or32,
    And32,
    ShiftLeft32,
    ShiftRight32,
    ShiftSigned32,
    Negate32,
    Mod32,
    SignedMod32,
    Xor32,
    Move32,
    /// `a = b`, of which the lowest bits count and are extended by their sign.
    Extend8To64,
    Extend16To64,
    Extend32To64,
    Extend8To32,
    Extend16To32,
    Low16,
    Low32,
    Swap16,
    Swap32,
    Swap64,
    Jump,
    Equal64,
    Greater64,
    GreaterEqual64,
    Set64,
    NotEqual64,
    SignedGreater64,
    SignedGreaterEqual64,
    Less64,
    LessEqual64,
    SignedLess64,
    SignedLessEqual64,
    Equal32,
    Greater32,
    GreaterEqual32,
    Set32,
    NotEqual32,
    SignedGreater32,
    SignedGreaterEqual32,
    Less32,
    LessEqual32,
    SignedLess32,
    SignedLessEqual32,
    /// Jumps when the loop has gone round too often.
    MayGoto,
    /// Loads from `b + offset`.
    Load8,
    Load16,
    Load32,
    Load64,
    LoadSigned8,
    LoadSigned16,
    LoadSigned32,
    /// Stores `b` to `a + offset`.
    Store8,
    Store16,
    Store32,
    Store64,
    /// The kind is `extra`.
    Atomic32,
    Atomic64,
    /// Calls the instruction at `immediate`.
    Call,
    /// Calls the function `immediate` of the outside.
    Function,
    /// Calls the helper `immediate`.
    Helper,
    Exit,
}

/// An instruction as the machine runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub code: Code,
    pub target: u8,
    pub source: u8,
    /// Of an atomic, what it does.
    pub extra: u8,
    /// Of loads and stores bytes, of jumps instructions from the next.
    pub offset: i32,
    pub immediate: i64,
}

/// The register that is always 0.
pub(crate) const ZERO: u8 = 15;

/// An instruction as it stands in the object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw {
    pub opcode: u8,
    pub target: u8,
    pub source: u8,
    pub offset: i16,
    pub immediate: i32,
}

impl Raw {
    /// From eight bytes.
    pub fn from(bytes: [u8; 8]) -> Raw {
        let [opcode, registers, low, high, immediate @ ..] = bytes;
        Raw {
            opcode,
            target: registers & 15,
            source: registers >> 4,
            offset: i16::from_le_bytes([low, high]),
            immediate: i32::from_le_bytes(immediate),
        }
    }

    /// Whether it takes the next slot too.
    pub fn is_long(self) -> bool {
        self.opcode == 0x18
    }

    /// Whether it calls a function of the object, or one of the kernel by a relocation.
    pub fn is_call(self) -> bool {
        self.opcode == 0x85 && self.source != 0
    }
}

/// Atomics that are no operation with or without result: exchange, and compare and exchange.
pub(crate) const EXCHANGE: u8 = 0xe1;
/// See [`EXCHANGE`].
pub(crate) const COMPARE: u8 = 0xf1;

/// The instruction for the machine, or why it cannot be run. Calls and long loads with relocations
/// are made elsewhere.
pub(crate) fn decode(raw: Raw, next: Option<Raw>) -> Result<Instruction, &'static str> {
    if raw.target > 10 || raw.source > 10 {
        return Err("names a register above r10");
    }
    let plain = Instruction {
        code: Code::Nothing,
        target: raw.target,
        source: raw.source,
        extra: 0,
        offset: i32::from(raw.offset),
        immediate: 0,
    };
    let made = match raw.opcode & 7 {
        0 => long(raw, next, plain),
        1 => load(raw, plain),
        2 if raw.opcode & 0xe0 == 0x60 => Ok(Instruction {
            code: store_code(raw.opcode),
            source: ZERO,
            immediate: i64::from(raw.immediate),
            ..plain
        }),
        3 if raw.opcode & 0xe0 == 0x60 => Ok(Instruction { code: store_code(raw.opcode), ..plain }),
        3 if raw.opcode & 0xe0 == 0xc0 => atomic(raw, plain),
        4 => arithmetic(raw, false, plain),
        5 => jump(raw, true, plain),
        6 => jump(raw, false, plain),
        7 => arithmetic(raw, true, plain),
        _ => Err("stores in a way that is not known"),
    }?;
    if writes(made.code) && made.target == 10 {
        return Err("writes the frame pointer");
    }
    Ok(made)
}

/// Whether the register `target` is written.
fn writes(code: Code) -> bool {
    let code = code as u8;
    (code >= Code::Long as u8 && code <= Code::Swap64 as u8)
        || (code >= Code::Load8 as u8 && code <= Code::LoadSigned32 as u8)
}

fn long(raw: Raw, next: Option<Raw>, plain: Instruction) -> Result<Instruction, &'static str> {
    if !raw.is_long() {
        return Err("loads from a packet");
    }
    let next = next.filter(|next| next.opcode == 0).ok_or("is cut: its second half is missing")?;
    let low = u64::from(raw.immediate.cast_unsigned());
    let value = low | u64::from(next.immediate.cast_unsigned()) << 32;
    if raw.source != 0 {
        return Err("loads an address that only a loader knows, and has no relocation");
    }
    Ok(Instruction { code: Code::Long, source: ZERO, immediate: value.cast_signed(), ..plain })
}

fn load(raw: Raw, plain: Instruction) -> Result<Instruction, &'static str> {
    let code = match raw.opcode & 0xf8 {
        0x60 => Code::Load32,
        0x68 => Code::Load16,
        0x70 => Code::Load8,
        0x78 => Code::Load64,
        0x80 => Code::LoadSigned32,
        0x88 => Code::LoadSigned16,
        0x90 => Code::LoadSigned8,
        _ => return Err("loads in a way that is not known"),
    };
    Ok(Instruction { code, ..plain })
}

fn store_code(opcode: u8) -> Code {
    match opcode & 0x18 {
        0x00 => Code::Store32,
        0x08 => Code::Store16,
        0x10 => Code::Store8,
        _ => Code::Store64,
    }
}

fn atomic(raw: Raw, plain: Instruction) -> Result<Instruction, &'static str> {
    let unknown = Err("is an atomic that is not known");
    match raw.immediate {
        0x100 => return load(Raw { opcode: raw.opcode & 0x1f | 0x60, ..raw }, plain),
        0x110 => return Ok(Instruction { code: store_code(raw.opcode), ..plain }),
        _ => {}
    }
    let code = match raw.opcode & 0x18 {
        0x00 => Code::Atomic32,
        0x18 => Code::Atomic64,
        _ => return unknown,
    };
    let Ok(extra) = u8::try_from(raw.immediate) else { return unknown };
    let is_known = matches!(extra & !1, 0x00 | 0x40 | 0x50 | 0xa0);
    if !is_known && !matches!(extra, EXCHANGE | COMPARE) {
        return unknown;
    }
    if extra & 1 != 0 && extra != COMPARE && raw.source == 10 {
        return Err("writes the frame pointer");
    }
    Ok(Instruction { code, extra, ..plain })
}

fn arithmetic(raw: Raw, wide: bool, plain: Instruction) -> Result<Instruction, &'static str> {
    let by_register = raw.opcode & 8 != 0;
    if raw.opcode & 0xf0 == 0xd0 {
        let code = match (wide, by_register, raw.immediate) {
            (false, false, 16) => Code::Low16,
            (false, false, 32) => Code::Low32,
            // Nothing happens to 64 bits: a register moves to itself.
            (false, false, 64) => {
                return Ok(Instruction { code: Code::Move64, source: raw.target, ..plain });
            }
            (false, true, 16) | (true, false, 16) => Code::Swap16,
            (false, true, 32) | (true, false, 32) => Code::Swap32,
            (false, true, 64) | (true, false, 64) => Code::Swap64,
            _ => return Err("swaps bytes in a way that is not known"),
        };
        return Ok(Instruction { code, ..plain });
    }
    let pick = |narrow: Code, other: Code| if wide { other } else { narrow };
    let code = match (raw.opcode & 0xf0, raw.offset) {
        (0x00, 0) => pick(Code::Add32, Code::Add64),
        (0x10, 0) => pick(Code::Sub32, Code::Sub64),
        (0x20, 0) => pick(Code::Mul32, Code::Mul64),
        (0x30, 0) => pick(Code::Div32, Code::Div64),
        (0x30, 1) => pick(Code::SignedDiv32, Code::SignedDiv64),
        (0x40, 0) => pick(Code::Or32, Code::Or64),
        (0x50, 0) => pick(Code::And32, Code::And64),
        (0x60, 0) => pick(Code::ShiftLeft32, Code::ShiftLeft64),
        (0x70, 0) => pick(Code::ShiftRight32, Code::ShiftRight64),
        (0x80, 0) => pick(Code::Negate32, Code::Negate64),
        (0x90, 0) => pick(Code::Mod32, Code::Mod64),
        (0x90, 1) => pick(Code::SignedMod32, Code::SignedMod64),
        (0xa0, 0) => pick(Code::Xor32, Code::Xor64),
        (0xb0, 0) => pick(Code::Move32, Code::Move64),
        (0xb0, 8) if by_register => pick(Code::Extend8To32, Code::Extend8To64),
        (0xb0, 16) if by_register => pick(Code::Extend16To32, Code::Extend16To64),
        (0xb0, 32) if by_register && wide => Code::Extend32To64,
        (0xb0, 1) if by_register && wide => {
            return Err("changes the address space, for an arena: arenas are not there");
        }
        (0xc0, 0) => pick(Code::ShiftSigned32, Code::ShiftSigned64),
        _ => return Err("calculates in a way that is not known"),
    };
    Ok(operand(raw, Instruction { code, ..plain }))
}

/// With its operand: a register or a number.
fn operand(raw: Raw, instruction: Instruction) -> Instruction {
    if raw.opcode & 8 != 0 {
        return instruction;
    }
    Instruction { source: ZERO, immediate: i64::from(raw.immediate), ..instruction }
}

fn jump(raw: Raw, wide: bool, plain: Instruction) -> Result<Instruction, &'static str> {
    let pick = |narrow: Code, other: Code| if wide { other } else { narrow };
    let code = match raw.opcode & 0xf0 {
        0x00 if raw.opcode == 0x05 => Code::Jump,
        0x00 if raw.opcode == 0x06 => {
            return Ok(Instruction { code: Code::Jump, offset: raw.immediate, ..plain });
        }
        0x80 if raw.opcode == 0x85 && raw.source == 0 => {
            let immediate = i64::from(raw.immediate);
            return Ok(Instruction { code: Code::Helper, immediate, ..plain });
        }
        0x90 if raw.opcode == 0x95 => Code::Exit,
        0xe0 if raw.opcode == 0xe5 && raw.source == 0 => Code::MayGoto,
        0x10 => pick(Code::Equal32, Code::Equal64),
        0x20 => pick(Code::Greater32, Code::Greater64),
        0x30 => pick(Code::GreaterEqual32, Code::GreaterEqual64),
        0x40 => pick(Code::Set32, Code::Set64),
        0x50 => pick(Code::NotEqual32, Code::NotEqual64),
        0x60 => pick(Code::SignedGreater32, Code::SignedGreater64),
        0x70 => pick(Code::SignedGreaterEqual32, Code::SignedGreaterEqual64),
        0xa0 => pick(Code::Less32, Code::Less64),
        0xb0 => pick(Code::LessEqual32, Code::LessEqual64),
        0xc0 => pick(Code::SignedLess32, Code::SignedLess64),
        0xd0 => pick(Code::SignedLessEqual32, Code::SignedLessEqual64),
        _ => return Err("jumps or calls in a way that is not known"),
    };
    Ok(operand(raw, Instruction { code, ..plain }))
}

/// Whether it may continue at another place than the next.
pub(crate) fn jumps(code: Code) -> bool {
    code as u8 >= Code::Jump as u8 && code as u8 <= Code::MayGoto as u8
}
