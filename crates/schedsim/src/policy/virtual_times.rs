//! What fair policies state of their tasks, for those who compare it.

/// The virtual times of a task, in ns of nice 0. Their origin is the policy's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualTimes {
    /// Its virtual run time.
    pub vruntime: i64,
    /// When its request is due and where it stands to the others, if the policy asks for that.
    pub entitlement: Option<Entitlement>,
}

/// EEVDF's half of [`VirtualTimes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entitlement {
    /// The virtual time at which the request is due.
    pub deadline: i64,
    /// The mean of all virtual run times by weight, rounded down, minus its own.
    pub lag: i64,
    /// Whether the lag, before rounding, is not negative.
    pub is_eligible: bool,
}

/// What a kernel keeps of a task under sched_ext; times are in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InKernel {
    /// The rest of its slice (`scx.slice`).
    pub slice: u64,
    /// Its virtual time (`scx.dsq_vtime`). The origin is the scheduler's own.
    pub vtime: u64,
    /// Its flags (`PF_…`), as that it is the kernel's own.
    pub flags: u64,
}

/// What a sleeper keeps from before a run, in virtual ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its virtual run time, from the queue's `min_vruntime` on (CFS).
    pub vruntime: i64,
    /// The lag with which it left (EEVDF).
    pub lag: i64,
}
