//! Reads the topology of this machine's CPUs from sysfs.
//!
//! Cores are `topology/thread_siblings_list`, clusters the CPUs that share the last cache
//! (`cache/index*/shared_cpu_list`), nodes and their distances `node/node*`. Speeds are relative to
//! the fastest: `cpu_capacity` (Arm), `acpi_cppc/highest_perf` or `cpufreq/cpuinfo_max_freq`, else
//! all are alike.

use super::cpus::parse_list;
use super::doctor::System;
use formats::machine_file::{MachineFile, USUAL_SMT};
use formats::toml_file::TomlFile;
use program::{Error, no_such};
use schedsim::{MigrationCosts, Place, Topology};
use std::ffi::OsStr;
use std::path::Path;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// The machine in the file `argument`, the preset with this name, or this one if it is `host`.
///
/// # Errors
/// If the file describes no machine; the message has its line and key.
pub fn machine(argument: &OsStr) -> Result<MachineFile, Error> {
    match argument.to_str() {
        Some("host") => Ok(MachineFile::of_topology("host", read(&System::this())?)),
        Some(name) if let Some(preset) = MachineFile::preset(name) => preset,
        Some(name) if !name.contains(['.', '/']) && !Path::new(name).is_file() => {
            let names: Vec<String> =
                ["host"].into_iter().chain(MachineFile::presets()).map(String::from).collect();
            let see = format!(
                "Give {}, or a file that describes one (docs/machines.md).",
                names.join(", ")
            );
            Err(Error::Usage(no_such("machine", name, &names, &see)))
        }
        _ => MachineFile::read(&TomlFile::read(Path::new(argument))?),
    }
}

/// The CPUs that are online, numbered from 0 in order.
///
/// # Errors
/// If this machine does not describe them, or contradicts itself.
pub fn read(system: &System) -> Result<Topology, Error> {
    let online = system.read(&format!("{CPUS}/online")).and_then(|list| parse_list(&list).ok());
    let online = online.ok_or_else(|| {
        Error::Missing(format!(
            "{CPUS}/online does not say which CPUs there are; describe the machine in a file"
        ))
    })?;
    let speeds: Vec<f64> = online.iter().map(|&cpu| speed(system, cpu)).collect();
    let fastest = speeds.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let (mut nodes, mut clusters, mut cores) = (Vec::new(), Vec::new(), Vec::new());
    let places = online.iter().zip(speeds).map(|(&cpu, speed)| {
        let node = node(system, cpu);
        let cluster = (node, last_cache(system, cpu));
        let siblings = system
            .read(&format!("{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
            .unwrap_or_else(|| cpu.to_string());
        let core = (cluster.clone(), siblings);
        Place {
            core: number(&mut cores, core),
            cluster: number(&mut clusters, cluster),
            node: number(&mut nodes, node),
            speed: speed / fastest,
        }
    });
    let places: Vec<Place> = places.collect();
    let topology =
        Topology::new(places, distances(system, &nodes), USUAL_SMT, MigrationCosts::default());
    topology.map_err(|wrong| {
        Error::Input(format!(
            "this machine's {}: {}; describe it in a file",
            wrong.key, wrong.message
        ))
    })
}

/// The number of `key` among those seen so far.
fn number<K: PartialEq>(seen: &mut Vec<K>, key: K) -> u16 {
    let known = seen.iter().position(|other| *other == key);
    known.unwrap_or_else(|| {
        seen.push(key);
        seen.len() - 1
    }) as u16
}

/// In no unit that others use.
fn speed(system: &System, cpu: u16) -> f64 {
    let files = ["cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/cpuinfo_max_freq"];
    let told = files.iter().find_map(|file| system.number(&format!("{CPUS}/cpu{cpu}/{file}")));
    told.filter(|&speed| speed > 0).unwrap_or(1) as f64
}

/// The CPUs with which `cpu` shares its last cache; itself alone if none is described.
fn last_cache(system: &System, cpu: u16) -> String {
    let caches = format!("{CPUS}/cpu{cpu}/cache");
    let indexes = system.names(&caches).into_iter().filter(|name| name.starts_with("index"));
    let last = indexes.max_by_key(|index| system.number(&format!("{caches}/{index}/level")));
    last.and_then(|index| system.read(&format!("{caches}/{index}/shared_cpu_list")))
        .unwrap_or_else(|| cpu.to_string())
}

fn node(system: &System, cpu: u16) -> u16 {
    let names = system.names(&format!("{CPUS}/cpu{cpu}"));
    names.iter().find_map(|name| name.strip_prefix("node")?.parse().ok()).unwrap_or(0)
}

/// Between these nodes; empty if the machine does not describe them.
fn distances(system: &System, nodes: &[u16]) -> Vec<Vec<u16>> {
    let online = system
        .read(&format!("{NODES}/online"))
        .and_then(|list| parse_list(&list).ok())
        .unwrap_or_default();
    let row = |from: &u16| -> Option<Vec<u16>> {
        let text = system.read(&format!("{NODES}/node{from}/distance"))?;
        let all: Vec<u16> =
            text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        nodes
            .iter()
            .map(|to| all.get(online.iter().position(|node| node == to)?).copied())
            .collect()
    };
    nodes.iter().map(row).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::{CpuId, Distance};
    use std::fs;
    use std::path::PathBuf;

    /// The files of sysfs, below a temporary directory.
    struct Machine(PathBuf);

    impl Machine {
        fn with(name: &str, files: &[(String, &str)]) -> Machine {
            let root = std::env::temp_dir()
                .join(format!("schedlab-topology-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path.trim_start_matches('/'));
                fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
                fs::write(path, text).expect("a file");
            }
            Machine(root)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// CPUs 0 and 2 are threads of a core of node 0. CPU 1 is offline. CPU 3 is slow and of node 2.
    /// Node 1 has memory only.
    fn files() -> Vec<(String, &'static str)> {
        let mut files =
            vec![(format!("{CPUS}/online"), "0,2-3\n"), (format!("{NODES}/online"), "0-2")];
        for (cpu, siblings, cache, speed, node) in
            [(0, "0,2", "0,2", "1024", 0), (2, "0,2", "0,2", "1024", 0), (3, "3", "3", "256", 2)]
        {
            let file = |path: &str| format!("{CPUS}/cpu{cpu}/{path}");
            files.push((file("topology/thread_siblings_list"), siblings));
            files.extend([
                (file("cache/index0/level"), "1"),
                (file("cache/index0/shared_cpu_list"), siblings),
            ]);
            files.extend([
                (file("cache/index3/level"), "3"),
                (file("cache/index3/shared_cpu_list"), cache),
            ]);
            files.extend([
                (file("cpu_capacity"), speed),
                (file(&format!("node{node}/cpulist")), ""),
            ]);
        }
        files.extend([
            (format!("{NODES}/node0/distance"), "10 17 28"),
            (format!("{NODES}/node2/distance"), "28 30 10"),
        ]);
        files
    }

    #[test]
    fn threads_caches_nodes_and_speeds_are_found() {
        let machine = Machine::with("found", &files());
        let topology = read(&System::at(&machine.0)).unwrap();
        assert_eq!(topology.cpus(), 3);
        assert_eq!(topology.distance(CpuId(0), CpuId(1)), Distance::Core);
        assert_eq!(topology.distance(CpuId(0), CpuId(2)), Distance::Remote(28));
        assert_eq!([0, 2].map(|cpu| topology.place(CpuId(cpu)).speed), [1.0, 0.25]);
    }

    #[test]
    fn what_the_machine_does_not_describe_is_reported() {
        let nothing = Machine::with("nothing", &[("/proc/version".to_string(), "")]);
        let error = read(&System::at(&nothing.0)).unwrap_err();
        assert!(
            error.exit_code() == 77 && error.to_string().contains("describe the machine in a file"),
            "{error}"
        );
        let mut torn = files();
        torn.push((format!("{NODES}/node2/distance"), "29 30 10"));
        let torn = Machine::with("torn", &torn);
        let error = read(&System::at(&torn.0)).unwrap_err();
        assert!(
            error.exit_code() == 3 && error.to_string().contains("give the same both ways"),
            "{error}"
        );
    }
}
