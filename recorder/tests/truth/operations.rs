//! A program that does a known number of known operations, and prints which objects it has.

use libc::{c_int, c_long, c_void};
use std::mem;
use std::ptr;

/// How often it does what.
pub mod times {
    pub const WRITES_A: u64 = 10;
    pub const WRITES_A_DUPLICATED: u64 = 3;
    pub const WRITES_A_PASSED: u64 = 5;
    pub const WRITES_B: u64 = 7;
    /// Of pipes that are closed again, so that the next has the same numbers and maybe places.
    pub const WRITES_REUSED: [u64; 4] = [2, 5, 8, 11];
    pub const WAKES_X: u64 = 4;
    pub const WAKES_Y: u64 = 6;
    pub const EVENT_WRITES: u64 = 3;
    /// What is in the event counter at first.
    pub const COUNT: u32 = 5;
    pub const EPOLL_WAITS: u64 = 2;
    pub const POLLS: u64 = 4;
    pub const CALLS_32_BIT: u64 = 3;
    pub const TIMER_SETS: u64 = 2;
    pub const SLEEPS: u64 = 2;
}

/// Does them.
pub fn run() {
    // SAFETY: all pointers are to values that live; what fails ends the program.
    unsafe {
        let (a, b) = (pipe(), pipe());
        print!("{} {}", inode(a[0]), inode(b[0]));
        for writes in times::WRITES_REUSED {
            let ends = pipe();
            print!(" {}", inode(ends[0]));
            write_and_read(ends[1], ends[0], writes);
            for end in ends {
                sure(libc::close(end));
            }
        }
        println!();
        write_and_read(a[1], a[0], times::WRITES_A);
        write_and_read(b[1], b[0], times::WRITES_B);
        let duplicate = sure(libc::dup(a[1]));
        write_and_read(duplicate, a[0], times::WRITES_A_DUPLICATED);
        pass(a[1], a[0]);

        let words = [0_u32; 32];
        for (at, count) in [(0, times::WAKES_X), (16, times::WAKES_Y)] {
            for _ in 0..count {
                let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
                libc::syscall(libc::SYS_futex, &raw const words[at], wake, 1);
            }
        }

        for _ in 0..times::POLLS {
            let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut entries = [entry(a[0]), entry(-1), entry(b[0])];
            sure(libc::poll(entries.as_mut_ptr(), 3, 1));
        }

        loopback().expect("the loopback works");
        let event = sure(libc::eventfd(times::COUNT, libc::EFD_SEMAPHORE));
        for _ in 0..times::EVENT_WRITES {
            libc::write(event, (&raw const ONE).cast(), 8);
        }
        let set = sure(libc::epoll_create1(0));
        let mut wanted = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 1 };
        sure(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, event, &raw mut wanted));
        sure(libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, b[0], &raw mut wanted));
        for _ in 0..times::EPOLL_WAITS {
            sure(libc::epoll_wait(set, &raw mut wanted, 1, 1));
        }

        let timer = sure(libc::timerfd_create(libc::CLOCK_MONOTONIC, 0));
        let mut when: libc::itimerspec = mem::zeroed();
        when.it_value.tv_nsec = 1_000_000;
        for _ in 0..times::TIMER_SETS {
            sure(libc::timerfd_settime(timer, 0, &raw const when, ptr::null_mut()));
        }
        let mut count = 0_u64;
        libc::read(timer, (&raw mut count).cast(), 8);
        for _ in 0..times::SLEEPS {
            let nap = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
            libc::nanosleep(&raw const nap, ptr::null_mut());
        }
    }
}

/// A thread that is not the first execs: it gets the number of the first.
pub fn exec_in_a_thread() {
    let exec = || {
        let mut command = std::process::Command::new("sh");
        panic!(
            "{}",
            std::os::unix::process::CommandExt::exec(command.args(["-c", "echo a | cat"]))
        );
    };
    let _ = std::thread::spawn(exec).join();
}

/// Calls of a 32-bit program, in a child that a kernel without them kills: whether it did not.
#[cfg(target_arch = "x86_64")]
pub fn calls_of_32_bits() -> bool {
    // SAFETY: the child makes system calls without pointers only.
    unsafe {
        let child = sure(libc::fork());
        if child == 0 {
            for _ in 0..times::CALLS_32_BIT {
                // `getpid`, whose number is another call's in 64 bits.
                std::arch::asm!("int 0x80", inout("eax") 20 => _, clobber_abi("C"));
            }
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        status == 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn calls_of_32_bits() -> bool {
    false
}

static ONE: u64 = 1;

unsafe fn write_and_read(to: c_int, from: c_int, count: u64) {
    for _ in 0..count {
        let mut byte = 0_u8;
        // SAFETY: the byte lives.
        unsafe {
            assert_eq!(libc::write(to, (&raw const byte).cast(), 1), 1);
            assert_eq!(libc::read(from, (&raw mut byte).cast(), 1), 1);
        }
    }
}

/// A connection over the loopback, both ends of which are here.
fn loopback() -> std::io::Result<()> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
    let mut server = listener.accept()?.0;
    std::io::Write::write_all(&mut client, b"question")?;
    std::io::Read::read_exact(&mut server, &mut [0; 8])
}

/// A child that closed `writer` receives it by SCM_RIGHTS, and writes.
unsafe fn pass(writer: c_int, reader: c_int) {
    // SAFETY: as of `run`.
    unsafe {
        let mut pair = [0; 2];
        sure(libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, pair.as_mut_ptr()));
        let child = sure(libc::fork());
        if child == 0 {
            libc::close(writer);
            let passed = message(pair[1], None);
            for _ in 0..times::WRITES_A_PASSED {
                libc::write(passed, (&raw const ONE).cast(), 1);
            }
            libc::_exit(0);
        }
        message(pair[0], Some(writer));
        for _ in 0..times::WRITES_A_PASSED {
            let mut byte = 0_u8;
            assert_eq!(libc::read(reader, (&raw mut byte).cast(), 1), 1);
        }
        libc::waitpid(child, ptr::null_mut(), 0);
    }
}

/// Sends a descriptor, or receives one.
unsafe fn message(socket: c_int, sent: Option<c_int>) -> c_int {
    // SAFETY: as of `run`; the control buffer has room for one descriptor.
    unsafe {
        let (mut byte, mut control) = (0_u8, [0_u64; 8]);
        let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
        message.msg_control = control.as_mut_ptr().cast::<c_void>();
        message.msg_controllen = libc::CMSG_SPACE(mem::size_of::<c_int>() as u32) as usize;
        let Some(descriptor) = sent else {
            assert_eq!(libc::recvmsg(socket, &raw mut message, 0), 1);
            return *libc::CMSG_DATA(libc::CMSG_FIRSTHDR(&raw const message)).cast::<c_int>();
        };
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(mem::size_of::<c_int>() as u32) as usize;
        *libc::CMSG_DATA(header).cast::<c_int>() = descriptor;
        assert_eq!(libc::sendmsg(socket, &raw const message, 0), 1);
        descriptor
    }
}

unsafe fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: there is room for two.
    sure(unsafe { libc::pipe2(ends.as_mut_ptr(), 0) });
    ends
}

unsafe fn inode(descriptor: c_int) -> u64 {
    // SAFETY: the result lives, and zeros are one.
    unsafe {
        let mut status: libc::stat = mem::zeroed();
        sure(libc::fstat(descriptor, &raw mut status));
        status.st_ino
    }
}

fn sure(result: c_int) -> c_int {
    assert!(result >= 0, "{}", std::io::Error::last_os_error());
    result
}

/// The numbers of calls, as recordings have them.
pub fn number(call: c_long) -> u16 {
    u16::try_from(call).expect("a call's number")
}
