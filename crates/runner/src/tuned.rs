//! Changes the guest's kernel as its session says, and reads each change back.

use crate::guest;
use schedlab_runner::event::Event;
use schedlab_runner::tuning::{Tuning, says};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const DEBUG: &str = "/sys/kernel/debug";
const FEATURES: &str = "/sys/kernel/debug/sched/features";

/// Makes the changes and reports what the kernel has then.
///
/// # Errors
/// The first change that the kernel does not take.
pub fn tune(tuning: &Tuning, report: &dyn Fn(&Event)) -> Result<(), String> {
    if tuning.is_none() {
        return Ok(());
    }
    if !guest::is_guest() {
        return Err("only the kernel of a guest is changed".to_string());
    }
    let is_in_debug = |name: &String| name.starts_with(DEBUG);
    if !tuning.features.is_empty() || tuning.sysctls.keys().any(is_in_debug) {
        guest::mount(c"debugfs", c"/sys/kernel/debug")?;
    }
    arguments(&tuning.arguments)?;
    let modules = tuning.modules.iter().map(|file| load(file)).collect::<Result<Vec<_>, _>>()?;
    tuning.features.iter().try_for_each(|feature| switch(feature))?;
    for (name, value) in &tuning.sysctls {
        set(name, value)?;
    }
    // Only now: one change may have undone another.
    report(&Event::Tuned {
        arguments: tuning.arguments.clone(),
        modules,
        features: features_now(&tuning.features)?,
        sysctls: sysctls_now(&tuning.sysctls)?,
    });
    Ok(())
}

/// Checks that the kernel has the arguments, and has known them: those that it does not know it
/// passes on to its init.
fn arguments(given: &[String]) -> Result<(), String> {
    let line = read("/proc/cmdline")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    for argument in given {
        if !words.contains(&argument.as_str()) {
            return Err(format!("the kernel was started without {argument}, as {}", line.trim()));
        }
        let name = argument.split('=').next().unwrap_or(argument);
        let is_passed_on = std::env::args().skip(1).any(|word| word == *argument)
            || (argument.contains('=') && std::env::var_os(name).is_some());
        let module = name.split_once('.').map(|(module, _)| module.replace('-', "_"));
        let has_no_module = module.is_some_and(|module| {
            module != "sysctl" && !Path::new("/sys/module").join(module).exists()
        });
        if is_passed_on || has_no_module {
            return Err(format!("the kernel does not know the argument {argument}"));
        }
    }
    Ok(())
}

/// Loads a module, and gives its name.
fn load(file: &str) -> Result<String, String> {
    let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or_default().replace('-', "_");
    guest::load_module(file)
        .map_err(|error| format!("the kernel does not load {file}: {error}"))?;
    let is_there = |line: &str| line.split(' ').next() == Some(&name);
    match read("/proc/modules")?.lines().any(is_there) {
        true => Ok(name),
        false => Err(format!("the kernel has loaded {file}, but shows no module {name}")),
    }
}

fn switch(feature: &str) -> Result<(), String> {
    fs::write(FEATURES, feature).map_err(|error| {
        let known = fs::read_to_string(FEATURES).unwrap_or_default();
        format!(
            "the kernel does not take the scheduler's feature {feature}: {error}; it has: {}",
            known.trim()
        )
    })
}

fn set(name: &str, value: &str) -> Result<(), String> {
    let file = Tuning::file(name);
    fs::write(&file, value)
        .map_err(|error| format!("the kernel does not set {name} to {value}: {file}: {error}"))
}

fn features_now(asked: &[String]) -> Result<Vec<String>, String> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let text = read(FEATURES)?;
    let now: Vec<&str> = text.split_whitespace().collect();
    match asked.iter().find(|feature| !now.contains(&feature.as_str())) {
        Some(feature) => Err(format!("the scheduler's feature {feature} is not kept: {text}")),
        None => Ok(asked.to_vec()),
    }
}

fn sysctls_now(asked: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let now = |(name, value): (&String, &String)| {
        let text = read(&Tuning::file(name))?;
        match says(&text, value) {
            true => Ok((name.clone(), text.trim().to_string())),
            false => {
                Err(format!("the kernel does not keep {name} at {value}: it has {}", text.trim()))
            }
        }
    };
    asked.iter().map(now).collect()
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}
