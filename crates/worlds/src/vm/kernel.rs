//! The kernels of guests: a series of Debian by its number, or any bzImage by its path.

use super::cache;
use super::configuration::{Configuration, Need};
use super::described::build_command;
use super::fetched::{Fetched, fetched};
use super::image::{self, Image};
use super::initramfs::{GuestFile, Kind};
use super::release::{Release, fair_model, numbers};
use super::{debian, sha256, unpack};
use program::Error;
use schedsim::Nanos;
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel on this machine's disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The name given by the user: `6.18`, or the file's name.
    pub name: String,
    /// Its release, as `uname -r` has it.
    pub release: String,
    /// The bzImage.
    pub image: PathBuf,
    /// The SHA-256 of the bzImage.
    pub sha256: String,
    /// Its build options, if known.
    pub configuration: Option<Configuration>,
}

/// What every guest needs.
pub(super) const NEEDS: [Need; 5] = [
    ("CONFIG_SERIAL_8250_CONSOLE", "a serial console"),
    ("CONFIG_BLK_DEV_INITRD", "an initramfs"),
    ("CONFIG_X86_IOPL_IOPERM", "ports for the runner's reports"),
    ("CONFIG_BINFMT_ELF", "programs"),
    ("CONFIG_DEVTMPFS", "device files"),
];

/// What a user-space or BPF scheduler needs.
pub const SCHED_EXT: [Need; 2] = [("CONFIG_SCHED_CLASS_EXT", "sched_ext"), BTF];

/// What programs in BPF need to know the kernel's types.
const BTF: Need = ("CONFIG_DEBUG_INFO_BTF", "BTF");

/// What a machine of several NUMA nodes needs.
pub const NUMA: [Need; 2] =
    [("CONFIG_NUMA", "NUMA"), ("CONFIG_ACPI_NUMA", "NUMA from the firmware's tables")];

/// What the limits of programs need.
pub const LIMITS: [Need; 2] =
    [("CONFIG_MEMCG", "limits of memory"), ("CONFIG_CGROUP_PIDS", "limits of tasks")];

/// What control groups with weights and quotas need.
pub const CGROUPS: [Need; 2] = [
    ("CONFIG_FAIR_GROUP_SCHED", "weights of control groups"),
    ("CONFIG_CFS_BANDWIDTH", "quotas of control groups"),
];

/// The tick of Debian's kernels (CONFIG_HZ=250).
pub const TICK: Nanos = Nanos::from_millis(4);

impl Kernel {
    /// The kernel that `name` means. One of Debian's is fetched if it is not in the cache, and
    /// reported by `say`.
    ///
    /// # Errors
    /// If there is none, or it cannot be fetched.
    pub fn find(name: &str, say: &dyn Fn(&str)) -> Result<Kernel, Error> {
        let Some(release) = Release::read(name) else {
            let built = Kernel::built(name)?;
            return match (built, build_command(name)) {
                (Some(kernel), _) => Ok(kernel),
                (None, Some(command)) => Err(Error::Missing(format!(
                    "kernel {name} is not in the cache; this builds it, in minutes: {command}"
                ))),
                (None, None) => Kernel::open(Path::new(name)),
            };
        };
        let name = &release.to_string();
        let directory = cache()?.join(name);
        if let Some(kernel) = cached(name, &directory) {
            return Ok(kernel);
        }
        let _lock = cache::lock(&cache()?, say).map_err(with_place)?;
        if let Some(kernel) = cached(name, &directory) {
            return Ok(kernel);
        }
        say(&format!("fetching kernel {name}"));
        debian::fetch(&release, &directory).map_err(with_place)?;
        cached(name, &directory).ok_or_else(|| {
            Error::Internal(format!("{} is not what was written there", directory.display()))
        })
    }

    /// The kernel of this name that was built here (`built.rs`).
    ///
    /// # Errors
    /// As of [`cache()`].
    pub fn built(name: &str) -> Result<Option<Kernel>, Error> {
        let is_name = !name.contains('/') && !Path::new(name).exists();
        Ok(if is_name { cached(name, &cache()?.join(name)) } else { None })
    }

    /// Whether `name` is the number of a series or release of Debian, as in 6.18 or 6.18-rt.
    pub fn is_series(name: &str) -> bool {
        Release::read(name).is_some()
    }

    /// The name of a kernel in results: its series, or the name of its file.
    pub fn name_of(argument: &str) -> String {
        let of_file = || {
            let name = Path::new(argument).file_name();
            name.map_or_else(|| argument.to_string(), |name| name.to_string_lossy().into_owned())
        };
        Release::read(argument).map_or_else(of_file, |release| release.to_string())
    }

    /// The bzImage at `path`; its build options are read from `config-RELEASE`, `config` or
    /// `.config` beside it.
    ///
    /// # Errors
    /// If it is none, or one for another architecture.
    pub fn open(path: &Path) -> Result<Kernel, Error> {
        let wrong = |why: &dyn std::fmt::Display| {
            Error::Input(format!(
                "{}: {why}; give a bzImage, as in /boot/vmlinuz-*, or the number of a series, as \
                 in 6.18 (`schedlab list kernels`)",
                path.display()
            ))
        };
        let bytes = fs::read(path).map_err(|error| wrong(&error))?;
        let release = match image::of(&bytes) {
            Image::Bootable { release } => release,
            Image::Other(what) => return Err(wrong(&what)),
        };
        let configuration = Configuration::beside(path, &release);
        Ok(Kernel {
            name: Kernel::name_of(&path.to_string_lossy()),
            release,
            image: path.to_path_buf(),
            sha256: sha256([bytes.as_slice()]),
            configuration,
        })
    }

    /// Checks that it has what every guest and `more` need. Without its configuration, BTF is
    /// looked for in the image, and the rest shows at boot.
    ///
    /// # Errors
    /// [`Error::Input`] naming what it lacks.
    pub fn require(&self, more: &[Need]) -> Result<(), Error> {
        let lacking = match &self.configuration {
            Some(configuration) => configuration.lacks(NEEDS.iter().chain(more)),
            None => more.iter().find(|need| **need == BTF && self.has_btf() == Some(false)),
        };
        let Some((option, what)) = lacking else { return Ok(()) };
        Err(Error::Input(format!(
            "kernel {} was built without {what} ({option}=y); give another: `schedlab list \
             kernels`",
            self.name
        )))
    }

    /// Its build options where programs look for them, as a file of a guest below `root`; `None` if
    /// they are not known.
    pub fn configuration_file(&self, root: &str) -> Option<GuestFile> {
        let bytes = self.configuration.as_ref()?.text().as_bytes().to_vec();
        let path = format!("{root}/boot/config-{}", self.release);
        Some(GuestFile { path, bytes, kind: Kind::Data })
    }

    /// Whether its image has BTF; none if it is packed in a way that is not read here.
    fn has_btf(&self) -> Option<bool> {
        let kernel = unpack::unpacked(&fs::read(&self.image).ok()?)?;
        Some(image::has_section(&kernel, b".BTF"))
    }

    /// The policy of `SCHED_OTHER` in it.
    pub fn fair_scheduler(&self) -> String {
        self.fair_model().to_uppercase()
    }

    /// The simulator's policy that stands for it.
    pub fn fair_model(&self) -> &'static str {
        fair_model(&self.release)
    }
}

/// The cache of fetched kernels: `schedlab/kernels` in the user's cache directory.
///
/// # Errors
/// If the environment does not say where that is.
pub fn cache() -> Result<PathBuf, Error> {
    cache::folder("kernels")
}

/// `error`, with what says where kernels are kept.
fn with_place(error: Error) -> Error {
    match error {
        Error::Output { .. } => {
            Error::Usage(format!("{error}: XDG_CACHE_HOME says where kernels are kept"))
        }
        other => other,
    }
}

/// The kernels in the cache, with what is known of them, by their releases.
///
/// # Errors
/// As of [`cache()`].
pub fn in_cache() -> Result<Vec<(Kernel, Fetched)>, Error> {
    let entries = fs::read_dir(cache()?).into_iter().flatten().flatten();
    let named =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let mut known: Vec<_> =
        named.filter_map(|(name, path)| Some((cached(&name, &path)?, fetched(&path)?))).collect();
    known.sort_by_key(|(kernel, _)| (numbers(&kernel.release), kernel.name.clone()));
    Ok(known)
}

/// The kernel in `directory`, if it is there and intact.
pub(super) fn cached(name: &str, directory: &Path) -> Option<Kernel> {
    let fetched = fetched(directory)?;
    let kernel = Kernel::open(&directory.join("vmlinuz")).ok()?;
    (kernel.sha256 == fetched.image_sha256).then(|| Kernel { name: name.to_string(), ..kernel })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(release: &str, config: &str) -> Kernel {
        Kernel {
            name: "test".into(),
            release: release.into(),
            image: PathBuf::new(),
            sha256: String::new(),
            configuration: Some(Configuration::new(config)),
        }
    }

    #[test]
    fn what_a_kernel_lacks_is_named() {
        let whole: String = NEEDS.iter().map(|(option, _)| format!("{option}=y\n")).collect();
        assert!(kernel("6.18.1", &whole).require(&[]).is_ok());
        let message = |config: &str, needs: &[Need]| {
            kernel("6.18.1", config).require(needs).unwrap_err().to_string()
        };
        assert!(
            message(&whole.replace("CONFIG_SERIAL_8250_CONSOLE=y", ""), &[])
                .contains("serial console")
        );
        assert!(
            message(&whole.replace("CONFIG_BLK_DEV_INITRD=y", "CONFIG_BLK_DEV_INITRD=m"), &[])
                .contains("initramfs")
        );
        assert!(message(&format!("{whole}CONFIG_SCHED_CLASS_EXT=y\n"), &SCHED_EXT).contains("BTF"));
    }

    /// What limits a program is refused by name where it lacks, one by one.
    #[test]
    fn a_kernel_that_cannot_limit_a_program_runs_none() {
        let options: Vec<&str> = NEEDS.iter().chain(&LIMITS).map(|(option, _)| *option).collect();
        let without = |lacking: &str| {
            let lines = options.iter().filter(|option| **option != lacking);
            lines.map(|option| format!("{option}=y\n")).collect::<String>()
        };
        assert!(kernel("6.1.1", &without("")).require(&LIMITS).is_ok());
        for (option, what) in LIMITS {
            let error = kernel("6.1.1", &without(option)).require(&LIMITS).unwrap_err();
            assert_eq!(error.exit_code(), 3);
            let said = error.to_string();
            assert!(said.contains(what) && said.contains(&format!("({option}=y)")), "{said}");
        }
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
