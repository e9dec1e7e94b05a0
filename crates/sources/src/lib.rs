//! Which sources a build of schedlab is of. A crate of its own, so that looking at them does not build what the build script of `schedlab` builds.

/// The version, and a hash of all sources that decide what a simulation comes to. Programs of the same sources come to the same numbers, wherever and however they
/// were built.
///
/// A program built from the published packages has the hash of their release: its crates depend on one another at exactly one version. Two things it cannot know: a
/// crate of the release that was changed in place, and libraries that cargo took in other versions than the `Cargo.lock` of the release has.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SCHEDLAB_SOURCES"));
