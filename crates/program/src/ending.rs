//! Ends the program at a signal: its temporary folders are removed first.
//!
//! `SIGINT`, `SIGTERM` and `SIGHUP` then do what they do without this module. A signal that the
//! process ignores, or that another part of it handles (Python's interpreter), is left alone.

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// The signals that end a program and let it act before.
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

struct Open {
    /// The folders to remove.
    folders: BTreeSet<PathBuf>,
    /// The process that receives the signals instead of this program.
    receiver: Option<Pid>,
}

static OPEN: Mutex<Open> = Mutex::new(Open { folders: BTreeSet::new(), receiver: None });

fn open() -> MutexGuard<'static, Open> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder that `make` makes is removed if a signal ends the program.
pub(crate) fn register(make: impl FnOnce() -> io::Result<PathBuf>) -> io::Result<PathBuf> {
    listen();
    let mut open = open();
    let folder = make()?;
    open.folders.insert(folder.clone());
    Ok(folder)
}

/// The folder is no longer there.
pub(crate) fn forget(folder: &Path) {
    open().folders.remove(folder);
}

/// While this exists, a signal does not end this program: the child receives `SIGINT` instead, so
/// that it can finish.
#[derive(Debug)]
pub struct Handover(());

impl Handover {
    /// Hands the signals over to `child`.
    pub fn to(child: u32) -> Handover {
        listen();
        open().receiver = Pid::from_raw(child.cast_signed());
        Handover(())
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        open().receiver = None;
    }
}

/// Waits for the end if a signal is just ending the program. Call it before leaving `main`, which
/// would otherwise cut the removal short.
pub fn settle() {
    drop(open());
}

/// Starts the thread that acts on signals, once.
fn listen() {
    static LISTENS: Once = Once::new();
    LISTENS.call_once(|| {
        let (ready, is_ready) = mpsc::channel();
        let listener = move || {
            let signals = Signals::new(SIGNALS.into_iter().filter(|&signal| is_default(signal)));
            let _ = ready.send(());
            if let Ok(mut signals) = signals {
                signals.forever().for_each(act);
            }
        };
        // Without a thread nothing is registered, and signals end the program at once.
        if thread::Builder::new().name("signals".to_string()).spawn(listener).is_ok() {
            let _ = is_ready.recv();
        }
    });
}

fn act(signal: i32) {
    let open = open();
    if let Some(child) = open.receiver {
        let _ = kill_process(child, Signal::INT);
        return;
    }
    // The lock is held until the end: no new folder is made, and `settle` waits.
    open.folders.iter().for_each(|folder| remove(folder));
    let _ = emulate_default_handler(signal);
}

/// Removes a folder, into which a child may still be writing.
pub(crate) fn remove(folder: &Path) {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                thread::sleep(Duration::from_millis(1))
            }
            _ => return,
        }
    }
}

/// Whether a signal is neither ignored nor handled in this process.
fn is_default(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let has = |mask: &str| {
        let bits = status.lines().find_map(|line| line.strip_prefix(mask));
        let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        bits.is_some_and(|bits| bits >> (signal - 1) & 1 == 1)
    };
    !has("SigIgn:") && !has("SigCgt:")
}
