//! States which sources a build of schedlab is made of. It is a crate of its own, so that reading
//! this does not build what the build script of `schedlab` builds.

/// The version, and a hash of all sources that decide the result of a simulation. Programs of the
/// same sources give the same numbers, wherever and however they were built.
///
/// A program built from the published packages has the hash of their release: its crates depend on
/// one another at exactly one version. Two changes it does not show. One is a crate of the release
/// that was changed in place. The other is libraries in other versions than in the `Cargo.lock` of
/// the release.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("SCHEDLAB_SOURCES"));
