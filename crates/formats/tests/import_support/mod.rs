//! Writes recordings, imports them and keeps their events.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use formats::import::{Error, Options, Recording, read};
use schedsim::trace::{Event, EventKind, Observer};

/// Keeps all events.
#[derive(Default)]
pub struct Collect(pub Vec<Event>);

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        self.0.extend_from_slice(chunk);
    }
}

/// A recording with its events.
pub struct Imported {
    pub recording: Recording,
    pub events: Vec<Event>,
}

impl Imported {
    pub fn kinds(&self) -> Vec<EventKind> {
        self.events.iter().map(|event| event.kind).collect()
    }
}

pub fn import(path: &Path) -> Result<Imported, Error> {
    import_with(path, &Options::default())
}

pub fn import_with(path: &Path, options: &Options) -> Result<Imported, Error> {
    let mut collect = Collect::default();
    let recording = read(path, options, vec![&mut collect])?;
    Ok(Imported { recording, events: collect.0 })
}

/// Imports `bytes` as a temporary file.
pub fn import_bytes(bytes: &[u8]) -> Result<Imported, Error> {
    let file = Temporary::new(bytes);
    import(&file.0)
}

/// The error message for a bad file, without its path.
pub fn complaint(bytes: &[u8]) -> String {
    match import_bytes(bytes) {
        Ok(imported) => panic!("imported: {:?}", imported.recording),
        Err(error) => {
            let message = error.to_string();
            message
                .strip_prefix(&error.path.display().to_string())
                .map(str::to_owned)
                .unwrap_or(message)
        }
    }
}

/// A temporary file, removed on drop.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(bytes: &[u8]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("import-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data").join(name)
}

/// The content of such a file, decompressed.
pub fn contents(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(data(name)).unwrap();
    let mut contents = Vec::new();
    match name.ends_with(".zst") {
        true => zstd::stream::read::Decoder::new(&bytes[..])
            .unwrap()
            .read_to_end(&mut contents)
            .unwrap(),
        false => (&bytes[..]).read_to_end(&mut contents).unwrap(),
    };
    contents
}

/// Lines of `perf script` at 1 µs, 2 µs, …, each on the given CPU: `(0, "sched_waking: comm=…")`.
pub fn script(events: &[(u16, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (index, (cpu, event)) in events.iter().enumerate() {
        text += &format!(
            "            task   100/100   [{cpu:03}]    10.{:09}: sched:{event}\n",
            (index + 1) * 1000
        );
    }
    text.into_bytes()
}

/// The fields of a switch from and to `(name, pid)`.
pub fn switch(prev: (&str, u32), state: &str, next: (&str, u32)) -> String {
    format!(
        "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> next_comm={} \
         next_pid={} next_prio=120",
        prev.0, prev.1, next.0, next.1
    )
}
