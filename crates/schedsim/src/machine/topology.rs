//! The topology of a machine and the speeds of its CPUs: hardware threads of cores, cores of
//! clusters, clusters of NUMA nodes.
//!
//! The CPUs of a cluster share a last-level cache, as in Linux's domains and wakeups. Distances
//! between nodes are those of ACPI's SLIT: 10 is local.

use crate::workload::Invalid;
use crate::{CpuId, CpuSet, Nanos};

/// The places of all CPUs.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    places: Vec<Place>,
    /// The CPUs of each core, cluster and node.
    cores: Vec<CpuSet>,
    clusters: Vec<CpuSet>,
    nodes: Vec<CpuSet>,
    all: CpuSet,
    /// Whether some CPUs are faster than others.
    has_speeds: bool,
    /// The distances between nodes.
    distances: Vec<Vec<u16>>,
    /// The throughput of a core with all threads busy, relative to one busy thread.
    smt: f64,
    migration: MigrationCosts,
}

/// The place of a CPU. Cores, clusters and nodes are each numbered from 0 over the machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// The core of which it is a hardware thread.
    pub core: u16,
    /// The CPUs with which it shares a last-level cache.
    pub cluster: u16,
    /// The CPUs with the same local memory.
    pub node: u16,
    /// Its speed alone on its core, relative to the fastest CPU, whose run times workloads state:
    /// above 0, at most 1.
    pub speed: f64,
}

/// Added to a task's burst when it runs on another CPU than before, by distance. A `None` costs
/// [`Machine::migration_cost`](crate::Machine::migration_cost), or nothing between the threads of a
/// core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MigrationCosts {
    /// From another thread of the core.
    pub core: Option<Nanos>,
    /// From another core of the cluster.
    pub cluster: Option<Nanos>,
    /// From another cluster of the node.
    pub node: Option<Nanos>,
    /// From another node at distance 20. The cost is proportional to the distance minus 10.
    pub remote: Option<Nanos>,
}

/// How far a CPU is from another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Distance {
    /// The same CPU.
    Itself,
    /// A thread of the same core.
    Core,
    /// A core of the same cluster.
    Cluster,
    /// A cluster of the same node.
    Node,
    /// On another node, this far away.
    Remote(u16),
}

/// The distance of a node to itself, and the default between nodes.
pub const LOCAL: u16 = 10;
/// The usual distance of another node.
pub const USUAL: u16 = 20;

impl Topology {
    /// CPUs at these places, in order. `distances` from each node to each, or empty for equidistant
    /// nodes.
    ///
    /// # Errors
    /// If a core is in two clusters or a cluster in two nodes, or a speed is not above 0 and at
    /// most 1. Also if the distances are not a symmetric matrix with 10 exactly on its diagonal.
    /// The key is `cpu[N]`, `distances`, `distances[A][B]` or `smt`.
    pub fn new(
        places: Vec<Place>,
        distances: Vec<Vec<u16>>,
        smt: f64,
        migration: MigrationCosts,
    ) -> Result<Topology, Invalid> {
        let groups = |of: fn(&Place) -> u16| -> Vec<CpuSet> {
            let count = places.iter().map(of).max().map_or(0, |last| usize::from(last) + 1);
            let mut sets = vec![CpuSet::empty(places.len() as u16); count];
            places
                .iter()
                .zip(0..)
                .for_each(|(place, cpu)| sets[usize::from(of(place))].insert(CpuId(cpu)));
            sets
        };
        let (cores, clusters, nodes) =
            (groups(|place| place.core), groups(|place| place.cluster), groups(|place| place.node));
        let all = (0..places.len() as u16).map(CpuId).collect();
        expect_nested(&places)?;
        let threads = cores.iter().map(CpuSet::len).max().unwrap_or(1);
        if !(1.0..=threads as f64).contains(&smt) && threads > 1 {
            let message = format!(
                "a core with {threads} threads does from 1 to {threads} times what it does with \
                 one"
            );
            return Err(Invalid { key: "smt".to_string(), message });
        }
        let distances = if distances.is_empty() { evenly_far(nodes.len()) } else { distances };
        expect_distances(&distances, nodes.len())?;
        let has_speeds = places.iter().any(|place| place.speed < 1.0);
        Ok(Topology { places, cores, clusters, nodes, all, has_speeds, distances, smt, migration })
    }

    /// What [`new`](Self::new) makes it of.
    pub(crate) fn parts(&self) -> (&[Place], &[Vec<u16>], f64, MigrationCosts) {
        (&self.places, &self.distances, self.smt, self.migration)
    }

    /// How many CPUs.
    pub fn cpus(&self) -> u16 {
        self.places.len() as u16
    }

    /// Where a CPU is.
    pub fn place(&self, cpu: CpuId) -> &Place {
        &self.places[cpu.index()]
    }

    /// The distance from `from` to `to`.
    pub fn distance(&self, from: CpuId, to: CpuId) -> Distance {
        let (a, b) = (self.place(from), self.place(to));
        if from == to {
            Distance::Itself
        } else if a.core == b.core {
            Distance::Core
        } else if a.cluster == b.cluster {
            Distance::Cluster
        } else if a.node == b.node {
            Distance::Node
        } else {
            Distance::Remote(self.distances[usize::from(a.node)][usize::from(b.node)])
        }
    }

    /// The CPUs of the same core, including this one.
    pub fn core(&self, cpu: CpuId) -> &CpuSet {
        &self.cores[usize::from(self.place(cpu).core)]
    }

    /// The CPUs of the same cluster.
    pub fn cluster(&self, cpu: CpuId) -> &CpuSet {
        &self.clusters[usize::from(self.place(cpu).cluster)]
    }

    /// The CPUs of the same node.
    pub fn node(&self, cpu: CpuId) -> &CpuSet {
        &self.nodes[usize::from(self.place(cpu).node)]
    }

    /// The clusters, each as its CPUs.
    pub fn clusters(&self) -> &[CpuSet] {
        &self.clusters
    }

    /// The distance from each node to each.
    pub fn node_distances(&self) -> &[Vec<u16>] {
        &self.distances
    }

    /// The CPUs of the same core, of the same cluster, of the same node, and all CPUs.
    pub fn spans(&self, cpu: CpuId) -> [&CpuSet; 4] {
        [self.core(cpu), self.cluster(cpu), self.node(cpu), &self.all]
    }

    /// The speed of each of `busy` busy threads of a core, relative to one alone.
    pub fn share(&self, busy: usize) -> f64 {
        if busy > 1 { self.smt / busy as f64 } else { 1.0 }
    }

    /// Whether CPUs differ in speed or share cores.
    pub fn is_uneven(&self) -> bool {
        self.has_speeds() || self.cores.len() < self.places.len()
    }

    /// Whether some CPUs are faster than others.
    pub fn has_speeds(&self) -> bool {
        self.has_speeds
    }

    /// The cost of a migration from `from` to `to`; `near` is the default for another core of the
    /// same cluster.
    pub fn migration_cost(&self, from: CpuId, to: CpuId, near: Nanos) -> Nanos {
        let MigrationCosts { core, cluster, node, remote } = self.migration;
        match self.distance(from, to) {
            Distance::Itself => Nanos::ZERO,
            Distance::Core => core.unwrap_or(Nanos::ZERO),
            Distance::Cluster => cluster.unwrap_or(near),
            Distance::Node => node.unwrap_or(near),
            Distance::Remote(distance) => {
                let usual = remote.or(node).unwrap_or(near);
                Nanos(
                    usual.0.saturating_mul(u64::from(distance - LOCAL)) / u64::from(USUAL - LOCAL),
                )
            }
        }
    }
}

/// Checks that each core is in one cluster, and each cluster in one node.
fn expect_nested(places: &[Place]) -> Result<(), Invalid> {
    for (index, place) in places.iter().enumerate() {
        let wrong = |message: String| Invalid { key: format!("cpu[{index}]"), message };
        if !(place.speed > 0.0 && place.speed <= 1.0) {
            return Err(wrong(format!(
                "a CPU is above 0 and at most 1 times as fast as the fastest, not {}",
                place.speed
            )));
        }
        let others = &places[..index];
        if others.iter().any(|other| other.core == place.core && other.cluster != place.cluster) {
            return Err(wrong(format!("core {} is in two clusters", place.core)));
        }
        if others.iter().any(|other| other.cluster == place.cluster && other.node != place.node) {
            return Err(wrong(format!("cluster {} is in two nodes", place.cluster)));
        }
    }
    Ok(())
}

fn evenly_far(nodes: usize) -> Vec<Vec<u16>> {
    let distance = |a, b| if a == b { LOCAL } else { USUAL };
    (0..nodes).map(|a| (0..nodes).map(|b| distance(a, b)).collect()).collect()
}

fn expect_distances(distances: &[Vec<u16>], nodes: usize) -> Result<(), Invalid> {
    let wrong = |key: String, message: String| Err(Invalid { key, message });
    if distances.len() != nodes {
        return wrong(
            "distances".to_string(),
            format!("there are {nodes} nodes, and distances from {}", distances.len()),
        );
    }
    for (a, row) in distances.iter().enumerate() {
        if row.len() != nodes {
            return wrong(
                format!("distances[{a}]"),
                format!("there are {nodes} nodes, and distances to {}", row.len()),
            );
        }
        for (b, &distance) in row.iter().enumerate() {
            let key = format!("distances[{a}][{b}]");
            if (a == b) != (distance == LOCAL) || distance < LOCAL {
                return wrong(
                    key,
                    format!("a node is {LOCAL} from itself and more from others, not {distance}"),
                );
            }
            if b < a && distance != distances[b][a] {
                let back = distances[b][a];
                return wrong(
                    key,
                    format!(
                        "node {a} is {distance} from node {b}, which is {back} from node {a}: \
                         give the same both ways"
                    ),
                );
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes: the first has two clusters of two cores of two threads, the second one slow
    /// cluster of two cores.
    fn places() -> Vec<Place> {
        let fast = (0..8).map(|cpu| Place { core: cpu / 2, cluster: cpu / 4, node: 0, speed: 1.0 });
        fast.chain((0..2).map(|cpu| Place { core: 4 + cpu, cluster: 2, node: 1, speed: 0.5 }))
            .collect()
    }

    #[test]
    fn distances_grow_outwards_and_costs_with_them() {
        let migration = MigrationCosts {
            node: Some(Nanos(300)),
            remote: Some(Nanos(1000)),
            ..MigrationCosts::default()
        };
        let topology =
            Topology::new(places(), vec![vec![10, 32], vec![32, 10]], 1.3, migration).unwrap();
        let to = |cpu| topology.distance(CpuId(0), CpuId(cpu));
        assert_eq!(
            [0, 1, 2, 4, 8].map(to),
            [
                Distance::Itself,
                Distance::Core,
                Distance::Cluster,
                Distance::Node,
                Distance::Remote(32)
            ]
        );
        assert!(to(1) < to(2) && to(2) < to(4) && to(4) < to(8));
        let cost = |cpu| topology.migration_cost(CpuId(0), CpuId(cpu), Nanos(70)).0;
        assert_eq!([0, 1, 2, 4, 8].map(cost), [0, 0, 70, 300, 2200]);
        assert_eq!(topology.spans(CpuId(5)).map(CpuSet::len), [2, 4, 8, 10]);
        assert_eq!((topology.share(1), topology.share(2)), (1.0, 0.65));
    }

    #[test]
    fn an_invalid_workload_is_refused_with_the_place() {
        let with = |distances: &[&[u16]]| {
            let distances = distances.iter().map(|row| row.to_vec()).collect();
            Topology::new(places(), distances, 1.3, MigrationCosts::default()).unwrap_err()
        };
        assert_eq!(with(&[&[10, 20]]).key, "distances");
        assert_eq!(with(&[&[10, 20], &[20]]).key, "distances[1]");
        assert_eq!(with(&[&[10, 20], &[21, 10]]).key, "distances[1][0]");
        assert_eq!(with(&[&[10, 10], &[10, 10]]).key, "distances[0][1]");
        let of = |places, smt| {
            Topology::new(places, Vec::new(), smt, MigrationCosts::default()).unwrap_err().key
        };
        assert_eq!(of(places(), 2.5), "smt");
        let mut torn = places();
        torn[1].cluster = 1;
        assert_eq!(of(torn, 1.3), "cpu[1]");
        let mut halted = places();
        halted[9].speed = 0.0;
        assert_eq!(of(halted, 1.3), "cpu[9]");
    }
}
