//! Any kernel: changed, built out of sources, and bisected. What boots is skipped by name without
//! QEMU.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use worlds::vm::{Kernel, Qemu};

/// The image of one of Debian's kernels; `None`, said aloud, without QEMU.
fn image(kernel: &str) -> Option<PathBuf> {
    if let Err(missing) = Qemu::find() {
        eprintln!("skipped: real kernels: {missing}");
        return None;
    }
    Some(Kernel::find(kernel, &|_| {}).unwrap_or_else(|error| panic!("{error}")).image)
}

/// The program in an environment with a cache of its own, and with tools that are not needed in
/// what is no real source tree.
struct Laboratory(tempfile::TempDir);

impl Laboratory {
    fn new() -> Laboratory {
        let place = Laboratory(tempfile::tempdir().unwrap());
        for tool in ["flex", "bison", "bc"] {
            place.program(tool, "");
        }
        place
    }

    /// A script by this name in its path.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.file(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A source tree that makes what it has as `image`, and knows the symbols of the minimal
    /// configuration and `known`.
    fn tree(&self, name: &str, image: &[u8], known: &str) -> PathBuf {
        let makefile = "\
kernelversion:\n\t@echo 6.1.192\n\
allnoconfig:\n\t@grep -v 'NEVER\\|SELECTED' $(KCONFIG_ALLCONFIG) > $(O)/.config\n\
bzImage:\n\t@echo $(KBUILD_BUILD_TIMESTAMP) $(ARCH) >> $(O)/built\n\
\t@mkdir -p $(O)/arch/x86/boot\n\t@cp image $(O)/arch/x86/boot/bzImage\n";
        self.file(&format!("{name}/Makefile"), makefile);
        self.file(&format!("{name}/Kconfig"), format!("config {known}\n\tbool\n"));
        self.file(&format!("{name}/image"), image);
        self.at(name)
    }

    fn command(&self, arguments: &[&str], more: &[&Path]) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(arguments).args(more).env("XDG_CACHE_HOME", self.at("cache"));
        command.env("PATH", format!("{path}:{}", self.at("bin").display()));
        command
    }

    fn run(&self, arguments: &[&str], more: &[&Path]) -> Output {
        self.command(arguments, more).output().expect("the program starts")
    }

    /// With the schedulers' program `scx`, and with its own programs before all others.
    fn fails_under(&self, scx: &Path, arguments: &[&str], more: &[&Path], words: &[&str]) {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = self.command(arguments, more);
        let output = command.env("SCHEDLAB_SCX", scx).env("PATH", path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word:?} is not in {said}"));
    }

    fn fails(&self, code: i32, arguments: &[&str], more: &[&Path], words: &[&str]) {
        let output = self.run(arguments, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{word:?} is not in {said}"));
    }
}

/// A file that has all that says it is a bzImage of 6.1.192, and nothing that runs.
fn hollow() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0x202, b"HdrS\x0f\x02");
    put(0x20e, &0x400u16.to_le_bytes());
    put(0x236, &[1, 0]);
    put(0x600, b"6.1.192 (schedlab@schedlab) #1\0");
    bytes
}

fn rows(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    results["rows"].as_array().expect("rows").clone()
}

const YIELD: [&str; 6] = ["compare", "yield:2", "--on", "vm", "--ensemble", "1"];

#[test]
fn a_changed_kernel_states_what_it_read_back_and_counts_otherwise() {
    if image("6.18").is_none() {
        return;
    }
    let of = |more: &[&str]| {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = schedlab.args(YIELD).args(["--format", "json"]).args(more).output();
        rows(&output.unwrap())[0].clone()
    };
    let plain = of(&[]);
    let changed = of(&[
        "--kernel-arg",
        "preempt=full",
        "--sched-feature",
        "NO_RUN_TO_PARITY,HRTICK",
        "--sysctl",
        "kernel.sched_autogroup_enabled=0",
    ]);
    for (name, value) in [
        ("kernel_arguments", "preempt=full"),
        ("sched_features", "NO_RUN_TO_PARITY HRTICK"),
        ("sysctl", "kernel.sched_autogroup_enabled=0"),
    ] {
        assert_eq!(changed["point"][name], value);
        assert!(plain["point"][name].is_null(), "{plain}");
    }
    assert_ne!(plain["value"], changed["value"]);
    assert_ne!(plain["provenance"], changed["provenance"]);
}

#[test]
#[ignore = "long: tools/long"]
fn what_a_kernel_does_not_know_is_refused_by_name() {
    if image("6.18").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("some.ko");
    fs::write(&module, "no module").unwrap();
    let module = module.to_str().unwrap();
    for (option, value, said) in [
        ("--kernel-arg", "no_such=1", "does not know the argument no_such=1"),
        ("--sched-feature", "NO_SUCH", "feature NO_SUCH"),
        ("--sysctl", "kernel.no_such=1", "does not set kernel.no_such to 1"),
        ("--sysctl", "kernel.sched_rt_runtime_us=x", "does not set kernel.sched_rt_runtime_us"),
        ("--kernel-module", module, "does not load /modules/0/some.ko"),
    ] {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = schedlab.args(YIELD).args([option, value]).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{option} {value}: {message}");
        assert!(message.contains(said), "{said:?} is not in {message}");
        assert!(output.stdout.is_empty(), "no number");
    }
}

/// What is counted by function is what the clock counts, and counting changes no number.
#[test]
#[ignore = "long: tools/long"]
fn the_functions_of_a_workload_add_up_to_its_makespan() {
    if image("6.18").is_none() {
        return;
    }
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/kernels/wake-up.toml");
    let of = |more: &[&str]| {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        schedlab.args(["compare", workload, "--on", "vm", "--ensemble", "1", "--format", "json"]);
        rows(&schedlab.args(more).output().unwrap())
    };
    let makespan = |rows: &[Value]| {
        let row =
            rows.iter().find(|row| row["metric"] == "makespan_ns" && row["subject"].is_null());
        row.unwrap()["value"].as_f64().unwrap()
    };
    let (plain, split) = (of(&[]), of(&["--functions", "5"]));
    let functions: Vec<(String, f64)> = split
        .iter()
        .filter(|row| row["metric"] == "instructions_in_function")
        .map(|row| (row["subject"].as_str().unwrap().to_string(), row["value"].as_f64().unwrap()))
        .collect();
    let all: f64 = functions.iter().map(|(_, count)| count).sum();
    let apart = all / makespan(&split) - 1.0;
    assert!(apart.abs() < 0.02, "{all} instructions are {apart} apart from the makespan");
    // The two no-operations that mark the window are all that is added.
    assert!((makespan(&split) / makespan(&plain) - 1.0).abs() < 0.005);
    let count = |name: &str| functions.iter().find(|(of, _)| of == name).map_or(0.0, |(_, n)| *n);
    for name in ["try_to_wake_up", "__schedule", "anon_pipe_write"] {
        assert!(count(name) > 2_000.0 * 10.0, "{name}: {}", count(name));
    }
    assert!(!plain.iter().any(|row| row["metric"] == "instructions_in_function"));
}

#[test]
fn sources_are_built_once_for_each_content_and_configuration() {
    let place = Laboratory::new();
    let tree = place.tree("linux", &hollow(), "EXTRA");
    let fragment = place.file("some.config", "CONFIG_EXTRA=y\n");
    // Without QEMU, which is asked for after the build.
    let build = |more: &[&Path]| {
        let output = place.run(
            &["compare", "yield:2", "--on", "vm", "--settle", "0ms", "--kernel-source"],
            &[&[tree.as_path()], more].concat(),
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let names = || {
        let list = place.run(&["list", "kernels"], &[]);
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let words = list.split_whitespace().filter(|word| word.starts_with("6.1.192-built-"));
        words.map(str::to_string).collect::<Vec<_>>()
    };
    assert!(build(&[]).contains("building kernel 6.1.192-built-"));
    assert_eq!(names().len(), 1);
    assert!(!build(&[]).contains("building"), "it is in the cache");
    let with_fragment = [Path::new("--kconfig"), fragment.as_path()];
    assert!(build(&with_fragment).contains("building"));
    assert!(!build(&with_fragment).contains("building"));
    fs::write(&fragment, "# a comment changes nothing\nCONFIG_EXTRA=y\n").unwrap();
    assert!(!build(&with_fragment).contains("building"));
    assert_eq!(names().len(), 2);
    place.file("linux/kernel/sched/fair.c", "int changed;");
    assert!(build(&with_fragment).contains("building"), "a source was changed");
    assert_eq!(names().len(), 3);
    assert!(!tree.join(".config").exists() && !tree.join("arch").exists());
    // What was built is a kernel by its name.
    let known = place.run(&["compare", "yield:2", "--on", "vm", "--kernel", &names()[0]], &[]);
    assert!(!String::from_utf8_lossy(&known.stderr).contains("there is no kernel"));
}

#[test]
fn a_configuration_that_the_sources_do_not_take_is_refused_by_name() {
    let place = Laboratory::new();
    let tree = place.tree("linux", &hollow(), "SELECTED");
    let base = ["compare", "yield:2", "--on", "vm", "--kernel-source"];
    let refused = |text: &str, words: &[&str]| {
        let fragment = place.file("some.config", text);
        place.fails(3, &base, &[&tree, Path::new("--kconfig"), &fragment], words);
    };
    refused("CONFIG_SMP=y\nCONFIG_NEVER=y\n", &["some.config:2", "have no symbol CONFIG_NEVER"]);
    refused("CONFIG_SELECTED=y\n", &["CONFIG_SELECTED=y is not kept: it is n"]);
    refused("SMP=y\n", &["some.config:1: `SMP=y` is no setting"]);
    place.fails(3, &base, &[&place.at("bin")], &["is no source tree of Linux"]);
    place.fails(
        3,
        &base,
        &[&tree, Path::new("--kconfig"), &place.at("none.config")],
        &["none.config"],
    );
    place.file("linux/image", "no kernel");
    place.fails(3, &base, &[&tree], &["not a bzImage"]);
    fs::remove_file(tree.join("image")).unwrap();
    place.fails(3, &base, &[&tree], &["kernel 6.1.192 in", "does not build", "image"]);
    assert_eq!(fs::read_dir(place.at("cache/schedlab/kernels")).unwrap().count(), 0, "all gone");
}

#[test]
fn a_file_that_guests_cannot_boot_is_refused_with_what_it_is() {
    let place = Laboratory::new();
    place.program("qemu-system-x86_64", "echo QEMU emulator version 7.2.22");
    let scx = place.program("schedlab-scx", "echo bpf:rr");
    let refused = |file: &Path, policy: &str, words: &[&str]| {
        let policy = ["--policy", policy, "--kernel"].map(Path::new);
        place.fails_under(&scx, &YIELD, &[&policy[..], &[file]].concat(), words);
    };
    let mut arm = vec![0; 4096];
    arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
    refused(&place.file("arm", arm), "kernel:other", &["arm: a kernel for arm64", "x86-64"]);
    let mut old = hollow();
    old[0x236] = 0;
    refused(&place.file("old", old), "kernel:other", &["a kernel for 32-bit x86"]);
    refused(&place.file("text", "a text"), "kernel:other", &["not a bzImage"]);
    // What it was built with says its configuration, which lies beside it.
    let needs = "CONFIG_SERIAL_8250_CONSOLE CONFIG_BLK_DEV_INITRD CONFIG_X86_IOPL_IOPERM \
                 CONFIG_BINFMT_ELF CONFIG_DEVTMPFS";
    let config: String = needs.split(' ').map(|option| format!("{option}=y\n")).collect();
    let kernel = place.file("own/bzImage", hollow());
    place.file("own/.config", config.replace("CONFIG_DEVTMPFS=y", "CONFIG_DEVTMPFS=m"));
    refused(&kernel, "kernel:other", &["without device files (CONFIG_DEVTMPFS=y)"]);
    place.file("own/.config", format!("{config}CONFIG_SCHED_CLASS_EXT=y\n"));
    refused(&kernel, "bpf:rr", &["built without BTF (CONFIG_DEBUG_INFO_BTF=y)"]);
    place.file("own/.config", &config);
    refused(&kernel, "bpf:rr", &["built without sched_ext (CONFIG_SCHED_CLASS_EXT=y)"]);
}

#[test]
fn without_qemu_or_with_an_old_one_nothing_is_fetched_or_built_in_vain() {
    let place = Laboratory::new();
    let kernel = place.file("bzImage", hollow());
    let kernel = ["--kernel".as_ref(), kernel.as_path()];
    let said = |path: &Path| {
        let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = schedlab.args(YIELD).args(kernel).env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(77));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = said(&place.at("bin"));
    assert!(missing.contains("qemu-system-x86_64 is missing; install it with"), "{missing}");
    place.program("qemu-system-x86_64", "echo QEMU emulator version 6.2.0");
    let old = said(&place.at("bin"));
    assert!(old.contains("version 6.2.0 is too old, 7.2 is the oldest"), "{old}");
}

/// A tree that makes Debian's own kernel gives its numbers.
#[test]
#[ignore = "long: tools/long"]
fn a_built_kernel_counts_as_the_same_kernel_by_its_path() {
    let Some(image) = image("6.1") else { return };
    let place = Laboratory::new();
    let tree = place.tree("linux", &fs::read(&image).unwrap(), "EXTRA");
    let base = [&YIELD[..], &["--format", "json"]].concat();
    let value = |option: &str, path: &Path| {
        let output = place.run(&[&base[..], &[option]].concat(), &[path]);
        let row = rows(&output)[0].clone();
        (row["value"].clone(), row["point"]["kernel_sha256"].clone())
    };
    let built = value("--kernel-source", &tree);
    assert!(built.0.as_f64().is_some_and(|cost| cost > 500.0), "{built:?}");
    assert_eq!(built, value("--kernel", &image));
}

#[test]
#[ignore = "long: tools/long"]
fn a_bisection_over_commits_finds_the_commit_that_changed_the_number() {
    let (Some(old), Some(new)) = (image("6.1"), image("6.18")) else { return };
    let place = Laboratory::new();
    let tree = place.tree("linux", &fs::read(old).unwrap(), "EXTRA");
    let git = |words: &[&str]| -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(&tree).args(["-c", "user.name=n", "-c", "user.email=n@n"]);
        let output = command.args(words).output().expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    };
    let commit = |subject: &str| {
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", subject]);
        git(&["rev-parse", "HEAD"])
    };
    git(&["init", "-q"]);
    let good = commit("the old kernel");
    place.file("linux/note", "nothing that counts");
    commit("a note");
    let makefile = fs::read_to_string(tree.join("Makefile")).unwrap();
    place.file("linux/Makefile", makefile.replace("@cp image", "@cp missing"));
    commit("what does not build");
    place.file("linux/Makefile", &makefile);
    place.file("linux/image", fs::read(new).unwrap());
    let changed = commit("the new kernel");
    place.file("linux/note", "more of that");
    let bad = commit("another note");
    let range = ["--good", good.as_str(), "--bad", bad.as_str()];
    let words = ["bisect", "kernel", "--git", tree.to_str().unwrap()];
    let words = [&words[..], &range, &["--", "compare", "yield:2"]].concat();
    let output = place.run(&words, &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let short = |hash: &str| hash[..12].to_string();
    let line = |hash: &str| {
        let of = said.lines().find(|line| line.starts_with(&short(hash)));
        of.unwrap_or_else(|| panic!("{hash} is not in {said}")).to_string()
    };
    assert!(line(&changed).ends_with("bad"), "{said}");
    assert!(said.contains("skipped: kernel 6.1.192 in"), "{said}");
    let found = format!(
        "a note and {} the new kernel; {} what does not build between them cannot be measured",
        short(&changed),
        said.lines().find(|line| line.contains("skipped")).unwrap().split(' ').next().unwrap()
    );
    assert!(said.contains(&found), "{found:?} is not in {said}");
    assert_eq!(git(&["status", "--porcelain"]), "", "the tree is only read");
    let left = fs::read_dir(place.at("cache/schedlab/kernels")).unwrap().flatten();
    let is_kernel = |name: String| name.starts_with("6.1.192-built-");
    assert!(left.map(|entry| entry.file_name().into_string().unwrap()).all(is_kernel));
}

#[test]
fn commits_that_are_none_or_in_the_wrong_order_are_refused() {
    let place = Laboratory::new();
    let tree = place.tree("linux", &hollow(), "EXTRA");
    let mut git = Command::new("sh");
    let script = "git init -q && git add -A && git commit -q -m one && git tag one && \
                  git commit -q --allow-empty -m two && git tag two";
    git.args(["-c", script]).current_dir(&tree);
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "n").env(format!("GIT_{who}_EMAIL"), "n@n");
    }
    assert!(git.status().expect("sh").success());
    let refused = |good: &str, bad: &str, word: &str| {
        let words = ["bisect", "kernel", "--good", good, "--bad", bad, "--git"];
        let words = [&words[..], &[tree.to_str().unwrap(), "--", "compare", "yield:2"]].concat();
        place.fails(2, &words, &[], &[word]);
    };
    refused("two", "one", "two is no ancestor of one");
    refused("one", "three", "there is no commit `three`");
    refused("one", "one", "the same commit");
    place.fails(
        2,
        &["bisect", "kernel", "--good", "one", "--bad", "two", "--git"],
        &[&place.at("bin"), Path::new("--"), Path::new("compare"), Path::new("yield:2")],
        &["there is no commit `one`"],
    );
}
