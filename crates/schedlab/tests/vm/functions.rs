//! Instructions by function, by side and by callback.

use super::{guest, guest_under};
use schedlab_runner::class::Class;
use schedlab_runner::event::Event;
use worlds::vm::functions::{self, Side, Split};
use worlds::vm::{Guest, Settled, Transcript, yields};

#[test]
fn the_instructions_of_a_window_are_those_of_its_functions_and_looking_changes_nothing() {
    let Some(guest) = guest("6.18", 1, vec![yields::job(2, Class::Other)]) else { return };
    let (split, _) = counted(&guest);
    assert!(split.functions[..3].iter().any(|of| of.name == "__schedule"), "{split:?}");
    let sides = split.sides();
    assert!(!sides.contains_key(&Side::Bpf) && !sides.contains_key(&Side::Program), "{sides:?}");
    assert!(split.calls.is_empty(), "the kernel's own scheduler has no callbacks");
}

/// What the first job of a guest consists of, all of what its windows took, and what it says when
/// nothing is counted.
fn counted(guest: &Guest) -> (Split, Transcript) {
    let jobs = &guest.session.jobs;
    let settled = Settled::boot(guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let without = settled.run(jobs, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let symbols = functions::Symbols::of(guest, &without).unwrap_or_else(|error| panic!("{error}"));
    let counted = functions::count(&settled, jobs, &symbols, &without)
        .unwrap_or_else(|error| panic!("{error}"));
    let split = functions::split(&counted, &symbols, 0);
    let clock = |event: &Event| if let Event::Sample { ns, .. } = event { Some(*ns) } else { None };
    let windows: Vec<u64> = counted.events.iter().filter_map(clock).collect();
    // Between the clock's readings and the marks of the plugin lie a few instructions of the
    // runner's.
    let outside = windows.iter().sum::<u64>().abs_diff(split.all());
    assert!(outside < 100 * windows.len() as u64, "{outside} instructions are in no function");
    (split, without)
}

#[test]
#[ignore = "long: tools/long"]
fn the_instructions_of_a_scheduler_are_parted_by_side_and_by_callback() {
    let jobs = vec![yields::job(8, Class::Other)];
    for (policy, has_program) in [("bpf:rr", false), ("central:rr", true)] {
        let Some((_, mut guest)) = guest_under(policy, 1, jobs.clone()) else { return };
        guest.session.scheduler_code = true;
        let (split, without) = counted(&guest);
        let sides = split.sides();
        let of = |side| sides.get(&side).copied().unwrap_or(0);
        assert!(of(Side::Kernel) > of(Side::SchedExt) && of(Side::SchedExt) > 0, "{sides:?}");
        assert!(of(Side::Bpf) > 0 && of(Side::BpfRuntime) > 0 && of(Side::Tasks) > 0, "{sides:?}");
        // One that decides in BPF looks now and then whether it is to end.
        assert_eq!(of(Side::Program) > split.all() / 20, has_program, "{policy}: {sides:?}");
        // A program in user space is a task itself, and runs after each yield.
        let yields =
            yields::cost(&without, 0).expect("samples").yields * if has_program { 2 } else { 1 };
        let enqueue = split.calls.iter().find(|calls| calls.callback == "enqueue");
        let enqueue = enqueue.expect("a task that yields is put back");
        assert!(enqueue.count().abs_diff(yields) <= yields / 100, "{}, {yields}", enqueue.count());
        // A call has at least what its trampoline has, and all calls no more than there is.
        let (least, all) = (enqueue.quantile(0.0), enqueue.mean() * enqueue.count() as f64);
        assert!(least > 20 && all < split.all() as f64 / 4.0, "{least} {all} {}", split.all());
        assert!(enqueue.quantile(0.5) <= enqueue.quantile(1.0), "{enqueue:?}");
    }
}
