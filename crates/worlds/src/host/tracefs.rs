//! Mounts the kernel's tracing files while they are needed.

use program::Error;
use std::path::Path;
use std::process::Command;

const TRACEFS: &str = "/sys/kernel/tracing";

/// Keeps tracefs mounted; unmounts it at the end if it was not mounted before.
pub struct Tracefs {
    mounted_here: bool,
}

impl Tracefs {
    /// Mounts tracefs unless it is mounted.
    ///
    /// # Errors
    /// [`Error::Missing`] if tracefs can neither be read nor mounted.
    pub fn mount() -> Result<Tracefs, Error> {
        if Path::new(TRACEFS).join("events").is_dir()
            || Path::new("/sys/kernel/debug/tracing/events").is_dir()
        {
            return Ok(Tracefs { mounted_here: false });
        }
        // A mounted tracefs without read permission looks like an empty one. Mounting needs root as
        // well.
        let mounted = Command::new("mount").args(["-t", "tracefs", "nodev", TRACEFS]).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Tracefs { mounted_here: true }),
            _ => Err(Error::Missing(format!(
                "the kernel's tracepoints are not there: {TRACEFS} is not mounted or may not be \
                 read; be root, as in: sudo schedlab record -- COMMAND"
            ))),
        }
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        if self.mounted_here {
            let unmounted = Command::new("umount").arg(TRACEFS).status();
            if !unmounted.is_ok_and(|status| status.success()) {
                program::complain!(
                    "schedlab: cannot unmount {TRACEFS}, which this recording mounted; run: \
                     umount {TRACEFS}"
                );
            }
        }
    }
}
