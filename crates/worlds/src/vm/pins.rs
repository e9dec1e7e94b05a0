//! Inputs of guests by their hashes: a lock file says which, and any copy will do.

use super::{Guest, Kernel, cache, initramfs, sha256};
use crate::vm::fetched::fetched;
use program::Error;
use results::{Input, InputKind, InputLock};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a copy of an input with this hash is looked for.
///
/// # Errors
/// As of [`cache::folder`].
pub fn place(sha256: &str) -> Result<PathBuf, Error> {
    Ok(cache::folder("inputs")?.join(sha256))
}

/// The kernel that `name` means: with a lock file the one that it pins, from wherever.
///
/// # Errors
/// As of [`Kernel::find`], and [`Error::Missing`] with the hash if no copy of the pinned one is
/// found.
pub fn kernel(
    lock: Option<&InputLock>,
    argument: &str,
    say: &dyn Fn(&str),
) -> Result<Kernel, Error> {
    let name = Kernel::name_of(argument);
    let Some(pin) = lock.and_then(|lock| lock.find(InputKind::Kernel, &name)) else {
        return Kernel::find(argument, say);
    };
    let copy = place(&pin.sha256)?;
    if let Ok(kernel) = Kernel::open(&copy)
        && kernel.sha256 == pin.sha256
    {
        return Ok(Kernel { name, ..kernel });
    }
    let found = Kernel::find(argument, say);
    match found {
        Ok(kernel) if kernel.sha256 == pin.sha256 => Ok(kernel),
        Ok(other) => Err(missing(
            pin,
            &format!("kernel {name} is now {} (sha256 {})", other.release, other.sha256),
            &at(&copy),
        )),
        Err(error @ (Error::Missing(_) | Error::Input(_))) => {
            Err(missing(pin, &error.to_string(), &at(&copy)))
        }
        Err(error) => Err(error),
    }
}

fn at(place: &Path) -> String {
    format!("as the file {}", place.display())
}

/// The error for an input that cannot be had.
pub fn missing(pin: &Input, now: &str, place: &str) -> Error {
    let source = pin.source.as_ref().map_or(String::new(), |source| format!(", from {source}"));
    Error::Missing(format!(
        "{pin} with sha256 {}{source} is needed and is not here: {now}. Any copy with this hash \
         will do: put it {place}",
        pin.sha256
    ))
}

/// The inputs of a guest.
pub fn of(guest: &Guest) -> Vec<Input> {
    let input = |kind, name: &str, sha256: String, source| Input {
        kind,
        name: name.to_string(),
        sha256,
        source,
    };
    let Guest { kernel, qemu, files, .. } = guest;
    let package = kernel.image.parent().and_then(fetched);
    let source = package
        .map(|of| format!("{} of Debian {} (sha256 {})", of.package, of.suite, of.package_sha256));
    let runner = initramfs::runner().unwrap_or_default();
    let mut inputs = vec![
        input(InputKind::Kernel, &kernel.name, kernel.sha256.clone(), source),
        input(InputKind::Emulator, &qemu.version, qemu.sha256.clone(), None),
        input(InputKind::Runner, "schedlab-runner", sha256([runner]), None),
    ];
    inputs.extend(qemu.plugin.map(|plugin| {
        let name = format!("for {}", qemu.version);
        input(InputKind::Plugin, &name, sha256([plugin.library()]), None)
    }));
    let hash = |file: &super::GuestFile| sha256([file.bytes.as_slice()]);
    inputs.extend(files.iter().map(|file| input(InputKind::File, &file.path, hash(file), None)));
    inputs
}

/// Checks that a guest is made of what `lock` pins.
///
/// # Errors
/// [`Error::Missing`] with the hash that is needed, and where to put a copy.
pub fn expect(lock: &InputLock, guest: &Guest) -> Result<(), Error> {
    let current = of(guest);
    for input in &current {
        let same = lock.inputs.iter().filter(|pin| pin.kind == input.kind);
        // Guests of one and of several CPUs may have an emulator each.
        let pins: Vec<&Input> = match input.kind {
            InputKind::Kernel | InputKind::File => {
                same.filter(|pin| pin.name == input.name).collect()
            }
            _ => same.collect(),
        };
        let [first, ..] = pins[..] else { continue };
        if pins.iter().any(|pin| pin.sha256 == input.sha256) {
            continue;
        }
        let now = format!("{input} has sha256 {}", input.sha256);
        let place = match input.kind {
            InputKind::Kernel => at(&place(&first.sha256)?),
            InputKind::Emulator => "first in PATH, as qemu-system-x86_64 with its firmware".into(),
            InputKind::Plugin | InputKind::Runner => {
                "into the program: build schedlab from the sources and with the compiler that \
                 wrote the results"
                    .into()
            }
            InputKind::File | InputKind::Workload | InputKind::Build => format!(
                "where this one is ({}); SCHEDLAB_SCX says where schedlab-scx is",
                input.name
            ),
        };
        return Err(missing(first, &now, &place));
    }
    Ok(())
}

/// Checks the files that `lock` pins by their paths.
///
/// # Errors
/// [`Error::Missing`] with the hash that is needed if one is gone, [`Error::Input`] if one has
/// changed.
pub fn expect_named_files(lock: &InputLock) -> Result<(), Error> {
    let is_named = |pin: &&Input| matches!(pin.kind, InputKind::Workload | InputKind::Build);
    for pin in lock.inputs.iter().filter(is_named) {
        let current = fs::read(&pin.name).map(|bytes| sha256([bytes.as_slice()]));
        match current {
            Ok(current) if current == pin.sha256 => {}
            Ok(current) => {
                return Err(Error::Input(format!(
                    "{pin} has changed: its sha256 is {current}, and the results are of {}. Put \
                     back that file, or write the results again",
                    pin.sha256
                )));
            }
            Err(error) => {
                return Err(missing(pin, &error.to_string(), &at(Path::new(&pin.name))));
            }
        }
    }
    Ok(())
}

/// The file that `argument` names as an input, if it is one.
pub fn named_file(kind: InputKind, argument: &Path) -> Option<Input> {
    let bytes = fs::read(argument).ok()?;
    Some(Input {
        kind,
        name: argument.to_string_lossy().into_owned(),
        sha256: sha256([bytes.as_slice()]),
        source: None,
    })
}

/// One hash over the build of this program and all inputs of `lock`, wherever they are.
pub fn combined(lock: &InputLock) -> String {
    let inputs = lock.inputs.iter().map(|input| format!("\n{:?} {}", input.kind, input.sha256));
    let mut lines: Vec<String> = inputs.collect();
    lines.sort();
    sha256(
        std::iter::once(program::build())
            .chain(lines.iter().map(String::as_str))
            .map(str::as_bytes),
    )
}
