//! What a guest reports, as it comes: bytes that QEMU appends to a file.
//!
//! QEMU writes each byte by itself. Into a pipe, that would wake up the reader for each of them,
//! which took as long as the guest itself.

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// The bytes in a file until the process that writes them has ended.
pub(super) struct Reports {
    file: File,
    writer: Option<Pid>,
}

impl Reports {
    /// Reads the file `of`, to which `writer` writes.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn follow(of: &Path, writer: &Child) -> io::Result<Reports> {
        Ok(Reports { file: File::open(of)?, writer: Pid::from_raw(writer.id().cast_signed()) })
    }

    /// Whether the writer has ended. It remains to be waited for.
    fn is_over(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.writer.is_none_or(|writer| !matches!(waitid(WaitId::Pid(writer), options), Ok(None)))
    }
}

impl Read for Reports {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // In this order: what it wrote before its end is read.
            let is_over = self.is_over();
            match self.file.read(buffer)? {
                0 if !is_over => std::thread::sleep(LOOK),
                count => return Ok(count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn all_bytes_are_read_until_the_writer_ends_and_it_can_be_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("reports");
        std::fs::write(&file, "").unwrap();
        let script =
            "for i in 1 2 3; do printf $i >> reports; sleep 0.02; done; printf 4 >> reports";
        let mut shell = Command::new("sh");
        let mut child = shell.args(["-c", script]).current_dir(folder.path()).spawn().unwrap();
        let mut text = String::new();
        Reports::follow(&file, &child).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "1234");
        assert!(child.wait().unwrap().success());
    }
}
