//! A guest takes nothing of this machine beyond its folder, and leaves nothing there.
//!
//! Most tests run an emulator that is a script: it does what no guest of a test would do, and is
//! there on every machine.

use bench::Bench;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

#[path = "support/bench.rs"]
mod bench;

const PREFIX: &str = program::Scratch::PREFIX;

/// Writes file after file into its folder, as a guest does that is ended at a bad time. It sleeps in
/// between: emulators have a priority above that of all others.
const BUSY: &str = "i=0; while :; do i=$((i + 1)); : > file-$i; sleep 0.002; done";

/// The program, which boots a guest with `kernel`.
fn booting(bench: &Bench, kernel: &Path) -> Command {
    let mut schedlab = bench.command();
    schedlab
        .args(["compare", "yield:2", "--on", "vm", "--settle", "1000s", "--kernel"])
        .arg(kernel)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    schedlab
}

/// Starts it with signals as they usually are: a test under nohup, or in the background of a script,
/// has some ignored, which it would inherit.
fn start(bench: &Bench) -> Running {
    let mut command = booting(bench, &bench.at("vmlinuz"));
    let as_usual = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            // SAFETY: two numbers.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: what runs between fork and exec are three system calls.
    unsafe { command.pre_exec(as_usual) };
    Running(command.spawn().expect("the program starts"))
}

fn run(bench: &Bench) -> Output {
    booting(bench, &bench.at("vmlinuz")).output().expect("the program starts")
}

/// The temporary folders in which an emulator is at work.
fn folders(bench: &Bench) -> Vec<PathBuf> {
    let entries = fs::read_dir(bench.at("tmp")).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.join("file-9").exists()).collect()
}

fn left(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.at("tmp")).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A program that does not outlive its test.
struct Running(Child);

impl Running {
    fn signal(&mut self, signal: i32) -> std::process::ExitStatus {
        // SAFETY: it takes two numbers.
        assert_eq!(unsafe { libc::kill(self.0.id().cast_signed(), signal) }, 0);
        self.0.wait().expect("it can be waited for")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks for a minute.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let held = (0..3000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        holds()
    });
    assert!(held, "waited a minute for this: {what}");
}

/// The living children of a process.
fn children(pid: u32) -> Vec<u32> {
    let of = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_threads = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let all: String = of_threads.fold(of, |all, some| all + " " + &some);
    let mut all: Vec<u32> = all.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    all.sort();
    all.dedup();
    all
}

fn is_over(pid: &u32) -> bool {
    !Path::new(&format!("/proc/{pid}/fd/0")).exists()
}

#[test]
fn a_signal_ends_the_guest_and_removes_its_folder() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        let bench = Bench::new(BUSY);
        let mut schedlab = start(&bench);
        wait_until("a guest at work", || !folders(&bench).is_empty());
        let guests = children(schedlab.0.id());
        assert!(!guests.is_empty(), "no guest is seen");
        let status = schedlab.signal(signal);
        assert_eq!(status.signal(), Some(signal), "{status}");
        assert_eq!(left(&bench), Vec::<String>::new(), "after signal {signal}");
        wait_until("the end of the guests", || guests.iter().all(is_over));
    }
}

#[test]
fn after_a_kill_the_next_start_removes_the_folder_and_spares_those_in_use() {
    let bench = Bench::new(BUSY);
    let mut killed = start(&bench);
    wait_until("a guest at work", || !folders(&bench).is_empty());
    let guests = children(killed.0.id());
    killed.signal(libc::SIGKILL);
    wait_until("the end of the guests", || guests.iter().all(is_over));
    let dead = left(&bench);
    // A child that was just being started still has the locks of its parent.
    let is_free = |name: &String| {
        let folder = fs::File::open(bench.at("tmp").join(name)).expect("a folder");
        folder.try_lock().is_ok()
    };
    wait_until("the end of the locks", || dead.iter().all(is_free));
    assert!(!dead.is_empty(), "nothing is left, so nothing is tested");
    let mut second = start(&bench);
    let others = || left(&bench).into_iter().filter(|name| !dead.contains(name)).count();
    wait_until("the second's guests", || {
        folders(&bench).iter().any(|path| !dead.iter().any(|name| path.ends_with(name)))
    });
    assert!(left(&bench).iter().all(|name| !dead.contains(name)), "{:?} of {dead:?}", left(&bench));
    let before = others();
    let mut third = start(&bench);
    wait_until("the third's guests", || others() > before);
    assert!(second.0.try_wait().expect("its status").is_none(), "the second has lost its folder");
    third.signal(libc::SIGTERM);
    second.signal(libc::SIGTERM);
    assert_eq!(left(&bench), Vec::<String>::new());
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let bench = Bench::new(BUSY);
    let mut command = Command::new("nohup");
    let inner = booting(&bench, &bench.at("vmlinuz"));
    command.arg(inner.get_program()).args(inner.get_args()).stdin(Stdio::null());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut schedlab = Running(command.spawn().expect("nohup"));
    wait_until("a guest at work", || !folders(&bench).is_empty());
    // SAFETY: it takes two numbers.
    assert_eq!(unsafe { libc::kill(schedlab.0.id().cast_signed(), libc::SIGHUP) }, 0);
    std::thread::sleep(Duration::from_millis(200));
    assert!(schedlab.0.try_wait().expect("its status").is_none(), "a hang-up ended it");
    assert_eq!(schedlab.signal(libc::SIGTERM).signal(), Some(libc::SIGTERM));
    assert_eq!(left(&bench), Vec::<String>::new());
}

/// The exit code, and what is said.
fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_guest_that_takes_too_much_is_ended_and_the_limit_is_named() {
    let too_long = Bench::new("exec truncate -s 2G console");
    let (code, text) = said(&run(&too_long));
    assert!(code == Some(3) && text.contains("one of its files grew beyond 768 MiB"), "{text}");
    let too_big = Bench::new("exec dd if=/dev/zero of=/dev/null bs=8G count=1");
    let (code, text) = said(&run(&too_big));
    assert!(code == Some(3) && text.contains("QEMU needs more than 4608 MiB"), "{text}");
    for bench in [too_long, too_big] {
        assert_eq!(left(&bench), Vec::<String>::new());
    }
}

#[test]
fn two_programs_at_once_fetch_a_kernel_once() {
    let bench = Bench::new("exit 0");
    let at = |name: &str| bench.at(name).display().to_string();
    let (image, log) = (at("vmlinuz"), at("log"));
    let options = ["SERIAL_8250_CONSOLE", "BLK_DEV_INITRD", "X86_IOPL_IOPERM", "BINFMT_ELF"];
    let config: String = options.iter().map(|name| format!("CONFIG_{name}=y\n")).collect();
    fs::write(at("config"), config + "CONFIG_DEVTMPFS=y\n").unwrap();
    let fetch = format!(
        "case \"$*\" in *indextargets*) echo http://site.invalid trixie;; *download*) echo fetched \
         >> {log}; sleep 1; echo > linux.deb;; esac"
    );
    bench.program("apt-get", &fetch);
    bench.program("apt-cache", "echo linux-image-6.18.1-cloud-amd64");
    let boot = "\"$3/boot\"";
    bench.program(
        "dpkg",
        &format!(
            "mkdir -p {boot} && cp {image} {boot}/vmlinuz-6.18.1-cloud-amd64 && cp {} \
             {boot}/config-6.18.1-cloud-amd64",
            at("config")
        ),
    );
    let start = || booting(&bench, Path::new("6.18")).spawn().expect("the program starts");
    let outputs = [start(), start(), start()].map(|child| said(&child.wait_with_output().unwrap()));
    for (code, text) in &outputs {
        assert!(*code == Some(3) && text.contains("did not start the runner"), "{text}");
    }
    let waiting = outputs.iter().filter(|(_, text)| text.contains("waiting")).count();
    assert_eq!(fs::read_to_string(at("log")).unwrap(), "fetched\n", "{waiting} have waited");
    let kept: Vec<String> = fs::read_dir(bench.at("cache/schedlab/kernels"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(kept, ["6.18"], "{PREFIX}* is temporary");
}

/// What the monitor of the emulator at `path` answers to `command`.
fn ask(path: &Path, command: &str) -> String {
    let mut stream = UnixStream::connect(path).expect("the monitor");
    let mut answer = || {
        let (mut text, mut byte) = (Vec::new(), [0]);
        while !text.ends_with(b"(qemu) ") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
            text.push(byte[0]);
        }
        (String::from_utf8_lossy(&text).into_owned(), stream.try_clone().expect("a stream"))
    };
    let (_, mut monitor) = answer();
    monitor.write_all(format!("{command}\n").as_bytes()).expect("it listens");
    // The first line is the command, letter by letter with movements of the cursor.
    let (text, _) = answer();
    text.lines().skip(1).filter(|line| !line.contains("(qemu)")).collect()
}

#[test]
fn a_guest_has_no_network_and_its_emulator_writes_to_no_file_outside_its_folder() {
    let found = worlds::vm::Qemu::find().and_then(|_| worlds::vm::Kernel::find("6.18", &|_| {}));
    let kernel = match found {
        Ok(kernel) => kernel,
        Err(missing) => return eprintln!("skipped: a guest's files and network: {missing}"),
    };
    let bench = Bench::new("exit 0");
    fs::remove_file(bench.at("bin/qemu-system-x86_64")).unwrap();
    let schedlab = Running(booting(&bench, &kernel.image).spawn().expect("the program starts"));
    let monitor = || {
        let folders = fs::read_dir(bench.at("tmp")).unwrap().flatten();
        let inner = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
        inner.flatten().map(|entry| entry.path().join("monitor")).find(|path| path.exists())
    };
    wait_until("a guest's monitor", || monitor().is_some());
    let path = monitor().unwrap();
    for devices in ["network", "block"] {
        assert_eq!(ask(&path, &format!("info {devices}")), "", "{devices}");
    }
    let guests = children(schedlab.0.id());
    assert!(!guests.is_empty(), "no guest is seen");
    let mut seen = 0;
    for guest in guests {
        let unix = fs::read_to_string(format!("/proc/{guest}/net/unix")).unwrap_or_default();
        for entry in fs::read_dir(format!("/proc/{guest}/fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let number = entry.file_name().to_string_lossy().into_owned();
            let info = fs::read_to_string(format!("/proc/{guest}/fdinfo/{number}"));
            let flags = info
                .unwrap_or_default()
                .lines()
                .find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
            if flags.is_none_or(|flags| flags & 3 == 0) {
                continue;
            }
            seen += 1;
            let name = target.to_string_lossy().into_owned();
            let inode = name.strip_prefix("socket:[").map(|rest| rest.trim_end_matches(']'));
            let is_local = inode.is_some_and(|inode| unix.contains(inode));
            let is_ours = target.starts_with(bench.at("tmp"))
                || name.starts_with("pipe:")
                || name.starts_with("anon_inode:")
                || name == "/dev/null";
            assert!(is_ours || is_local, "the emulator {guest} has {name} open for writing");
        }
    }
    assert!(seen > 0, "no open file is seen, so nothing is tested");
}
