//! Namespaces of pids: tasks have other numbers there than in the kernel.

use super::{RECORDER, record};
use recording::What;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const UNSHARE: [&str; 4] = ["unshare", "--pid", "--fork", "--mount-proc"];

fn is_possible() -> bool {
    let status = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").status();
    let is = status.is_ok_and(|status| status.success());
    if !is {
        println!("      skipped: no namespace of pids may be made here");
    }
    is
}

/// A shell in its own namespace starts two programs: it is 1 there, and they are 2 and 3.
pub fn numbers(folder: &Path) {
    if !is_possible() {
        return;
    }
    let command = [&UNSHARE[..], &["sh", "-c", "cat /dev/null; cat /dev/null"]].concat();
    let (read, _) = record(&folder.join("namespace.rec"), &[], &command);
    assert_eq!(read.counts().disagreement(), None);
    let forks = read.events.iter().filter_map(|event| match event.what {
        What::Fork { parent, child, number, namespace, .. } if namespace > 0 => {
            Some((parent, child, number, namespace))
        }
        _ => None,
    });
    let forks: Vec<(u32, u32, u32, u32)> = forks.collect();
    let [(outside, shell, own, _), others @ ..] = forks.as_slice() else { panic!("{forks:?}") };
    assert_eq!(own, shell, "its parent is in the first namespace");
    assert_ne!(outside, shell);
    let of_shell = others.iter().filter(|(parent, ..)| parent == shell);
    let numbers: Vec<u32> = of_shell.map(|(_, _, number, _)| *number).collect();
    assert_eq!(numbers, [2, 3], "{forks:?}");
    let namespaces: BTreeSet<u32> = forks.iter().map(|(.., namespace)| *namespace).collect();
    assert_eq!(namespaces.len(), 1, "{forks:?}");
}

pub fn inside(_: &Path) {
    if !is_possible() {
        return;
    }
    let checked = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).args([RECORDER, "--check"]).output();
    let checked = checked.expect("it starts");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(77), "{said}");
    assert!(said.contains("--pid=host"), "{said}");
}
