//! The kinds of phases, which are counted for each task.

/// A kind of phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Kind {
    Yield,
    Run,
    Sleep,
    Timer,
    Lock,
    Unlock,
    Wait,
    Signal,
    Barrier,
    Write,
    Read,
    Send,
    Receive,
    Post,
    Take,
    Serve,
    Poll,
    Watch,
    Io,
    Fork,
    Join,
}

/// The names of the kinds, in the order of [`Kind`].
pub const KINDS: [&str; 21] = [
    "yield", "run", "sleep", "timer", "lock", "unlock", "wait", "signal", "barrier", "write",
    "read", "send", "receive", "post", "take", "serve", "poll", "watch", "io", "fork", "join",
];
