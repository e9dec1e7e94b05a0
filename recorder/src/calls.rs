//! What each system call is, for the BPF program: its `enum call_class`.

use libc::{c_long, *};

/// The number of calls that the BPF program knows.
pub const CALLS: usize = 512;

const DESCRIPTOR: u8 = 1;
const CREATES: u8 = 2;
const CREATES_PAIR: u8 = 3;
const ACCEPTS: u8 = 4;
const PLAIN: u8 = 16;
const SOCKETPAIR: u8 = 17;
const CONNECTS: u8 = 18;
const WAITS: u8 = 19;
const SELECT: u8 = 20;
const PSELECT: u8 = 21;
const ATTRIBUTES: u8 = 22;

/// Calls of every architecture: those that may block, create, close or duplicate descriptors, and
/// those that change a task's settings.
const EVERYWHERE: &[(c_long, u8)] = &[
    (SYS_read, DESCRIPTOR),
    (SYS_write, DESCRIPTOR),
    (SYS_readv, DESCRIPTOR),
    (SYS_writev, DESCRIPTOR),
    (SYS_pread64, DESCRIPTOR),
    (SYS_pwrite64, DESCRIPTOR),
    (SYS_preadv, DESCRIPTOR),
    (SYS_pwritev, DESCRIPTOR),
    (SYS_preadv2, DESCRIPTOR),
    (SYS_pwritev2, DESCRIPTOR),
    (SYS_sendto, DESCRIPTOR),
    (SYS_recvfrom, DESCRIPTOR),
    (SYS_sendmsg, DESCRIPTOR),
    (SYS_recvmsg, DESCRIPTOR),
    (SYS_sendmmsg, DESCRIPTOR),
    (SYS_recvmmsg, DESCRIPTOR),
    (SYS_sendfile, DESCRIPTOR),
    (SYS_splice, DESCRIPTOR),
    (SYS_tee, DESCRIPTOR),
    (SYS_connect, CONNECTS),
    (SYS_shutdown, DESCRIPTOR),
    (SYS_fsync, DESCRIPTOR),
    (SYS_fdatasync, DESCRIPTOR),
    (SYS_fallocate, DESCRIPTOR),
    (SYS_ftruncate, DESCRIPTOR),
    (SYS_flock, DESCRIPTOR),
    (SYS_fcntl, DESCRIPTOR),
    (SYS_ioctl, DESCRIPTOR),
    (SYS_close, DESCRIPTOR),
    (SYS_dup, DESCRIPTOR),
    (SYS_dup3, DESCRIPTOR),
    (SYS_openat, CREATES),
    (SYS_socket, CREATES),
    (SYS_eventfd2, CREATES),
    (SYS_epoll_create1, CREATES),
    (SYS_timerfd_create, CREATES),
    (SYS_signalfd4, CREATES),
    (SYS_pidfd_open, CREATES),
    (SYS_pipe2, CREATES_PAIR),
    (SYS_socketpair, SOCKETPAIR),
    (SYS_accept, ACCEPTS),
    (SYS_accept4, ACCEPTS),
    (SYS_futex, 5),
    (SYS_epoll_ctl, 6),
    (SYS_epoll_pwait, 7),
    (SYS_ppoll, 9),
    (SYS_nanosleep, 10),
    (SYS_clock_nanosleep, 11),
    (SYS_timerfd_settime, 12),
    (SYS_sched_setaffinity, 13),
    (SYS_sched_setscheduler, 14),
    (SYS_setpriority, 15),
    (SYS_sched_setparam, PLAIN),
    (SYS_sched_setattr, ATTRIBUTES),
    (SYS_sched_yield, PLAIN),
    (SYS_pselect6, PSELECT),
    (SYS_wait4, WAITS),
    (SYS_waitid, PLAIN),
    (SYS_rt_sigtimedwait, PLAIN),
    (SYS_rt_sigsuspend, PLAIN),
    (SYS_msgsnd, PLAIN),
    (SYS_msgrcv, PLAIN),
    (SYS_semop, PLAIN),
    (SYS_semtimedop, PLAIN),
    (SYS_mq_timedsend, PLAIN),
    (SYS_mq_timedreceive, PLAIN),
    (SYS_sync, PLAIN),
    (SYS_unlinkat, PLAIN),
    (SYS_renameat2, PLAIN),
    (SYS_mkdirat, PLAIN),
    (SYS_truncate, PLAIN),
    (SYS_io_uring_enter, PLAIN),
];

/// Calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const HERE: &[(c_long, u8)] = &[
    (SYS_open, CREATES),
    (SYS_creat, CREATES),
    (SYS_eventfd, CREATES),
    (SYS_epoll_create, CREATES),
    (SYS_signalfd, CREATES),
    (SYS_pipe, CREATES_PAIR),
    (SYS_dup2, DESCRIPTOR),
    (SYS_epoll_wait, 7),
    (SYS_poll, 8),
    (SYS_pause, PLAIN),
    (SYS_unlink, PLAIN),
    (SYS_rename, PLAIN),
    (SYS_mkdir, PLAIN),
    (SYS_rmdir, PLAIN),
    (SYS_select, SELECT),
    (SYS_vfork, PLAIN),
];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[(c_long, u8)] = &[];

/// By call number.
pub fn table() -> [u8; CALLS] {
    let mut table = [0; CALLS];
    for (number, class) in EVERYWHERE.iter().chain(HERE) {
        if let Some(place) = usize::try_from(*number).ok().and_then(|at| table.get_mut(at)) {
            *place = *class;
        }
    }
    table
}
