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
    /// Unlike what the C library itself does.
    pub const LOCKS: u64 = 25;
    pub const TRIES: u64 = 2;
    pub const LOCKED_TWICE: u64 = 17;
    pub const LOCKS_INHERITING: u64 = 13;
    pub const SIGNALS: u64 = 4;
    pub const BROADCASTS: u64 = 3;
    pub const WAITS_IN_VAIN: u64 = 2;
    pub const SEMAPHORE: u64 = 3;
    pub const TAKES: u64 = 5;
    pub const OTHER_SEMAPHORE: u64 = 7;
    pub const REQUESTS: u64 = 6;
    /// Of two threads.
    pub const MEETINGS: u64 = 3;
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

/// Locks that no other thread has, and two threads that meet at a barrier. Of a condition no thread hears.
pub fn locks() {
    // SAFETY: all pointers are to values that live and do not move; zeros are values of them.
    unsafe {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let at = &raw mut mutex;
        for _ in 0..times::LOCKS {
            libc::pthread_mutex_lock(at);
            libc::pthread_mutex_unlock(at);
        }
        for _ in 0..times::TRIES {
            assert_eq!(libc::pthread_mutex_trylock(at), 0);
            // One that does not succeed.
            assert_eq!(libc::pthread_mutex_trylock(at), libc::EBUSY);
            libc::pthread_mutex_unlock(at);
        }
        let mut attributes: libc::pthread_mutexattr_t = mem::zeroed();
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_settype(&raw mut attributes, libc::PTHREAD_MUTEX_RECURSIVE);
        let mut twice: libc::pthread_mutex_t = mem::zeroed();
        libc::pthread_mutex_init(&raw mut twice, &raw const attributes);
        for _ in 0..times::LOCKED_TWICE {
            libc::pthread_mutex_lock(&raw mut twice);
            libc::pthread_mutex_lock(&raw mut twice);
            libc::pthread_mutex_unlock(&raw mut twice);
            libc::pthread_mutex_unlock(&raw mut twice);
        }
        libc::pthread_mutexattr_init(&raw mut attributes);
        libc::pthread_mutexattr_setprotocol(&raw mut attributes, libc::PTHREAD_PRIO_INHERIT);
        let mut inherits: libc::pthread_mutex_t = mem::zeroed();
        libc::pthread_mutex_init(&raw mut inherits, &raw const attributes);
        for _ in 0..times::LOCKS_INHERITING {
            libc::pthread_mutex_lock(&raw mut inherits);
            libc::pthread_mutex_unlock(&raw mut inherits);
        }
        let mut condition = libc::PTHREAD_COND_INITIALIZER;
        for _ in 0..times::SIGNALS {
            libc::pthread_cond_signal(&raw mut condition);
        }
        for _ in 0..times::BROADCASTS {
            libc::pthread_cond_broadcast(&raw mut condition);
        }
        for _ in 0..times::WAITS_IN_VAIN {
            let mut until: libc::timespec = mem::zeroed();
            libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut until);
            until.tv_nsec += 2_000_000;
            until.tv_sec += until.tv_nsec / 1_000_000_000;
            until.tv_nsec %= 1_000_000_000;
            libc::pthread_mutex_lock(at);
            let waited = libc::pthread_cond_timedwait(&raw mut condition, at, &raw const until);
            assert_eq!(waited, libc::ETIMEDOUT);
            libc::pthread_mutex_unlock(at);
        }
        let mut semaphore: libc::sem_t = mem::zeroed();
        let semaphore = &raw mut semaphore;
        assert_eq!(libc::sem_init(semaphore, 0, times::SEMAPHORE as u32), 0);
        for _ in 0..times::TAKES {
            assert_eq!(libc::sem_wait(semaphore), 0);
            libc::sem_post(semaphore);
        }
        for _ in 0..times::SEMAPHORE {
            assert_eq!(libc::sem_trywait(semaphore), 0);
        }
        // One that does not succeed.
        assert_eq!(libc::sem_trywait(semaphore), -1);
        // Another one in the same place.
        assert_eq!(libc::sem_init(semaphore, 0, times::OTHER_SEMAPHORE as u32), 0);
        libc::sem_post(semaphore);
        let mut barrier: libc::pthread_barrier_t = mem::zeroed();
        libc::pthread_barrier_init(&raw mut barrier, ptr::null(), 2);
        let at = &raw mut barrier as usize;
        let meet = move || {
            for _ in 0..times::MEETINGS {
                libc::pthread_barrier_wait(at as *mut libc::pthread_barrier_t);
            }
        };
        let other = std::thread::spawn(meet);
        meet();
        other.join().expect("the other thread ends");
    }
}

/// Requests that do nothing, through io_uring. Whether this kernel takes them.
pub fn io_uring() -> bool {
    const ENTRIES: usize = 8;
    const FETCH: u32 = 1;
    // SAFETY: the layouts are the kernel's: of `io_uring_params` 120 bytes, with the offsets of the
    // ring's parts from byte 40 on; of an entry 64 bytes, of which zeros are a request of nothing.
    unsafe {
        let mut parameters = [0_u32; 30];
        let ring = libc::syscall(libc::SYS_io_uring_setup, ENTRIES, parameters.as_mut_ptr());
        if ring < 0 {
            return false;
        }
        let map = |size: usize, at: libc::off_t| {
            let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            libc::mmap(ptr::null_mut(), size, both, shared, ring as c_int, at)
        };
        let queue = map(4096, 0).cast::<u8>();
        assert!(
            map(64 * ENTRIES, 0x1000_0000) != libc::MAP_FAILED && queue != libc::MAP_FAILED.cast()
        );
        let part = |which: usize| queue.add(parameters[10 + which] as usize).cast::<u32>();
        let (tail, array) = (part(1), part(6));
        for entry in 0..times::REQUESTS {
            array.add(entry as usize).write_volatile(entry as u32);
        }
        tail.write_volatile(times::REQUESTS as u32);
        let none = ptr::null::<c_void>();
        let (count, enter) = (times::REQUESTS, libc::SYS_io_uring_enter);
        libc::syscall(enter, ring, count, count, FETCH, none, 0) == count as c_long
    }
}
