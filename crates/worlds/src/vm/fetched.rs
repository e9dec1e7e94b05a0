//! What a kernel in the cache is: the package that it came in, and the hashes of both.

use program::Error;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// What the cache knows of a kernel that was fetched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fetched {
    /// The name of the package that the image came in.
    pub package: String,
    /// The suite it came from.
    pub suite: String,
    /// The SHA-256 of the package.
    pub package_sha256: String,
    /// The SHA-256 of the bzImage in it.
    pub image_sha256: String,
    /// Further packages that were read: of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Package>,
}

/// A package, and what identifies it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Package {
    /// Its name, or that of its file.
    #[serde(alias = "file")]
    pub package: String,
    /// Its SHA-256.
    pub sha256: String,
}

/// Records what lies in `directory`.
pub(super) fn remember(directory: &Path, fetched: &Fetched) -> Result<(), Error> {
    let json =
        serde_json::to_vec_pretty(fetched).map_err(|error| Error::Internal(error.to_string()))?;
    program::write_whole(&directory.join("package.json"), &json)
}

/// What is recorded of `directory`.
pub(super) fn fetched(directory: &Path) -> Option<Fetched> {
    serde_json::from_slice(&fs::read(directory.join("package.json")).ok()?).ok()
}
