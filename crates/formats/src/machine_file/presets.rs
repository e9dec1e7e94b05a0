//! Small machines by name, each with one thing that a flat machine has not.

use super::MachineFile;
use crate::toml_file::TomlFile;
use program::Error;

/// Their names and descriptions.
const PRESETS: [(&str, &str); 4] = [
    ("two-caches", "nodes = [['half', 'half']]\n[cluster.half]\ncores = 2\n"),
    ("smt", "nodes = [['all']]\n[cluster.all]\ncores = 2\nthreads = 2\n"),
    ("numa-2", "nodes = [['node'], ['node']]\n[cluster.node]\ncores = 2\n"),
    (
        "numa-8",
        "nodes = [['n'], ['n'], ['n'], ['n'], ['n'], ['n'], ['n'], ['n']]\n[cluster.n]\ncores = 1\n",
    ),
];

impl MachineFile {
    /// The machine with this name, if there is one.
    ///
    /// # Errors
    /// None, as a test reads them all.
    pub fn preset(name: &str) -> Option<Result<MachineFile, Error>> {
        let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(MachineFile::read(&TomlFile::of(name, text)))
    }

    /// The names of all presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::{CpuId, Distance};

    #[test]
    fn each_preset_has_the_one_thing_that_it_is_named_for() {
        let farthest = |name: &str| {
            let machine = MachineFile::preset(name).expect("a preset").expect("a machine");
            assert_eq!(machine.name, name);
            let last = CpuId(machine.topology.cpus() - 1);
            (machine.topology.cpus(), machine.topology.distance(CpuId(0), last))
        };
        assert_eq!(farthest("two-caches"), (4, Distance::Node));
        assert_eq!(farthest("smt"), (4, Distance::Cluster));
        assert_eq!(farthest("numa-2"), (4, Distance::Remote(20)));
        assert_eq!(farthest("numa-8"), (8, Distance::Remote(20)));
        assert_eq!(MachineFile::presets().count(), 4);
        assert!(MachineFile::preset("flat").is_none());
    }
}
