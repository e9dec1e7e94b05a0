//! Which kernels there are: a series of Debian's by its number, or any bzImage by its path.

use super::{debian, sha256};
use crate::{Error, output};
use schedsim::Nanos;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel on this machine's disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// As the user named it: `6.18`, or the file's name.
    pub name: String,
    /// Its release, as `uname -r` has it.
    pub release: String,
    /// The bzImage.
    pub image: PathBuf,
    /// The SHA-256 of the bzImage.
    pub sha256: String,
    /// What it was built with, if that is known: lines of `CONFIG_…=y`.
    config: Option<String>,
}

/// A build option that a kernel must have, and what for.
pub type Need = (&'static str, &'static str);

/// What every guest needs.
const NEEDS: [Need; 5] = [
    ("CONFIG_SERIAL_8250_CONSOLE", "a serial console"),
    ("CONFIG_BLK_DEV_INITRD", "an initramfs"),
    ("CONFIG_X86_IOPL_IOPERM", "ports for the runner's reports"),
    ("CONFIG_BINFMT_ELF", "programs"),
    ("CONFIG_DEVTMPFS", "device files"),
];

/// What a user-space or BPF scheduler needs.
pub const SCHED_EXT: [Need; 2] = [("CONFIG_SCHED_CLASS_EXT", "sched_ext"), ("CONFIG_DEBUG_INFO_BTF", "BTF")];

/// What a machine of several NUMA nodes needs.
pub const NUMA: [Need; 2] = [("CONFIG_NUMA", "NUMA"), ("CONFIG_ACPI_NUMA", "NUMA from the firmware's tables")];

/// What control groups with weights and quotas need.
pub const CGROUPS: [Need; 2] =
    [("CONFIG_FAIR_GROUP_SCHED", "weights of control groups"), ("CONFIG_CFS_BANDWIDTH", "quotas of control groups")];

/// The first series whose kernels start a second CPU under instruction counting: 6.1 hangs while it does.
const SECOND_CPU: (u32, u32) = (6, 12);

/// The tick of Debian's kernels (CONFIG_HZ=250).
pub const TICK: Nanos = Nanos::from_millis(4);

/// What the cache knows of a kernel that was fetched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fetched {
    /// The package's name.
    pub package: String,
    /// The suite it came from.
    pub suite: String,
    /// The SHA-256 of the package.
    pub package_sha256: String,
    /// The SHA-256 of the bzImage in it.
    pub image_sha256: String,
}

impl Kernel {
    /// The kernel that `name` means; one of Debian's is fetched if it is not in the cache, and `say` is told so.
    ///
    /// # Errors
    /// If there is none, or it cannot be fetched.
    pub fn find(name: &str, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        if !Kernel::is_series(name) {
            return Kernel::open(Path::new(name));
        }
        let directory = cache()?.join(name);
        if let Some(kernel) = cached(name, &directory) {
            return Ok(kernel);
        }
        say(&format!("fetching kernel {name}"));
        debian::fetch(name, &directory).map_err(|error| match error {
            Error::Output { .. } => Error::Usage(format!("{error}: XDG_CACHE_HOME says where kernels are kept")),
            other => other,
        })?;
        cached(name, &directory).ok_or_else(|| Error::Internal(format!("{} is not what was written there", directory.display())))
    }

    /// Whether `name` is the number of a series of Debian's, as in 6.18.
    pub fn is_series(name: &str) -> bool {
        name.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())) && name.contains('.')
    }

    /// The bzImage at `path`; its build options are read from `config-RELEASE` or `config` beside it.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(path: &Path) -> Result<Kernel, Error> {
        let wrong = |why: &dyn std::fmt::Display| {
            Error::Input(format!(
                "{}: {why}; give a bzImage, as in /boot/vmlinuz-*, or the number of a series, as in 6.18 (`schedlab list kernels`)",
                path.display()
            ))
        };
        let bytes = fs::read(path).map_err(|error| wrong(&error))?;
        let release = release(&bytes).ok_or_else(|| wrong(&"not a bzImage"))?;
        let configs = [format!("config-{release}"), "config".to_string()].map(|name| path.with_file_name(name));
        Ok(Kernel {
            name: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            release,
            image: path.to_path_buf(),
            sha256: sha256([bytes.as_slice()]),
            config: configs.iter().find_map(|config| fs::read_to_string(config).ok()),
        })
    }

    /// Makes sure that it has what every guest and `more` need, and can start `cpus`. What an image without its `config` lacks shows only when it is booted.
    ///
    /// # Errors
    /// [`Error::Input`] naming what it lacks, [`Error::Missing`] for a second CPU that it cannot start here.
    pub fn require(&self, cpus: u16, more: &[Need]) -> Result<(), Error> {
        if let Some(config) = &self.config {
            let lacks = |&&(option, _): &&Need| !config.lines().any(|line| line.strip_prefix(option).is_some_and(|value| value == "=y"));
            if let Some((option, what)) = NEEDS.iter().chain(more).find(lacks) {
                return Err(Error::Input(format!(
                    "kernel {} was built without {what} ({option}=y); give another: `schedlab list kernels`",
                    self.name
                )));
            }
        }
        if cpus > 1 && self.series() < SECOND_CPU {
            let (major, minor) = SECOND_CPU;
            return Err(Error::Missing(format!(
                "kernel {} ({}) hangs while it starts a second CPU under instruction counting; give --cpus 1, or a kernel from {major}.{minor} on",
                self.name, self.release
            )));
        }
        Ok(())
    }

    /// What schedules `SCHED_OTHER` in it.
    pub fn fair_scheduler(&self) -> &'static str {
        if self.series() >= (6, 6) { "EEVDF" } else { "CFS" }
    }

    /// 6.18.15+deb13-cloud-amd64 is of series (6, 18).
    pub fn series(&self) -> (u32, u32) {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

/// Where fetched kernels lie: `schedlab/kernels` in the user's cache directory.
///
/// # Errors
/// If the environment does not say where that is.
pub fn cache() -> Result<PathBuf, Error> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let base = base.ok_or_else(|| Error::Usage("neither XDG_CACHE_HOME nor HOME says where kernels can be kept; set one".to_string()))?;
    Ok(base.join("schedlab/kernels"))
}

/// The series that are in the cache, with what is known of them, in the order of their names.
///
/// # Errors
/// As of [`cache`].
pub fn in_cache() -> Result<Vec<(String, Fetched)>, Error> {
    let entries = fs::read_dir(cache()?).into_iter().flatten().flatten();
    let named = entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let mut known: Vec<_> = named.filter_map(|(name, path)| Some((name, fetched(&path)?))).collect();
    known.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(known)
}

/// Records what lies in `directory`.
pub(super) fn remember(directory: &Path, fetched: &Fetched) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(fetched).map_err(|error| Error::Internal(error.to_string()))?;
    output::write_whole(&directory.join("package.json"), &json)
}

fn fetched(directory: &Path) -> Option<Fetched> {
    serde_json::from_slice(&fs::read(directory.join("package.json")).ok()?).ok()
}

/// The kernel in `directory`, if it is there and unharmed.
fn cached(name: &str, directory: &Path) -> Option<Kernel> {
    let fetched = fetched(directory)?;
    let kernel = Kernel::open(&directory.join("vmlinuz")).ok()?;
    (kernel.sha256 == fetched.image_sha256).then(|| Kernel { name: name.to_string(), ..kernel })
}

/// The release in a bzImage's header (linux/Documentation/arch/x86/boot.rst).
fn release(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = usize::from(u16::from_le_bytes([*image.get(0x20e)?, *image.get(0x20f)?])) + 0x200;
    let text = image.get(at..)?.split(|&byte| byte == b' ' || byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(release: &str, config: &str) -> Kernel {
        let config = Some(config.to_string());
        Kernel { name: "test".into(), release: release.into(), image: PathBuf::new(), sha256: String::new(), config }
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let whole: String = NEEDS.iter().map(|(option, _)| format!("{option}=y\n")).collect();
        assert!(kernel("6.18.1", &whole).require(4, &[]).is_ok());
        let message = |config: &str, needs: &[Need]| kernel("6.18.1", config).require(1, needs).unwrap_err().to_string();
        assert!(message(&whole.replace("CONFIG_SERIAL_8250_CONSOLE=y", ""), &[]).contains("serial console"));
        assert!(message(&whole.replace("CONFIG_BLK_DEV_INITRD=y", "CONFIG_BLK_DEV_INITRD=m"), &[]).contains("initramfs"));
        assert!(message(&format!("{whole}CONFIG_SCHED_CLASS_EXT=y\n"), &SCHED_EXT).contains("BTF"));
    }

    #[test]
    fn a_kernel_that_cannot_start_a_second_cpu_is_refused_for_two() {
        assert!(kernel("6.1.0-50-cloud-amd64", "").require(2, &[]).is_err());
        let refused = Kernel { config: None, ..kernel("6.1.0-50-cloud-amd64", "") }.require(2, &[]).unwrap_err();
        assert_eq!(refused.exit_code(), 77);
        assert!(refused.to_string().contains("second CPU"), "{refused}");
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![0; 4096]).unwrap();
        let error = Kernel::open(file.path()).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        assert!(error.to_string().contains("not a bzImage"), "{error}");
    }
}
