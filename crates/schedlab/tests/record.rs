//! `schedlab record` with a perf that is missing, may not, dies, or works; and with the machine's
//! own where it may record.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What these tests mount is the whole machine's, so they run one after another.
static ALONE: Mutex<()> = Mutex::new(());

/// A directory of this test's own with a `perf` in it, removed when it is dropped.
struct Scratch(PathBuf, #[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir =
            std::env::temp_dir().join(format!("schedlab-record-{test}-{}", std::process::id()));
        fs::create_dir_all(dir.join("bin")).expect("a scratch directory");
        Scratch(dir, ALONE.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a shell script in the place of perf.
    fn perf(self, script: &str) -> Scratch {
        let perf = self.0.join("bin/perf");
        fs::write(&perf, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).expect("its permissions");
        self
    }

    /// Puts a shell script in the place of schedlab-recorder.
    fn recorder(self, script: &str) -> Scratch {
        let recorder = self.0.join("schedlab-recorder");
        fs::write(&recorder, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&recorder, fs::Permissions::from_mode(0o755)).expect("permissions");
        self
    }

    /// `schedlab record -o recording COMMAND` with this perf before all others, and this recorder.
    fn record(&self, output: &str, command: &[&str]) -> Output {
        self.record_with(&[], output, command)
    }

    fn record_with(&self, options: &[&str], output: &str, command: &[&str]) -> Output {
        let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.0.join("bin").display());
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let recorder = self.0.join("schedlab-recorder");
        if recorder.is_file() {
            schedlab.env("SCHEDLAB_RECORDER", recorder);
        }
        schedlab
            .current_dir(&self.0)
            .env("PATH", path)
            .args(["record", "-o", output])
            .args(options)
            .arg("--")
            .args(command);
        schedlab.output().expect("the program starts")
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0)
            .expect("the directory")
            .map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries
            .map(|name| name.to_string_lossy().into_owned())
            .filter(|name| name != "bin")
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The output's exit code must be `code`, and its messages must have all of `words`.
fn says(output: &Output, code: i32, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{message}");
    words.iter().for_each(|word| assert!(message.contains(word), "{word:?} is not in {message:?}"));
}

/// Whether this user can reach tracepoints at all; without, nothing gets as far as perf.
fn tracepoints() -> bool {
    let reachable =
        fs::read_dir("/sys/kernel/tracing/events").is_ok() || rustix::process::geteuid().is_root();
    if !reachable {
        eprintln!("skipped: tracepoints take root");
    }
    reachable
}

/// A perf that records what was recorded before.
fn working_perf() -> String {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/data/sort-z.perf.data");
    format!(
        "while [ $# -gt 0 ]; do [ \"$1\" = --output ] && cp {recording} \"$2\"; [ \"$1\" = -- ] \
         && break; shift; done\nshift; exec \"$@\""
    )
}

#[test]
fn a_command_that_cannot_be_started_is_refused_before_anything_is_recorded() {
    let scratch = Scratch::new("command").perf("echo perf ran >&2; exit 1");
    says(&scratch.record("a", &["no-such-command"]), 2, &["no-such-command", "no such command"]);
    says(&scratch.record("a", &["./no/such/file"]), 2, &["no such file"]);
    fs::write(scratch.0.join("text"), "not a program").expect("a file");
    says(&scratch.record("a", &["./text"]), 2, &["not an executable"]);
    assert_eq!(scratch.files(), ["text"], "nothing is left behind");
}

#[test]
fn a_missing_perf_comes_with_the_command_that_installs_it() {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .env("PATH", "/nowhere")
        .args(["record", "-o", "perf.data", "--", "/bin/true"])
        .output();
    says(&output.expect("the program starts"), 77, &["perf is missing", "install"]);
}

#[test]
fn without_the_recorder_and_perf_both_are_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .env("PATH", "/nowhere")
        .env("SCHEDLAB_RECORDER", "/nowhere")
        .args(["record", "-o", "a.rec", "--", "/bin/true"])
        .output();
    let output = output.expect("the program starts");
    says(&output, 77, &["-p schedlab-recorder", "SCHEDLAB_RECORDER", "perf is missing"]);
}

#[test]
fn without_the_recorder_perf_records_and_the_output_says_so() {
    if !tracepoints() {
        return;
    }
    let scratch =
        Scratch::new("fallback").perf(&working_perf()).recorder("echo no BPF >&2; exit 77");
    let output = scratch.record("a.rec", &["true"]);
    says(&output, 0, &["the recorder of causes does not work here: no BPF"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("recorded with system calls, by perf"), "{said}");
    // The calls of the command are not those of all tasks.
    let output = scratch.record_with(&["--all"], "a.rec", &["true"]);
    says(&output, 0, &["no BPF"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("recorded without causes, by perf"), "{said}");
}

/// Where the kernel has no tracepoints of calls.
#[test]
fn without_calls_perf_records_the_scheduler() {
    if !tracepoints() {
        return;
    }
    let refuses = format!(
        "case \"$*\" in *raw_syscalls*) echo no such tracepoint >&2; exit 1;; esac\n{}",
        working_perf()
    );
    let scratch = Scratch::new("no-calls").perf(&refuses).recorder("echo no BPF >&2; exit 77");
    let output = scratch.record("a.rec", &["true"]);
    says(&output, 0, &["no BPF"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("recorded without causes, by perf"), "{said}");
    let output = scratch.record_with(&["--recorder=perf-calls"], "a.data", &["true"]);
    says(&output, 77, &["system calls", "no such tracepoint"]);
}

/// Options that perf does not have are not dropped in silence, and reach the recorder.
#[test]
fn what_only_the_recorder_can_do_does_not_fall_back() {
    let scratch =
        Scratch::new("options").perf(&working_perf()).recorder("echo no BPF >&2; exit 77");
    let options = [
        "--budget=3%",
        "--snapshot=10s",
        "--hide-names",
        "--paths",
        "--cgroup=a",
        "--uprobes",
        "--calibrate",
        "--light-run=2",
    ];
    for option in options {
        let name = option.split('=').next().expect("a name");
        let output = scratch.record_with(&[option], "a.rec", &["true"]);
        says(&output, 77, &[name, "needs the recorder of causes", "no BPF"]);
        let output = scratch.record_with(&[option], "perf.data", &["true"]);
        says(&output, 2, &[name, "NAME.rec"]);
    }
    assert_eq!(scratch.files(), ["schedlab-recorder"], "nothing is recorded");
    let scratch = scratch.recorder("[ \"$1\" = --check ] && exit 0; echo \"$*\" >&2; exit 1");
    let given = ["--pid=1", "--budget=3%", "--snapshot=10s", "--when=test -e a", "--hide-names"];
    let output = scratch.record_with(&given, "a.rec", &["true", "x"]);
    says(&output, 1, &[&format!("-o a.rec {} -- true x", given.join(" "))]);
}

/// What is asked for by name is used, or its absence is the answer.
#[test]
fn a_recorder_by_name_does_not_fall_back() {
    let scratch =
        Scratch::new("by-name").perf(&working_perf()).recorder("echo no BPF >&2; exit 77");
    says(&scratch.record_with(&["--recorder=bpf"], "a.rec", &["true"]), 77, &["no BPF"]);
    says(&scratch.record_with(&["--recorder=bpf"], "a.data", &["true"]), 2, &["NAME.rec"]);
    says(&scratch.record_with(&["--recorder=perf"], "a.rec", &["true"]), 2, &["no causes"]);
    let both = ["--recorder=perf", "--all"];
    says(&scratch.record_with(&both, "a.data", &["true"]), 2, &["--all", "--recorder perf"]);
    assert_eq!(scratch.files(), ["schedlab-recorder"], "nothing is recorded");
    if tracepoints() {
        says(&scratch.record_with(&["--recorder=perf"], "a.data", &["true"]), 0, &[]);
        assert_eq!(scratch.files(), ["a.data", "schedlab-recorder"]);
    }
}

#[test]
fn a_recorder_that_fails_is_reported_and_perf_does_not_take_its_place() {
    let scratch = Scratch::new("failing").perf(&working_perf());
    let scratch = scratch.recorder("[ \"$1\" = --check ] && exit 0; echo it fell >&2; exit 1");
    says(&scratch.record("a.rec", &["true"]), 1, &["it fell", "ended with exit status: 1"]);
    assert_eq!(scratch.files(), ["schedlab-recorder"], "no recording is left");
}

#[test]
fn causes_of_a_process_are_not_for_perf() {
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(["record", "-o", "perf.data", "--pid", "1", "--", "/bin/true"])
        .output();
    says(&output.expect("the program starts"), 2, &["NAME.rec"]);
}

/// Where this machine allows it, and the recorder is built.
#[test]
fn causes_are_recorded_and_read() {
    let scratch = Scratch::new("causes");
    let command = ["sh", "-c", "echo | cat; exit 3"];
    let output = scratch.record("a.rec", &command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !said.contains("recorded with causes, by schedlab-recorder") {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    says(&output, 0, &["the command ended with exit status: 3"]);
    let inspected = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .current_dir(&scratch.0)
        .args(["inspect", "a.rec"])
        .output()
        .expect("the program starts");
    says(&inspected, 0, &[]);
    let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
    assert!(text.contains("schedlab recording") && text.contains("sched_waking"), "{text}");
}

#[test]
fn a_missing_permission_comes_with_what_perf_said() {
    if !tracepoints() {
        return;
    }
    let scratch =
        Scratch::new("permission").perf("echo 'Permission denied by somebody' >&2; exit 255");
    says(
        &scratch.record("a", &["true"]),
        77,
        &["perf may not record", "Permission denied by somebody", "record"],
    );
    assert_eq!(scratch.files(), [""; 0], "nothing is left behind");
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() {
    let scratch = Scratch::new("place").perf(&working_perf());
    says(&scratch.record("no/such/place/a", &["true"]), 2, &["no/such/place/a"]);
}

#[test]
fn a_recording_is_kept_also_when_its_command_fails_and_may_be_compressed() {
    if !tracepoints() {
        return;
    }
    let scratch = Scratch::new("works").perf(&working_perf());
    let output = scratch.record("a.data", &["sh", "-c", "echo out; exit 3"]);
    says(&output, 0, &["the command ended with exit status: 3"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("out\na.data: ") && text.contains("Next: schedlab compare a.data"),
        "{text}"
    );
    says(&scratch.record("a.data.zst", &["true"]), 0, &[]);
    assert_eq!(scratch.files(), ["a.data", "a.data.zst"]);
    assert!(
        fs::read(scratch.0.join("a.data.zst"))
            .expect("the file")
            .starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
    );
}

#[test]
fn a_perf_that_writes_nothing_is_an_error_and_keeps_what_was_there() {
    if !tracepoints() {
        return;
    }
    let scratch = Scratch::new("nothing").perf("exit 0");
    fs::write(scratch.0.join("a"), "before").expect("a file");
    says(&scratch.record("a", &["true"]), 1, &["perf wrote nothing"]);
    assert_eq!(fs::read_to_string(scratch.0.join("a")).expect("the file"), "before");
    assert_eq!(scratch.files(), ["a"]);
}

/// With the machine's own perf: a command that ends at once, one that works, and tracefs as it was
/// before.
#[test]
fn the_real_perf_records_and_leaves_no_mount_behind() {
    let mounts =
        || fs::read_to_string("/proc/mounts").unwrap_or_default().matches(" tracefs ").count();
    let (scratch, before) = (Scratch::new("real"), mounts());
    let output = scratch.record("a", &["true"]);
    if output.status.code() == Some(77) {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    says(&output, 0, &[]);
    says(
        &scratch.record("b.zst", &["sh", "-c", "for i in 1 2 3 4 5; do sleep 0.01; done"]),
        0,
        &[],
    );
    assert_eq!(mounts(), before);
    let inspect = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("inspect")
        .arg(scratch.0.join("b.zst"))
        .output()
        .expect("inspect");
    let text = String::from_utf8_lossy(&inspect.stdout).into_owned();
    assert!(text.contains("lost events: 0") && text.contains("sleep/"), "{text}");
    assert!(text.contains("unknown 0"), "the interrupt flags are recorded: {text}");
}
