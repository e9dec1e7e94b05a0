//! The shape of a guest's machine: its nodes, last-level caches, cores and hardware threads, as the
//! emulator describes them to the kernel, and the scheduling domains that the kernel must make of
//! them.
//!
//! A node is a socket, a cluster is a die: CPUs of a die share the last cache. The kernel sees all
//! this; no cache is smaller, no memory slower and no thread shares a core for it.

use super::configuration::Need;
use formats::machine_file::MachineFile;
use program::Error;
use schedlab_runner::event::Event;
use schedsim::{CpuId, CpuSet, Topology};
use std::collections::BTreeSet;

/// A machine that QEMU can show to a guest.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// The name of the machine.
    pub name: String,
    topology: Topology,
    /// The sizes of all nodes in clusters, of all clusters in cores, of all cores in threads.
    dies: usize,
    cores: usize,
    threads: usize,
}

/// What the kernel needs so that its domains follow the machine and can be read back.
pub const DOMAINS: [Need; 3] = [
    ("CONFIG_SCHEDSTATS", "statistics of scheduling domains"),
    ("CONFIG_SCHED_MC", "domains of CPUs that share a cache"),
    ("CONFIG_SCHED_SMT", "domains of hardware threads"),
];

/// What QEMU's CPU must be for the kernel to read dies, cores and threads from it. Its level ends
/// before leaf 0x1f, at which QEMU 11.1 aborts where there are dies: the last cache tells them.
pub const CPU: &str = ",vendor=GenuineIntel,family=6,model=94,stepping=3,level=13";

impl Shape {
    /// The shape of `machine`.
    ///
    /// # Errors
    /// [`Error::Input`] by name if QEMU has no such machine.
    pub fn of(machine: &MachineFile, most: u16) -> Result<Shape, Error> {
        let topology = &machine.topology;
        let refused = |what: &str| {
            Error::Input(format!(
                "the machine {} cannot be a guest's: {what}; simulate it with --on sim",
                machine.name
            ))
        };
        if topology.cpus() > most {
            return Err(refused(&format!(
                "it has {} CPUs, and a guest at most {most}",
                topology.cpus()
            )));
        }
        if topology.has_speeds() {
            return Err(refused("its CPUs differ in speed, and the emulator's do not"));
        }
        let of_each = |of: &dyn Fn(CpuId) -> usize, what: &str| {
            let sizes: BTreeSet<usize> = (0..topology.cpus()).map(CpuId).map(of).collect();
            match (sizes.first(), sizes.len()) {
                (Some(&size), 1) => Ok(size),
                _ => Err(refused(&format!("{what}, and the emulator's are alike"))),
            }
        };
        let threads = of_each(
            &|cpu| topology.core(cpu).len(),
            "its cores have different numbers of hardware threads",
        )?;
        let cluster =
            of_each(&|cpu| topology.cluster(cpu).len(), "its clusters have different sizes")?;
        let node = of_each(&|cpu| topology.node(cpu).len(), "its nodes have different sizes")?;
        let (dies, cores) = (node / cluster, cluster / threads);
        let shape =
            Shape { name: machine.name.clone(), topology: topology.clone(), dies, cores, threads };
        let is_in_order = |cpu: u16| {
            let place = topology.place(CpuId(cpu));
            let number = |size: usize| (usize::from(cpu) / size) as u16;
            (place.core, place.cluster, place.node)
                == (number(threads), number(cluster), number(node))
        };
        if (0..topology.cpus()).all(is_in_order) {
            Ok(shape)
        } else {
            Err(refused("its CPUs are not numbered node by node, cluster by cluster, core by core"))
        }
    }

    /// How many CPUs.
    pub fn cpus(&self) -> u16 {
        self.topology.cpus()
    }

    /// How many NUMA nodes.
    pub fn nodes(&self) -> u16 {
        self.cpus() / self.topology.node(CpuId(0)).len() as u16
    }

    /// QEMU's `-smp`.
    pub fn smp(&self) -> String {
        format!(
            "{},sockets={},dies={},cores={},threads={}",
            self.cpus(),
            self.nodes(),
            self.dies,
            self.cores,
            self.threads
        )
    }

    /// How far a node is from another, as ACPI's SLIT has it.
    pub fn distance(&self, from: u16, to: u16) -> u16 {
        self.topology.node_distances()[usize::from(from)][usize::from(to)]
    }

    /// The scheduling domains of a CPU, from the inside out, each a set of CPUs.
    fn domains(&self, cpu: CpuId) -> Vec<CpuSet> {
        let [core, cluster, node, _] = self.topology.spans(cpu);
        let mut spans = vec![core.clone(), cluster.clone(), node.clone()];
        let own = self.topology.place(cpu).node;
        let all: BTreeSet<u16> = self.topology.node_distances().iter().flatten().copied().collect();
        for distance in all {
            let is_near =
                |other: &CpuId| self.distance(own, self.topology.place(*other).node) <= distance;
            spans.push((0..self.cpus()).map(CpuId).filter(is_near).collect());
        }
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
        let found = found.filter(|cpus| cpus.len() == usize::from(self.cpus())).ok_or_else(|| {
            Error::Input(format!(
                "the kernel does not say which scheduling domains it has (/proc/schedstat), so it \
                 is not known whether it has those of the machine {}",
                self.name
            ))
        })?;
        for (cpu, has) in (0..).map(CpuId).zip(found) {
            let [core, cluster, node, _] = self.topology.spans(cpu);
            let is_in = |set: &CpuSet, mask: &str| members(mask) == numbers(set);
            let expected: Vec<Vec<u16>> = self.domains(cpu).iter().map(numbers).collect();
            let has_domains: Vec<Vec<u16>> = has.domains.iter().map(|of| members(of)).collect();
            let (what, has, expected) = match () {
                () if !is_in(core, &has.core) => {
                    ("hardware threads", vec![members(&has.core)], vec![numbers(core)])
                }
                () if !is_in(cluster, &has.cache) => {
                    ("last-level caches", vec![members(&has.cache)], vec![numbers(cluster)])
                }
                () if self.nodes() > 1 && !is_in(node, &has.node) => {
                    ("nodes", vec![members(&has.node)], vec![numbers(node)])
                }
                () if has_domains != expected => ("scheduling domains", has_domains, expected),
                () => continue,
            };
            return Err(Error::Input(format!(
                "the kernel's {what} are not those of the machine {}: CPU {} is in {}, and in the \
                 file in {}",
                self.name,
                cpu.0,
                in_words(&has),
                in_words(&expected)
            )));
        }
        Ok(())
    }
}

fn numbers(cpus: &CpuSet) -> Vec<u16> {
    cpus.iter().map(|cpu| cpu.0).collect()
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
    use schedlab_runner::event::Domains;

    fn shape(text: &str) -> Result<Shape, Error> {
        MachineFile::read(&TomlFile::of("m.toml", text)).and_then(|file| Shape::of(&file, 64))
    }

    fn domains(shape: &Shape, cpu: u16) -> Vec<Vec<u16>> {
        shape.domains(CpuId(cpu)).iter().map(numbers).collect()
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
    fn what_an_emulator_cannot_be_is_refused_by_name() {
        for (text, says) in [
            ("nodes = [['c', 'd']]\n[cluster.c]\ncores = 2\n[cluster.d]\ncores = 1\n", "sizes"),
            (
                "nodes = [['c', 'd']]\n[cluster.c]\ncores = 1\n[cluster.d]\ncores = 1\nspeed = \
              0.5\n",
                "speed",
            ),
            ("nodes = [['c']]\n[cluster.c]\ncores = 65\n", "at most 64"),
            (
                "nodes = [['c', 'd']]\n[cluster.c]\ncores = 2\n[cluster.d]\ncores = 1\nthreads = \
              2\n",
                "hardware threads",
            ),
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
            let of = |[core, cache, node, domain]: [&str; 4]| Domains {
                core: core.to_string(),
                cache: cache.to_string(),
                node: node.to_string(),
                domains: vec![domain.to_string(), "f".to_string()],
            };
            shape.judge(&[Event::Domains { cpus: all.map(of).to_vec() }])
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
