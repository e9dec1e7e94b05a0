//! The failures of a task, and their messages.

/// What a task could not do.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Failure {
    Class = 1,
    Affinity,
    Begin,
    TooMany,
    Pipe,
    File,
    Mutex,
    Cgroup,
    Socket,
    Eventfd,
    Epoll,
}

/// The message for a refused class, nice value or slice.
pub const REFUSED_CLASS: &str =
    "the kernel refuses the scheduling class, the nice value or the slice that a task requests";

impl Failure {
    /// The message for the number of a failure; `None` for 0, which is no failure.
    pub fn message(number: u32) -> Option<&'static str> {
        Some(match number {
            0 => return None,
            1 => REFUSED_CLASS,
            2 => "the kernel refuses the CPUs that a task requests",
            3 => "a task cannot be made",
            4 => "a task was to be forked more often than its count says",
            8 => "a task cannot be put into its control group",
            5 => "a pipe cannot be used",
            9 => "a socket cannot be used",
            10 => "an event counter cannot be used",
            11 => "a set of objects cannot be waited for",
            7 => {
                "a mutex that lets its holder inherit cannot be taken: the tasks wait for each \
                 other, or the kernel has no CONFIG_FUTEX_PI"
            }
            _ => "a file cannot be used",
        })
    }
}
