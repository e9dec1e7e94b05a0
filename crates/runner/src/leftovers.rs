//! What a scheduler can leave behind in a guest: objects in BPF, pins, processes and files.

use schedlab_runner::event::Leftovers;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The kernel frees objects some time after the last user is gone.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// Where programs keep files.
const FOLDERS: [&str; 4] = ["/tmp", "/run", "/var", "/dev/shm"];
/// Where objects in BPF are pinned.
const PINS: &str = "/sys/fs/bpf";

/// What is there now.
pub fn now() -> Leftovers {
    /// `BPF_PROG_GET_NEXT_ID`, `BPF_MAP_GET_NEXT_ID` and `BPF_LINK_GET_NEXT_ID` of
    /// linux/include/uapi/linux/bpf.h.
    const NEXT: [u32; 3] = [11, 12, 31];
    let [programs, maps, links] = NEXT.map(objects);
    let mut pins = Vec::new();
    list(Path::new(PINS), &mut pins);
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| list(Path::new(folder), &mut files));
    let mut processes = processes();
    [&mut pins, &mut files, &mut processes].into_iter().for_each(|names| names.sort_unstable());
    Leftovers { programs, maps, links, pins, processes, files }
}

/// What is there when all that was not there `before` has had time to go.
pub fn after(before: &Leftovers) -> Leftovers {
    let mut waited = Duration::ZERO;
    loop {
        let now = now();
        if now == *before || waited >= PATIENCE {
            return now;
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
}

/// How many objects of a kind the kernel has.
fn objects(next: u32) -> u32 {
    /// The start, the next number, and flags.
    type Attributes = [u32; 3];
    let (mut from, mut count) = (0, 0);
    loop {
        let mut attributes: Attributes = [from, 0, 0];
        let size = size_of::<Attributes>();
        // SAFETY: the kernel reads and writes `attributes`, as many bytes as are said.
        let found = unsafe { libc::syscall(libc::SYS_bpf, next, attributes.as_mut_ptr(), size) };
        if found != 0 || attributes[1] <= from {
            return count;
        }
        (from, count) = (attributes[1], count + 1);
    }
}

/// The files below `folder`.
fn list(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&entry.path(), names),
            _ => names.push(entry.path().to_string_lossy().into_owned()),
        }
    }
}

/// The names of the processes that are no threads of the kernel.
fn processes() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_process = |name: &std::ffi::OsString| name.to_string_lossy().parse::<u32>().is_ok();
    let folders = entries.filter(|entry| is_process(&entry.file_name())).map(|entry| entry.path());
    // Threads of the kernel have no command line, and neither have dead processes.
    let of = |folder: std::path::PathBuf| {
        let words = fs::read(folder.join("cmdline")).unwrap_or_default();
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        (!words.is_empty()).then(|| name.trim().to_string())
    };
    folders.filter_map(of).collect()
}
