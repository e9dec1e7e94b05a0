//! Each wall, tried from inside by a shell, which starts no process for its own words.

use super::*;
use std::fs;

/// Runs a script of `bash` for at most `seconds`: how it ended, and what it said.
fn run(script: &str, change: impl FnOnce(&mut Sandbox), seconds: u64) -> (Option<End>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sandbox = Sandbox::of(Path::new("/bin/bash"), folder.path(), 256 << 20);
    sandbox.arguments = ["--norc", "-c", script].map(OsString::from).to_vec();
    change(&mut sandbox);
    let mut confined = sandbox.start(None).expect("a sandbox");
    let end = confined.wait(Instant::now() + Duration::from_secs(seconds));
    confined.kill();
    (end, confined.said())
}

#[test]
fn it_sees_only_what_it_is_given() {
    let outside = tempfile::tempdir().expect("a folder");
    let (secret, given) = (outside.path().join("secret"), outside.path().join("given"));
    fs::write(&secret, "hidden\n").expect("a file");
    fs::write(&given, "seen\n").expect("a file");
    let script = format!(
        "read x <{}; echo $x; read y <{}; echo ${{y:-no}}; read z </proc/self/cmdline; echo \
         ${{z:-no}}; echo w >{}; echo $$ $PPID; export -p; echo $0",
        given.display(),
        secret.display(),
        outside.path().join("made").display()
    );
    let (end, said) = run(&script, |sandbox| sandbox.reads.push(given.clone()), 10);
    assert_eq!(end, Some(End::Exited(0)), "{said}");
    assert!(said.starts_with("seen\n"), "{said}");
    assert!(!said.contains("hidden") && said.matches("\nno\n").count() == 2, "{said}");
    assert!(said.contains("\n1 0\n") && said.ends_with("program\n"), "{said}");
    assert!(!said.contains("PATH=") && !outside.path().join("made").exists(), "{said}");
}

#[test]
fn it_writes_only_where_it_may() {
    let place = tempfile::tempdir().expect("a folder");
    let script = format!("echo w >{}/made", place.path().display());
    let (end, said) = run(&script, |sandbox| sandbox.writes.push(place.path().into()), 10);
    assert_eq!((end, said.as_str()), (Some(End::Exited(0)), ""));
    assert_eq!(fs::read_to_string(place.path().join("made")).expect("it is made"), "w\n");
}

#[test]
fn it_has_no_network_and_starts_no_process() {
    let (end, said) = run("exec 5<>/dev/tcp/127.0.0.1/1 || echo no network", |_| (), 10);
    assert!(said.contains("no network") || end != Some(End::Exited(0)), "{end:?} {said}");
    assert!(!said.contains("refused"), "it reached a network: {said}");
    let (_, said) = run("( : ); echo $?", |_| (), 10);
    assert!(said.contains("fork"), "{said}");
}

#[test]
fn memory_and_output_are_bounded_and_what_does_not_end_is_killed() {
    let (end, said) = run("x=aaaaaaaa; while :; do x=$x$x; done", |_| (), 30);
    assert!(end.is_some_and(|end| end != End::Exited(0)), "{end:?}");
    assert!(said.contains("allocate"), "{said}");
    let (end, said) = run("while :; do echo yyyyyyyyyyyyyyyy; done", |_| (), 2);
    assert!(said.len() <= 64 << 10, "{}", said.len());
    assert!(end != Some(End::Exited(0)), "{end:?}");
    let begin = Instant::now();
    assert_eq!(run("while :; do :; done", |_| (), 1), (None, String::new()));
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_program_that_cannot_start_is_an_error_and_its_channel_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Sandbox::of(Path::new("/nowhere"), folder.path(), 1 << 28).start(None);
    assert!(error.expect_err("there is none").to_string().contains("cannot be executed"));
    let (mut here, there) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let mut sandbox = Sandbox::of(Path::new("/bin/bash"), folder.path(), 1 << 28);
    sandbox.arguments = ["--norc", "-c", "read -u 3 x; echo $x$x >&3"].map(OsString::from).to_vec();
    let mut confined = sandbox.start(Some(there.into())).expect("a sandbox");
    io::Write::write_all(&mut here, b"yo\n").expect("it listens");
    let mut said = String::new();
    here.read_to_string(&mut said).expect("it answers");
    assert_eq!(said, "yoyo\n");
    assert_eq!(confined.wait(Instant::now() + Duration::from_secs(5)), Some(End::Exited(0)));
}

#[test]
fn a_missing_wall_is_named() {
    for (wall, name) in [(Wall::Namespaces, "namespaces"), (Wall::Seccomp, "seccomp")] {
        let error = missing(wall, &io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(error.exit_code(), 77);
        assert!(error.to_string().contains(name), "{error}");
    }
}
