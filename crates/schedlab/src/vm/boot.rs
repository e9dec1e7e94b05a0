//! One boot of a guest: starts QEMU, follows the runner's reports, and finds out what went wrong.

use super::initramfs::{self, GuestFile};
use super::qemu::{Loaded, Machine};
use super::{Kernel, Qemu, unpack};
use crate::Error;
use schedlab_runner::event::Event;
use schedlab_runner::session::Session;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A guest: what is booted and what it is to do.
#[derive(Clone, Debug)]
pub struct Guest {
    /// The emulator.
    pub qemu: Qemu,
    /// The kernel.
    pub kernel: Kernel,
    /// How many CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// Into how many NUMA nodes CPUs and memory are cut, evenly: artificial, as memory is as fast from everywhere.
    pub nodes: u16,
    /// What the runner does.
    pub session: Session,
    /// What else lies in the guest.
    pub files: Vec<GuestFile>,
    /// Whether to count the instructions of each address in the windows of its jobs, which takes longer on this machine's clock and not on the guest's.
    pub count_addresses: bool,
    /// How long it may take on the clock of this machine. What takes long in the guest's time is ended by its watchdog.
    pub wall_limit: Duration,
}

/// What a guest said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript {
    /// The runner's lines, as they came.
    pub lines: Vec<String>,
    /// The same, read.
    pub events: Vec<Event>,
    /// What QEMU's plugin counted, if it was asked to: lines of a window's number, an address in hexadecimal, and a count.
    pub counts: Option<String>,
}

/// Boots `guest` and hands each event to `follow` as it comes.
///
/// # Errors
/// [`Error::Input`] if the guest panics, hangs, or its runner fails, with the last lines of its console; [`Error::Missing`] if QEMU cannot be run.
pub fn boot(guest: &Guest, follow: &mut dyn FnMut(&Event)) -> Result<Transcript, Error> {
    let directory =
        tempfile::Builder::new().prefix("schedlab-vm-").tempdir().map_err(|error| Error::output(&std::env::temp_dir(), error))?;
    let at = |name: &str| directory.path().join(name);
    let (initramfs, console, monitor) = (at("initramfs"), at("console"), at("monitor"));
    let session = serde_json::to_vec(&guest.session).map_err(|error| Error::Internal(error.to_string()))?;
    fs::write(&initramfs, initramfs::archive(&session, &guest.files)?).map_err(|error| Error::output(&initramfs, error))?;
    let kernel = bootable(&guest.kernel, at("kernel"))?;
    let (library, counts) = (at("plugin.so"), at("counts"));
    if let Some(plugin) = guest.qemu.plugin {
        fs::write(&library, plugin.library()).map_err(|error| Error::output(&library, error))?;
    } else if guest.count_addresses {
        let version = &guest.qemu.version;
        return Err(Error::Missing(format!(
            "QEMU {version} loads none of our plugins, which would count: 7.2 to 8.2, 9.1 to 9.2 and 10.0 do, if they are built with plugins"
        )));
    }
    let machine = Machine {
        kernel: &kernel,
        initramfs: &initramfs,
        console: &console,
        monitor: &monitor,
        cpus: guest.cpus,
        memory: guest.memory,
        nodes: guest.nodes,
        plugin: guest.qemu.plugin.map(|_| Loaded { library: &library, counts: guest.count_addresses.then_some(&counts) }),
    };
    let child = guest.qemu.command(&machine).spawn().map_err(|error| Error::Missing(format!("QEMU cannot be started: {error}")))?;
    let mut running = Running { child, transcript: Vec::new(), events: Vec::new() };
    let mut reports = BufReader::new(running.child.stdout.take().ok_or_else(|| Error::Internal("QEMU has no output".to_string()))?);
    let stuck = backstop(guest.wall_limit, &monitor, running.child.id(), || {
        let mut line = Vec::new();
        while reports.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_string();
            line.clear();
            let Ok(event) = serde_json::from_str::<Event>(&text) else { continue };
            follow(&event);
            running.transcript.push(text);
            running.events.push(event);
        }
    });
    running.judge(guest, &console, stuck)?;
    Ok(Transcript {
        lines: std::mem::take(&mut running.transcript),
        events: std::mem::take(&mut running.events),
        counts: if guest.count_addresses { Some(fs::read_to_string(&counts).map_err(|error| uncounted(&error))?) } else { None },
    })
}

/// What QEMU is to boot: the kernel's image, or, where it can be unpacked, that in the file `unpacked`.
fn bootable(kernel: &Kernel, unpacked: PathBuf) -> Result<PathBuf, Error> {
    let image = fs::read(&kernel.image).map_err(|error| Error::Input(format!("{}: {error}", kernel.image.display())))?;
    let Some(elf) = unpack::unpacked(&image) else { return Ok(kernel.image.clone()) };
    fs::write(&unpacked, elf).map_err(|error| Error::output(&unpacked, error))?;
    Ok(unpacked)
}

fn uncounted(error: &std::io::Error) -> Error {
    Error::Missing(format!("QEMU's plugin left no counts: {error}"))
}

/// QEMU while it runs; it does not outlive this.
struct Running {
    child: Child,
    transcript: Vec<String>,
    events: Vec<Event>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Whether all went well; otherwise what did not.
    fn judge(&mut self, guest: &Guest, console: &Path, stuck: Option<String>) -> Result<(), Error> {
        let name = format!("kernel {} ({})", guest.kernel.name, guest.kernel.release);
        let status = self.child.wait().map_err(|error| Error::Internal(format!("QEMU was lost: {error}")))?;
        let console = fs::read(console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let tail = last_lines(&console);
        if let Some(registers) = stuck {
            let limit = guest.wall_limit.as_secs();
            return Err(Error::Input(format!(
                "{name} was not done after {limit} s; last report: {}; {registers}{tail}",
                self.last_report()
            )));
        }
        let failed = self.events.iter().find_map(|event| match event {
            Event::Failed { message } => Some(message),
            _ => None,
        });
        if let Some(message) = failed {
            return Err(Error::Input(format!("{name}: {message}")));
        }
        if matches!(self.events.last(), Some(Event::PowerOff { .. })) && status.success() {
            return Ok(());
        }
        let mut said = String::new();
        let _ = self.child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
        Err(Error::Input(if console.contains("NMI: Not continuing") {
            let silence = guest.session.silence().as_secs();
            format!("{name} hung: no report for {silence} s of its time; last report: {}; what was running:{tail}", self.last_report())
        } else if console.contains("Unable to mount root fs") {
            format!("{name} does not read an initramfs (CONFIG_BLK_DEV_INITRD):{tail}")
        } else if console.contains("Kernel panic") {
            format!("{name} panicked; last report: {}; its last lines:{tail}", self.last_report())
        } else if self.events.is_empty() {
            format!(
                "{name} did not start the runner; has it a serial console (CONFIG_SERIAL_8250_CONSOLE)? QEMU says: {}{tail}",
                said.trim()
            )
        } else {
            format!("{name} ended too early; last report: {}; QEMU says: {}{tail}", self.last_report(), said.trim())
        }))
    }

    fn last_report(&self) -> &str {
        self.transcript.last().map_or("none", String::as_str)
    }
}

/// The end of the console, without the clutter of the firmware.
fn last_lines(console: &str) -> String {
    const LINES: usize = 30;
    let readable: String = console.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let lines: Vec<&str> = readable.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    // A panic is what is looked for: from its begin, if there is one.
    let begin = lines.iter().position(|line| line.contains("NMI: ") || line.contains("Kernel panic") || line.contains("BUG: "));
    let begin = begin.unwrap_or_else(|| lines.len().saturating_sub(LINES));
    lines[begin..].iter().take(LINES).map(|line| format!("\n    {line}")).collect()
}

/// Runs `body`, which ends when QEMU does. If that takes longer than `limit`, asks QEMU where its CPUs are, ends it, and gives the answer.
fn backstop(limit: Duration, monitor: &Path, child: u32, body: impl FnOnce()) -> Option<String> {
    let (done, waits) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let expired = waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            expired.then(|| {
                let answer = ask(monitor);
                if let Some(child) = rustix::process::Pid::from_raw(child.cast_signed()) {
                    let _ = rustix::process::kill_process(child, rustix::process::Signal::KILL);
                }
                answer
            })
        });
        body();
        drop(done);
        watch.join().ok().flatten()
    })
}

/// Where the guest's CPUs are, by QEMU's monitor.
fn ask(monitor: &Path) -> String {
    let answer = || -> std::io::Result<String> {
        let mut stream = UnixStream::connect(monitor)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"info registers -a\n")?;
        let mut text = Vec::new();
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            text.extend_from_slice(&chunk[..count]);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = answer().unwrap_or_default();
    let words: Vec<&str> =
        text.split_whitespace().filter(|word| ["RIP=", "EIP=", "CPU#"].iter().any(|begin| word.starts_with(begin))).collect();
    format!("the CPUs are at {}", if words.is_empty() { "an unknown place".to_string() } else { words.join(" ") })
}
