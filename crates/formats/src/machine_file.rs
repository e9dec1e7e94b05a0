//! A machine with a topology: from a description, or this machine.
//!
//! ```toml
//! # NUMA nodes, each a list of clusters: CPUs that share a last-level cache
//! nodes = [["big", "big"], ["little"]]
//! distances = [[10, 21], [21, 10]]       # between nodes, as in ACPI's SLIT
//! smt = 1.25                             # throughput of a core with all its threads busy
//! switch-cost = "1us"
//!
//! [cluster.big]
//! cores = 4
//! threads = 2
//!
//! [cluster.little]
//! like = "big"
//! threads = 1
//! speed = 0.4
//!
//! [migration]
//! node = "20us"
//! remote = "60us"
//! ```
//!
//! CPUs are numbered node by node, cluster by cluster, core by core, thread by thread. Those that
//! `offline` lists by these numbers are there, and switched off.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

mod online;
mod presets;

use crate::toml_file::TomlFile;
use program::{Error, no_such};
use schedsim::admission::Cpus;
use schedsim::{CpuId, Machine, MigrationCosts, Nanos, Place, Topology};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The default throughput of a core with two busy threads: 1.25 times that of one.
pub const USUAL_SMT: f64 = 1.25;

/// A machine and its known scheduling costs.
#[derive(Clone, Debug)]
pub struct MachineFile {
    /// The name.
    pub name: String,
    /// The topology of its CPUs, without those that are offline.
    pub topology: Topology,
    /// The places of all CPUs.
    pub places: Vec<Place>,
    /// The CPUs that are offline, by their number in `places`, in order.
    pub offline: Vec<u16>,
    switch_cost: Option<Nanos>,
    migration_cost: Option<Nanos>,
    idle_exit: Option<Nanos>,
    wake_cost: Option<Nanos>,
}

/// The content of the file.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Described {
    nodes: Vec<Vec<String>>,
    #[serde(default)]
    distances: Vec<Vec<u16>>,
    #[serde(default)]
    offline: Vec<u16>,
    smt: Option<f64>,
    switch_cost: Option<Nanos>,
    idle_exit: Option<Nanos>,
    wake_cost: Option<Nanos>,
    cluster: BTreeMap<String, Cluster>,
    #[serde(default)]
    migration: Migration,
}

/// CPUs that share a last-level cache. Missing values come from the cluster that `like` names.
#[derive(Deserialize, Clone, Default, Debug)]
#[serde(deny_unknown_fields)]
struct Cluster {
    like: Option<String>,
    cores: Option<Cpus>,
    threads: Option<Cpus>,
    speed: Option<f64>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(deny_unknown_fields)]
struct Migration {
    core: Option<Nanos>,
    cluster: Option<Nanos>,
    node: Option<Nanos>,
    remote: Option<Nanos>,
}

impl MachineFile {
    /// A machine with this topology and no other known properties.
    pub fn of_topology(name: &str, topology: Topology) -> MachineFile {
        let (switch_cost, migration_cost, idle_exit, wake_cost) = (None, None, None, None);
        let places = (0..topology.cpus()).map(|cpu| *topology.place(CpuId(cpu))).collect();
        MachineFile {
            name: name.to_string(),
            topology,
            places,
            offline: Vec::new(),
            switch_cost,
            migration_cost,
            idle_exit,
            wake_cost,
        }
    }

    /// Reads the machine from `file`.
    ///
    /// # Errors
    /// If the description is invalid.
    pub fn read(file: &TomlFile) -> Result<MachineFile, Error> {
        let described: Described = file.parse()?;
        let places = described.places(file)?;
        let Described {
            distances,
            mut offline,
            smt,
            switch_cost,
            idle_exit,
            wake_cost,
            migration,
            ..
        } = described;
        let online = online::places(&places, &offline)
            .map_err(|(key, message)| file.wrong(&key, &message))?;
        offline.sort_unstable();
        let Migration { core, cluster, node, remote } = migration;
        let costs = MigrationCosts { core, cluster, node, remote };
        let topology = Topology::new(online, distances, smt.unwrap_or(USUAL_SMT), costs)
            .map_err(|wrong| file.wrong(&wrong.key, &wrong.message))?;
        let name =
            Path::new(file.name()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(MachineFile {
            name,
            topology,
            places,
            offline,
            switch_cost,
            migration_cost: cluster,
            idle_exit,
            wake_cost,
        })
    }

    /// `flat` with this topology, and with the costs that the file states.
    pub fn apply(&self, flat: &Machine) -> Machine {
        Machine {
            cpus: self.topology.cpus(),
            switch_cost: self.switch_cost.unwrap_or(flat.switch_cost),
            migration_cost: self.migration_cost.unwrap_or(flat.migration_cost),
            idle_exit: self.idle_exit.unwrap_or(flat.idle_exit),
            wake_cost: self.wake_cost.unwrap_or(flat.wake_cost),
            latency: flat.latency.clone().beside(self.idle_exit, self.wake_cost),
            topology: Some(self.topology.clone()),
            ..flat.clone()
        }
    }
}

impl Described {
    /// The place of each CPU.
    fn places(&self, file: &TomlFile) -> Result<Vec<Place>, Error> {
        let mut places: Vec<Place> = Vec::new();
        let (mut cores, mut clusters) = (0u16, 0u16);
        for (node, names) in (0u16..).zip(&self.nodes) {
            if names.is_empty() {
                return Err(
                    file.wrong(&format!("nodes[{node}]"), "a node needs at least one cluster")
                );
            }
            for (index, name) in names.iter().enumerate() {
                let Cluster { cores: count, threads, speed, .. } =
                    self.cluster(name, &format!("nodes[{node}][{index}]"), file)?;
                let count = count
                    .ok_or_else(|| {
                        file.wrong(&format!("cluster.{name}"), "give its number of `cores`")
                    })?
                    .get();
                let (threads, speed) = (threads.map_or(1, Cpus::get), speed.unwrap_or(1.0));
                if !(0.01..=1.0).contains(&speed) {
                    let message = format!(
                        "{speed}: give a number from 0.01 to 1, the speed relative to the fastest \
                         CPU; run times are those of the fastest CPU"
                    );
                    return Err(file.wrong(&format!("cluster.{name}.speed"), &message));
                }
                let cpus =
                    usize::from(count).saturating_mul(threads.into()).saturating_add(places.len());
                if !Cpus::has(cpus) {
                    let message = format!(
                        "number of CPUs up to here: {}; give fewer clusters, cores or threads",
                        Cpus::refuse(cpus)
                    );
                    return Err(file.wrong("nodes", &message));
                }
                for core in (cores..).take(count.into()) {
                    places.extend((0..threads).map(|_| Place {
                        core,
                        cluster: clusters,
                        node,
                        speed,
                    }));
                }
                cores = cores.saturating_add(count);
                clusters = clusters.saturating_add(1);
            }
        }
        if places.is_empty() {
            Err(file.wrong("nodes", "a machine needs at least one node"))
        } else {
            Ok(places)
        }
    }

    /// The cluster `name`, with missing values from the clusters that it is like. `named_at` is the
    /// place of its name.
    fn cluster(&self, name: &str, named_at: &str, file: &TomlFile) -> Result<Cluster, Error> {
        let known: Vec<String> = self.cluster.keys().cloned().collect();
        let find = |name: &str, key: &str| {
            let unknown = || {
                file.wrong(
                    key,
                    &no_such("cluster", name, &known, &format!("There are {}.", known.join(", "))),
                )
            };
            self.cluster.get(name).ok_or_else(unknown)
        };
        let mut path = vec![name.to_string()];
        let mut whole = find(name, named_at)?.clone();
        while let Some(like) = whole.like.take() {
            let key = format!("cluster.{}.like", path.last().map_or("", String::as_str));
            if path.contains(&like) {
                let message =
                    format!("{} → {like}: a cluster cannot be like itself", path.join(" → "));
                return Err(file.wrong(&key, &message));
            }
            let other = find(&like, &key)?.clone();
            whole = Cluster {
                like: other.like,
                cores: whole.cores.or(other.cores),
                threads: whole.threads.or(other.threads),
                speed: whole.speed.or(other.speed),
            };
            path.push(like);
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Distance;

    const TWO_NODES: &str = "nodes = [['big', 'big'], ['little']]\ndistances = [[10, 21], [21, \
                             10]]\nswitch-cost = '1us'\n[cluster.big]\ncores = 2\nthreads = \
                             2\n[cluster.little]\nlike = 'big'\nthreads = 1\nspeed = \
                             0.5\n[migration]\ncluster = '5us'\nremote = '60us'\n";

    #[test]
    fn clusters_belong_to_nodes_and_inherit_from_others() {
        let machine = MachineFile::read(&TomlFile::of("m.toml", TWO_NODES))
            .unwrap()
            .apply(&Machine::ideal(1));
        assert_eq!(
            (machine.cpus, machine.switch_cost, machine.migration_cost),
            (10, Nanos(1000), Nanos(5000))
        );
        let (topology, from) = (machine.topology.as_ref().unwrap(), CpuId(0));
        let to = [1, 2, 4, 8].map(|cpu| topology.distance(from, CpuId(cpu)));
        assert_eq!(to, [Distance::Core, Distance::Cluster, Distance::Node, Distance::Remote(21)]);
        assert_eq!([0, 8].map(|cpu| topology.place(CpuId(cpu)).speed), [1.0, 0.5]);
        assert_eq!(machine.migration_cost(from, CpuId(8)), Nanos(66_000));
    }

    #[test]
    fn an_invalid_machine_is_refused_with_line_and_key() {
        let message = |from: &str, to: &str| {
            assert!(TWO_NODES.contains(from), "{from}");
            MachineFile::read(&TomlFile::of("m.toml", &TWO_NODES.replace(from, to)))
                .unwrap_err()
                .to_string()
        };
        for (from, to, expected) in [
            (
                "like = 'big'",
                "like = 'little'",
                "m.toml:8: cluster.little.like: little → little: a cluster cannot be like itself",
            ),
            (
                "cores = 2\n",
                "like = 'little'\n",
                "m.toml:8: cluster.little.like: big → little → big: a cluster cannot be like \
                 itself",
            ),
            (
                "21, 10]]",
                "20, 10]]",
                "m.toml:2: distances[1][0]: node 1 is 20 from node 0, which is 21 from node 1",
            ),
            ("[21, 10]]", "[21, 11]]", "m.toml:2: distances[1][1]: a node is 10 from itself"),
            ("[10, 21], ", "", "m.toml:2: distances: there are 2 nodes, and distances from 1"),
            (
                "['little']]",
                "['littel']]",
                "m.toml:1: nodes[1][0]: there is no cluster named `littel`. Did you mean `little`?",
            ),
            ("['little']]", "[]]", "m.toml:1: nodes[1]: a node needs at least one cluster"),
            (
                "[['big', 'big'], ['little']]",
                "[]",
                "m.toml:1: nodes: a machine needs at least one node",
            ),
            ("cores = 2\n", "\n", "m.toml:4: cluster.big: give its number of `cores`"),
            (
                "cores = 2\n",
                "cores = 0\n",
                "m.toml:5: cluster.big.cores: 0 is out of range: give a whole number from 1 to \
                 4096",
            ),
            (
                "cores = 2\n",
                "cores = 2000\n",
                "m.toml:1: nodes: number of CPUs up to here: 8000 is out of range: give a whole \
                 number from 1 to 4096",
            ),
            (
                "cores = 2\n",
                "cores = 65536\n",
                "m.toml:5: cluster.big.cores: 65536 is out of range",
            ),
            (
                "speed = 0.5",
                "speed = 1.5",
                "m.toml:10: cluster.little.speed: 1.5: give a number from 0.01 to 1",
            ),
            (
                "speed = 0.5",
                "sped = 0.5",
                "m.toml:10: cluster.little.sped: there is no key named `sped`. Did you mean \
                 `speed`?",
            ),
            (
                "switch-cost = '1us'",
                "smt = 3",
                "m.toml:3: smt: a core with 2 threads does from 1 to 2 times",
            ),
            ("switch-cost = '1us'", "switch-cost = '1'", "m.toml:3: switch-cost: "),
        ] {
            let message = message(from, to);
            assert!(message.starts_with(expected), "{message}\nand not\n{expected}");
        }
    }
}
