//! Ensemble members: valid runs of the same workload, and equal under every policy up to the first
//! decision.

use schedsim::checks::{Checks, Rule, Violation};
use schedsim::engine::{Options, Outcome, simulate_named};
use schedsim::policy::PolicySpec;
use schedsim::swarm::Case;
use schedsim::trace::{Trace, TraceHash};
use schedsim::workload::{Nudge, Workload};
use schedsim::{Machine, Nanos, Time};

const POLICIES: [&str; 6] = ["eevdf", "cfs", "take:rr", "central:priority", "o1", "central:ruler"];

struct Run {
    outcome: Outcome,
    hash: u64,
    violations: Vec<Violation>,
}

fn run(
    workload: &Workload,
    machine: &Machine,
    policy: &str,
    until: Time,
    nudge: Option<Nudge>,
) -> Run {
    let spec = PolicySpec::parse(policy).unwrap();
    let machine = nudge.map_or(machine.clone(), |nudge| nudge.machine(machine));
    let mut hash = TraceHash::new();
    let mut checks = Checks::new(workload, &machine, spec.promises(machine.cpus)).with_nudge(nudge);
    let trace = Trace::new(vec![&mut hash, &mut checks]);
    let outcome =
        simulate_named((workload, nudge), &machine, &spec, Options { seed: 1, until }, trace)
            .unwrap();
    let violations = checks.finish(&outcome);
    Run { outcome, hash: hash.value(), violations }
}

#[test]
fn every_member_holds_all_rules_and_differs_from_the_others() {
    let (mut runs, mut same) = (0, 0);
    for seed in 0..150 {
        let case = Case::draw(seed);
        // A run of nanoseconds has nothing to nudge.
        let Some(workload) = case.scripts().filter(|_| case.until() > Time(1_000_000)) else {
            continue;
        };
        for policy in POLICIES {
            let of = |nudge| run(&workload, &case.machine, policy, case.until(), nudge);
            let members = [1, 2, 2].map(|member| of(Some(Nudge::new(member))));
            for member in &members {
                assert_eq!(member.violations, [], "case {seed}, {policy}");
            }
            assert_eq!(members[1].hash, members[2].hash, "the same member is the same run");
            runs += 1;
            same += u32::from(members[0].hash == members[1].hash);
        }
    }
    assert!(runs > 500 && same * 50 < runs, "{same} of {runs} members are as the other one");
}

#[test]
fn work_is_the_same_to_a_few_percent_and_costs_are_not_work() {
    for seed in 0..100 {
        let case = Case::draw(seed);
        let Some(workload) = case.scripts().filter(|_| case.until() == Time::NEVER) else {
            continue;
        };
        let machine = Machine { switch_cost: Nanos(5_000), ..Machine::ideal(case.machine.cpus) };
        let of =
            |nudge| run(&workload, &machine, "take:rr", Time::NEVER, nudge).outcome.useful.0 as f64;
        let (own, nudged) = (of(None), of(Some(Nudge::new(seed))));
        assert!((nudged - own).abs() <= 0.026 * own, "case {seed}: {nudged} for {own}");
        let exact = of(Some(Nudge::new(seed)));
        assert_eq!(nudged, exact);
        // The same steps have the same nudges under every policy.
        let other =
            run(&workload, &machine, "eevdf", Time::NEVER, Some(Nudge::new(seed))).outcome.useful.0
                as f64;
        assert_eq!(nudged, other, "case {seed}");
    }
}

/// The canary: checked against its exact scripts, a member fails.
#[test]
fn without_the_nudge_the_checks_would_find_it() {
    let found = (0..40).filter(|seed| {
        let case = Case::draw(*seed);
        let Some(workload) = case.scripts() else { return false };
        let spec = PolicySpec::parse("take:rr").unwrap();
        let nudge = Some(Nudge::new(1));
        let mut checks = Checks::new(&workload, &case.machine, spec.promises(case.machine.cpus));
        let options = Options { seed: 1, until: case.until() };
        let outcome = simulate_named(
            (&workload, nudge),
            &case.machine,
            &spec,
            options,
            Trace::new(vec![&mut checks]),
        )
        .unwrap();
        checks.finish(&outcome).iter().any(|violation| violation.rule == Rule::CpuTime)
    });
    assert!(found.count() > 20);
}
