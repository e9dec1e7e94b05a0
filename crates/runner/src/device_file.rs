//! Files that take the place of devices.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file in place of a device. Transfers wrap around at its end.
pub struct DeviceFile {
    file: std::fs::File,
    position: AtomicU64,
}

impl DeviceFile {
    const SIZE: u64 = 1 << 20;

    /// A new file of zeros, without a name.
    pub fn create(name: &str) -> Result<DeviceFile, String> {
        let path = std::env::temp_dir().join(format!(
            "schedlab-{}-{}",
            std::process::id(),
            name.replace('/', "-")
        ));
        let open = || {
            let file =
                std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            io::Write::write_all(&mut &file, &vec![0; DeviceFile::SIZE as usize])?;
            Ok(file)
        };
        let file = open().map_err(|error: io::Error| {
            format!("{}: {error}; set TMPDIR to where a file can be made", path.display())
        })?;
        Ok(DeviceFile { file, position: AtomicU64::new(0) })
    }

    /// Reads or writes as many bytes as `buffer` has; false if the file fails.
    pub fn transfer(&self, buffer: &mut [u8], write: bool) -> bool {
        use std::os::unix::fs::FileExt;
        let at = self.position.fetch_add(buffer.len() as u64, Relaxed)
            % (DeviceFile::SIZE - buffer.len() as u64).max(1);
        let done = if write {
            self.file.write_all_at(buffer, at)
        } else {
            self.file.read_exact_at(buffer, at)
        };
        done.is_ok()
    }
}
