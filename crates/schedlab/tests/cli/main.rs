//! The program as a user sees it: results, exit codes and messages.

mod closed;
mod comparisons;
mod machines;
mod refusals;
mod stochastic;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const REDIS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/redis.perf-script.txt.zst");

fn schedlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .args(arguments)
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Runs the program. It must fail with `code`, print nothing on standard output, and print all of
/// `words` as a message.
fn fails(arguments: &[&str], code: i32, words: &[&str]) {
    let output = schedlab(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed a result: {}", stdout(&output));
    for word in words {
        assert!(message.contains(word), "{arguments:?}: {word:?} is not in {message:?}");
    }
}

/// A directory for one test, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("schedlab-cli-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a scratch directory");
        Scratch(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.0.join(name), bytes).expect("a scratch file");
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
