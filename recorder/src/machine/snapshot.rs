//! What the machine and the tasks are set to when a recording begins.

use super::{numbers, threads};
use recording::{Cgroup, Conditions, Descriptor, Event, Frequency, What};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What is set on the machine, and for these processes.
pub fn conditions(release: &str, cpus: u16, processes: &[u32], paths: bool) -> Conditions {
    Conditions {
        online: read("/sys/devices/system/cpu/online"),
        frequencies: (0..cpus).filter_map(|cpu| Some((cpu, frequency(cpu)?))).collect(),
        features: read("/sys/kernel/debug/sched/features")
            .map(|text| text.split_whitespace().map(String::from).collect()),
        mitigations: mitigations(),
        kernel_config: fs::read("/proc/config.gz")
            .or_else(|_| fs::read(format!("/boot/config-{release}")))
            .ok()
            .map(|config| recording::fingerprint(&config)),
        cgroups: cgroups(processes),
        descriptors: processes.iter().flat_map(|tgid| descriptors(*tgid, paths)).collect(),
        calibrations: Vec::new(),
    }
}

/// The settings of all tasks that have others than usual: affinity, policy, nice value.
pub fn settings(time: u64, tasks: &[Event]) -> Vec<Event> {
    let usual = affinity(1);
    let mut settings = Vec::new();
    for tid in tasks.iter().map(|task| task.tid) {
        let task = tid.cast_signed();
        // SAFETY: numbers in, numbers out.
        let (policy, nice) =
            unsafe { (libc::sched_getscheduler(task), libc::getpriority(libc::PRIO_PROCESS, tid)) };
        if policy < 0 {
            continue;
        }
        let nice = i64::from(nice).cast_unsigned();
        let policy = u64::try_from(policy).unwrap_or(0);
        let allowed = affinity(task);
        for (which, value, is_usual) in [
            (0, allowed, allowed == usual || allowed == 0),
            (1, policy, policy == 0),
            (2, nice, nice == 0),
        ] {
            if !is_usual {
                let what = What::Setting { task: tid, which, value };
                settings.push(Event { time, cpu: 0, context: 0, tid, what });
            }
        }
    }
    settings
}

/// The first 64 CPUs on which a task may run; 0 if it is gone.
fn affinity(task: libc::pid_t) -> u64 {
    let mut words = [0_u64; 16];
    // SAFETY: the words outlive the call, and their size is given.
    let size =
        unsafe { libc::sched_getaffinity(task, size_of_val(&words), (&raw mut words).cast()) };
    if size < 0 { 0 } else { words[0] }
}

fn frequency(cpu: u16) -> Option<Frequency> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
    let number = |name: &str| read(format!("{folder}/{name}"))?.parse().ok();
    Some(Frequency {
        governor: read(format!("{folder}/scaling_governor"))?,
        min_khz: number("scaling_min_freq")?,
        max_khz: number("scaling_max_freq")?,
        current_khz: number("scaling_cur_freq").unwrap_or(0),
    })
}

fn mitigations() -> BTreeMap<String, String> {
    let files = fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten();
    let names = files
        .flatten()
        .filter_map(|file| Some((file.file_name().into_string().ok()?, read(file.path())?)));
    names.collect()
}

/// The folder of the control groups of version 2.
pub fn cgroup_root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut fields = mounts.lines().map(|line| line.split(' '));
    let found = fields.find(|fields| fields.clone().nth(2) == Some("cgroup2"))?.nth(1)?;
    Some(PathBuf::from(found))
}

fn cgroups(processes: &[u32]) -> Vec<Cgroup> {
    let Some(root) = cgroup_root() else { return Vec::new() };
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for tid in processes.iter().flat_map(|tgid| threads(*tgid)) {
        let text = read(format!("/proc/{tid}/cgroup")).unwrap_or_default();
        if let Some(path) = text.lines().find_map(|line| line.strip_prefix("0::")) {
            groups.entry(path.to_string()).or_default().push(tid);
        }
    }
    let known = |(path, tasks): (String, Vec<u32>)| {
        let relative = path.trim_start_matches('/');
        let folder = root.join(relative);
        let setting = |name: &str| Some((name.to_string(), read(folder.join(name))?));
        Some(Cgroup {
            id: fs::metadata(&folder).ok()?.ino(),
            level: relative.split('/').filter(|part| !part.is_empty()).count() as u32,
            settings: ["cpu.weight", "cpu.max", "cpuset.cpus.effective"]
                .into_iter()
                .filter_map(setting)
                .collect(),
            tasks,
        })
    };
    groups.into_iter().filter_map(known).collect()
}

fn descriptors(tgid: u32, paths: bool) -> Vec<Descriptor> {
    let folder = format!("/proc/{tgid}/fd");
    let known = |number: u32| {
        let link = format!("{folder}/{number}");
        let name = fs::read_link(&link).ok()?.to_string_lossy().into_owned();
        let status = fs::metadata(&link).ok()?;
        let kind = status.file_type();
        let class = match name.strip_prefix("anon_inode:") {
            Some(object) => object.trim_matches(['[', ']']).to_string(),
            None if kind.is_fifo() => "pipe".to_string(),
            None if kind.is_socket() => "socket".to_string(),
            None if kind.is_char_device() || kind.is_block_device() => "device".to_string(),
            None => "file".to_string(),
        };
        let path = (paths && Path::new(&name).is_absolute()).then_some(name);
        Some(Descriptor { tgid, number, class, inode: status.ino(), path })
    };
    let mut all: Vec<u32> = numbers(folder.clone()).collect();
    all.sort_unstable();
    all.into_iter().filter_map(known).collect()
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}
