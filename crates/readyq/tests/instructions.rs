//! The instructions of an operation, as callgrind counts them in the release build of
//! `examples/count`, against limits.
//!
//! A number here is a goal, not a measurement: `docs/queue-atlas.md` has those. A compiler that
//! exceeds a goal fails here.
#![allow(missing_docs)]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// A structure, its levels as `examples/count` reads them, the number of tasks, and the maximum
/// number of instructions per operation.
type Goal = (&'static str, &'static str, u32, f64);

const SLICES: u64 = 20_000;

#[test]
fn operations_cost_no_more_than_they_may() {
    let mut goals: Vec<Goal> = Vec::new();
    for tasks in [1, 10, 100, 1000] {
        let per_task = 1.0 / f64::from(tasks);
        goals.push(("rr", "10", tasks, 14.0));
        goals.push(("wheel", "10", tasks, 38.0));
        goals.push(("rr-in-place", "one:0", tasks, 5.0 + 18.0 * per_task));
        goals.push(("ruler-in-place", "one:9", tasks, 5.0 + 18.0 * per_task));
        goals.push(("ruler", "one:9", tasks, 16.0 + 22.0 * per_task));
        goals.push(("ruler", "10", tasks, 38.0));
    }
    // Crowded levels have long passes, so that the ten levels cost what one does.
    goals.extend([("ruler", "10", 100, 16.22), ("ruler", "10", 1000, 16.022)]);
    goals.extend([("multilist2", "8", 100, 16.0), ("multilist2", "8", 1000, 16.0)]);
    // What Linux's rb_root_cached costs in C.
    goals.extend([
        ("rbtree", "10", 1, 57.0),
        ("rbtree", "10", 10, 139.0),
        ("rbtree", "10", 100, 210.0),
        ("rbtree", "10", 1000, 276.0),
    ]);
    let missed = missed(&goals);
    assert!(missed.is_empty(), "dearer than they may be:\n{}", missed.join("\n"));
}

#[test]
fn a_dearer_structure_would_be_noticed() {
    assert_eq!(
        missed(&[
            ("heap", "10", 100, 210.0),
            ("rbtree", "10", 10, 38.0),
            ("priority", "10", 100, 14.0)
        ])
        .len(),
        3
    );
}

#[test]
fn pointers_and_indices_have_the_same_order() {
    let program = build();
    let order = |name: &str, tasks: &str| {
        Command::new(&program).args([name, tasks, "10", "1"]).output().unwrap().stdout
    };
    for (name, pointers) in [
        ("rr", "pointers:rr"),
        ("rr", "pointers:list-head"),
        ("ruler", "pointers:ruler"),
        ("rbtree", "pointers:rbtree"),
    ] {
        for tasks in ["1", "2", "3", "10", "37", "1000"] {
            let order = [order(name, tasks), order(pointers, tasks)];
            assert!(
                order[0].len() == 17 && order[0] == order[1],
                "{name} and {pointers} with {tasks} tasks"
            );
        }
    }
    assert_ne!(order("rr", "10"), order("pointers:rbtree", "10"));
}

/// The missed goals, in words.
fn missed(goals: &[Goal]) -> Vec<String> {
    let program = build();
    let [empty, empty_in_place] =
        ["loop", "loop-in-place"].map(|name| per_slice(&program, name, "10", 1));
    let (goals, missed) = (Mutex::new(goals.iter()), Mutex::new(Vec::new()));
    let next = || goals.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(name, levels, tasks, goal)) = next() {
                    let empty = if name.ends_with("in-place") { empty_in_place } else { empty };
                    let cost = per_slice(&program, name, levels, tasks) - empty;
                    println!("{name} {levels} N={tasks}: {cost:.2}, goal {goal:.2}");
                    // Code before and after the loop is counted, too: some tens of instructions.
                    if cost > goal + 0.02 {
                        missed.lock().unwrap().push(format!(
                            "{name} with levels {levels} and {tasks} tasks: {cost:.2} instead of \
                             {goal:.2}"
                        ));
                    }
                }
            });
        }
    });
    missed.into_inner().unwrap()
}

/// Builds the example in release mode. Returns its path.
fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").expect("cargo runs this test");
    let arguments = [
        "build",
        "--locked",
        "--quiet",
        "--release",
        "-p",
        "readyq",
        "--example",
        "count",
        "--message-format=json",
    ];
    let output = Command::new(cargo).args(arguments).output().unwrap();
    let messages = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{messages}{}", String::from_utf8_lossy(&output.stderr));
    let path = messages
        .rsplit_once("\"executable\":\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .expect("cargo names the executable")
        .0;
    PathBuf::from(path)
}

/// Instructions per slice, with the loop.
fn per_slice(program: &PathBuf, name: &str, levels: &str, tasks: u32) -> f64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*for_ever*"])
        .arg(program)
        .args([name, &tasks.to_string(), levels, &SLICES.to_string()])
        .output()
        .expect("valgrind counts the instructions; `apt-get install valgrind`");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{words}");
    let total =
        words.lines().find_map(|line| line.split_once("Collected :")).expect("callgrind sums up").1;
    total.trim().parse::<f64>().unwrap() / SLICES as f64
}
