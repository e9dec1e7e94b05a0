//! The built BPF programs: one per file `bpf/NAME.bpf.c`.

/// The program of the bridge, which is no policy.
pub const BRIDGE: &str = "bridge";
/// The program that writes into the kernel's trace, which is no policy.
pub const WITNESS: &str = "witness";

const OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The program of this name.
pub fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// The names of the policies, without the ones that exist to be caught (`canary_…`).
pub fn twins() -> impl Iterator<Item = &'static str> {
    OBJECTS
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| ![BRIDGE, WITNESS].contains(name) && !name.starts_with("canary_"))
}
