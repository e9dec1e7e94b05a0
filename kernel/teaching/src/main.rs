//! A kernel that one reads in an hour (docs/kernel.md): `kernel.rs` schedules, `port/` knows a CPU,
//! and here are three demonstrations. Each runs under the queue that its one line names.
#![no_std]
#![no_main]

mod kernel;
#[cfg_attr(target_arch = "arm", path = "port/cortex_m.rs")]
#[cfg_attr(target_arch = "riscv32", path = "port/riscv.rs")]
#[cfg_attr(target_arch = "x86_64", path = "port/x86.rs")]
mod port;
mod schedule;

use core::fmt::{self, Write};
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kernel::{Task, give_way, run, sleep_until};
use readyq::{Priority, RoundRobin, Ruler};

const MS: u64 = 1_000_000;

#[unsafe(no_mangle)]
extern "C" fn boot() -> ! {
    port::start_ticks();
    calibrate();

    // Everybody gets the CPU in turn, a tick at a time; who gives way has no more than it used.
    let tasks = [
        Task { name: "a", level: 0, body: || work(5_000) },
        Task { name: "b", level: 0, body: || work(5_000) },
        Task { name: "polite", level: 0, body: polite },
    ];
    schedule::show("round robin", &run(RoundRobin::new(), &tasks, 100 * MS), &tasks);

    // Each level runs at half the rate of the one before.
    let tasks =
        ["often", "half", "quarter"].map(|name| Task { name, level: 0, body: || work(u32::MAX) });
    let mut level = 0..;
    let tasks = tasks.map(|task| Task { level: level.next().unwrap_or(0), ..task });
    schedule::show("shares", &run(Ruler::new(), &tasks, 70 * MS), &tasks);

    // The most important one first: a deadline is missed, is seen, and with the levels the other way
    // round it is met.
    for (title, [control, logger]) in [("wrong priorities", [1, 0]), ("right priorities", [0, 1])] {
        let tasks = [
            Task { name: "control", level: control, body: control_loop },
            Task { name: "logger", level: logger, body: logger_loop },
        ];
        MISSED.store(0, Relaxed);
        while now_us() % 10_000 >= 1_000 {
            port::idle();
        }
        schedule::show(title, &run(Priority::new(), &tasks, 60 * MS), &tasks);
        let _ = writeln!(
            Console,
            "{title}: control missed {} deadlines of 5, by {} us at most",
            MISSED.load(Relaxed) >> 24,
            MISSED.load(Relaxed) & 0xff_ffff
        );
    }
    port::off()
}

/// Works for 200 us at a time, then gives way.
fn polite() {
    for _ in 0..10 {
        work(200);
        give_way();
    }
}

/// The deadlines that were missed, in the upper eight bits, and by how many microseconds at most.
static MISSED: AtomicU32 = AtomicU32::new(0);

/// Each 10 ms 2 ms of work, which must be done within 5 ms.
fn control_loop() {
    let begin = now_us().next_multiple_of(10_000);
    for release in (0..5).map(|number| begin + number * 10_000) {
        sleep_until(release);
        work(2_000);
        let late = now_us().saturating_sub(release + 5_000);
        if late > 0 {
            let (count, worst) = (MISSED.load(Relaxed) >> 24, MISSED.load(Relaxed) & 0xff_ffff);
            MISSED.store((count + 1) << 24 | worst.max(late as u32), Relaxed);
        }
    }
}

/// Each 20 ms 8 ms of work.
fn logger_loop() {
    let begin = now_us().next_multiple_of(10_000);
    for release in (0..3).map(|number| begin + number * 20_000) {
        sleep_until(release);
        work(8_000);
    }
}

fn now_us() -> u64 {
    port::now_ns() / 1000
}

/// How often [`spin`] goes round in a microsecond, times 256.
static RATE: AtomicU32 = AtomicU32::new(0);

#[inline(never)]
fn spin(times: u64) {
    (0..times).for_each(|time| {
        black_box(time);
    });
}

/// Measures how fast this CPU is; no interrupt is taken yet.
fn calibrate() {
    const TIMES: u64 = 20_000;
    let begin = port::now_ns();
    spin(TIMES);
    RATE.store((TIMES * 256_000 / (port::now_ns() - begin)) as u32, Relaxed);
}

/// Uses the CPU for `us` microseconds of its own.
fn work(us: u32) {
    spin(u64::from(us) * u64::from(RATE.load(Relaxed)) / 256);
}

/// The port for text.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(port::write);
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Console, "{info}");
    port::off()
}
