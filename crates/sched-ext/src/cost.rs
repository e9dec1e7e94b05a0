//! What callbacks take: instructions of x86-64, by a model.
//!
//! A callback takes a constant for its entry and exit, and one for each instruction of BPF. What the
//! kernel's functions take that it calls comes on top. Functions are counted in a guest with Linux 6.18,
//! each by itself (`tools/compiled --prices`). The constant of an instruction is fitted on scx_simple
//! and scx_flash. docs/compiled.md has the errors for other schedulers.

use super::constants::unversioned;
use bpf::{Called, Machine, MapKind};

/// Entry and exit: the trampoline, and the kernel's accounting of programs.
const ENTRY: u64 = 91;
/// A hundred instructions of BPF, compiled.
const HUNDRED: u64 = 152;
/// A function that was not counted: one that does little.
const OTHER: u32 = 10;
/// An element of an array, which needs no call.
const ELEMENT: u32 = 6;
/// The kernel's functions.
const FUNCTIONS: [(&str, u32); 35] = [
    ("scx_bpf_now", 84),
    ("scx_bpf_task_cpu", 1),
    ("scx_bpf_task_running", 15),
    ("scx_bpf_cpu_node", 45),
    ("scx_bpf_dsq_nr_queued", 134),
    ("scx_bpf_dsq_insert", 75),
    ("__scx_bpf_dsq_insert_args", 75),
    ("scx_bpf_dispatch", 75),
    ("scx_bpf_dsq_insert_vtime", 71),
    ("__scx_bpf_dsq_insert_vtime", 71),
    ("scx_bpf_dispatch_vtime", 71),
    ("scx_bpf_dsq_move_to_local", 375),
    ("scx_bpf_consume", 375),
    ("scx_bpf_kick_cpu", 109),
    ("scx_bpf_test_and_clear_cpu_idle", 64),
    ("bpf_task_from_pid", 155),
    ("bpf_task_from_vpid", 155),
    ("bpf_task_release", 7),
    ("bpf_cpumask_test_cpu", 7),
    ("bpf_rcu_read_lock", 9),
    ("bpf_rcu_read_unlock", 9),
    // The three were counted as one.
    ("bpf_iter_scx_dsq_new", 135),
    ("bpf_iter_scx_dsq_next", 83),
    ("bpf_iter_scx_dsq_destroy", 40),
    ("scx_bpf_pick_idle_cpu", 122),
    ("scx_bpf_cpuperf_set", 71),
    // Not counted: they do what the one before or the ones named do.
    ("scx_bpf_pick_idle_cpu_node", 122),
    ("scx_bpf_pick_any_cpu", 122),
    ("scx_bpf_pick_any_cpu_node", 122),
    ("scx_bpf_select_cpu_dfl", 122),
    ("scx_bpf_select_cpu_and", 122),
    ("__scx_bpf_select_cpu_and", 122),
    ("scx_bpf_create_dsq", 134),
    ("scx_bpf_dsq_move", 375),
    ("scx_bpf_dsq_move_vtime", 375),
];
/// Helpers by their numbers; a hash where a map may be of several kinds.
const HELPERS: [(u32, u32); 12] = [
    (1, 97),   // bpf_map_lookup_elem
    (2, 374),  // bpf_map_update_elem
    (3, 374),  // bpf_map_delete_elem, not counted
    (5, 48),   // bpf_ktime_get_ns
    (7, 49),   // bpf_get_prandom_u32
    (8, 1),    // bpf_get_smp_processor_id
    (125, 48), // bpf_ktime_get_boot_ns, not counted
    (156, 37), // bpf_task_storage_get
    (160, 48), // bpf_ktime_get_coarse_ns, not counted
    (195, 16), // bpf_map_lookup_percpu_elem
    (208, 48), // bpf_ktime_get_tai_ns, not counted
    (210, 37), // bpf_cgrp_storage_get, not counted
];

/// What each kernel function takes that an object calls, by its number there.
#[derive(Clone, Debug, Default)]
pub struct Costs(Box<[u32]>);

impl Costs {
    /// Those of functions of these names.
    pub fn of<'a>(functions: impl Iterator<Item = &'a str>) -> Costs {
        Costs(functions.map(of_function).collect())
    }

    /// What a call takes; `first` is its first argument.
    pub(crate) fn of_call(&self, machine: &Machine, called: Called, first: u64) -> u64 {
        let cost = match called {
            Called::Function(function) => self.0.get(function.0 as usize).copied().unwrap_or(OTHER),
            Called::Helper(1) if is_array(machine, first) => ELEMENT,
            Called::Helper(helper) => of_helper(helper),
            Called::Own(_) => 0,
        };
        cost.into()
    }
}

/// What a callback takes that has executed these instructions of BPF, and whose calls take `called`.
pub const fn of_callback(executed: u64, called: u64) -> u64 {
    ENTRY + executed * HUNDRED / 100 + called
}

/// By its name, in any version.
fn of_function(name: &str) -> u32 {
    let plain = unversioned(name);
    FUNCTIONS.iter().find(|(known, _)| *known == plain).map_or(OTHER, |&(_, cost)| cost)
}

fn of_helper(helper: u32) -> u32 {
    HELPERS.iter().find(|(known, _)| *known == helper).map_or(OTHER, |&(_, cost)| cost)
}

/// Whether the map at this address is an array, whose elements the kernel finds without a call.
fn is_array(machine: &Machine, address: u64) -> bool {
    let kind = |map: bpf::MapId| machine.object().maps()[map.0 as usize].kind;
    machine
        .map_at(address)
        .is_ok_and(|map| matches!(kind(map), MapKind::Array | MapKind::PerCpuArray))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// A callback in a guest and in the simulator, as means (`tools/compiled --measure`).
    #[derive(Deserialize)]
    struct Counted {
        calls: f64,
        instructions: f64,
        /// Of those, the program's own.
        own: Option<f64>,
        executed: f64,
        model: f64,
        called: BTreeMap<String, f64>,
    }

    /// By object, workload and callback.
    type Found = BTreeMap<String, BTreeMap<String, BTreeMap<String, Counted>>>;

    const FITTED: [&str; 2] = ["scx_simple", "scx_flash"];

    fn found() -> Found {
        let text = include_str!("../../../docs/compiled-costs.json");
        let mut all: serde_json::Value = serde_json::from_str(text).expect("json");
        all.as_object_mut().expect("objects").remove("prices");
        serde_json::from_value(all).expect("counts")
    }

    /// Of a function or helper of this name.
    fn cost_of(name: &str) -> f64 {
        let helper = (1..=211).find(|&number| bpf::helper_name(number) == Some(name));
        f64::from(helper.map_or_else(|| of_function(name), of_helper))
    }

    /// What the model says of a callback with these instructions of BPF and calls. A map may be an
    /// array, which the names do not say: nothing then.
    fn model(of: &Counted) -> Option<f64> {
        let is_sure = !of.called.contains_key("bpf_map_lookup_elem");
        let called: f64 = of.called.iter().map(|(name, count)| cost_of(name) * count).sum();
        is_sure.then_some(ENTRY as f64 + of.executed * HUNDRED as f64 / 100.0 + called)
    }

    #[test]
    fn others_than_the_fitted_objects_are_within_fifteen_percent() {
        let found = found();
        assert!(found.len() >= 7 && FITTED.iter().all(|name| found.contains_key(*name)));
        for (object, workloads) in &found {
            assert_eq!(workloads.len(), 5, "{object}");
            for (workload, callbacks) in workloads {
                let sum = |of: fn(&Counted) -> f64| -> f64 {
                    callbacks.values().map(|callback| callback.calls * of(callback)).sum()
                };
                let (real, model) = (sum(|of| of.instructions), sum(|of| of.model));
                let error = model / real - 1.0;
                assert!(error.abs() <= 0.15, "{object} in {workload}: {model:.0} of {real:.0}");
            }
        }
    }

    /// What the data says of the model is what the constants here give.
    #[test]
    fn the_record_is_of_these_constants() {
        let found = found();
        let callbacks = found.values().flat_map(BTreeMap::values).flat_map(BTreeMap::iter);
        let mut sure = 0;
        for (name, of) in callbacks {
            if let Some(model) = model(of) {
                sure += 1;
                // Means are rounded, and so is each callback's sum.
                assert!((model - of.model).abs() < 1.0, "{name}: {model} is not {}", of.model);
            }
        }
        assert!(sure > 50, "{sure}");
    }

    /// Each function that was counted by itself has its count, rounded.
    #[test]
    fn functions_take_what_was_counted() {
        let text = include_str!("../../../docs/compiled-costs.json");
        let all: serde_json::Value = serde_json::from_str(text).expect("json");
        let prices = all["prices"].as_object().expect("prices");
        let mut alone = 0;
        for (name, counted) in prices.iter().filter(|(name, _)| !name.contains(' ')) {
            alone += 1;
            let counted = counted.as_f64().expect("a number").round();
            assert!((cost_of(name) - counted).abs() < 0.5, "{name}: {} {counted}", cost_of(name));
        }
        assert!(alone >= 15, "{alone}");
        let together = |names: &[&str]| -> f64 {
            let counted = prices[&names.join(" + ")].as_f64().expect("a number");
            names.iter().map(|name| cost_of(name)).sum::<f64>() - counted
        };
        for names in [
            &["bpf_iter_scx_dsq_new", "bpf_iter_scx_dsq_next", "bpf_iter_scx_dsq_destroy"][..],
            &["bpf_rcu_read_lock", "bpf_rcu_read_unlock"],
            &["bpf_task_from_pid", "bpf_task_release"],
        ] {
            assert!(together(names).abs() < 1.0, "{names:?}: {}", together(names));
        }
    }

    /// The least squares of relative errors of the own code of the fitted objects.
    #[test]
    fn an_instruction_takes_what_is_fitted() {
        let found = found();
        let all = FITTED.iter().flat_map(|name| found[*name].values()).flat_map(BTreeMap::values);
        let points: Vec<(f64, f64)> = all.filter_map(|of| Some((of.executed, of.own?))).collect();
        let sum = |of: fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|&(x, y)| of(x, y) / (y * y)).sum()
        };
        let (total, mean_x, mean_y) = (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y));
        let (products, squares) = (sum(|x, y| x * y), sum(|x, _| x * x));
        let slope = (products * total - mean_x * mean_y) / (squares * total - mean_x * mean_x);
        let at_zero = (mean_y - slope * mean_x) / total;
        assert!((slope * 100.0 - HUNDRED as f64).abs() < 1.0, "{slope}");
        // The first and last instructions of a program are few, and not charged.
        assert!((0.0..4.0).contains(&at_zero), "{at_zero}");
    }
}
