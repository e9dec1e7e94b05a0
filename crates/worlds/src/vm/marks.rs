//! Any image that makes marks (docs/marks.md): started twice, and what it marked, as numbers.

use super::newer_qemu;
use super::qemu::{Bare, Plugin, Qemu};
use super::sha256;
use program::{Error, Scratch};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout};
use std::thread;
use std::time::{Duration, Instant};

/// An image, and the emulator that runs it.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its file.
    pub path: PathBuf,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The emulator.
    pub qemu: Qemu,
    /// The limit on this machine's clock.
    pub limit: Duration,
}

/// What an image said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Said {
    /// What it wrote to the debug console.
    pub text: String,
    /// What ran between the begin and the end of a number, in the order of ends.
    pub windows: Vec<Window>,
    /// What happened, in order.
    pub events: Vec<Happened>,
}

/// From a begin to the next end of the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// The number.
    pub number: u64,
    /// Instructions behind the begin and before the end.
    pub instructions: u64,
    /// Nanoseconds from the time of the begin to that of the end.
    pub ns: u64,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happened {
    /// The number.
    pub number: u64,
    /// Instructions since the first mark.
    pub instructions: u64,
    /// Nanoseconds since the time of the first mark.
    pub ns: u64,
}

/// Memory in MiB.
const MEMORY: u32 = 512;
/// The most that an image may write.
const MOST_TEXT: u64 = 1 << 20;

impl Image {
    /// The image in the file `path`; QEMU is fetched if it is not there, and `say` is called.
    ///
    /// # Errors
    /// If the file is none that QEMU starts, or there is no QEMU for it.
    pub fn open(path: &Path, limit: Duration, say: &dyn Fn(&str)) -> Result<Image, Error> {
        let wrong =
            |what: &dyn std::fmt::Display| Error::Input(format!("{}: {what}", path.display()));
        let bytes = std::fs::read(path)
            .map_err(|error| Error::unreadable(path, &error, "an image (docs/marks.md)"))?;
        if !is_startable(&bytes) {
            return Err(wrong(
                &"no image that can be started: give an ELF file with a PVH or Multiboot header, or \
                  a Linux bzImage (docs/marks.md)",
            ));
        }
        let path = std::path::absolute(path).map_err(|error| wrong(&error))?;
        Ok(Image { path, sha256: sha256([&bytes[..]]), qemu: newer_qemu::find(say)?, limit })
    }

    /// Starts it twice.
    ///
    /// # Errors
    /// [`Error::Irreproducible`] if the two differ, [`Error::Inconclusive`] if it does not end
    /// within its limit, [`Error::Input`] if it cannot be started or makes no sense.
    pub fn run(&self) -> Result<Said, Error> {
        let (first, second) = rayon::join(|| self.once(), || self.once());
        let (first, second) = (first?, second?);
        match super::proof::difference(&first, &second) {
            None => said(&self.path, &first),
            Some(differs) => Err(Error::Irreproducible(format!(
                "{} did not repeat itself: {differs}",
                self.path.display()
            ))),
        }
    }

    /// The lines of the marks, and behind them those of the text.
    fn once(&self) -> Result<Vec<String>, Error> {
        let name = self.path.display();
        let scratch = Scratch::new()?;
        let (library, marks) = (scratch.path().join("plugin.so"), scratch.path().join("marks"));
        let bytes = self.qemu.plugin.map_or(&[][..], Plugin::library);
        std::fs::write(&library, bytes).map_err(|error| Error::output(&library, error))?;
        let bare = Bare { image: &self.path, library: &library, marks: &marks, memory: MEMORY };
        let child = self.qemu.bare(&bare).spawn();
        let child =
            child.map_err(|error| Error::Missing(format!("QEMU cannot be started: {error}")))?;
        let Ended { text, error, status } = Running(child).wait(self.limit)?;
        match status {
            Some(true) => {}
            Some(false) => return Err(Error::Input(format!("{name}: {}", error.trim()))),
            None => {
                return Err(Error::Inconclusive(format!(
                    "{name} was not done after {} s: it ends when it resets the machine, or switches \
                     it off (--limit gives it longer)",
                    self.limit.as_secs_f64()
                )));
            }
        }
        if text.len() as u64 >= MOST_TEXT {
            return Err(Error::Input(format!("{name} writes more than {MOST_TEXT} bytes")));
        }
        let marks = std::fs::read_to_string(&marks)
            .map_err(|error| Error::Internal(format!("QEMU's plugin left no marks: {error}")))?;
        Ok(marks.lines().chain(text.lines()).map(str::to_string).collect())
    }
}

/// Whether QEMU's `-kernel` takes it: an ELF file, or a bzImage.
fn is_startable(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") || bytes.get(0x202..0x206) == Some(&b"HdrS"[..])
}

/// QEMU while it runs; it does not outlive this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Ended {
    text: String,
    error: String,
    /// Whether it ended well; none if it did not end.
    status: Option<bool>,
}

impl Running {
    /// Waits for the end, and for no longer than `limit`.
    fn wait(mut self, limit: Duration) -> Result<Ended, Error> {
        let lost = |what: &dyn std::fmt::Display| Error::Internal(format!("QEMU was lost: {what}"));
        let none = || lost(&"it has no output");
        let out: ChildStdout = self.0.stdout.take().ok_or_else(none)?;
        let err: ChildStderr = self.0.stderr.take().ok_or_else(none)?;
        let (out, err) = (thread::spawn(|| text_of(out)), thread::spawn(|| text_of(err)));
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().map_err(|error| lost(&error))? {
                break Some(status.success());
            }
            if begin.elapsed() > limit {
                break None;
            }
            thread::sleep(Duration::from_millis(10));
        };
        let _ = self.0.kill();
        let joined = |text: thread::JoinHandle<String>| text.join().unwrap_or_default();
        Ok(Ended { text: joined(out), error: joined(err), status })
    }
}

/// All that comes, of which the first [`MOST_TEXT`] bytes are kept.
fn text_of(mut from: impl Read) -> String {
    let mut kept = Vec::new();
    let _ = from.by_ref().take(MOST_TEXT).read_to_end(&mut kept);
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// What the lines come to: marks, how many were lost, and the text.
fn said(path: &Path, lines: &[String]) -> Result<Said, Error> {
    let wrong = |what: String| Error::Input(format!("{}: {what}", path.display()));
    let mut said = Said::default();
    let (mut open, mut first) = (BTreeMap::new(), None);
    let mut lines = lines.iter();
    for line in lines.by_ref() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Option<Vec<u64>> = words[1..].iter().map(|word| word.parse().ok()).collect();
        match (words[0], numbers.as_deref()) {
            ("lost", Some([0])) => break,
            ("lost", Some([lost])) => {
                return Err(wrong(format!("{lost} marks were lost: make a million at most")));
            }
            (kind, Some(&[number, instructions, time])) => {
                let (since, begin) = *first.get_or_insert((instructions, time));
                match kind {
                    "begin" if open.insert(number, (instructions, time)).is_some() => {
                        return Err(wrong(format!("{number} begins twice before it ends")));
                    }
                    "begin" => {}
                    "end" => {
                        let (begun, at) = open
                            .remove(&number)
                            .ok_or_else(|| wrong(format!("{number} ends before it begins")))?;
                        said.windows.push(Window {
                            number,
                            // The begin itself is not in it.
                            instructions: instructions - begun - 1,
                            ns: time.wrapping_sub(at),
                        });
                    }
                    _ => said.events.push(Happened {
                        number,
                        instructions: instructions - since,
                        ns: time.wrapping_sub(begin),
                    }),
                }
            }
            _ => return Err(Error::Internal(format!("QEMU's plugin wrote {line:?}"))),
        }
    }
    if first.is_none() {
        return Err(wrong("it made no mark; docs/marks.md says how".to_string()));
    }
    if let Some((number, _)) = open.first_key_value() {
        return Err(wrong(format!("{number} begins and does not end")));
    }
    said.text = lines.map(|line| format!("{line}\n")).collect();
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Result<Said, String> {
        let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
        said(Path::new("image"), &lines).map_err(|error| error.to_string())
    }

    #[test]
    fn windows_may_lie_in_each_other_and_events_count_from_the_first_mark() {
        let all = of(&[
            "begin 1 100 1000",
            "event 7 110 1010",
            "begin 2 120 1020",
            "end 1 130 1030",
            "end 2 141 1041",
            "lost 0",
            "hello",
        ])
        .unwrap();
        assert_eq!(all.text, "hello\n");
        assert_eq!(all.events, [Happened { number: 7, instructions: 10, ns: 10 }]);
        let window = |number, instructions, ns| Window { number, instructions, ns };
        assert_eq!(all.windows, [window(1, 29, 30), window(2, 20, 21)]);
    }

    #[test]
    fn marks_that_make_no_sense_are_refused_by_name() {
        for (lines, says) in [
            (&["lost 0"][..], "no mark"),
            (&["begin 1 5 5", "lost 0"], "1 begins and does not end"),
            (&["end 1 5 5", "lost 0"], "1 ends before it begins"),
            (&["begin 1 5 5", "begin 1 6 6", "lost 0"], "1 begins twice"),
            (&["event 1 5 5", "lost 3"], "3 marks were lost"),
            (&["event 1 5"], "plugin wrote"),
        ] {
            let refused = of(lines).unwrap_err();
            assert!(refused.contains(says), "{says}: {refused}");
        }
        assert!(is_startable(b"\x7fELF\x02") && !is_startable(b"#!/bin/sh") && !is_startable(b""));
    }
}
