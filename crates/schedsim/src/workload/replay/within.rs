//! What a sleep was in that nothing explains.

/// What a sleep was in that a token stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Within {
    /// No recorded call: a page fault, a lock of the kernel, or a call that is not recorded.
    Nothing,
    /// A call that is not understood.
    Call,
    /// A call on a futex whose use is not known.
    Futex,
    /// A call on a pipe, a socket or an event counter of which one side is missing, or whose order
    /// tokens decide.
    Carrier,
    /// A wait for several objects.
    Set,
    /// A wait for a signal, or for the end of a task.
    Process,
    /// A call on a file.
    File,
}

impl Within {
    /// All.
    const ALL: [Within; 7] = [
        Within::Nothing,
        Within::Call,
        Within::Futex,
        Within::Carrier,
        Within::Set,
        Within::Process,
        Within::File,
    ];

    pub(super) fn from_bits(bits: u64) -> Within {
        Within::ALL.get(bits as usize).copied().unwrap_or(Within::Nothing)
    }

    /// In words, behind "a token".
    pub fn name(self) -> &'static str {
        match self {
            Within::Nothing => "outside recorded calls",
            Within::Call => "in calls that are not understood",
            Within::Futex => "on futexes",
            Within::Carrier => "on pipes, sockets and event counters",
            Within::Set => "in waits for several objects",
            Within::Process => "in waits for signals and tasks",
            Within::File => "on files",
        }
    }
}
