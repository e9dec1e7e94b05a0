//! The same recording gives the same events in every format, and each variant of a line has the
//! right meaning.

mod import_support;

use formats::import::{Format, Options, WakeContexts};
use import_support::{contents, data, import, import_bytes, import_with, script, switch};
use schedsim::trace::{EventKind, PrevState, WakeContext};
use schedsim::{CpuId, Nanos, TaskId, Time};

const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);

/// Removes what only perf.data contains.
fn without_context(mut kinds: Vec<EventKind>) -> Vec<EventKind> {
    for kind in &mut kinds {
        if let EventKind::SchedWaking { context, .. } = kind {
            *context = WakeContext::Unknown;
        }
    }
    kinds
}

#[test]
fn text_and_perf_data_of_one_recording_give_the_same_events() {
    for name in ["sort", "sort-z", "sort-callchain"] {
        let text = import(&data(&format!("{name}.perf-script.txt.zst"))).unwrap();
        let binary = match name {
            "sort-z" => import(&data("sort-z.perf.data")).unwrap(),
            _ => import(&data(&format!("{name}.perf.data.zst"))).unwrap(),
        };
        assert!(text.events.len() > 500, "{name}");
        assert_eq!(text.events.len(), binary.events.len(), "{name}");
        assert_eq!(without_context(binary.kinds()), text.kinds(), "{name}");
        assert!(
            text.events
                .iter()
                .zip(&binary.events)
                .all(|(text, binary)| (text.time, text.cpu) == (binary.time, binary.cpu))
        );
        let (text, binary) = (text.recording, binary.recording);
        let names_and_pids = |tasks: &[schedsim::trace::TaskInfo]| {
            tasks.iter().map(|task| (task.name.clone(), task.pid, task.prio)).collect::<Vec<_>>()
        };
        assert_eq!(names_and_pids(&text.tasks), names_and_pids(&binary.tasks));
        assert_eq!((text.cpus, text.duration), (binary.cpus, binary.duration));
        assert_eq!(text.report.events, binary.report.events);
        assert_eq!(text.report.skipped, binary.report.skipped);
        assert_eq!(text.report.cpus, binary.report.cpus);
        assert_eq!(
            (text.report.format, binary.report.format),
            (Format::PerfScript, Format::PerfData)
        );
        assert!(!text.report.wake_contexts.recorded() && binary.report.wake_contexts.recorded());
    }
}

/// `trace-cmd report -t` printed the text out of version 7; version 6 is trace-cmd's conversion.
#[test]
fn a_trace_dat_of_each_version_gives_the_events_that_trace_cmd_prints() {
    let text = import(&data("ls.report.txt.zst")).unwrap();
    assert_eq!((text.events.len(), text.recording.cpus), (217, 2));
    for name in ["ls.6.trace.dat.zst", "ls.7.trace.dat.zst"] {
        let plain = contents(name);
        for binary in [import(&data(name)).unwrap(), import_bytes(&plain).unwrap()] {
            assert_eq!(without_context(binary.kinds()), text.kinds(), "{name}");
            let places = |imported: &import_support::Imported| -> Vec<(Time, CpuId)> {
                imported.events.iter().map(|event| (event.time, event.cpu)).collect()
            };
            assert_eq!(places(&binary), places(&text), "{name}");
            let (text, binary) = (&text.recording, &binary.recording);
            assert_eq!((binary.cpus, binary.duration), (text.cpus, text.duration), "{name}");
            assert_eq!(binary.report.format, Format::TraceDat);
            assert_eq!(binary.report.wake_contexts.unknown, 0, "{name}");
            assert_eq!(binary.report.lost, 0);
        }
    }
}

/// Perfetto's own message classes wrote the file (tests/python/test_perfetto.py).
#[test]
fn a_trace_of_perfetto_gives_the_events_of_the_text() {
    let text = import(&data("ls.report.txt.zst")).unwrap();
    let plain = contents("ls.plain.pftrace.zst");
    for binary in [import_bytes(&plain).unwrap(), import(&data("ls.plain.pftrace.zst")).unwrap()] {
        assert_eq!(binary.events, text.events);
        assert_eq!(binary.recording.report.format, Format::Perfetto);
    }
    let compact = import(&data("ls.compact.pftrace.zst")).unwrap();
    assert_eq!((compact.events.len(), compact.recording.duration), (218, text.recording.duration));
}

/// A page says that events before it are missing, and how many.
#[test]
fn a_trace_dat_with_missing_events_says_how_many() {
    let mut bytes = contents("ls.6.trace.dat.zst");
    // The second page of the second CPU: behind it lies the number.
    let page = bytes.len() - 4096;
    let commit = u64::from_le_bytes(bytes[page + 8..page + 16].try_into().unwrap());
    let end = page + 16 + commit as usize;
    bytes[page + 8..page + 16].copy_from_slice(&(commit | 3 << 30).to_le_bytes());
    bytes[end..end + 8].copy_from_slice(&7u64.to_le_bytes());
    let file = import_support::Temporary::new(&bytes);
    let refused = import(&file.0).err().unwrap().to_string();
    assert!(refused.contains("7 events were lost while recording"), "{refused}");
    let allowed = import_with(&file.0, &Options { allow_lost: true, ..Options::default() });
    assert_eq!(allowed.unwrap().recording.report.lost, 7);
}

/// Without `sched_waking` the wakeup stands for it, and the report says what that means.
#[test]
fn a_wakeup_without_a_waking_is_one() {
    let whole = import_bytes(&contents("ls.report.txt.zst")).unwrap();
    let text = String::from_utf8(contents("ls.report.txt.zst")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("sched_waking:")).collect();
    let late = import_bytes((lines.join("\n") + "\n").as_bytes()).unwrap();
    let of = |imported: &import_support::Imported| -> Vec<(EventKind, Time)> {
        let waking = |kind: &EventKind| matches!(kind, EventKind::SchedWaking { .. });
        let all = imported.events.iter().filter(|event| waking(&event.kind));
        all.map(|event| (event.kind, event.time)).collect()
    };
    let (whole, late_ones) = (of(&whole), of(&late));
    assert_eq!((whole.len(), late_ones.len()), (41, 41));
    let task = |kind: EventKind| match kind {
        EventKind::SchedWaking { task, .. } => task,
        _ => unreachable!(),
    };
    let mut delays: Vec<u64> = Vec::new();
    for (kind, time) in &whole {
        let mut own = late_ones.iter().filter(|(of, at)| task(*of) == task(*kind) && at >= time);
        delays.push(own.next().unwrap().1.0 - time.0);
    }
    delays.sort_unstable();
    assert!(delays[0] > 0 && delays[20] < 100_000, "{delays:?}");
    let report = late.recording.report;
    assert_eq!((report.late_wakings, report.events.waking), (41, 0));
    assert!(report.to_string().contains("41 wakeups have no sched_waking"), "{report}");
}

#[test]
fn every_choice_of_columns_gives_the_same_events() {
    let expected = import(&data("sort.perf-script.txt.zst")).unwrap();
    for name in ["sort.latency.txt.zst", "sort.fields.txt.zst"] {
        let other = import(&data(name)).unwrap();
        assert_eq!(other.events, expected.events, "{name}");
    }
    let coarse = import(&data("sort.microseconds.txt.zst")).unwrap();
    assert_eq!(coarse.kinds(), expected.kinds());
    assert!(
        coarse.events.iter().zip(&expected.events).all(|(coarse, fine)| coarse
            .time
            .0
            .abs_diff(fine.time.0)
            <= 1_000)
    );
}

#[test]
fn compression_in_one_or_several_frames_changes_nothing() {
    for name in ["sort.perf-script.txt.zst", "sort.perf.data.zst"] {
        let plain = contents(name);
        let expected = import_bytes(&plain).unwrap();
        assert!(!expected.recording.report.compressed);
        let (head, tail) = plain.split_at(plain.len() / 3);
        let frames = [head, tail].map(|part| zstd::stream::encode_all(part, 1).unwrap()).concat();
        let compressed = import_bytes(&frames).unwrap();
        assert!(compressed.recording.report.compressed);
        assert_eq!(compressed.events, expected.events, "{name}");
    }
}

#[test]
fn the_bundled_recordings_are_complete() {
    let counts = [
        ("cargo-build.perf-script.txt.zst", 6171, 163),
        ("hackbench.perf-script.txt.zst", 21541, 171),
        ("redis.perf-script.txt.zst", 14095, 16),
        ("sqlite-and-xz.perf.data.zst", 8735, 36),
    ];
    for (name, events, tasks) in counts {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
        let imported = import(&path).unwrap();
        assert_eq!(imported.events.len(), events, "{name}");
        assert_eq!(imported.recording.tasks.len(), tasks, "{name}");
        assert_eq!(imported.recording.report.lost, 0);
        assert_eq!(imported.events[0].time, Time::ZERO);
        assert_eq!(imported.events.last().unwrap().time, Time(imported.recording.duration.0));
    }
}

/// The counts are in workloads/README.md; a script that shares no code with the import made them.
#[test]
fn wake_contexts_match_independent_counts() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../workloads/sqlite-and-xz.perf.data.zst");
    let contexts = import(&path).unwrap().recording.report.wake_contexts;
    assert_eq!(contexts, WakeContexts { task: 761, softirq: 1562, hardirq: 48, unknown: 0 });
}

#[test]
fn every_variant_of_a_line_has_the_same_meaning() {
    let fields = "sched_waking: comm=a pid=7 prio=120 target_cpu=003";
    let spellings = [
        format!("            a b  7/7     [002]    10.000001: sched:{fields}"),
        format!("            a b     7 [002]    10.000001000: {fields}"),
        format!("[002] 10.000001: sched:{fields}"),
        format!("a [1] b   7 [002]    10.000001:          1 sched:{fields}"),
        format!(" [000] 9.000000:     7 [002]    10.000001: sched:{fields}"),
        format!("a: b: c   7 [002] K  10.000001: sched:{fields}"),
        format!("     a b     7   2   10.000001: sched:{fields}"),
        format!("     a b     7/7   2   10.000001: sched:{fields}"),
        format!(
            "a-7     [002]  10.000001: {fields} ffffffff813aa9c4 try_to_wake_up+0x1 \
             ([kernel.kallsyms])"
        ),
        "a 7 [002] 10.000001: sched:sched_waking: a:7 [120] success=1 CPU:003".to_owned(),
        "a 7 [002] 10.000001: sched:sched_waking: comm=a pid=7 prio=120 success=1 target_cpu=003"
            .to_owned(),
    ];
    for line in &spellings {
        let imported = import_bytes(format!("{line}\n").as_bytes())
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(
            imported.kinds(),
            [EventKind::SchedWaking { task: A, target: CpuId(3), context: WakeContext::Unknown }],
            "{line}"
        );
        assert_eq!(imported.events[0].cpu, CpuId(2), "{line}");
        assert_eq!(imported.recording.report.start, Nanos(10_000_001_000), "{line}");
        assert_eq!(
            (imported.recording.tasks[0].name.as_str(), imported.recording.tasks[0].pid),
            ("a", 7),
            "{line}"
        );
        assert_eq!(imported.recording.cpus, 4, "{line}");
    }
}

#[test]
fn latency_flags_give_the_wake_context() {
    let cases = [
        ("d.h.", WakeContext::Hardirq),
        ("dNh1", WakeContext::Hardirq),
        ("d.H2.", WakeContext::Hardirq),
        ("d.s4.", WakeContext::Softirq),
        ("d..2.", WakeContext::Task),
        ("....", WakeContext::Task),
    ];
    for (flags, expected) in cases {
        for cpu in ["[001]", "  1"] {
            let line = format!(
                "a 7 {cpu} {flags} 10.000001: sched_waking: comm=a pid=7 prio=120 target_cpu=001\n"
            );
            let imported = import_bytes(line.as_bytes()).unwrap();
            assert_eq!(
                imported.kinds(),
                [EventKind::SchedWaking { task: A, target: CpuId(1), context: expected }],
                "{line}"
            );
        }
    }
}

#[test]
fn names_may_contain_field_separators() {
    for name in [
        "a b",
        "pid=1",
        "x pid=1 prio=2",
        "kworker/1:1H",
        "[000] 1.000000:",
        "a=b ==> c",
        "é",
        "next_pid=9",
    ] {
        let imported = import_bytes(&script(&[(0, &switch((name, 7), "R+", ("b:1", 8)))])).unwrap();
        let expected = EventKind::SchedSwitch { prev: A, next: B, prev_state: PrevState::Runnable };
        assert_eq!(imported.kinds(), [expected], "{name}");
        assert_eq!(imported.recording.tasks[0].name, name);
        assert_eq!((imported.recording.tasks[0].pid, imported.recording.tasks[1].pid), (7, 8));

        let short = format!("sched_switch: {name}:7 [120] S ==> kworker/0:1:8 [100]");
        let imported = import_bytes(&script(&[(0, &short)])).unwrap();
        assert_eq!(
            imported.kinds(),
            [EventKind::SchedSwitch { prev: A, next: B, prev_state: PrevState::Blocked }],
            "{name}"
        );
        assert_eq!(
            (imported.recording.tasks[0].name.as_str(), imported.recording.tasks[1].name.as_str()),
            (name, "kworker/0:1")
        );
    }
}

#[test]
fn states_give_the_reason_why_a_task_stopped() {
    let states = [
        ("R", PrevState::Runnable),
        ("R+", PrevState::Runnable),
        ("S", PrevState::Blocked),
        ("D|W", PrevState::Blocked),
    ];
    let ends = [
        ("I", PrevState::Blocked),
        ("t", PrevState::Blocked),
        ("X", PrevState::Dead),
        ("Z", PrevState::Dead),
        ("x", PrevState::Dead),
    ];
    for (state, expected) in states.into_iter().chain(ends) {
        let imported =
            import_bytes(&script(&[(0, &switch(("a", 7), state, ("swapper/0", 0)))])).unwrap();
        assert_eq!(
            imported.kinds(),
            [EventKind::SchedSwitch { prev: A, next: TaskId::NONE, prev_state: expected }],
            "{state}"
        );
    }
}

#[test]
fn comments_call_chains_and_other_events_are_skipped() {
    let text = "# ========\n# nrcpus online : 6\n#\n\na 7 [000] 1.000000: probe:foo: (ffff) \
                x=1\na 7 [000] 1.000001: sched:sched_waking: comm=b pid=8 prio=120 \
                target_cpu=000\n\tffffffff813aa9c4 try_to_wake_up+0x1 ([kernel.kallsyms])\n  \
                core.c:123\n\t       0 [unknown] ([unknown])\n\na 7 [000] 1.000002:          1 \
                cycles:ppp:  ffffffff813aa9c4 x\na 7 [000] 1.000003: PERF_RECORD_COMM: \
                c:7/7\nPERF_RECORD_COMM: d:7/7\n";
    let imported = import_bytes(text.as_bytes()).unwrap();
    let report = imported.recording.report;
    assert_eq!((imported.events.len(), imported.recording.cpus, report.records), (1, 6, 5));
    let skipped: Vec<_> =
        report.skipped.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(skipped, [("PERF_RECORD_COMM", 2), ("cycles:ppp", 1), ("probe:foo", 1)]);
}

#[test]
fn the_kernels_own_trace_file_is_read() {
    let text = "# tracer: nop\n#\n\
        #           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n\
        #              | |         |   |||||     |         |\n\
        \x20         <idle>-0       [001] d.s4.  1262.502724: sched_waking: comm=bash pid=43 \
        prio=120 target_cpu=000\n\
        CPU:1 [LOST 3 EVENTS]\n\
        \x20           bash-43      [000] d..2.  1262.502731: sched_switch: prev_comm=bash \
        prev_pid=43 prev_prio=120 prev_state=S ==> \
        next_comm=swapper/0 next_pid=0 next_prio=120\n";
    let file = import_support::Temporary::new(text.as_bytes());
    let imported =
        import_with(&file.0, &Options { allow_lost: true, ..Options::default() }).unwrap();
    assert_eq!(
        (imported.recording.report.lost, imported.recording.report.wake_contexts.softirq),
        (3, 1)
    );
    assert_eq!(imported.events[1].time, Time(7_000));
}

#[test]
fn a_reused_pid_is_a_new_task() {
    let fork = "sched_process_fork: comm=sh pid=5 child_comm=sh child_pid=7";
    let new = "sched_wakeup_new: comm=sh pid=7 prio=120 target_cpu=000";
    let (run, end) = (switch(("sh", 5), "S", ("sh", 7)), switch(("sh", 7), "Z", ("sh", 5)));
    let imported = import_bytes(&script(&[
        (0, fork),
        (0, new),
        (0, &run),
        (0, &end),
        (0, fork),
        (0, new),
        (0, &run),
        (0, &end),
    ]))
    .unwrap();
    assert_eq!(imported.recording.report.pids_reused, 1);
    let pids: Vec<_> = imported.recording.tasks.iter().map(|task| task.pid).collect();
    assert_eq!(pids, [5, 7, 7]);
    assert_eq!(
        imported.events[6].kind,
        EventKind::SchedSwitch { prev: A, next: TaskId(2), prev_state: PrevState::Blocked }
    );

    // Without forks in the recording only the end shows it.
    let imported = import_bytes(&script(&[(0, &run), (0, &end), (0, &run), (0, &end)])).unwrap();
    assert_eq!(imported.recording.report.pids_reused, 1);
    // A task that slept while exiting is still the same one.
    let imported =
        import_bytes(&script(&[(0, fork), (0, new), (0, &run), (0, &end), (0, &run), (0, &end)]))
            .unwrap();
    assert_eq!(imported.recording.report.pids_reused, 0);
}

#[test]
fn a_thread_that_execs_takes_its_leaders_pid() {
    let exec = "sched_process_exec: filename=/bin/a pid=1 b old_pid=2 pid=7 old_pid=8";
    let (before, after) =
        (switch(("lead", 7), "S", ("worker", 8)), switch(("a", 7), "S", ("lead", 8)));
    let imported = import_bytes(&script(&[(0, &before), (0, exec), (0, &after)])).unwrap();
    assert_eq!(imported.events[1].kind, EventKind::SchedProcessExec { task: B });
    assert_eq!(
        imported.events[2].kind,
        EventKind::SchedSwitch { prev: B, next: A, prev_state: PrevState::Blocked }
    );
    assert_eq!(
        (imported.recording.tasks[1].pid, imported.recording.tasks[1].name.as_str()),
        (7, "a")
    );
}

#[test]
fn the_process_of_a_task_is_known_if_a_column_has_it() {
    let line = format!("task 90/100 [000] 1.000000: {}\n", switch(("task", 100), "S", ("b", 8)));
    let imported = import_bytes(line.as_bytes()).unwrap();
    assert_eq!((imported.recording.tasks[0].tgid, imported.recording.tasks[1].tgid), (90, 0));
}

#[test]
fn missing_switches_are_counted_with_a_warning() {
    let (idle, a, b) = (("swapper/1", 0), ("a", 7), ("b", 8));
    let lines = [switch(a, "S", idle), switch(b, "S", idle), switch(a, "S", idle)];
    let imported =
        import_bytes(&script(&[(1, &lines[0]), (1, &lines[1]), (1, &lines[2])])).unwrap();
    let report = imported.recording.report;
    assert_eq!(report.unseen_switch_ins(), 2);
    assert!(report.cpus[1].idle_unrecorded() && !report.cpus[0].idle_unrecorded());
    assert!(
        report.warnings[0]
            .starts_with("CPU 1: 2 of 3 switches take off a task that was never seen switched in"),
        "{report}"
    );
}

#[test]
fn progress_ends_at_the_file_size() {
    let last = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = last.clone();
    let path = data("sort.perf-script.txt.zst");
    let options = Options {
        progress: Some(Box::new(move |progress| seen.set(progress.bytes_read))),
        ..Options::default()
    };
    import_with(&path, &options).unwrap();
    assert_eq!(last.get(), std::fs::metadata(path).unwrap().len());
}
