//! Schedulers of sched_ext in guests: ours keep the simulated order, and any other runs as it is.

use super::*;

/// Eight tasks that yield in turn.
fn yielders() -> Closed {
    let yielder = Tasks::new(
        "yielder",
        vec![Phase::repeat(100, vec![Phase::Run(Nanos(1_000)), Phase::Yield])],
    );
    Closed { tasks: vec![Tasks { count: 8, ..yielder }], ..Closed::default() }
}

/// How far the order of the kernel's dispatches is that of the simulated policy.
fn conformance(scheduler: &Scheduler, workload: &Closed, real: &closed::Measured) -> Conformance {
    let (scripts, machine, mut turns) =
        (Workload::of(workload, 1).expect("a workload"), Machine::ideal(1), Collector::default());
    let subject = Subject {
        name: "yielders",
        workload: &scripts,
        machine: &machine,
        mips: None,
        ended: &[],
        until: Time::NEVER,
        beside: &[],
        parts: false,
    };
    let policy = scheduler.original().expect("a policy of ours");
    simulate(subject, &machine, &policy, (1, None), true, Some(&mut turns)).expect("it runs");
    Conformance::of(
        &real.read().expect("a trace").turns.order(),
        &turns.turns(|task| Some(task.0)).order(),
    )
}

#[test]
#[ignore = "long: tools/long"]
fn lists_in_bpf_and_user_space_keep_the_simulated_order_at_a_cost_independent_of_tasks() {
    let jobs: Vec<Job> = [2, 64].map(|tasks| yields::job(tasks, Class::Other)).into();
    let jobs: Vec<Job> =
        jobs.into_iter().chain(closed::jobs("yielders", &yielders(), Class::Other)).collect();
    let policies: Option<Vec<(Scheduler, Guest)>> = ["bpf:rr", "bpf:ruler", "central:rr"]
        .into_iter()
        .map(|policy| guest_under(policy, 1, jobs.clone()))
        .collect();
    let Some(policies) = policies else { return };
    let (schedulers, mut guests): (Vec<Scheduler>, Vec<Guest>) = policies.into_iter().unzip();
    // The goals: 1.25 and 1.4 times what EEVDF takes, 2,775. No job begins before the scheduler is
    // in charge, however short the wait: the kernel's own takes 2,800.
    guests[2].session.settle_ms = 0;
    let proved = prove(&guests, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    for ((scheduler, proved), range) in
        schedulers.iter().zip(&proved).zip([3_000.0..3_468.0, 3_000.0..3_885.0, 6_000.0..15_000.0])
    {
        scheduler.judge(&proved.transcript.events).unwrap_or_else(|error| panic!("{error}"));
        let (few, many) = (cost(proved, 0), cost(proved, 1));
        assert!(range.contains(&few), "{scheduler}: a yield of two tasks takes {few} instructions");
        assert!(
            (many / few - 1.0).abs() < 0.02,
            "{scheduler}: it is a list, so it is flat: {few}, {many}"
        );
        let measured = closed::Measured::of(&proved.transcript, 2).expect("both jobs end");
        let tick = measured.ticks.as_ref().expect("a busy CPU has ticks").cost;
        assert!((1_000..50_000).contains(&tick.0), "{scheduler}: a tick takes {tick}");
        let conformance = conformance(scheduler, &yielders(), &measured);
        assert!(
            conformance.share() >= 0.99 && conformance.real >= 800,
            "{scheduler}: {conformance:?}"
        );
    }
}

/// Each level has half the rate of the one before, but no task has more than one of two CPUs. Who is
/// left behind in a queue runs when there happens to be no other task. Whether a CPU takes a queue over
/// while another one fills it is a matter of moments, so sixteen boots have different ones. Of four
/// the ratio of the middle two went from 1.30 to 1.76 by the seed and by the bytes of the program in
/// the guest; of sixteen it is 1.43 and 1.44.
#[test]
#[ignore = "long: tools/long"]
fn on_two_cpus_nobody_is_left_behind_in_a_pass_of_the_ruler() {
    if guest_under("bpf:ruler", 1, Vec::new()).is_none() {
        return;
    }
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/nice.toml");
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab.args(["compare", "--on", "vm", "--cpus", "2", "--ensemble", "16"]).arg(workload);
    let output =
        schedlab.args(["--policy", "bpf:ruler", "--format", "json"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let shares: Vec<[f64; 3]> = (results["rows"].as_array().expect("rows").iter())
        .filter(|row| row["metric"] == "cpu_share")
        .map(|row| ["value", "ci_low", "ci_high"].map(|key| row[key].as_f64().expect("a share")))
        .collect();
    let [best, good, bad, worst] = shares[..] else { panic!("four tasks: {shares:?}") };
    assert!(best[0] > 0.3 && good[0] > 1.35 * bad[0] && bad[0] > 1.5 * worst[0], "{shares:?}");
    assert!(shares.iter().all(|[_, low, high]| high - low < 0.1), "boots differ: {shares:?}");
}

/// On two CPUs shares are those of the simulated machine, whose ticks, arrivals and calls are the
/// guest's. A policy in user space hears of nice values that tasks give themselves, and begins anew
/// with each job.
#[test]
#[ignore = "long: tools/long"]
fn on_two_cpus_the_kernel_shares_them_out_as_the_simulator_does() {
    if guest_under("bpf:rr", 1, Vec::new()).is_none() {
        return;
    }
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/nice.toml");
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab.args(["diff", "--decisions"]).arg(workload).args([
        "--cpus",
        "2",
        "--policy",
        "bpf:rr,eevdf",
        "--format",
        "json",
    ]);
    let output = schedlab.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    let shares = |policy: &str, backend: &str| -> Vec<f64> {
        let is_share = |row: &&serde_json::Value| {
            row["metric"] == "cpu_share" && row["candidate"] == policy && row["world"] == backend
        };
        rows.iter().filter(is_share).map(|row| row["value"].as_f64().expect("a share")).collect()
    };
    for (policy, simulated) in [("bpf:rr", "central:rr"), ("eevdf", "eevdf")] {
        let (real, simulated) = (shares(policy, "vm:6.18"), shares(simulated, "sim"));
        assert_eq!((real.len(), simulated.len()), (4, 4), "{rows:?}");
        let off = real
            .iter()
            .zip(&simulated)
            .map(|(real, simulated)| (real - simulated).abs())
            .fold(0.0, f64::max);
        // One second holds some two hundred turns, and the run that is recorded is another one.
        assert!(off < 0.03, "{policy}: {real:?} {simulated:?}");
    }
    let weighted = shares("eevdf", "vm:6.18");
    assert!(
        weighted[0] > 1.2 * weighted[1] && weighted[1] > 1.2 * weighted[2],
        "nice -5, 0 and 5: {weighted:?}"
    );
}

/// Each decision is the policy's, in BPF and in user space. Under ruler so is the order of
/// dispatches, whatever was before a job: its schedule begins anew. Where tasks wake each other and
/// sleep, when timers fire is a matter of microseconds, so that only the bursts that were recorded
/// tell.
#[test]
#[ignore = "long: tools/long"]
fn policies_decide_in_the_kernel_as_on_the_host_and_ruler_keeps_the_simulated_order() {
    if guest_under("bpf:ruler", 1, Vec::new()).is_none() {
        return;
    }
    let workload =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
    let mut schedlab = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    schedlab
        .args(["diff", "--decisions"])
        .args(["pipes.toml", "mixed.toml", "levels.toml"].map(workload));
    let policies = "bpf:ruler,central:ruler,bpf:pslist,cfs";
    let output =
        schedlab.args(["--policy", policies, "--format", "json"]).output().expect("it runs");
    // In one boot a latency may miss its goal, which ends with 4; decisions and shares may not.
    let message = String::from_utf8_lossy(&output.stderr);
    let is_known = output.status.code() == Some(4)
        && !message.contains("decisions")
        && !message.contains("CPU share");
    assert!(output.status.success() || is_known, "{message}");
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = results["rows"].as_array().expect("rows");
    let decisions: Vec<_> = rows.iter().filter(|row| row["metric"] == "equal_decisions").collect();
    assert_eq!(decisions.len(), 4 * 3, "{decisions:?}");
    for row in decisions {
        let count = row["note"]
            .as_str()
            .and_then(|note| note.strip_suffix(" decisions")?.parse::<u32>().ok());
        assert!(
            row["value"].as_f64().is_some_and(|share| share >= 0.99)
                && count.is_some_and(|count| count > 300),
            "{row}"
        );
    }
    let equal = |metric: &str, workload: &str| -> Vec<f64> {
        let is_it = |row: &&serde_json::Value| {
            row["candidate"] == "central:ruler"
                && row["metric"] == metric
                && row["workload"] == workload
        };
        rows.iter().filter(is_it).filter_map(|row| row["value"].as_f64()).collect()
    };
    for (metric, workload) in [
        ("equal_dispatches", "levels"),
        ("equal_dispatches", "mixed"),
        ("equal_dispatches_recorded", "mixed"),
        ("equal_dispatches_recorded", "pipes"),
    ] {
        let equal = equal(metric, workload);
        assert!(
            equal.len() == 2 && equal.iter().all(|&share| share >= 0.99),
            "{metric} of {workload}: {equal:?}"
        );
    }
}

#[test]
fn a_policy_whose_tick_is_no_multiple_of_the_kernels_is_refused_by_name() {
    let Some((scheduler, guest)) =
        guest_under("pslist?tick=6ms", 1, vec![yields::job(2, Class::Other)])
    else {
        return;
    };
    let transcript = boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let refused = scheduler.judge(&transcript.events).expect_err("its tick is not the kernel's");
    assert_eq!(refused.exit_code(), 77, "{refused}");
    for word in ["pslist?tick=6ms", "needs a tick", "4.00ms"] {
        assert!(refused.to_string().contains(word), "{word:?} is not in {refused}");
    }
}

#[test]
fn a_second_scheduler_and_one_without_the_privilege_are_refused_with_what_to_do() {
    let Some((first, mut guest)) = guest_under("bpf:rr", 1, vec![yields::job(2, Class::Other)])
    else {
        return;
    };
    let second = Scheduler::find("bpf:ruler").unwrap_or_else(|error| panic!("{error}"));
    second.install(&mut guest).unwrap_or_else(|error| panic!("{error}"));
    let transcript = boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let ended = |event: &Event| {
        if let Event::Service { line, .. } = event { Some(line.clone()) } else { None }
    };
    let ended: Vec<String> =
        transcript.events.iter().filter_map(ended).filter(|line| line.contains("ended")).collect();
    let is_refused = |line: &&String| {
        line.contains("a scheduler is in charge already") && line.contains("\"exit_code\":77")
    };
    assert_eq!(ended.iter().filter(is_refused).count(), 1, "{ended:?}");
    assert_eq!(
        ended.iter().filter(|line| line.contains("\"exit_code\":0")).count(),
        1,
        "{ended:?}"
    );

    let program = first.program();
    let said = |command: &mut Command| {
        String::from_utf8_lossy(&command.output().expect("it starts").stdout).into_owned()
    };
    let unasked = said(Command::new(program).arg("bpf:rr"));
    assert!(
        unasked.contains("\"exit_code\":2") && unasked.contains("add --this-machine"),
        "{unasked}"
    );
    if rustix::process::geteuid().is_root() {
        let mut nobody = Command::new("setpriv");
        nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        let refused = said(nobody.args(["bpf:rr", "--this-machine"]));
        assert!(
            refused.contains("\"exit_code\":77") && refused.contains("needs root"),
            "{refused}"
        );
    }
}

/// `schedlab-scx`, as if it were anybody's program: it schedules, and costs what it costs as ours. One
/// that never schedules, and one that the kernel ejects, are named with what it says.
#[test]
fn any_scheduler_of_sched_ext_runs_as_it_is() {
    let jobs = || vec![yields::job(2, Class::Other), yields::job(8, Class::Other)];
    let Some((ours, guest)) = guest_under("bpf:rr", 1, jobs()) else { return };
    let foreign = |arguments: &str, jobs: Vec<Job>| {
        let name = format!("scx:{} {arguments}", ours.program().display());
        let foreign = Foreign::find(&name).unwrap_or_else(|error| panic!("{error}"));
        let session = Session { settle_ms: 2000, jobs, ..Session::default() };
        let mut guest = Guest { session, files: Vec::new(), ..guest.clone() };
        foreign.install(&mut guest, false).unwrap_or_else(|error| panic!("{error}"));
        (foreign, guest)
    };
    let (scheduler, as_foreign) = foreign("bpf:rr --this-machine", jobs());
    let proved = prove(&[guest.clone(), as_foreign], &|_, _| {});
    let proved = proved.unwrap_or_else(|error| panic!("{error}"));
    scheduler
        .judge(&proved[1].transcript.events, &proved[1].transcript.console)
        .unwrap_or_else(|error| panic!("{error}"));
    for job in 0..2 {
        let (own, foreign) = (cost(&proved[0], job), cost(&proved[1], job));
        assert!((foreign / own - 1.0).abs() < 0.005, "{own} as ours, {foreign} as anybody's");
    }
    // Long enough for the canary to begin, and for the kernel's watchdog.
    let phases =
        vec![Phase::repeat(3_000, vec![Phase::Yield]), Phase::Sleep(Nanos(12_000_000_000))];
    let worker = Tasks::new("worker", phases);
    let workload = Closed { tasks: vec![Tasks { count: 2, ..worker }], ..Closed::default() };
    let work = vec![Job::new("work", workload, Class::Other)];
    for (arguments, words) in [
        ("--list", ["ended by itself (exit status: 0)", "mlfq"]),
        (
            "canary:never --this-machine",
            ["ended by itself (exit status: 4)", "runnable task stall"],
        ),
    ] {
        let (scheduler, guest) = foreign(arguments, work.clone());
        let transcript = boot(&guest, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        let why = scheduler.judge(&transcript.events, &transcript.console).expect_err(arguments);
        assert_eq!(why.exit_code(), 4, "{why}");
        assert!(words.iter().all(|word| why.to_string().contains(word)), "{why}");
    }
}

#[test]
fn a_policy_that_breaks_a_rule_is_ejected_and_the_guest_goes_on() {
    let canaries = [
        ("canary:forgets", ["runnable task stall", "worker"]),
        ("canary:never", ["runnable task stall", "the policy has kept worker["]),
        ("canary:wrong-cpu", ["broke a rule: ", "CPU 999: there is no such CPU"]),
        ("canary:stranger", ["broke a rule: ", "there is no such task"]),
        ("canary:panics", ["it panicked", "the canary panics"]),
        ("canary:killed", ["ended without a report", "SIGKILL"]),
        ("canary:cpu", ["the kernel ejected", "999"]),
    ];
    // Long enough for the kernel's watchdog, which looks for tasks that have waited for 5 s.
    let worker = Tasks::new(
        "worker",
        vec![Phase::repeat(3_000, vec![Phase::Yield]), Phase::Sleep(Nanos(12_000_000_000))],
    );
    let workload = Closed { tasks: vec![Tasks { count: 2, ..worker }], ..Closed::default() };
    let work = Job::new("work", workload, Class::Other);
    for (policy, words) in canaries {
        let Some((scheduler, guest)) =
            guest_under(policy, 1, vec![work.clone(), yields::job(2, Class::Other)])
        else {
            return;
        };
        let transcript = boot(&guest, &mut |_| {})
            .unwrap_or_else(|error| panic!("{policy}: the guest must go on: {error}"));
        let rule = scheduler.judge(&transcript.events).expect_err(policy);
        assert_eq!(rule.exit_code(), 4, "{rule}");
        eprintln!("{rule}");
        for word in words {
            assert!(rule.to_string().contains(word), "{word:?} is not in {rule}");
        }
        let after = yields::cost(&transcript, 1).expect("the next job ends").instructions;
        assert!(
            (after / 2_800.0 - 1.0).abs() < 0.1,
            "{policy} is not in charge any more, and a yield takes {after}"
        );
    }
}

#[test]
fn what_a_scheduler_of_ours_needs_and_is_not_there_is_named() {
    let run = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = command
            .args(["compare", "yield:2", "--policy"])
            .args(arguments)
            .env("SCHEDLAB_SCX", program)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("schedlab-scx");
    let (code, said) = run(&program, &["bpf:ruler", "--on", "vm"]);
    assert!(
        code == Some(77)
            && said.contains("cargo build --release -p schedlab-scx")
            && said.contains("clang-19"),
        "{said}"
    );
    std::fs::write(&program, "#!/bin/sh\necho bpf:rr; echo bpf:ruler\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let (code, said) = run(&program, &["bpf:rulr", "--on", "vm"]);
    assert!(
        code == Some(2)
            && said.contains("Did you mean `bpf:ruler`?")
            && said.contains("bpf:rr, bpf:ruler"),
        "{said}"
    );
    let (code, said) = run(&program, &["bpf:ruler"]);
    assert!(code == Some(2) && said.contains("--on vm"), "{said}");
    if Qemu::find().is_ok() {
        let (code, said) = run(&program, &["bpf:ruler", "--on", "vm", "--kernel", "6.1"]);
        assert!(code == Some(3) && said.contains("CONFIG_SCHED_CLASS_EXT"), "{said}");
        // Said before anything is booted.
        let (code, said) = run(&program, &["fifo?throttle=950ms", "--on", "vm"]);
        assert!(
            code == Some(77)
                && said.contains("fifo?throttle=950ms needs an alarm")
                && said.contains("leave `throttle` out"),
            "{said}"
        );
    }
}
