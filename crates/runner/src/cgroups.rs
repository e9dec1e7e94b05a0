//! The control groups of a job: made before its tasks, removed after its end.
//!
//! All lie inside one group of the job. So a task without a group competes with the groups as it
//! would at the root. Tasks of one process may be in different groups: that needs a threaded
//! subtree, which the CPU controller allows.
//!
//! Source: Linux 6.18, `Documentation/admin-guide/cgroup-v2.rst`, "Threads" and "CPU".

use crate::guest;
use phases::CgroupOptions;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the hierarchy.
const ROOT: &str = "/sys/fs/cgroup";

/// Makes the groups of job `number` and moves this process, which has one thread, into the group of
/// the job.
pub fn make(number: usize, groups: &[CgroupOptions]) -> Result<(), String> {
    if groups.is_empty() {
        return Ok(());
    }
    if guest::is_guest() && !Path::new(ROOT).join("cgroup.procs").exists() {
        guest::mount(c"cgroup2", c"/sys/fs/cgroup")?;
    }
    let own = of_job(number);
    write(&Path::new(ROOT).join("cgroup.subtree_control"), "+cpu")?;
    create(&own)?;
    write(&own.join("cgroup.procs"), "0")?;
    for index in 0..groups.len() {
        let group = of_group(number, index);
        create(&group)?;
        write(&group.join("cgroup.type"), "threaded")?;
    }
    write(&own.join("cgroup.subtree_control"), "+cpu")?;
    for (index, &CgroupOptions { weight, max, period }) in groups.iter().enumerate() {
        let group = of_group(number, index);
        write(&group.join("cpu.weight"), &weight.to_string())?;
        if let Some(max) = max {
            write(&group.join("cpu.max"), &format!("{} {}", max.0 / 1000, period.0 / 1000))?;
        }
    }
    Ok(())
}

/// Moves the calling thread into a group of the job; false if the kernel refuses.
pub fn enter(number: usize, index: usize) -> bool {
    fs::write(of_group(number, index).join("cgroup.threads"), "0").is_ok()
}

/// Removes the groups of a job after its tasks have ended.
pub fn remove(number: usize, count: usize) {
    (0..count)
        .map(|index| of_group(number, index))
        .chain((count > 0).then(|| of_job(number)))
        .for_each(|group| {
            // A group that remains until the machine is switched off does no harm.
            let _ = fs::remove_dir(group);
        });
}

fn of_job(number: usize) -> PathBuf {
    Path::new(ROOT).join(format!("schedlab-{number}"))
}

fn of_group(number: usize, index: usize) -> PathBuf {
    of_job(number).join(format!("group-{index}"))
}

fn create(group: &Path) -> Result<(), String> {
    fs::create_dir(group)
        .map_err(|error| format!("the control group {} cannot be made: {error}", group.display()))
}

fn write(file: &Path, value: &str) -> Result<(), String> {
    fs::write(file, value)
        .map_err(|error| format!("{} does not take `{value}`: {error}", file.display()))
}
