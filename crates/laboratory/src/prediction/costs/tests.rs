use super::*;
use schedsim::policy::PolicySpec;
use std::cell::RefCell;
use worlds::Determinism;
use worlds::mock::Mock;
use worlds::simulator::Simulator;

pub fn known() -> KernelCosts {
    KernelCosts {
        cpus: 2,
        calls: [300, 700, 900, 500, 40, 60, 1_100, 30_000, 90_000, 800].map(Nanos),
        switch: Nanos(1_200),
        block_and_wake: Nanos(1_600),
        exit: Nanos(7_000),
        timer: Nanos(2_000),
        wake: Nanos(2_500),
        idle_exit: Some(Nanos(4_000)),
        tick: Nanos::from_millis(4),
        tick_cost: Nanos(3_000),
    }
}

/// These costs wherever `test` runs tasks.
pub fn everywhere(test: &Test) -> Costs {
    let grounds = test.changes.iter().map(|change| change.ground(test.cpus));
    Costs(grounds.map(|ground| (ground.to_string(), known())).collect())
}

/// What `measure` finds on a simulated machine with these costs.
fn found(known: &KernelCosts) -> KernelCosts {
    let simulator = RefCell::new(Simulator::new());
    let mut world = Mock::new(Determinism::Seeded, |session| {
        let program = known.charge(session.trial.program.closed().expect("tasks"))?;
        let trial = Trial { program: &program, ..session.trial.clone() };
        let session = worlds::Session { trial, trace: None, ..session.clone() };
        let mut runs = simulator.borrow_mut().run(&[session], &ProgressBar::hidden())?;
        runs.remove(0)
    });
    let policy = Candidate::Policy(PolicySpec::parse("eevdf").expect("a policy"));
    KernelCosts::measure(&mut world, &[(policy, known.cpus)], known.tick, &ProgressBar::hidden())
        .expect("costs")
        .remove(0)
}

#[test]
fn what_is_written_is_read_again() {
    let one = KernelCosts { cpus: 1, idle_exit: None, ..known() };
    let all = [("kernel:other".to_string(), one), ("kernel:other, 2 CPUs".to_string(), known())];
    let costs = Costs(all.into());
    let world = Name::Vm { kernel: "6.18".to_string() };
    let mut rows = costs.rows(&world);
    let read = |rows: &[Row], kernel: &str| {
        let world = Name::Vm { kernel: kernel.to_string() };
        Costs::read(rows, &world, known().tick)
    };
    assert_eq!(read(&rows, "6.18"), Ok(costs));
    assert!(read(&rows, "6.1").unwrap_err().contains("no kernel_cost_ns of vm:6.1"));
    rows.retain(|row| row.subject.as_deref() != Some(SWITCH));
    assert!(read(&rows, "6.18").unwrap_err().contains("kernel:other is missing"));
}

#[test]
fn the_costs_of_a_machine_are_found() {
    let one = KernelCosts { cpus: 1, idle_exit: None, ..known() };
    let slow = KernelCosts {
        calls: [2_000, 100, 3_000, 1_500, 0, 900, 400, 90_000, 150_000, 5_000].map(Nanos),
        switch: Nanos(500),
        block_and_wake: Nanos(6_000),
        exit: Nanos(20_000),
        timer: Nanos(400),
        wake: Nanos(9_000),
        idle_exit: Some(Nanos(15_000)),
        tick_cost: Nanos(20_000),
        ..known()
    };
    for known in [one, known(), slow] {
        let found = found(&known);
        for ((name, is), (_, was)) in found.named().into_iter().zip(known.named()) {
            let [is, was] = [is, was].map(|time| time.unwrap_or(Nanos::ZERO).0);
            assert!(is.abs_diff(was) <= 60 + was / 50, "{name}: {was} ns, found {is} ns");
        }
    }
}
