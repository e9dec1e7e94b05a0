//! The shape of a guest's machine: its nodes, last-level caches, cores and hardware threads, as the
//! emulator describes them to the kernel. It includes the scheduling domains that the kernel must
//! make of them.
//!
//! A node is a socket, a cluster is a die: CPUs of a die share the last cache. The kernel sees all
//! this; no cache is smaller, no memory slower and no thread shares a core for it. CPUs that are
//! offline are there, and the runner switches them off.

mod grid;

use super::configuration::Need;
use formats::machine_file::MachineFile;
use grid::Grid;
pub use grid::MODEL;
use program::Error;
use schedlab_runner::event::{Domains, Event};
use schedsim::{Place, counted};
use std::collections::BTreeSet;

/// A machine that QEMU can show to a guest.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// The name of the machine.
    pub name: String,
    /// The place of each CPU.
    places: Vec<Place>,
    /// The CPUs that are offline, in order.
    offline: Vec<u16>,
    /// From node to node.
    distances: Vec<Vec<u16>>,
    grid: Grid,
}

/// What the kernel needs so that its domains follow the machine and can be read back.
pub const DOMAINS: [Need; 3] = [
    ("CONFIG_SCHEDSTATS", "statistics of scheduling domains"),
    ("CONFIG_SCHED_MC", "domains of CPUs that share a cache"),
    ("CONFIG_SCHED_SMT", "domains of hardware threads"),
];

/// What it needs to switch CPUs off.
pub const OFFLINE: [Need; 1] = [("CONFIG_HOTPLUG_CPU", "CPUs that are offline")];

/// What QEMU's CPU must be for the kernel to read dies, cores and threads from it. Its level ends
/// before leaf 0x1f, at which QEMU 11.1 aborts where there are dies: the last cache tells them.
pub const CPU: &str = ",vendor=GenuineIntel,family=6,model=94,stepping=3,level=13";

impl Shape {
    /// The shape of `machine`.
    ///
    /// # Errors
    /// [`Error::Input`] by name if QEMU has no such machine.
    pub fn of(machine: &MachineFile, most: u16) -> Result<Shape, Error> {
        let MachineFile { name, topology, places, offline, .. } = machine;
        let refused = |what: &str| {
            Error::Input(format!(
                "the machine {name} cannot be a guest's: {what}; simulate it with --on sim"
            ))
        };
        if places.len() > usize::from(most) {
            let has = counted(places.len(), "CPU");
            return Err(refused(&format!("it has {has}, and a guest at most {most}")));
        }
        if places.iter().any(|place| place.speed < 1.0) {
            return Err(refused("its CPUs differ in speed, and the emulator's do not"));
        }
        if offline.contains(&0) {
            return Err(refused("CPU 0 is offline, which the kernel cannot switch off"));
        }
        if !offline.is_empty() && topology.cpus() == 1 {
            return Err(refused("only one of its CPUs is online, and its clock needs two"));
        }
        Ok(Shape {
            name: name.clone(),
            places: places.clone(),
            offline: offline.clone(),
            distances: topology.node_distances().to_vec(),
            grid: Grid::of(places).map_err(refused)?,
        })
    }

    /// How many CPUs are online.
    pub fn cpus(&self) -> u16 {
        (self.places.len() - self.offline.len()) as u16
    }

    /// The CPUs that are offline, as the kernel numbers them.
    pub fn offline(&self) -> &[u16] {
        &self.offline
    }

    /// The CPUs that are online, as the kernel numbers them.
    pub fn online(&self) -> Vec<u16> {
        self.those(|_| true)
    }

    /// How many NUMA nodes.
    pub fn nodes(&self) -> u16 {
        self.distances.len() as u16
    }

    /// QEMU's `-smp`.
    pub fn smp(&self) -> String {
        self.grid.smp()
    }

    /// The CPUs that `-smp` leaves out, as devices of QEMU's.
    pub fn devices(&self) -> Vec<String> {
        self.grid.devices()
    }

    /// How many CPUs each node of QEMU's machine has room for.
    pub fn room_of_node(&self) -> u16 {
        self.grid.of_socket()
    }

    /// How far a node is from another, as ACPI's SLIT has it.
    pub fn distance(&self, from: u16, to: u16) -> u16 {
        self.distances[usize::from(from)][usize::from(to)]
    }

    /// The CPUs that are online and whose places are such.
    fn those(&self, is: impl Fn(&Place) -> bool) -> Vec<u16> {
        let all = (0..).zip(&self.places);
        let those = all.filter(|(cpu, place)| !self.offline.contains(cpu) && is(place));
        those.map(|(cpu, _)| cpu).collect()
    }

    /// The CPUs of the core, the cluster and the node at `place`.
    fn spans(&self, place: &Place) -> [Vec<u16>; 3] {
        [
            self.those(|other| other.core == place.core),
            self.those(|other| other.cluster == place.cluster),
            self.those(|other| other.node == place.node),
        ]
    }

    /// The scheduling domains of a CPU, from the inside out, each a set of CPUs.
    fn domains(&self, place: &Place) -> Vec<Vec<u16>> {
        let mut spans = self.spans(place).to_vec();
        let all: BTreeSet<u16> = self.distances.iter().flatten().copied().collect();
        let within =
            |distance| self.those(|other| self.distance(place.node, other.node) <= distance);
        spans.extend(all.into_iter().map(within));
        spans.dedup();
        spans.retain(|span| span.len() > 1);
        spans
    }

    /// Whether the kernel has the domains of this machine.
    ///
    /// # Errors
    /// By name if it has not, or does not say which it has.
    pub fn judge(&self, events: &[Event]) -> Result<(), Error> {
        let found = events.iter().find_map(|event| match event {
            Event::Domains { cpus } => Some(cpus),
            _ => None,
        });
        let online = self.online();
        let is_said = |cpus: &&Vec<Domains>| cpus.iter().map(|of| of.cpu).eq(online.clone());
        let found = found.filter(is_said).ok_or_else(|| {
            Error::Input(format!(
                "the kernel does not say which scheduling domains CPUs {online:?} have \
                 (/proc/schedstat), so it is not known whether it has those of the machine {}",
                self.name
            ))
        })?;
        for has in found {
            let place = &self.places[usize::from(has.cpu)];
            let [core, cluster, node] = self.spans(place);
            let is_in = |set: &[u16], mask: &str| members(mask) == set;
            let expected = self.domains(place);
            let has_domains: Vec<Vec<u16>> = has.domains.iter().map(|of| members(of)).collect();
            let (what, is, expected) = match () {
                () if !is_in(&core, &has.core) => {
                    ("hardware threads", vec![members(&has.core)], vec![core])
                }
                () if !is_in(&cluster, &has.cache) => {
                    ("last-level caches", vec![members(&has.cache)], vec![cluster])
                }
                () if self.nodes() > 1 && !is_in(&node, &has.node) => {
                    ("nodes", vec![members(&has.node)], vec![node])
                }
                () if has_domains != expected => ("scheduling domains", has_domains, expected),
                () => continue,
            };
            return Err(Error::Input(format!(
                "the kernel's {what} are not those of the machine {}: CPU {} is in {}, and in the \
                 file in {}",
                self.name,
                has.cpu,
                in_words(&is),
                in_words(&expected)
            )));
        }
        Ok(())
    }
}

fn in_words(domains: &[Vec<u16>]) -> String {
    match domains {
        [] => "none".to_string(),
        _ => domains.iter().map(|cpus| format!("{cpus:?}")).collect::<Vec<_>>().join(" in "),
    }
}

/// The CPUs of a mask as the kernel prints it: `f0`, `1,00000000`.
fn members(mask: &str) -> Vec<u16> {
    let digits: Vec<u32> = mask.chars().rev().filter_map(|digit| digit.to_digit(16)).collect();
    let bits = (0..).zip(digits).flat_map(|(place, digit)| {
        (0..4u16).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| 4 * place + bit)
    });
    bits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::toml_file::TomlFile;

    fn shape(text: &str) -> Result<Shape, Error> {
        MachineFile::read(&TomlFile::of("m.toml", text)).and_then(|file| Shape::of(&file, 64))
    }

    fn domains(shape: &Shape, cpu: u16) -> Vec<Vec<u16>> {
        shape.domains(&shape.places[usize::from(cpu)])
    }

    #[test]
    fn domains_follow_threads_caches_nodes_and_distances() {
        let all = shape(
            "nodes = [['c', 'c'], ['c', 'c'], ['c', 'c']]\ndistances = [[10, 20, 40], [20, 10, \
             20], [40, 20, 10]]\n[cluster.c]\ncores = 2\nthreads = 2\n",
        )
        .expect("a machine");
        assert_eq!(all.smp(), "24,sockets=3,dies=2,cores=2,threads=2");
        let to = |end| (0..end).collect::<Vec<u16>>();
        assert_eq!(domains(&all, 1), [to(2), to(4), to(8), to(16), to(24)]);
        let middle: Vec<Vec<u16>> = domains(&all, 9);
        assert_eq!(middle, [vec![8, 9], (8..12).collect(), (8..16).collect(), to(24)]);
        let flat = shape("nodes = [['c']]\n[cluster.c]\ncores = 4\n").expect("a machine");
        assert_eq!(domains(&flat, 2), [to(4)]);
        let one = shape("nodes = [['c']]\n[cluster.c]\ncores = 1\n").expect("a machine");
        assert!(domains(&one, 0).is_empty());
    }

    #[test]
    fn clusters_of_different_sizes_leave_places_of_qemus_empty() {
        let uneven = shape(
            "nodes = [['big', 'little'], ['little']]\n[cluster.big]\ncores = 2\nthreads = \
             2\n[cluster.little]\ncores = 3\n",
        )
        .expect("a machine");
        assert_eq!((uneven.cpus(), uneven.nodes(), uneven.room_of_node()), (10, 2, 12));
        assert_eq!(uneven.smp(), "1,maxcpus=24,sockets=2,dies=2,cores=3,threads=2");
        let devices = uneven.devices();
        assert_eq!(devices.len(), 9);
        let at = |socket, die, core, thread| {
            format!(
                "qemu64-x86_64-cpu,socket-id={socket},die-id={die},core-id={core},\
                 thread-id={thread}"
            )
        };
        assert_eq!([&devices[0], &devices[3]], [&at(0, 0, 0, 1), &at(0, 1, 0, 0)]);
        assert_eq!(devices[8], at(1, 0, 2, 0));
        assert_eq!(
            domains(&uneven, 1),
            [vec![0, 1], (0..4).collect(), (0..7).collect(), (0..10).collect()]
        );
        assert_eq!(domains(&uneven, 8), [vec![7, 8, 9], (0..10).collect()]);
        let even = shape("nodes = [['c']]\n[cluster.c]\ncores = 4\n").expect("a machine");
        assert_eq!(
            (even.smp(), even.devices().len()),
            ("4,sockets=1,dies=1,cores=4,threads=1".to_string(), 0)
        );
    }

    #[test]
    fn cpus_that_are_offline_are_in_no_domain() {
        let text =
            "offline = [1, 3, 6, 7]\nnodes = [['c', 'c']]\n[cluster.c]\ncores = 2\nthreads = 2\n";
        let shape = shape(text).expect("a machine");
        assert_eq!((shape.cpus(), shape.online()), (4, vec![0, 2, 4, 5]));
        assert_eq!(shape.smp(), "8,sockets=1,dies=2,cores=2,threads=2");
        assert_eq!(domains(&shape, 2), [vec![0, 2], vec![0, 2, 4, 5]]);
        assert_eq!(domains(&shape, 5), [vec![4, 5], vec![0, 2, 4, 5]]);
    }

    #[test]
    fn what_an_emulator_cannot_be_is_refused_by_name() {
        for (text, says) in [
            ("offline = [0]\nnodes = [['c']]\n[cluster.c]\ncores = 3\n", "CPU 0 is offline"),
            ("offline = [1]\nnodes = [['c']]\n[cluster.c]\ncores = 2\n", "only one"),
            (
                "nodes = [['c', 'd', 'd', 'd', 'd'], ['d'], ['d'], ['d'], ['d']]\n[cluster.c]\ncores = \
                 20\n[cluster.d]\ncores = 1\n",
                "do not suffice",
            ),
            (
                "nodes = [['c', 'd']]\n[cluster.c]\ncores = 1\n[cluster.d]\ncores = 1\nspeed = \
              0.5\n",
                "speed",
            ),
            ("nodes = [['c']]\n[cluster.c]\ncores = 65\n", "at most 64"),
        ] {
            let refused = shape(text).expect_err(says);
            assert!(
                refused.exit_code() == 3 && refused.to_string().contains(says),
                "{says}: {refused}"
            );
        }
    }

    #[test]
    fn other_domains_than_the_files_are_refused_with_both() {
        let shape = shape("nodes = [['c', 'c']]\n[cluster.c]\ncores = 2\n").expect("a machine");
        let said = |all: [[&str; 4]; 4]| {
            let of = |(cpu, [core, cache, node, domain]): (u16, [&str; 4])| Domains {
                cpu,
                core: core.to_string(),
                cache: cache.to_string(),
                node: node.to_string(),
                domains: vec![domain.to_string(), "f".to_string()],
            };
            shape.judge(&[Event::Domains { cpus: (0..).zip(all).map(of).collect() }])
        };
        let right = [["1", "3", "f", "3"], ["2", "3", "f", "3"], ["4", "c", "", "c"]];
        let with = |last| said([right[0], right[1], right[2], last]);
        assert!(with(["8", "c", "f", "c"]).is_ok());
        for (last, says) in [
            (
                ["c", "c", "f", "c"],
                "hardware threads are not those of the machine m: CPU 3 is in \
                                    [2, 3], and in the file in [3]",
            ),
            (["8", "f", "f", "c"], "last-level caches"),
            (
                ["8", "c", "f", "e"],
                "scheduling domains are not those of the machine m: CPU 3 is \
                                    in [1, 2, 3] in [0, 1, 2, 3], and in the file in [2, 3] in \
                                    [0, 1, 2, 3]",
            ),
        ] {
            let error = with(last).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        let silent = shape.judge(&[]).expect_err("nothing is said").to_string();
        assert!(silent.contains("/proc/schedstat"), "{silent}");
    }

    #[test]
    fn masks_are_read_beyond_32_cpus() {
        assert_eq!(members("00000003"), [0, 1]);
        assert_eq!(members("1,80000000"), [31, 32]);
        assert_eq!(members("0"), Vec::<u16>::new());
    }
}
