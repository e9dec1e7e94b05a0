//! The CPUs of a machine that are online.

use schedsim::{Place, counted};
use std::collections::BTreeSet;

/// The places of the CPUs that are not in `offline`. Cores and clusters are numbered without those
/// of which nothing is left.
///
/// # Errors
/// The key and what is wrong with it: a CPU that does not exist or is named twice. Or a node of
/// which nothing is left.
pub(super) fn places(all: &[Place], offline: &[u16]) -> Result<Vec<Place>, (String, String)> {
    let mut off = BTreeSet::new();
    for (index, cpu) in offline.iter().enumerate() {
        let wrong = |message: String| Err((format!("offline[{index}]"), message));
        if usize::from(*cpu) >= all.len() {
            return wrong(format!(
                "the machine has {}, and no CPU {cpu}",
                counted(all.len(), "CPU")
            ));
        }
        if !off.insert(*cpu) {
            return wrong(format!("CPU {cpu} is already offline"));
        }
    }
    let online = || (0u16..).zip(all).filter(|(cpu, _)| !off.contains(cpu)).map(|(_, place)| place);
    let nodes: BTreeSet<u16> = online().map(|place| place.node).collect();
    if let Some(place) = all.iter().find(|place| !nodes.contains(&place.node)) {
        let message = format!("node {} needs a CPU that is online", place.node);
        return Err(("offline".to_string(), message));
    }
    let (mut cores, mut clusters) = (Vec::new(), Vec::new());
    let place = |place: &Place| Place {
        core: number(&mut cores, place.core),
        cluster: number(&mut clusters, place.cluster),
        ..*place
    };
    Ok(online().map(place).collect())
}

/// The number of `of` among those seen so far.
fn number(seen: &mut Vec<u16>, of: u16) -> u16 {
    let known = seen.iter().position(|other| *other == of);
    let at = known.unwrap_or_else(|| {
        seen.push(of);
        seen.len().saturating_sub(1)
    });
    u16::try_from(at).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use crate::machine_file::MachineFile;
    use crate::toml_file::TomlFile;
    use program::Error;
    use schedsim::{CpuId, Distance};

    const SMT: &str = "nodes = [['c', 'c'], ['c']]\n[cluster.c]\ncores = 2\nthreads = 2\n";

    fn machine(offline: &str) -> Result<MachineFile, Error> {
        MachineFile::read(&TomlFile::of("m.toml", &format!("offline = {offline}\n{SMT}")))
    }

    #[test]
    fn cpus_that_are_offline_leave_no_gap_in_the_topology() {
        let machine = machine("[7, 2, 3, 1]").unwrap();
        assert_eq!((machine.places.len(), &machine.offline[..]), (12, &[1, 2, 3, 7][..]));
        // What is left: CPU 0; 4, 5 and 6; 8 to 11.
        let topology = &machine.topology;
        assert_eq!(topology.cpus(), 8);
        let from_1 = [2, 3, 0, 4].map(|to| topology.distance(CpuId(1), CpuId(to)));
        assert_eq!(
            from_1,
            [Distance::Core, Distance::Cluster, Distance::Node, Distance::Remote(20)]
        );
        assert_eq!([0, 1, 3].map(|cpu| topology.core(CpuId(cpu)).len()), [1, 2, 1]);
        assert!(topology.clusters().iter().all(|cluster| !cluster.is_empty()));
        // A cluster and a core of which nothing is left are gone.
        let without = self::machine("[0, 1, 2, 3]").unwrap();
        assert_eq!(without.topology.clusters().len(), 2);
    }

    #[test]
    fn what_cannot_be_offline_is_refused_with_its_key() {
        for (offline, says) in [
            ("[1, 12]", "m.toml:1: offline[1]: the machine has 12 CPUs, and no CPU 12"),
            ("[1, 1]", "m.toml:1: offline[1]: CPU 1 is already offline"),
            ("[8, 9, 10, 11]", "m.toml:1: offline: node 1 needs a CPU that is online"),
            ("[-1]", "m.toml:1: offline"),
        ] {
            let message = machine(offline).unwrap_err().to_string();
            assert!(message.starts_with(says), "{message}\nand not\n{says}");
        }
    }
}
