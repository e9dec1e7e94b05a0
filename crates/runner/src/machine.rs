//! What kind of machine this is: its kernel, CPUs and nodes.

use schedlab_runner::event::Domains;

/// The release of the kernel.
pub fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|text| text.trim().to_string())
        .unwrap_or_default()
}

/// How many directories `/sys/devices/system/node` has for nodes.
pub fn nodes() -> u32 {
    names("/sys/devices/system/node").filter(|name| is_node(name)).count() as u32
}

/// How many CPUs are online.
pub fn cpus() -> u32 {
    // SAFETY: it takes a number only.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.try_into().unwrap_or(0)
}

/// The CPUs that are online.
pub fn online() -> Result<Vec<u16>, String> {
    let wrong = |text: &dyn std::fmt::Display| format!("{CPUS}/online: {text}");
    let text = std::fs::read_to_string(format!("{CPUS}/online")).map_err(|error| wrong(&error))?;
    list(text.trim()).ok_or_else(|| wrong(&text))
}

/// Switches a CPU on or off.
///
/// # Errors
/// If the kernel refuses to.
pub fn switch(cpu: u16, on: bool) -> Result<(), String> {
    let (state, name) = if on { ("1", "on") } else { ("0", "off") };
    std::fs::write(format!("{CPUS}/cpu{cpu}/online"), state)
        .map_err(|error| format!("the kernel does not switch CPU {cpu} {name}: {error}"))
}

/// Switches these CPUs off.
///
/// # Errors
/// If the kernel refuses to, or they are online afterwards.
pub fn switch_off(cpus: &[u16]) -> Result<(), String> {
    cpus.iter().try_for_each(|&cpu| switch(cpu, false))?;
    if cpus.is_empty() {
        return Ok(());
    }
    match online()?.iter().find(|cpu| cpus.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(format!("the kernel has not switched CPU {cpu} off")),
    }
}

/// The numbers of a list as `0,2-3`.
fn list(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u16>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

const CPUS: &str = "/sys/devices/system/cpu";

/// How the kernel sees each CPU that is online.
pub fn domains() -> Vec<Domains> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let all = domains_in(&text("/proc/schedstat"));
    let of = |(number, domains): (u16, Vec<String>)| {
        let cpu = format!("{CPUS}/cpu{number}");
        let caches = (0..).map(|index| format!("{cpu}/cache/index{index}/shared_cpu_map"));
        let cache = caches.map(|map| text(&map)).take_while(|map| !map.is_empty()).last();
        let node = names(&cpu)
            .find(|name| is_node(name))
            .map_or(String::new(), |name| text(&format!("/sys/devices/system/node/{name}/cpumap")));
        let core = text(&format!("{cpu}/topology/thread_siblings"));
        Domains { cpu: number, core, cache: cache.unwrap_or_default(), node, domains }
    };
    all.into_iter().map(of).collect()
}

fn names(directory: &str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

fn is_node(name: &str) -> bool {
    name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// For each CPU that is online the masks of its scheduling domains, from the inside out.
///
/// Lines are `cpu0 …` and then, for each of its domains, `domain0 03 …`; newer kernels have the
/// domain's name before the mask: `domain0 SMT 03 …`.
fn domains_in(text: &str) -> Vec<(u16, Vec<String>)> {
    let is_mask = |word: &&str| word.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
    let mut cpus: Vec<(u16, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let mask = words.find(is_mask);
        if let Some(Ok(cpu)) = first.strip_prefix("cpu").map(str::parse) {
            cpus.push((cpu, Vec::new()));
        } else if let (true, Some((_, of)), Some(mask)) =
            (first.starts_with("domain"), cpus.last_mut(), mask)
        {
            of.push(mask.to_string());
        }
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_with_and_without_their_names() {
        let old = "version 15\ntimestamp 1\ncpu0 0 0\ndomain0 3 1 2\ndomain1 0f 5 6\ncpu2 0 0\n";
        let masks = |all: &[&str]| all.iter().map(|mask| mask.to_string()).collect();
        assert_eq!(domains_in(old), [(0, masks(&["3", "0f"])), (2, vec![])]);
        let new = "version 17\ncpu0 0 0\ndomain0 MC 00,0000000f 1 2\n";
        assert_eq!(domains_in(new), [(0, masks(&["00,0000000f"]))]);
        assert!(domains_in("").is_empty());
    }

    #[test]
    fn lists_of_cpus_are_numbers_and_ranges() {
        assert_eq!(list("0,2-4,6"), Some(vec![0, 2, 3, 4, 6]));
        assert_eq!(list(""), None);
    }
}
