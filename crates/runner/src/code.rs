//! Where code is: the kernel's functions, and what belongs to a scheduler.

use schedlab_runner::event::Event;
use std::fs;

/// Functions in one event.
const AT_A_TIME: usize = 500;

/// Reports the addresses of the kernel's functions.
pub fn symbols(report: &dyn Fn(&Event)) -> Result<(), String> {
    let functions = functions(|_| true)?;
    functions.chunks(AT_A_TIME).for_each(|some| report(&Event::Symbols { text: some.concat() }));
    Ok(())
}

/// What the scheduler has in BPF, and the programs beside the jobs, of which none runs now.
pub fn of_scheduler() -> Result<Event, String> {
    let tasks = executable("self");
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").map_err(|error| format!("/proc: {error}"))?;
    let others = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let others =
        others.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own);
    let mut programs: Vec<(u64, u64)> = others.flat_map(|process| executable(&process)).collect();
    programs.sort_unstable();
    programs.dedup();
    Ok(Event::SchedulerCode {
        bpf: functions(|module| module == "[bpf]")?.concat(),
        programs,
        tasks,
    })
}

/// Lines of an address, a space and a name, of the functions of the modules that are `wanted`; the
/// kernel itself has no name.
fn functions(wanted: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let text =
        fs::read_to_string("/proc/kallsyms").map_err(|error| format!("/proc/kallsyms: {error}"))?;
    // Lines are `ffffffff81000000 T _text`, with `[module]` at the end for those of modules.
    let functions = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        (matches!(kind, "t" | "T" | "w" | "W") && wanted(words.next().unwrap_or_default()))
            .then(|| format!("{address} {name}\n"))
    });
    Ok(functions.collect())
}

/// Where a process has code of files. All share the kernel's own page of code.
fn executable(process: &str) -> Vec<(u64, u64)> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let range = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (range, access) = (words.next()?, words.next()?);
        if !access.contains('x') || line.ends_with(']') {
            return None;
        }
        let (from, to) = range.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        Some((address(from)?, address(to)?))
    };
    maps.lines().filter_map(range).collect()
}
