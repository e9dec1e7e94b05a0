//! The commands that switch a setting on. `chrt`, `renice`, `taskset` and `pgrep` are part of
//! util-linux and procps; groups are those of cgroup v2.
//!
//! `pgrep -w` lists threads: the settings of Linux belong to threads, and recordings name threads.

use super::{Assignment, Deployment, Text};
use crate::experiment::parse_policy;
use program::shell_word;
use schedlab_runner::class::Class;
use schedsim::workload::Setting;

/// The schedulers in BPF of `schedlab-scx`, each with the policy that makes the same decisions.
pub const IN_BPF: [(&str, &str); 5] = [
    ("bpf:rr", "central:rr"),
    ("bpf:ruler", "central:ruler"),
    ("bpf:priority", "central:priority"),
    ("bpf:rbtree", "central:rbtree"),
    ("bpf:pslist", "pslist"),
];

/// What switches a candidate on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SwitchOn {
    /// Lines for a root shell; empty if there are none.
    pub commands: Vec<String>,
    /// Whether the kernel must have sched_ext.
    pub sched_ext: bool,
}

impl SwitchOn {
    /// The candidate of this name, as in results: settings, a class of the kernel, a scheduler.
    pub fn of(candidate: &str) -> SwitchOn {
        let by_settings = |commands| SwitchOn { commands, sched_ext: false };
        let by_sched_ext = |commands| SwitchOn { commands, sched_ext: true };
        let ours =
            |name| by_sched_ext(vec![format!("schedlab-scx {} --this-machine", shell_word(name))]);
        if let Some(class) = candidate.strip_prefix("kernel:") {
            return class.parse().map(|class| by_settings(start(class))).unwrap_or_default();
        }
        if candidate.starts_with("bpf:") {
            return ours(candidate);
        }
        if let Some(stranger) = candidate.strip_prefix("scx:") {
            return by_sched_ext(load(stranger).into_iter().collect());
        }
        if let Ok(policy) = parse_policy(candidate) {
            // Policies that match the kernel's own schedulers are switched on by the kernel's
            // settings. The others run under sched_ext, in the kernel if they are written in BPF.
            let twin = IN_BPF.iter().find(|(_, twin)| *twin == candidate);
            return match policy.descriptor().name {
                "eevdf" | "cfs" | "o1" => SwitchOn::default(),
                _ => ours(twin.map_or(candidate, |(name, _)| name)),
            };
        }
        let deployment = candidate.parse::<Deployment>();
        deployment.map(|deployment| by_settings(deployment.commands())).unwrap_or_default()
    }
}

/// Loads the object that `stranger` names, with its constants. Sources, published schedulers and
/// programs have loaders of their own.
fn load(stranger: &str) -> Option<String> {
    let mut words = stranger.split_whitespace();
    let object = words.next().filter(|file| file.ends_with(".bpf.o"))?;
    let mut line = format!("schedlab-scx --object {}", shell_word(object));
    words.for_each(|constant| line += &format!(" --set {}", shell_word(constant)));
    Some(line + " --this-machine")
}

/// Starts a program in `class`.
fn start(class: Class) -> Vec<String> {
    match class {
        Class::Other => vec!["chrt -o 0 PROGRAM".to_string()],
        Class::Batch => vec!["chrt -b 0 PROGRAM".to_string()],
        Class::Idle => vec!["chrt -i 0 PROGRAM".to_string()],
        Class::Fifo(priority) => vec![format!("chrt -f {priority} PROGRAM")],
        Class::Rr(priority) => vec![format!("chrt -r {priority} PROGRAM")],
        Class::Deadline { runtime, deadline, period } => {
            vec![format!("chrt -d -T {runtime} -D {deadline} -P {period} 0 PROGRAM")]
        }
    }
}

impl Deployment {
    /// The lines for a root shell.
    pub fn commands(&self) -> Vec<String> {
        self.assignments
            .iter()
            .flat_map(|one| one.settings.iter().map(|setting| one.command(setting)))
            .collect()
    }
}

impl Assignment {
    fn command(&self, setting: &Setting) -> String {
        let each = |command: &str| format!("{} | xargs -n1 {command}", self.threads());
        match setting {
            Setting::Slice(length) if self.is_for_all() => {
                format!("echo {} > /sys/kernel/debug/sched/base_slice_ns", length.0)
            }
            // Slices of one program: Linux 6.12, and chrt of util-linux 2.42.
            Setting::Slice(length) => each(&format!("chrt -o -T {} -p 0", length.0)),
            Setting::Other => each("chrt -o -p 0"),
            Setting::Batch => each("chrt -b -p 0"),
            Setting::Idle => each("chrt -i -p 0"),
            Setting::Fifo(priority) => each(&format!("chrt -f -p {priority}")),
            Setting::RoundRobin(priority) => each(&format!("chrt -r -p {priority}")),
            Setting::Nice(nice) => each(&format!("renice -n {nice} -p")),
            Setting::Cpus(_) => {
                let list = Text(setting).to_string();
                each(&format!("taskset -cp {}", list.trim_start_matches("cpus=")))
            }
            Setting::Weight(weight) => {
                let folder = shell_word(&format!("/sys/fs/cgroup/{}", self.group()));
                format!(
                    "echo +cpu > /sys/fs/cgroup/cgroup.subtree_control && mkdir -p {folder} && \
                     echo {weight} > {folder}/cpu.weight && for pid in $({}); do echo $pid > \
                     {folder}/cgroup.procs; done",
                    self.threads().replacen("pgrep -w ", "pgrep ", 1)
                )
            }
        }
    }

    /// A command that prints the ids of the threads that it concerns.
    fn threads(&self) -> String {
        if self.is_for_all() {
            // Kernel threads are children of process 2, and keep their settings.
            return "pgrep -w -v -P 2".to_string();
        }
        match self.program.strip_suffix('*') {
            Some(begin) => format!("pgrep -w {}", shell_word(&format!("^{}", escaped(begin)))),
            None => format!("pgrep -w -x {}", shell_word(&escaped(&self.program))),
        }
    }

    /// A name for its control group.
    fn group(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        self.program.trim_end_matches('*').chars().map(plain).collect()
    }
}

/// An extended regular expression that matches only this name.
fn escaped(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        if r"\.[]{}()*+?|^$".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    fn commands(text: &str) -> Vec<String> {
        text.parse::<Deployment>().unwrap().commands()
    }

    #[test]
    fn each_setting_has_its_command() {
        for (text, command) in [
            ("xz: batch", "pgrep -w -x xz | xargs -n1 chrt -b -p 0"),
            ("xz: idle", "pgrep -w -x xz | xargs -n1 chrt -i -p 0"),
            ("xz: other", "pgrep -w -x xz | xargs -n1 chrt -o -p 0"),
            ("xz: fifo=50", "pgrep -w -x xz | xargs -n1 chrt -f -p 50"),
            ("xz: rr=1", "pgrep -w -x xz | xargs -n1 chrt -r -p 1"),
            ("redis-server: nice=-5", "pgrep -w -x redis-server | xargs -n1 renice -n -5 -p"),
            ("xz: cpus=0-1", "pgrep -w -x xz | xargs -n1 taskset -cp 0,1"),
            ("Web Content: batch", "pgrep -w -x 'Web Content' | xargs -n1 chrt -b -p 0"),
            ("g++: batch", r"pgrep -w -x 'g\+\+' | xargs -n1 chrt -b -p 0"),
            ("cc*: batch", "pgrep -w '^cc' | xargs -n1 chrt -b -p 0"),
            ("*: batch", "pgrep -w -v -P 2 | xargs -n1 chrt -b -p 0"),
            ("*: slice=3ms", "echo 3000000 > /sys/kernel/debug/sched/base_slice_ns"),
            ("xz: slice=1ms", "pgrep -w -x xz | xargs -n1 chrt -o -T 1000000 -p 0"),
            (
                "xz: weight=200",
                "echo +cpu > /sys/fs/cgroup/cgroup.subtree_control && mkdir -p /sys/fs/cgroup/xz \
                 && echo 200 > /sys/fs/cgroup/xz/cpu.weight && for pid in $(pgrep -x xz); do echo \
                 $pid > /sys/fs/cgroup/xz/cgroup.procs; done",
            ),
        ] {
            assert_eq!(commands(text), [command], "{text}");
        }
        assert_eq!(commands("a: batch, nice=5; b: idle").len(), 3);
    }

    #[test]
    fn a_policy_that_is_written_in_bpf_is_switched_on_in_the_kernel() {
        let by_sched_ext =
            |line: &str| SwitchOn { commands: vec![line.to_string()], sched_ext: true };
        for (name, policy) in IN_BPF {
            let line = format!("schedlab-scx {name} --this-machine");
            assert_eq!(SwitchOn::of(policy), by_sched_ext(&line));
            assert_eq!(SwitchOn::of(name), by_sched_ext(&line));
        }
        for (name, line) in [
            ("central:rr?quantum=1ms", "schedlab-scx 'central:rr?quantum=1ms' --this-machine"),
            ("take:rr", "schedlab-scx take:rr --this-machine"),
            (
                "scx:./main.bpf.o slice_ns=5ms",
                "schedlab-scx --object ./main.bpf.o --set slice_ns=5ms --this-machine",
            ),
        ] {
            assert_eq!(SwitchOn::of(name), by_sched_ext(line));
        }
    }

    #[test]
    fn settings_need_no_sched_ext_and_a_model_has_no_command() {
        for name in ["xz: batch", "kernel:fifo:50"] {
            let on = SwitchOn::of(name);
            assert!(!on.sched_ext && on.commands.len() == 1, "{name}: {on:?}");
        }
        assert_eq!(SwitchOn::of("eevdf"), SwitchOn::default());
        // Its loader is its own.
        let published = SwitchOn::of("scx:bpfland@1.1.4");
        assert!(published.sched_ext && published.commands.is_empty());
    }

    /// The list matches the sources, one file each.
    #[test]
    fn all_schedulers_in_bpf_are_known() {
        let folder = format!("{}/../../scx/bpf", env!("CARGO_MANIFEST_DIR"));
        let name = |file: fs::DirEntry| {
            Some(format!("bpf:{}", file.file_name().to_string_lossy().strip_suffix(".bpf.c")?))
        };
        let mut files: Vec<String> =
            fs::read_dir(folder).unwrap().filter_map(|file| name(file.unwrap())).collect();
        // Neither of these two is a scheduler by itself.
        let is_none = |name: &str| ["bpf:bridge", "bpf:witness"].contains(&name);
        files.retain(|name| !name.contains("canary") && !is_none(name));
        files.sort();
        let mut known: Vec<&str> = IN_BPF.iter().map(|(name, _)| *name).collect();
        known.sort();
        assert_eq!(files, known);
    }

    /// A program of its own name.
    struct Sleeper {
        child: Child,
        _folder: tempfile::TempDir,
    }

    impl Sleeper {
        fn start(name: &str) -> Option<Sleeper> {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            fs::copy("/bin/sleep", &path).ok()?;
            let child = Command::new(&path).arg("60").spawn().ok()?;
            let sleeper = Sleeper { child, _folder: folder };
            let begin = Instant::now();
            while sleeper.file("comm").trim() != name && begin.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Some(sleeper)
        }

        fn file(&self, name: &str) -> String {
            fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default()
        }

        /// Nice value, real-time priority and policy: fields 19, 40 and 41 of proc(5).
        fn schedule(&self) -> [i64; 3] {
            let stat = self.file("stat");
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
            [19, 40, 41].map(|field: usize| {
                fields.get(field - 3).and_then(|text| text.parse().ok()).unwrap_or(-99)
            })
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    /// The kernel that runs the test obeys the commands: SCHED_FIFO is 1, SCHED_RR 2, SCHED_BATCH
    /// 3, SCHED_IDLE 5.
    #[test]
    fn the_running_kernel_does_what_the_commands_say() {
        let has = |tool: &str| {
            Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        for tool in ["pgrep", "chrt", "renice", "taskset"] {
            assert!(has(tool), "{tool} is missing: apt-get install util-linux procps");
        }
        let name = format!("sl.{}", std::process::id());
        let sleeper = Sleeper::start(&name).expect("a copy of sleep runs");
        let run = |setting: &str| {
            commands(&format!("{name}: {setting}")).iter().for_each(|line| {
                let output = Command::new("sh").args(["-c", line]).output().unwrap();
                assert!(
                    output.status.success(),
                    "{line}: {}",
                    String::from_utf8_lossy(&output.stderr)
                );
            });
        };
        run("batch");
        assert_eq!(sleeper.schedule(), [0, 0, 3]);
        run("nice=7");
        assert_eq!(sleeper.schedule(), [7, 0, 3], "a batch task has a nice value");
        run("cpus=0");
        assert!(sleeper.file("status").contains("Cpus_allowed_list:\t0\n"));
        run("idle");
        assert_eq!(sleeper.schedule(), [7, 0, 5]);
        // The rest needs CAP_SYS_NICE.
        let is_root = fs::read_to_string("/proc/self/status")
            .is_ok_and(|status| status.contains("\nUid:\t0\t"));
        if !is_root {
            return;
        }
        run("fifo=50");
        assert_eq!(sleeper.schedule()[1..], [50, 1]);
        run("rr=1");
        assert_eq!(sleeper.schedule()[1..], [1, 2]);
        run("other");
        run("nice=-5");
        assert_eq!(sleeper.schedule(), [-5, 0, 0]);
    }
}
