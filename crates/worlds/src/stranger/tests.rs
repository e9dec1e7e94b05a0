//! Programs that are no policies at the other end of the channel.

use super::*;
use std::path::Path;

/// How a run under `program` ends that has two seconds.
fn failure(program: &str, arguments: &[&str]) -> Failure {
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let mut sandbox = Sandbox::of(Path::new(program), folder.path(), 256 << 20);
    sandbox.arguments = arguments.iter().map(Into::into).collect();
    let stranger = Stranger { name: "stranger".to_string(), sandbox, secret: 7, _folder: folder };
    let workload = schedsim::workload::Workload::default();
    let limits = Limits { events: 1000, deadline: Instant::now() + Duration::from_secs(2) };
    let options = Options { seed: 1, until: Time::NEVER };
    let machine = Machine::ideal(2);
    let run = stranger.run((&workload).into(), &machine, options, Trace::new(Vec::new()), limits);
    run.expect_err("no policy").1.expect("a failure")
}

#[test]
fn a_program_that_is_no_policy_is_a_typed_failure() {
    let crash = |failure: Failure, says: &str| {
        assert!(matches!(&failure, Failure::Crash(why) if why.contains(says)), "{failure:?}");
    };
    crash(failure("/bin/true", &[]), "code 0");
    crash(failure("/bin/bash", &["--norc", "-c", "kill -SEGV $$; exit 9"]), "code 9");
    crash(failure("/bin/bash", &["--norc", "-c", "echo yyyyyyyyyyyyyyyy >&3"]), "no answer");
    assert_eq!(failure("/bin/sleep", &["100"]), late());
}

#[test]
fn the_seeds_of_strangers_differ_by_run_and_by_suite() {
    let of = |secret: u128, seed: u64| {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let sandbox = Sandbox::of(Path::new("/bin/true"), folder.path(), 1 << 28);
        Stranger { name: String::new(), sandbox, secret, _folder: folder }.seed(seed)
    };
    let all = [of(1, 1), of(1, 2), of(2, 1), of(2, 2)];
    let unlike: std::collections::BTreeSet<u64> = all.into_iter().collect();
    assert_eq!((unlike.len(), of(1, 1)), (4, all[0]));
    assert!(all.iter().all(|&seed| seed > 1000), "{all:?}");
}
