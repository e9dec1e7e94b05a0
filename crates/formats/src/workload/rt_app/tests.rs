use super::*;
use grammar::keys_of;

fn refused(text: &str) -> String {
    let workload = read("w.json", text).map(|workload| workload.scripts(4).map(drop));
    workload.and_then(|scripts| scripts).expect_err(text).to_string()
}

/// A file with these tasks, one a line from line 3 on.
fn file(tasks: &[&str]) -> String {
    format!("{{\n\"tasks\" : {{\n{}\n}}\n}}", tasks.join(",\n"))
}

fn closed(tasks: &[&str]) -> (Closed, Vec<String>) {
    let workload = read("w.json", &file(tasks)).expect("a workload");
    workload.scripts(8).expect("scripts");
    (workload.description().clone(), workload.notes().to_vec())
}

#[test]
fn every_event_becomes_a_phase() {
    for event in keys_of(Place::Event) {
        let value = match event.name {
            "run" | "runtime" | "sleep" | "mem" | "iorun" => "7",
            "wait" | "sync" => r#"{ "ref" : "c", "mutex" : "m" }"#,
            "timer" => r#"{ "ref" : "unique", "period" : 5 }"#,
            "memrun" => r#"{ "type" : "read", "size" : 64, "count" : 9 }"#,
            _ => r#""m""#,
        };
        // With a locked mutex, if the event needs one.
        let (before, after) = match event.name {
            "wait" | "sync" | "unlock" => (
                r#""lock" : "m","#,
                if event.name == "unlock" { "" } else { r#", "unlock" : "m""# },
            ),
            "lock" => ("", r#", "unlock" : "m""#),
            _ => ("", ""),
        };
        let task = format!(
            r#""t" : {{ "loop" : 1, {before} "{}3" : {value} {after}, "run9" : 1 }}"#,
            event.name
        );
        let text = file(&[&task, r#""m" : { "instance" : 0, "run" : 1 }"#]);
        let workload = read("w.json", &text).expect(&text);
        workload.scripts(1).expect(&text);
        let approximated = event.treatment == Treatment::Approximated;
        let told = workload.notes().iter().any(|note| note.starts_with(event.name));
        assert_eq!(told, approximated, "{text}: {:?}", workload.notes());
    }
}

#[test]
fn a_file_in_workgens_grammar_is_translated_with_its_meaning() {
    let text = r#"{ /* a comment */
        "tasks" : {
            "tick" : { "instance" : 2, "priority" : -5, "cpus" : [0], "delay" : 30, "phases" : {
                "p1" : { "loop" : 3, "run" : 10, "run" : 20, "resume" : "tock",
                         "timer" : { "ref" : "unique", "period" : 100 } },
                "p2" : { "cpus" : [1], "run1" : 5, "barrier" : "b", }
            } },
            "tock" : { "policy" : "SCHED_FIFO", "loop" : 4, "suspend", "run" : 7,
                       "barrier" : "b" },
        },
        "resources" : { "tick" : { "type" : "timer" }, "m" : { } },
        "global" : { "duration" : 2, "logdir" : "./" }
    }"#;
    let workload = read("dir/w.json", text).expect("a workload");
    let closed = workload.description();
    assert_eq!((workload.name(), closed.duration), ("w", Some(Nanos::from_millis(2_000))));
    let [tick, tock] = &closed.tasks[..] else { panic!("{closed:?}") };
    assert_eq!(
        (tick.count, tick.nice, tick.start, tick.affinity.as_deref()),
        (2, Some(-5), Nanos(30_000), Some(&[0, 1][..]))
    );
    assert_eq!((tock.policy, tock.priority), (SchedulingPolicy::Fifo, Some(10)));
    let json = serde_json::to_value(&tick.phases).expect("json");
    assert_eq!(json[0]["loop"]["phases"][0]["loop"]["times"], 3);
    assert_eq!(json[0]["loop"]["phases"][0]["loop"]["phases"][1]["run"], "20us");
    let json = serde_json::to_value(&tock.phases).expect("json");
    assert_eq!(json[0]["loop"]["times"], 4);
    assert_eq!(
        json[0]["loop"]["phases"][1],
        serde_json::json!({ "wait": { "condition": "tock", "mutex": "tock" } })
    );
    assert_eq!(closed.barriers["b"].tasks, Some(3));
    assert_eq!(workload.notes().len(), 2, "{:?}", workload.notes());
    assert!(workload.scripts(4).is_ok());
}

#[test]
fn a_task_that_is_forked_begins_with_its_fork() {
    let (workload, _) = closed(&[
        r#""a" : { "run" : 1, "loop" : 2, "delay" : 5 }"#,
        r#""b" : { "instance" : 0, "run" : 1, "loop" : 1, "delay" : 7 }"#,
        r#""never" : { "instance" : 0, "sem_post" : "x", "fork" : "b", "loop" : 1 }"#,
        r#""c" : { "instance" : 2, "loop" : 3, "phases" : { "p" : { "loop" : 4, "fork" : "b", "run" : 1 },
           "q" : { "fork" : "a", "run" : 1 } } }"#,
    ]);
    let tasks: Vec<_> = workload
        .tasks
        .iter()
        .map(|of| (of.name.as_str(), of.program(), of.count, of.forked, of.start))
        .collect();
    assert_eq!(
        tasks,
        [
            ("a", "a", 1, false, Nanos(5_000)),
            ("b", "b", 24, true, Nanos::ZERO),
            ("c", "c", 2, false, Nanos::ZERO),
            ("a (forked)", "a", 6, true, Nanos::ZERO),
        ]
    );
    assert_eq!(workload.tasks[1].phases[0], Phase::Sleep(Nanos(7_000)));
    let json = serde_json::to_string(&workload.tasks[2].phases).expect("json");
    assert!(json.contains(r#""fork":"a (forked)""#) && json.contains(r#""fork":"b""#), "{json}");
    let b = r#""b" : { "instance" : 0, "run" : 1 }"#;
    assert_eq!(
        refused(&file(&[b, r#""c" : { "run" : 1, "fork" : "b" }"#])),
        "w.json:4: fork: b is forked without end, and rt-app ends with an error after 1024; give \
         the loops around it a `loop`"
    );
    assert!(
        refused(&file(&[r#""a" : { "loop" : 1, "run" : 1, "fork" : "a" }"#]))
            .starts_with("w.json:3: fork: a is forked at least 1025 times, and")
    );
    let c = r#""c" : { "loop" : 1, "run" : 1, "fork" : "b" }"#;
    assert!(
        refused(&file(&[r#""b" : { "instance" : 0, "barrier" : "x" }"#, c]))
            .starts_with("w.json:3: barrier: b is forked, and")
    );
    assert!(refused(&file(&[c])).starts_with("w.json:3: fork: there is no task named b"));
    assert!(refused(&file(&[b])).contains("no task is started"));
}

/// The shape of what LISA's `lisa/wlgen/rta.py` writes: phases numbered, everything in them.
#[test]
fn a_file_as_lisa_writes_it_runs() {
    let text = r#"{
        "global": { "duration": -1, "calibration": { "0": 100 }, "lock_pages": true,
            "log_size": "file", "ftrace": "main,task,loop,event", "logdir": "/tmp/x" },
        "tasks": { "rta0": { "loop": 1, "phases": {
            "0": { "cpus": [0, 1], "policy": "SCHED_OTHER", "priority": 0, "util_min": 256,
                   "util_max": 512, "loop": 10, "run": 3200,
                   "timer": { "ref": "rta0", "period": 16000, "mode": "absolute" } },
            "1": { "loop": 1, "barrier": "my_barrier", "yield": "", "runtime": 90 } } },
          "rta1": { "loop": 1, "phases": { "0": { "loop": 1, "barrier": "my_barrier", "run": 5 } } } }
    }"#;
    let workload = read("w.json", text).expect("a workload");
    workload.scripts(4).expect("scripts");
    assert_eq!(workload.notes().len(), 4, "{:?}", workload.notes());
}

#[test]
fn versions_of_rt_app_that_differ_are_told() {
    let (workload, notes) = closed(&[
        r#""a" : { "suspend" : "b", "resume" : "b" }"#,
        r#""b" : { "suspend", "resume" : "a", "run" : 1 }"#,
    ]);
    let json = serde_json::to_value(&workload.tasks[0].phases).expect("json");
    let phases = &json[0]["loop"]["phases"];
    assert_eq!(phases[1], serde_json::json!({ "wait": { "condition": "b", "mutex": "b" } }));
    assert_eq!(phases[6]["run"], "1us", "{phases}");
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].starts_with("`suspend` waits for a `resume` of its value"), "{notes:?}");
    assert!(notes[2].starts_with("the loop of a takes no time"), "{notes:?}");
}

#[test]
fn reservations_and_slices_come_from_the_dl_keys() {
    let (workload, notes) = closed(&[
        r#""a" : { "run" : 1, "policy" : "SCHED_DEADLINE", "dl-runtime" : 200, "dl-period" : 900 }"#,
        r#""b" : { "run" : 1, "dl-runtime" : 3000, "priority" : -3 }"#,
        r#""c" : { "run" : 1, "dl-runtime" : 300000, "policy" : "SCHED_BATCH" }"#,
        r#""d" : { "run" : 1, "dl-runtime" : 3000, "policy" : "SCHED_IDLE" }"#,
        r#""e" : { "policy" : "SCHED_DEADLINE", "runtime" : 200, "period" : 900, "deadline" : 800,
            "phases" : { "p" : { "run" : 1 }, "q" : { "run" : 1, "dl-runtime" : 200,
            "dl-period" : 900, "dl-deadline" : 800 } } }"#,
    ]);
    let [a, b, c, d, e] = &workload.tasks[..] else { panic!("{workload:?}") };
    let reservation = a.reservation.expect("a reservation");
    assert_eq!(
        (reservation.runtime, reservation.period, reservation.deadline),
        (Nanos(200_000), Nanos(900_000), None)
    );
    assert_eq!(e.reservation.expect("a reservation").deadline, Some(Nanos(800_000)));
    assert_eq!(
        [b.slice, c.slice, d.slice],
        [Some(Nanos(3_000_000)), Some(Nanos(100_000_000)), None]
    );
    assert!(
        notes.iter().any(|note| note.starts_with("SCHED_DEADLINE: a reservation")),
        "{notes:?}"
    );
    assert!(notes.iter().any(|note| note.starts_with("the slice of c is 100ms")), "{notes:?}");
    assert!(
        refused(&file(&[r#""a" : { "run" : 1, "policy" : "SCHED_DEADLINE",
            "dl-runtime" : 200, "dl-period" : 100 }"#]))
        .starts_with("w.json:4: a runtime of 200us does not fit")
    );
    assert!(
        refused(&file(&[r#""a" : { "run" : 1, "policy" : "SCHED_DEADLINE" }"#]))
            .starts_with("w.json:3: 0ns is less than 1024ns")
    );
}

#[test]
fn phases_may_repeat_the_attributes_of_their_task_and_not_change_them() {
    let phases = |first: &str, second: &str| {
        file(&[&format!(
            "\"t\" : {{ \"phases\" : {{\n\"p\" : {{ {first} \"run\" : 1 }},\n\"q\" : {{ {second} \
             \"run\" : 1 }} }} }}"
        )])
    };
    let fine = |first: &str, second: &str| {
        let text = phases(first, second);
        let workload = read("w.json", &text).expect(&text);
        workload.scripts(8).expect(&text);
        workload.description().tasks[0].clone()
    };
    // As LISA writes them: what a phase does not say stays.
    let task = fine(r#""policy" : "SCHED_FIFO", "priority" : 7, "#, "");
    assert_eq!((task.policy, task.priority), (SchedulingPolicy::Fifo, Some(7)));
    let task = fine(r#""priority" : 3, "#, r#""policy" : "SCHED_OTHER", "priority" : 3, "#);
    assert_eq!(task.nice, Some(3));
    let task = fine("", r#""policy" : "SCHED_OTHER", "priority" : 0, "dl-period" : 9, "#);
    assert_eq!((task.nice, task.slice), (None, None));
    let task = fine(r#""taskgroup" : "/a/b", "#, r#""taskgroup" : "", "#);
    assert_eq!(task.cgroup.as_deref(), Some("a.b"));
    let task = fine(r#""cpus" : [6, 1], "#, r#""cpus" : [2], "#);
    assert_eq!(task.affinity, Some(vec![1, 2, 6]));
    assert_eq!(fine(r#""cpus" : [1], "#, "").affinity, None, "the second may run anywhere");
    for (first, second, words) in [
        ("", r#""priority" : 3, "#, "w.json:5: priority: the phase q changes the policy or"),
        ("", r#""policy" : "SCHED_FIFO", "#, "w.json:5: policy: the phase q changes"),
        (r#""priority" : 3, "#, r#""policy" : "SCHED_OTHER", "#, "w.json:5: policy: the phase q"),
        (r#""taskgroup" : "/a", "#, r#""taskgroup" : "/", "#, "w.json:5: taskgroup: the phase q"),
        (
            r#""dl-runtime" : 900, "priority" : 0, "#,
            r#""dl-runtime" : 800, "priority" : 0, "#,
            "w.json:5: dl-runtime: the phase q",
        ),
        ("", r#""delay" : 3, "#, "w.json:5: there is no event or key named `delay`"),
    ] {
        let message = refused(&phases(first, second));
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn a_group_is_in_no_other() {
    let task =
        |name: &str, path: &str| format!(r#""{name}" : {{ "run" : 1, "taskgroup" : "{path}" }}"#);
    let (workload, _) = closed(&[&task("a", "/x/y"), &task("b", "/z"), &task("c", "/x/y/")]);
    assert_eq!(workload.cgroups.keys().collect::<Vec<_>>(), ["x.y", "z"]);
    for other in ["/x", "/x/z", "/x/y/z"] {
        let message = refused(&file(&[&task("a", "/x/y"), &task("b", other)]));
        assert!(message.contains(": taskgroup: /x"), "{message}");
    }
    assert!(
        refused(&file(&[r#""a" : { "run" : 1, "policy" : "SCHED_RR", "taskgroup" : "/x" }"#]))
            .starts_with("w.json:3: a task group is for SCHED_OTHER")
    );
    assert!(refused(&file(&[&task("a", "x")])).contains("has to start with a slash"));
}

#[test]
fn what_a_task_does_in_memory_takes_time() {
    let memrun = |rest: &str| format!(r#""t" : {{ "loop" : 1, "memrun" : {{ {rest} }} }}"#);
    for (rest, span) in [
        (r#""type" : "read", "size" : 10, "count" : 70"#, 70),
        (r#""type" : "chase", "size" : 1024, "count" : 70, "stride" : 64"#, 70),
        (r#""type" : "chase", "size" : 1048576, "count" : 70, "pattern" : "random""#, 280),
        (r#""type" : "chase", "size" : 33554433, "count" : 70, "ref" : "x""#, 5_600),
    ] {
        let (workload, _) = closed(&[&memrun(rest)]);
        let json = serde_json::to_value(&workload.tasks[0].phases).expect("json");
        assert_eq!(json[0]["loop"]["phases"][0]["run"], Nanos(span).exact().to_string());
    }
    for (rest, words) in [
        (r#""type" : "read", "size" : 10"#, "memrun: there is no `count`"),
        (r#""type" : "jump", "size" : 10, "count" : 1"#, "give the type read, write or chase"),
        (r#""type" : "read", "sise" : 10, "count" : 1"#, "no key named `sise`. Did you mean"),
        (r#""type" : "read", "size" : 1, "count" : -1"#, "count: give a number that is not"),
        (r#""type" : "read", "size" : 1, "count" : 9223372036854775807"#, "out of range"),
    ] {
        let message = refused(&file(&[&memrun(rest)]));
        assert!(message.starts_with("w.json:3: ") && message.contains(words), "{message}");
    }
}

#[test]
fn errors_have_the_line() {
    let file = |task: &str| format!("{{\n\"tasks\" : {{\n\"t\" : {{\n{task}\n}}\n}}\n}}");
    for (task, words) in [
        (
            "\"run\" : 5,\n\"slep\" : 5",
            "5: there is no event or key named `slep`. Did you mean `sleep`?",
        ),
        (
            "\"run\" : 5,\n\"unlock\" : \"m\"",
            "5: the task gives back the mutex m and does not hold it here",
        ),
        ("\"cpus\" : [1, 9],\n\"run\" : 5", "4: there is no CPU 9"),
        ("\"cpus\" : [],\n\"run\" : 5", "4: cpus: give a list of numbers"),
        ("\"run\" : 5,\n\"priority\" : 20", "5: 20 is not between -20 and 19"),
        ("\"policy\" : \"SCHED_DEDLINE\",\n\"run\" : 5", "4: there is no scheduling policy named"),
        ("\"run\" : \"5\"", "4: run: give a whole number"),
        ("\"run\" : 1.5", "4: run: give a whole number"),
        ("\"run\" : -1", "4: run: give a number that is not negative"),
        ("\"loop\" : 3", "3: there is no event here"),
        ("\"run\" : 5,\n\"util_min\" : 1025", "5: util_min: give a number up to 1024"),
        ("\"run\" : 5,\n\"nodes_membind\" : 1", "5: nodes_membind: give a list"),
        ("\"run\" : 5,\n\"exec\" : 1", "5: `exec` is of rt-app's grammar before 1.0"),
        ("\"timer\" : { \"period\" : 1, \"mod\" : 1 }", "4: there is no key named `mod`"),
        ("\"phases\" : { \"p\" : { \"run\" : 1,\n\"lock_order\" : [] } }", "5: `lock_order` is of"),
        ("\"phases\" : { \"p\" : { \"run\" : 1 } },\n\"run\" : 1", "5: an event beside `phases`"),
    ] {
        let message = refused(&file(task));
        assert!(message.starts_with(&format!("w.json:{words}")), "{message}");
    }
    assert!(refused("{ \"tasks\" : {").starts_with("w.json:1: "));
    assert!(refused("{ }").contains("no object named `tasks`"));
    let with = |head: &str| format!("{{\n{head},\n\"tasks\" : {{ \"t\" : {{ \"run\" : 1 }} }} }}");
    for (head, words) in [
        ("\"global\" : { \"duratoin\" : 1 }", "there is no key named `duratoin`. Did you mean"),
        ("\"resources\" : { \"m\" : { \"type\" : \"mutx\" } }", "no type of resource named `mutx`"),
        ("\"task\" : { }", "there is no key named `task`. Did you mean `tasks`?"),
        ("\"global\" : { \"duration\" : __DURATION__ }", "__DURATION__ is a placeholder in"),
    ] {
        let message = refused(&with(head));
        assert!(message.starts_with("w.json:2: ") && message.contains(words), "{message}");
    }
}
