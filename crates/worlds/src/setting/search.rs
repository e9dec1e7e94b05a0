//! Searches a bounded grid of single settings for the one that helps a program most.

use super::rule::kernel_slice;
use super::{Assignment, Deployment, ProgramLoad};
use schedsim::workload::{Setting, Workload};
use schedsim::{CpuId, Nanos, TaskId};

/// The most candidates of a search.
pub const MOST: usize = 40;
/// For this number of other programs settings are tried: those with the most CPU time.
const OTHERS: usize = 3;

/// Every single setting that is tried to help `program` on `cpus` CPUs: for itself, for the
/// programs with the most CPU time, and for all. Tasks `beside` the programs (a recorder) get none.
pub fn single(workload: &Workload, beside: &[TaskId], cpus: u16, program: &str) -> Vec<Deployment> {
    let slice = kernel_slice(cpus);
    let shorter = Setting::Slice(Nanos(slice.0 / 4));
    let longer = Setting::Slice(Nanos(slice.0 * 4));
    let mut own: Vec<Setting> = [-20, -10, -5, 5].map(Setting::Nice).to_vec();
    own.extend([
        Setting::Fifo(50),
        Setting::RoundRobin(50),
        Setting::Batch,
        Setting::Slice(Nanos::from_micros(100)),
        shorter.clone(),
        longer.clone(),
    ]);
    own.extend([200, 1000].map(Setting::Weight));
    let mut others = vec![Setting::Batch, Setting::Idle, Setting::Nice(10), Setting::Nice(19)];
    if cpus > 1 {
        let first = vec![CpuId(0)];
        let rest: Vec<CpuId> = (1..cpus).map(CpuId).collect();
        own.extend([Setting::Cpus(first.clone()), Setting::Cpus(rest.clone())]);
        others.extend([Setting::Cpus(first), Setting::Cpus(rest)]);
    }
    let of = |program: &str, settings: &[Setting]| -> Vec<Deployment> {
        let one = |setting: &Setting| Assignment {
            program: program.to_string(),
            settings: vec![setting.clone()],
        };
        settings
            .iter()
            .map(|setting| Deployment { assignments: vec![one(setting)], under: None })
            .collect()
    };
    let mut all = of(program, &own);
    let loads = ProgramLoad::all(workload, beside);
    for other in loads.iter().filter(|other| other.name != program && other.is_fair).take(OTHERS) {
        all.extend(of(&other.name, &others));
    }
    all.extend(of("*", &[shorter, longer, Setting::Batch]));
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::workload::{Closed, Phase, Tasks};

    #[test]
    fn a_search_is_bounded_and_tries_each_setting_once() {
        let hog = |name: String| Tasks::new(&name, vec![Phase::Run(Nanos::from_millis(5))]);
        for cpus in [1, 2, 64] {
            let workload = Workload::of(
                &Closed {
                    tasks: (0..30).map(|number| hog(format!("p{number}"))).collect(),
                    ..Closed::default()
                },
                cpus,
            )
            .unwrap();
            let found: Vec<String> =
                single(&workload, &[], cpus, "p3").iter().map(ToString::to_string).collect();
            let mut once = found.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), found.len(), "{found:?}");
            assert!(
                found.len() <= MOST && found.iter().any(|name| name.starts_with("*: ")),
                "{found:?}"
            );
            assert!(found.iter().filter(|name| name.starts_with("p3: ")).count() >= 12);
        }
    }
}
