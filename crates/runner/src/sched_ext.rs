//! What schedulers of sched_ext that know nothing of this runner expect of a guest, and what the
//! kernel says of them.

use crate::guest;
use schedlab_runner::event::SchedExt;
use std::ffi::CStr;
use std::fs;
use std::time::Duration;

/// File systems that such programs read, or pin objects in. A kernel may lack one; a program that
/// needs it says so.
const MOUNTS: [(&CStr, &CStr); 3] =
    [(c"cgroup2", c"/sys/fs/cgroup"), (c"bpf", c"/sys/fs/bpf"), (c"debugfs", c"/sys/kernel/debug")];
/// Where what one writes is kept until the end, so that it never waits for a reader.
const DIRECTORY: &CStr = c"/scheduler";
/// How much room that has.
const ROOM: u64 = 4 << 20;

/// The file for the output of the scheduler.
pub fn output() -> String {
    format!("{}/output", DIRECTORY.to_string_lossy())
}

/// Mounts all of it.
pub fn set_up() -> Result<(), String> {
    let make = |at: &CStr| fs::create_dir_all(&*at.to_string_lossy());
    for (kind, at) in MOUNTS {
        let _ = make(at).map(|()| guest::mount(kind, at));
    }
    make(DIRECTORY).map_err(|error| format!("{}: {error}", DIRECTORY.to_string_lossy()))?;
    guest::mount_with(c"tmpfs", DIRECTORY, &format!("size={ROOM}"))
}

/// Checks that no scheduler of sched_ext is active on this machine.
pub fn expect_none() -> Result<(), String> {
    let SchedExt { state, ops } = now();
    match state.as_str() {
        "disabled" => Ok(()),
        "" => Err("this machine's kernel has no sched_ext".to_string()),
        _ => Err(format!("the scheduler `{ops}` is in charge of this machine ({state})")),
    }
}

/// Waits until none is: the kernel takes a scheduler out after its program has ended.
pub fn wait_for_none() -> Result<(), String> {
    const LOOK: Duration = Duration::from_millis(5);
    const PATIENCE: u32 = 2_000;
    for _ in 0..PATIENCE {
        if expect_none().is_ok() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    expect_none()
}

/// What the kernel says.
pub fn now() -> SchedExt {
    let read = |file: &str| {
        let path = format!("/sys/kernel/sched_ext/{file}");
        fs::read_to_string(path).map(|text| text.trim().to_string()).unwrap_or_default()
    };
    SchedExt { state: read("state"), ops: read("root/ops") }
}
