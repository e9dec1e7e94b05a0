//! A guest's CPU may halt only while QEMU's main loop is asleep: what the plugin waits for, beside
//! a thread that plays the main loop.

#[path = "../../qemu-plugin/src/main_loop.rs"]
mod main_loop;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Sleeps as QEMU's main loop does.
fn poll(time: Duration) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: time.as_nanos() as libc::c_long };
    // SAFETY: no files, and a time that outlives the call.
    unsafe { libc::ppoll(std::ptr::null_mut(), 0, &raw const time, std::ptr::null()) };
}

#[test]
fn a_cpu_waits_for_a_main_loop_that_works_or_waits_for_something_else_and_not_for_one_that_ends() {
    let (is_asleep, (said, found)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let plays_main_loop = {
        let is_asleep = is_asleep.clone();
        move || {
            main_loop::find().expect("the kernel says what a thread does");
            said.send(()).expect("somebody waits");
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(20) {}
            thread::sleep(Duration::from_millis(20));
            is_asleep.store(true, SeqCst);
            poll(Duration::from_millis(400));
            is_asleep.store(false, SeqCst);
            said.send(()).expect("somebody waits");
            thread::sleep(Duration::from_secs(600));
        }
    };
    thread::spawn(plays_main_loop);
    found.recv().expect("it begins");
    main_loop::wait_until_asleep();
    assert!(is_asleep.load(SeqCst), "it calculated, or waited for something else");
    main_loop::wait_until_asleep();
    assert!(is_asleep.load(SeqCst), "it sleeps, so there is nothing to wait for");
    found.recv().expect("it wakes up");
    let begin = Instant::now();
    main_loop::wait_until_asleep();
    assert!(begin.elapsed() >= Duration::from_millis(200), "it is given up only after a while");
}
