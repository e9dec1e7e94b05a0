//! The emulator: which one is there, what identifies it, and how it is started.

mod bare;

pub use bare::Bare;

use super::sha256;
use super::shape::{self, MODEL, Shape};
use crate::host::cpus;
use program::{Error, Scratch};
use rustix::process::{
    Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use schedlab_runner::session::ORDERS;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The features of the CPUs: nothing random, and what programs of today expect.
const FEATURES: &str = ",-rdrand,-rdseed,+ssse3,+sse4.1,+sse4.2,+popcnt";
const PROGRAM: &str = "qemu-system-x86_64";
const INSTALL: &str = "install it with: apt-get install --no-install-recommends qemu-system-x86";
/// The oldest that this was tried with.
const OLDEST: (u32, u32) = (7, 2);
/// What runs before the kernel, from QEMU's own directories.
const FIRMWARE: [&str; 3] = ["bios-256k.bin", "linuxboot_dma.bin", "pvh.bin"];

/// The arguments of every guest's kernel. They say where to print, and that the time stamp counter
/// counts nanoseconds. They ask for no random layout, and for no time lost on hardware that is not
/// there. They ask for no `damon_stat` (in Debian from Linux 6.17 on). It looks for used memory in
/// the background, for 0.3 ms each 40 ms.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 unknown_nmi_panic mitigations=off \
                                tsc=reliable tsc_early_khz=1000000 nokaslr norandmaps \
                                randomize_kstack_offset=off cryptomgr.notests damon_stat.enabled=0";
/// One CPU takes its ticks from the HPET. The trial that finds the speed of the APIC's timer polls
/// the clock for 100 ms, which takes more than half of a boot.
const ONE_CPU: &str = " noapictimer";

/// The emulator of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qemu {
    program: Program,
    /// Its version, as it says.
    pub version: String,
    /// The SHA-256 of the program and the firmware that runs before the kernel.
    pub sha256: String,
    /// Which of our plugins it loads.
    pub plugin: Option<Plugin>,
}

/// How it is started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// What is started: itself, or a loader of its own.
    pub start: PathBuf,
    /// What comes before all other arguments.
    pub arguments: Vec<OsString>,
    /// Variables that it needs.
    pub variables: Vec<(&'static str, OsString)>,
    /// The emulator's own file.
    pub file: PathBuf,
}

impl Program {
    /// One that needs nothing.
    fn plain(file: &Path) -> Program {
        let file = file.to_path_buf();
        Program { start: file.clone(), arguments: Vec::new(), variables: Vec::new(), file }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.start);
        command.args(&self.arguments).envs(self.variables.iter().cloned());
        command
    }
}

/// What one start of QEMU needs.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// The kernel's image.
    pub kernel: &'a Path,
    /// What the guest finds.
    pub initramfs: &'a Path,
    /// Where the kernel's console goes.
    pub console: &'a Path,
    /// Where its runner's reports go.
    pub reports: &'a Path,
    /// Where QEMU can be asked.
    pub monitor: &'a Path,
    /// How many CPUs are online.
    pub cpus: u16,
    /// An instruction takes two to the power of this nanoseconds.
    pub shift: u32,
    /// Further arguments of the kernel.
    pub arguments: &'a [String],
    /// Memory in MiB.
    pub memory: u32,
    /// Into how many NUMA nodes CPUs and memory are cut, evenly.
    pub nodes: u16,
    /// How its CPUs lie, if that is described.
    pub shape: Option<&'a Shape>,
    /// The plugin, if there is one.
    pub plugin: Option<Loaded<'a>>,
    /// The jobs of a guest that continues, in JSON.
    pub jobs: &'a Path,
    /// The file in the directory in which QEMU runs that has the state to continue from; none if
    /// the kernel is booted.
    pub state: Option<&'a str>,
}

/// Our plugin of QEMU's: it keeps the clock of a guest that idles exact, and counts instructions by
/// address if it is asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plugin {
    /// For version 1 of QEMU's interface.
    Version1,
    /// For versions 3 on.
    Version3,
    /// For versions 7 on.
    Version7,
}

impl Plugin {
    /// All of them.
    pub const ALL: [Plugin; 3] = [Plugin::Version1, Plugin::Version3, Plugin::Version7];

    /// Whether it runs several CPUs in lockstep.
    pub fn has_lockstep(self) -> bool {
        self == Plugin::Version7
    }

    /// The shared library; empty where it could not be built.
    pub fn library(self) -> &'static [u8] {
        match self {
            Plugin::Version1 => include_bytes!(concat!(env!("OUT_DIR"), "/qemu-plugin-1")),
            Plugin::Version3 => include_bytes!(concat!(env!("OUT_DIR"), "/qemu-plugin-3")),
            Plugin::Version7 => include_bytes!(concat!(env!("OUT_DIR"), "/qemu-plugin-7")),
        }
    }

    /// Whether the emulator loads it, which it is asked.
    fn fits(self, program: &Program) -> bool {
        let load = || -> Result<bool, Error> {
            let scratch = Scratch::new()?;
            let library = scratch.path().join("plugin.so");
            std::fs::write(&library, self.library())
                .map_err(|error| Error::output(&library, error))?;
            let mut command = program.command();
            command.args(["-machine", "none", "-nodefaults", "-display", "none", "-plugin"]);
            command.arg(option("file=", &library) + ",probe=on").stdin(Stdio::null());
            Ok(command
                .output()
                .is_ok_and(|output| String::from_utf8_lossy(&output.stderr).contains(FITS)))
        };
        load().unwrap_or(false)
    }
}

/// The SHA-256 of all plugins.
pub fn plugins_sha256() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| sha256(Plugin::ALL.map(Plugin::library)));
    &HASH
}

/// What the plugin says if it is loaded.
const FITS: &str = "schedlab's plugin fits";

/// The plugin of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Loaded<'a> {
    /// Its shared library.
    pub library: &'a Path,
    /// Where it writes its counts, and the functions whose calls it counts, by address.
    pub counts: Option<(&'a Path, &'a [u64])>,
    /// Of several CPUs in lockstep: by how many instructions they are interleaved, and where the
    /// plugin says how it went.
    pub lockstep: Option<(u32, &'a Path)>,
}

impl Qemu {
    /// Looks for it in `PATH`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none or it is too old.
    pub fn find() -> Result<Qemu, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .map(|directory| directory.join(PROGRAM))
            .find(|program| program.is_file());
        let program =
            program.ok_or_else(|| Error::Missing(format!("{PROGRAM} is missing; {INSTALL}")))?;
        Qemu::at(Program::plain(&program))
    }

    /// The emulator that `program` starts.
    ///
    /// # Errors
    /// As of [`Qemu::find`].
    pub fn at(program: Program) -> Result<Qemu, Error> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::Missing(format!("{} cannot be used: {error}; {INSTALL}", program.file.display()))
        };
        let ask = |arguments: &[&str]| -> Result<String, Error> {
            let output =
                program.command().args(arguments).output().map_err(|error| failed(&error))?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let said = ask(&["--version"])?;
        let version = said
            .lines()
            .next()
            .and_then(|line| line.split("version ").nth(1))
            .unwrap_or_default()
            .trim()
            .to_string();
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return Err(failed(&format!("it does not say its version but {:?}", said.trim())));
        };
        if (major, minor) < OLDEST {
            let (major, minor) = OLDEST;
            return Err(failed(&format!(
                "version {version} is too old, {major}.{minor} is the oldest that is known to \
                 repeat itself"
            )));
        }
        let read = |path: &Path| std::fs::read(path).map_err(|error| failed(&error));
        let mut parts = vec![read(&program.file)?];
        for directory in ask(&["-L", "help"])?.lines().map(Path::new) {
            parts.extend(
                FIRMWARE.iter().filter_map(|name| std::fs::read(directory.join(name)).ok()),
            );
        }
        let plugin = Plugin::ALL.into_iter().find(|plugin| plugin.fits(&program));
        Ok(Qemu { program, version, sha256: sha256(parts.iter().map(Vec::as_slice)), plugin })
    }

    /// The command that starts `machine`.
    ///
    /// Time is the count of instructions (`-icount`), and skips to the next timer where the guest
    /// idles (`sleep=off`). There is one thread for all CPUs. There are no hardware random numbers,
    /// and the kernel always gets the same seed of random numbers (`-seed`). There is no network,
    /// and the clock of day is fixed. The watchdog's bite is an interrupt that cannot be masked:
    /// the kernel says what was running.
    pub fn command(&self, machine: &Machine<'_>) -> Command {
        let mut command = self.program.command();
        command.args([
            "-accel",
            "tcg",
            "-icount",
            &format!("shift={},sleep=off", machine.shift),
            "-rtc",
            "base=2026-01-01T00:00:00,clock=vm",
            "-seed",
            "1",
        ]);
        let model = machine.shape.map_or(String::new(), |_| shape::CPU.to_string());
        command.arg("-cpu").arg(MODEL.to_string() + FEATURES + &model);
        let flat = || format!("{},sockets={}", machine.cpus, machine.nodes);
        command.args([
            "-smp",
            &machine.shape.map_or_else(flat, Shape::smp),
            "-m",
            &format!("{}M", machine.memory),
        ]);
        command.args(numa(machine));
        for device in machine.shape.map(Shape::devices).unwrap_or_default() {
            command.arg("-device").arg(device);
        }
        command.args([
            "-nodefaults",
            "-no-user-config",
            "-vga",
            "none",
            "-net",
            "none",
            "-display",
            "none",
            "-no-reboot",
        ]);
        command.args(["-device", "ib700", "-action", "watchdog=inject-nmi"]);
        // A guest that asks for it pauses.
        command.args(["-device", "pvpanic", "-action", "panic=pause"]);
        command.arg("-fw_cfg").arg(option(&format!("name={ORDERS},file="), machine.jobs));
        if let Some(state) = machine.state {
            command.arg("-incoming").arg(format!("exec:cat {state}"));
            // Or it would announce itself on the network that it has not, for half a second of this
            // machine's time, and each time wake up the main loop (docs/adr/0009).
            command.args(["-global", "migration.announce-rounds=0"]);
        }
        command.arg("-serial").arg(option("file:", machine.console));
        command.arg("-debugcon").arg(option("file:", machine.reports));
        command.arg("-monitor").arg(option("unix:", machine.monitor) + ",server=on,wait=off");
        let mut arguments = KERNEL_ARGUMENTS.to_string();
        arguments += if machine.cpus == 1 { ONE_CPU } else { "" };
        for argument in machine.arguments {
            arguments += &format!(" {argument}");
        }
        command
            .arg("-kernel")
            .arg(machine.kernel)
            .arg("-initrd")
            .arg(machine.initramfs)
            .args(["-append", &arguments]);
        if let Some(plugin) = machine.plugin {
            let counts = plugin.counts.map_or(String::new(), |(out, calls)| {
                let calls: Vec<String> = calls.iter().map(|call| format!("{call:x}")).collect();
                format!("{},calls={}", option(",out=", out), calls.join(":"))
            });
            let lockstep = plugin.lockstep.map_or(String::new(), |(interleave, report)| {
                option(&format!(",interleave={interleave},lockstep="), report)
            });
            command.arg("-plugin").arg(option("file=", plugin.library) + &counts + &lockstep);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        confine(&mut command, Limits::of(machine.memory));
        command
    }
}

/// What an emulator may take of this machine; the kernel holds it to that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Address space in MiB: the guest's memory, and what the emulator needs itself.
    pub memory: u64,
    /// The size of each of its files in MiB: the console, and the guest's state.
    pub file: u64,
}

impl Limits {
    /// Of a guest with this memory in MiB.
    pub fn of(memory: u32) -> Limits {
        let memory = u64::from(memory);
        Limits { memory: memory + 4096, file: memory + 256 }
    }

    fn apply(self) -> rustix::io::Result<()> {
        let set = |resource, bytes| {
            setrlimit(resource, Rlimit { current: Some(bytes), maximum: Some(bytes) })
        };
        set(Resource::As, self.memory << 20)?;
        set(Resource::Fsize, self.file << 20)?;
        set(Resource::Core, 0)
    }
}

/// Keeps what `command` starts on one CPU of this machine, its main thread before its others. Has
/// the kernel kill it when the thread that starts it ends, however this program ends. It stays
/// within `limits`.
///
/// Where the guest idles, QEMU's main loop adds the time until the next timer to the clock. A
/// thread that runs the guest may have just halted it and not yet counted its last instructions.
/// Then the main loop adds too much, by up to a microsecond. The plugin keeps the guest from
/// halting before the main loop is asleep. Where QEMU loads none, this makes it rare. Whenever the
/// guest's thread has something for the main loop, it wakes it up. On one CPU a main loop of
/// real-time priority has mostly done its work before the guest continues. docs/adr/0009 has the
/// measurement.
fn confine(command: &mut Command, limits: Limits) {
    let (parent, mut cpu) = (getpid(), CpuSet::new());
    let usable = cpus::usable();
    // As many guests as there are cores are started side by side, by a thread each.
    cpu.set(usize::from(
        usable[rayon::current_thread_index().unwrap_or_else(sched_getcpu) % usable.len()],
    ));
    let confined = move || {
        limits.apply()?;
        // Where it may not choose its CPU or its priority, the proof has to tell.
        let _ = sched_setaffinity(None, &cpu);
        let first = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameters outlive the call. Threads that QEMU starts begin with the priority
        // of anybody.
        let _ = unsafe {
            libc::sched_setscheduler(
                0,
                libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
                &raw const first,
            )
        };
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before that.
        if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: between fork and exec it makes seven system calls and takes no memory.
    unsafe { command.pre_exec(confined) };
}

/// The options that cut a machine into nodes. These are as far from each other as described, or
/// each twice as far from the others as from itself. Nothing takes longer for that.
fn numa(machine: &Machine<'_>) -> Vec<String> {
    let (nodes, mut options) = (machine.nodes, Vec::new());
    let cpus = machine.shape.map_or(machine.cpus / nodes, Shape::room_of_node);
    let memory = machine.memory / u32::from(nodes);
    for node in (0..nodes).filter(|_| nodes > 1) {
        let (first, last) = (node * cpus, node * cpus + cpus - 1);
        options.extend([
            "-object".to_string(),
            format!("memory-backend-ram,id=memory{node},size={memory}M"),
        ]);
        options.extend([
            "-numa".to_string(),
            format!("node,nodeid={node},memdev=memory{node},cpus={first}-{last}"),
        ]);
    }
    for (from, to) in (0..nodes)
        .flat_map(|from| (0..nodes).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
    {
        let distance = machine.shape.map_or(20, |shape| shape.distance(from, to));
        options.extend(["-numa".to_string(), format!("dist,src={from},dst={to},val={distance}")]);
    }
    options
}

/// A path as part of one of QEMU's options, in which a comma is written twice.
fn option(kind: &str, path: &Path) -> String {
    format!("{kind}{}", path.display().to_string().replace(',', ",,"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn fake(says: &str) -> Result<Qemu, Error> {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("qemu");
        std::fs::write(&program, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Qemu::at(Program::plain(&program))
    }

    #[test]
    fn an_old_or_strange_emulator_is_refused_with_what_to_do() {
        assert_eq!(
            fake("QEMU emulator version 7.2.22 (Debian)").unwrap().version,
            "7.2.22 (Debian)"
        );
        let old = fake("QEMU emulator version 5.2.0").unwrap_err();
        assert_eq!(old.exit_code(), 77);
        assert!(
            old.to_string().contains("too old") && old.to_string().contains("apt-get install"),
            "{old}"
        );
        assert!(fake("hello").unwrap_err().to_string().contains("hello"));
    }
}
