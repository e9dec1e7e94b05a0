//! The system calls of a confined program: those on the list are made, all others fail.
//!
//! Not on the list, among others: sockets, `ptrace`, `bpf`, `io_uring`, `mount`, `unshare`, keys,
//! and with one process `clone` and `fork`. Threads need `clone` as well.

use program::Error;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// How many processes and threads there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processes {
    /// One.
    One,
    /// As many as it starts.
    Many,
}

/// What every program calls: memory, files that are open or may be opened, time, itself.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fchdir,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// The same by older names.
#[cfg(target_arch = "x86_64")]
const OLDER: &[libc::c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_getpgrp,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[libc::c_long] = &[];

/// What a compiler calls besides: other processes, and files that it makes.
const COMPILING: &[libc::c_long] = &[
    libc::SYS_chdir,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_copy_file_range,
    libc::SYS_fallocate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_flock,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_ioctl,
    libc::SYS_kill,
    libc::SYS_linkat,
    libc::SYS_mkdirat,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pipe2,
    libc::SYS_prctl,
    libc::SYS_recvmsg,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_sched_setaffinity,
    libc::SYS_sendmsg,
    libc::SYS_socketpair,
    libc::SYS_statfs,
    libc::SYS_symlinkat,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_wait4,
    libc::SYS_waitid,
];

#[cfg(target_arch = "x86_64")]
const COMPILING_BY_OLDER: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_fork,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_pipe,
    libc::SYS_rename,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const COMPILING_BY_OLDER: &[libc::c_long] = &[];

/// The filter: a call that is not on the list fails with `EPERM`.
///
/// # Errors
/// [`Error::Missing`] on a processor for which there is none.
pub fn filter(processes: Processes) -> Result<BpfProgram, Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
        Error::Missing(format!(
            "there is no seccomp filter, a wall of the sandbox, for {}: it takes x86_64, aarch64 \
             or riscv64",
            std::env::consts::ARCH
        ))
    })?;
    let more = [COMPILING, COMPILING_BY_OLDER].concat();
    let more = if processes == Processes::Many { &more[..] } else { &[] };
    let calls = ALWAYS.iter().chain(OLDER).chain(more);
    let filter = SeccompFilter::new(
        calls.map(|&call| (call, Vec::new())).collect(),
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        arch,
    );
    filter
        .and_then(TryInto::try_into)
        .map_err(|error| Error::Internal(format!("the seccomp filter: {error}")))
}
