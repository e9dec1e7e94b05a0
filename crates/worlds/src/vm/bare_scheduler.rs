//! A scheduler in BPF alone, without a program that loads it: an object with one `struct_ops`, or a
//! source from which one is compiled. `schedlab-scx` loads it.

use super::{cache, elf, scheduler, sha256};
use program::{Error, Scratch, write_whole};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// The endings of names.
const SOURCE: &str = ".bpf.c";
/// The ending of an object's name.
pub const OBJECT: &str = ".o";
/// Where a user says that the headers are.
const HEADERS: &str = "SCHEDLAB_BPF_HEADERS";
/// How many lines of a compiler are shown.
const SHOWN: usize = 20;

/// An object and the program that loads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BareScheduler {
    /// The object.
    pub object: PathBuf,
    /// `schedlab-scx`.
    pub loader: PathBuf,
}

/// Whether `path` names an object or a source.
pub fn is_one(path: &str) -> bool {
    path.ends_with(SOURCE) || path.ends_with(OBJECT)
}

impl BareScheduler {
    /// The scheduler of the object or source `path`, which must have the constants that `settings`
    /// fill in, as in `slice_ns=5ms`.
    ///
    /// # Errors
    /// [`Error::Input`] if it is no such object, or does not compile. [`Error::Usage`] if it lacks
    /// a constant. [`Error::Missing`] without a compiler, its headers or the loader.
    pub fn find(path: &str, settings: &[String]) -> Result<BareScheduler, Error> {
        let loader = scheduler::loader(path)?;
        let wrong = |what: &str| Error::Input(format!("{path}: {what}"));
        let bytes = fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let object = match path.ends_with(SOURCE) {
            true => compiled(Path::new(path), &loader)?,
            false => {
                elf::expect_bpf(&bytes).map_err(|what| wrong(&what))?;
                PathBuf::from(path)
            }
        };
        let mut check = Command::new(&loader);
        check.arg("--object").arg(&object).arg("--check");
        settings.iter().for_each(|setting| _ = check.arg("--set").arg(setting));
        let failed =
            |what: String| Error::Missing(format!("{} cannot be run: {what}", loader.display()));
        let said = check.output().map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&said.stderr).trim().to_string();
        match said.status.code() {
            Some(0) => Ok(BareScheduler { object, loader }),
            Some(2) => Err(Error::Usage(format!("scx:{path}: {text}"))),
            Some(3) => {
                let shown = object.display().to_string();
                Err(Error::Input(text.replace(&shown, path)))
            }
            _ => Err(failed(text)),
        }
    }
}

/// The object of `source`, compiled as the scx project's are. It is kept in the cache by its content.
fn compiled(source: &Path, loader: &Path) -> Result<PathBuf, Error> {
    let (clang, headers) = (clang()?, headers(loader)?);
    let folder = cache::folder("schedulers")?;
    fs::create_dir_all(&folder).map_err(|error| Error::output(&folder, error))?;
    let scratch = Scratch::within(&folder)?;
    let object = scratch.path().join("scheduler.bpf.o");
    let mut compiler = Command::new(&clang);
    let arguments = "-target bpf -g -O2 -mcpu=v3 -D__TARGET_ARCH_x86 -Wall \
                     -Wno-compare-distinct-pointer-types -ffile-compilation-dir=/ -c";
    compiler.args(arguments.split_whitespace());
    // A source that comes with headers of its own, as those of the kernel do, has these.
    let own = source.with_file_name("include");
    let own = own.join("scx/common.bpf.h").is_file().then_some(own);
    for folder in own.into_iter().chain(headers.folders()) {
        compiler.arg("-I").arg(folder);
    }
    let said = compiler.arg(source).arg("-o").arg(&object).stdin(Stdio::null()).output();
    let said = said.map_err(|error| Error::Missing(format!("{clang} cannot be run: {error}")))?;
    if !said.status.success() {
        let text = String::from_utf8_lossy(&said.stderr);
        let begin = text.lines().position(|line| line.contains("error:")).unwrap_or_default();
        let shown: Vec<&str> = text.lines().skip(begin).take(SHOWN).collect();
        let name = source.display();
        return Err(Error::Input(format!("{name} does not compile: {}", shown.join("\n    "))));
    }
    let bytes = fs::read(&object).map_err(|error| Error::output(&object, error))?;
    let kept = folder.join(format!("{}.bpf.o", sha256([bytes.as_slice()])));
    if !kept.exists() {
        write_whole(&kept, &bytes)?;
    }
    Ok(kept)
}

/// The newest installed clang.
///
/// # Errors
/// [`Error::Missing`] if there is none.
pub fn clang() -> Result<String, Error> {
    let runs = |name: &String| {
        let said = Command::new(name).arg("--version").output();
        said.is_ok_and(|said| said.status.success())
    };
    let names = (18..=24).rev().map(|version| format!("clang-{version}"));
    let named = std::env::var("BPF_CLANG").ok().into_iter();
    named.chain(names).chain(["clang".to_string()]).find(runs).ok_or_else(|| {
        Error::Missing(
            "a scheduler in BPF is compiled by clang 18 or newer; install it with: apt-get install clang-19"
                .to_string(),
        )
    })
}

/// The headers of the scx project, and those of libbpf.
struct Headers {
    scx: PathBuf,
    libbpf: PathBuf,
}

impl Headers {
    /// The folders that the compiler looks through.
    fn folders(&self) -> [PathBuf; 4] {
        let of = |folder: &str| self.scx.join(folder);
        [of("arch/x86"), self.scx.clone(), of("bpf-compat"), self.libbpf.clone()]
    }
}

/// The headers: where the environment says, or where the build of `loader` has unpacked them.
fn headers(loader: &Path) -> Result<Headers, Error> {
    let has = |file: &'static str| move |folder: &PathBuf| folder.join(file).is_file();
    let (is_scx, is_libbpf) = (has("scx/common.bpf.h"), has("bpf/bpf_helpers.h"));
    if let Some(folder) = std::env::var_os(HEADERS).map(PathBuf::from) {
        return match is_scx(&folder) && is_libbpf(&folder) {
            true => Ok(Headers { scx: folder.clone(), libbpf: folder }),
            false => Err(Error::Input(format!(
                "{HEADERS} is {}, which has not both scx/common.bpf.h and bpf/bpf_helpers.h",
                folder.display()
            ))),
        };
    }
    let build = loader.with_file_name("build");
    let age = |folder: &PathBuf| {
        fs::metadata(folder).and_then(|of| of.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let newest = |within: &str, is_there: &dyn Fn(&PathBuf) -> bool| {
        let builds = fs::read_dir(&build).into_iter().flatten().flatten();
        let folders = builds.map(|entry| entry.path().join(within)).filter(is_there);
        folders.max_by_key(age)
    };
    let scx = newest("out/scx_utils-bpf_h", &is_scx);
    let libbpf = newest("out/include", &is_libbpf);
    scx.zip(libbpf).map(|(scx, libbpf)| Headers { scx, libbpf }).ok_or_else(|| {
        let name = loader.file_name().unwrap_or(OsStr::new("schedlab-scx")).display();
        Error::Missing(format!(
            "a source in BPF needs the headers of the scx project, which the build of {name} \
             unpacks and which are not in {}: build it there with: cargo build --release -p \
             {name}, or say in {HEADERS} which folder has scx/common.bpf.h and bpf/bpf_helpers.h",
            build.display()
        ))
    })
}
