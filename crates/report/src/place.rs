//! Where numbers were measured: everything that identifies a row besides candidate and metric.

use results::{Point, Row, World, counted};

/// Coordinates that identify programs and kernels. Different worlds always have different ones.
pub const IDENTITIES: [&str; 12] = [
    "qemu",
    "qemu_sha256",
    "kernel",
    "kernel_sha256",
    "runner_sha256",
    "files_sha256",
    "instruction_ns",
    "interleave",
    "kernel_arguments",
    "kernel_modules",
    "sched_features",
    "sysctl",
];

/// A place.
#[derive(PartialEq, Clone, Copy)]
pub struct Place<'r> {
    workload: &'r str,
    world: &'r World,
    cpus: u16,
    point: &'r Point,
}

impl<'r> Place<'r> {
    /// The place of a row.
    pub fn of(row: &'r Row) -> Place<'r> {
        Place { workload: &row.workload, world: &row.world, cpus: row.cpus, point: &row.point }
    }

    fn coordinate(&self, name: &str) -> String {
        self.point.get(name).map(ToString::to_string).unwrap_or_default()
    }
}

/// In what places differ.
pub struct Places<'r> {
    workloads: bool,
    worlds: bool,
    cpus: bool,
    coordinates: Vec<&'r str>,
}

impl<'r> Places<'r> {
    /// The differences of `places`.
    pub fn of<'a>(places: impl Iterator<Item = &'a Place<'r>>) -> Places<'r>
    where
        'r: 'a,
    {
        let places: Vec<&Place<'r>> = places.collect();
        let differ = |of: &dyn Fn(&Place<'r>) -> String| {
            places.first().is_some_and(|first| places.iter().any(|one| of(one) != of(first)))
        };
        let mut names: Vec<&str> = places.iter().flat_map(|place| place.point.names()).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !IDENTITIES.contains(name) && differ(&|place| place.coordinate(name)));
        Places {
            workloads: differ(&|place| place.workload.to_string()),
            worlds: differ(&|place| place.world.to_string()),
            cpus: differ(&|place| place.cpus.to_string()),
            coordinates: names,
        }
    }

    /// What tells a place from the others; empty if there is one alone.
    pub fn label(&self, place: &Place<'_>) -> String {
        let mut words = Vec::new();
        if self.workloads {
            words.push(place.workload.to_string());
        }
        if self.worlds {
            words.push(place.world.to_string());
        }
        if self.cpus && place.cpus > 0 {
            words.push(counted(place.cpus.into(), "CPU"));
        }
        let named = self.coordinates.iter().map(|name| (name, place.coordinate(name)));
        words.extend(
            named.filter(|one| !one.1.is_empty()).map(|(name, value)| format!("{name}={value}")),
        );
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Metric;

    #[test]
    fn a_label_has_what_differs_and_nothing_else() {
        let row = |cpus, load: f64| {
            let row = Row { cpus, workload: "w".to_string(), ..Row::new(World::Sim, Metric::grr) };
            row.at("load", load).at("qemu", format!("1.{cpus}"))
        };
        let rows = [row(1, 0.5), row(2, 0.5)];
        let places = rows.each_ref().map(Place::of);
        let label = |places: &[Place<'_>]| {
            let differing = Places::of(places.iter());
            places.iter().map(|place| differing.label(place)).collect::<Vec<_>>()
        };
        assert_eq!(label(&places), ["1 CPU", "2 CPUs"]);
        assert_eq!(label(&places[..1]), [""]);
        let rows = [row(2, 0.5), row(2, 0.7)];
        assert_eq!(label(&rows.each_ref().map(Place::of)), ["load=0.5", "load=0.7"]);
    }
}
