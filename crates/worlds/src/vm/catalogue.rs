//! The kernels that Debian's mirror has, as of the last look: kept in the cache, as a look takes
//! seconds and a network.

use super::release::Release;
use super::{debian, kernel};
use program::Error;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The releases of each suite.
pub type Catalogue = Vec<(String, Vec<Release>)>;

fn place() -> Result<PathBuf, Error> {
    Ok(kernel::cache()?.with_file_name("releases.json"))
}

/// What was there at the last look, if there was one.
///
/// # Errors
/// If the environment does not say where the cache is.
pub fn known() -> Result<Option<Catalogue>, Error> {
    Ok(fs::read(place()?).ok().and_then(|bytes| read(&bytes)))
}

/// Looks again.
///
/// # Errors
/// As of [`debian::available`].
pub fn refresh() -> Result<Catalogue, Error> {
    let catalogue = debian::available(&kernel::cache()?)?;
    let place = place()?;
    program::write_whole(&place, &written(&catalogue)?)?;
    Ok(catalogue)
}

/// What is known, after a look if nothing is.
///
/// # Errors
/// As of [`refresh`].
pub fn known_or_looked_up() -> Result<Catalogue, Error> {
    known()?.map_or_else(refresh, Ok)
}

fn written(catalogue: &Catalogue) -> Result<Vec<u8>, Error> {
    let suites: BTreeMap<&str, Vec<String>> = catalogue
        .iter()
        .map(|(suite, all)| (suite.as_str(), all.iter().map(Release::to_string).collect()))
        .collect();
    serde_json::to_vec_pretty(&suites).map_err(|error| Error::Internal(error.to_string()))
}

fn read(bytes: &[u8]) -> Option<Catalogue> {
    let suites: BTreeMap<String, Vec<String>> = serde_json::from_slice(bytes).ok()?;
    let releases = |names: Vec<String>| -> Option<Vec<Release>> {
        names.iter().map(|name| Release::read(name)).collect()
    };
    suites.into_iter().map(|(suite, names)| Some((suite, releases(names)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_read_as_it_is_written_and_a_harmed_one_is_none() {
        let releases = ["6.1.0-50", "6.18.9-rt"].map(|name| Release::read(name).unwrap()).to_vec();
        let catalogue = vec![("bookworm".to_string(), releases)];
        assert_eq!(read(&written(&catalogue).unwrap()), Some(catalogue));
        assert_eq!(read(br#"{"bookworm": ["a kernel"]}"#), None);
        assert_eq!(read(b"{"), None);
    }
}
