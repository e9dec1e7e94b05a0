//! The names of Debian's kernels: a series or a release, and a flavour, as in `6.18`, `6.18.9` or
//! `6.18-rt`.

use std::fmt;

/// The kernels that a name of the command line means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Release {
    /// The number of a series, as 6.18, or of one release in it, as 6.18.9 or 6.1.0-50.
    pub version: String,
    /// How it was built.
    pub flavour: Flavour,
}

/// What a kernel of Debian's was built for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Flavour {
    /// For virtual machines: small, and with everything that a guest needs built in.
    Cloud,
    /// For any machine.
    Generic,
    /// For any machine, with `PREEMPT_RT`.
    RealTime,
}

impl Flavour {
    /// All, the usual one first.
    pub const ALL: [Flavour; 3] = [Flavour::Cloud, Flavour::Generic, Flavour::RealTime];

    /// What a name ends in that means it.
    pub fn suffix(self) -> &'static str {
        match self {
            Flavour::Cloud => "-cloud",
            Flavour::Generic => "-generic",
            Flavour::RealTime => "-rt",
        }
    }

    /// What the names of its packages end in.
    fn architecture(self) -> &'static str {
        match self {
            Flavour::Cloud => "-cloud-amd64",
            Flavour::Generic => "-amd64",
            Flavour::RealTime => "-rt-amd64",
        }
    }
}

impl Release {
    /// The release that `name` means, if it is not the path of a file.
    pub fn read(name: &str) -> Option<Release> {
        let flavoured = Flavour::ALL.into_iter().find_map(|flavour| {
            Some(Release { version: name.strip_suffix(flavour.suffix())?.to_string(), flavour })
        });
        let plain = || Release { version: name.to_string(), flavour: Flavour::Cloud };
        let release = flavoured.unwrap_or_else(plain);
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        (release.version.contains('.') && release.version.split(['.', '-']).all(is_number))
            .then_some(release)
    }

    /// The first two numbers: 6.18.9 is of 6.18.
    pub fn series(&self) -> Vec<u32> {
        numbers(&self.version).into_iter().take(2).collect()
    }

    /// The newest image among `packages` that is meant, by what `uname -r` says of it.
    pub fn newest(&self, packages: &[String]) -> Option<String> {
        let all = packages.iter().filter_map(|package| image(package));
        let meant = all.filter(|(flavour, version, _)| {
            let rest = version.strip_prefix(self.version.as_str());
            *flavour == self.flavour
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', '-']))
        });
        meant.max_by_key(|(_, version, _)| numbers(version)).map(|(_, _, name)| name)
    }
}

/// As on the command line; the usual flavour is left out.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)?;
        if self.flavour == Flavour::Cloud { Ok(()) } else { f.write_str(self.flavour.suffix()) }
    }
}

/// The releases with images among `packages`, rising, as the command line takes them.
pub fn releases(packages: &[String]) -> Vec<Release> {
    let all = packages.iter().filter_map(|package| image(package));
    let mut all: Vec<(Vec<u32>, Flavour, Release)> = all
        .filter_map(|(flavour, version, _)| {
            let (version, _) = version.split_once('+').unwrap_or((&version, ""));
            let release = Release { version: version.to_string(), flavour };
            Release::read(&release.to_string())?;
            Some((numbers(version), flavour, release))
        })
        .collect();
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    all.dedup_by(|a, b| a.2 == b.2);
    all.into_iter().map(|(_, _, release)| release).collect()
}

/// Flavour, version and full name of an image by its package: `linux-image-6.18.9+deb13-rt-amd64`
/// has 6.18.9+deb13 and 6.18.9+deb13-rt-amd64.
fn image(package: &str) -> Option<(Flavour, String, String)> {
    let name = package.strip_prefix("linux-image-")?;
    if !name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let of = |flavour: Flavour| {
        let version = name.strip_suffix(flavour.architecture())?;
        let is_other = [Flavour::Cloud, Flavour::RealTime]
            .iter()
            .any(|other| version.ends_with(other.suffix()));
        (!is_other).then(|| (flavour, version.to_string(), name.to_string()))
    };
    Flavour::ALL.into_iter().find_map(of)
}

/// The numbers in a version, by which it is compared.
pub fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The simulator's policy that stands for `SCHED_OTHER` in the kernel of this version or name, as in
/// 6.1 or pslist-6.1.
pub fn fair_model(version: &str) -> &'static str {
    if numbers(version).as_slice() >= &[6, 6][..] { "eevdf" } else { "cfs" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<String> {
        let of = |name: &str| format!("linux-image-{name}");
        let mut all: Vec<String> = ["6.1.0-9", "6.1.0-50", "6.18.9+deb13", "6.18.15+deb13", "7.3"]
            .into_iter()
            .flat_map(|version| Flavour::ALL.map(|flavour| of(version) + flavour.architecture()))
            .collect();
        all.push(of("6.18.99+deb13-amd64"));
        // Not signed, of no version, for debugging, and of another name.
        all.extend(["6.18.100+deb13-cloud-amd64-unsigned", "cloud-amd64", "amd64"].map(of));
        all.extend(["6.18.101+deb13-cloud-amd64-dbg"].map(of));
        all.push("linux-base-6.18.102+deb13-cloud-amd64".to_string());
        all
    }

    #[test]
    fn the_newest_of_a_series_and_flavour_is_taken_and_a_release_by_its_number() {
        let newest = |name: &str| Release::read(name).unwrap().newest(&packages());
        for (name, expected) in [
            ("6.1", "6.1.0-50-cloud-amd64"),
            ("6.1.0-9", "6.1.0-9-cloud-amd64"),
            ("6.18", "6.18.15+deb13-cloud-amd64"),
            ("6.18-cloud", "6.18.15+deb13-cloud-amd64"),
            ("6.18.9", "6.18.9+deb13-cloud-amd64"),
            ("6.18-rt", "6.18.15+deb13-rt-amd64"),
            ("6.18.9-rt", "6.18.9+deb13-rt-amd64"),
            ("6.18-generic", "6.18.99+deb13-amd64"),
            ("7.3", "7.3-cloud-amd64"),
        ] {
            assert_eq!(newest(name).as_deref(), Some(expected), "{name}");
        }
        for gone in ["6.17", "6.1.1", "6.18.1", "6.18.99", "7.30"] {
            assert_eq!(newest(gone), None, "{gone}");
        }
    }

    #[test]
    fn a_name_is_a_release_or_a_file() {
        for name in ["6.1", "6.18.9", "6.1.0-50", "6.18-rt", "6.18.9-generic"] {
            assert_eq!(Release::read(name).unwrap().to_string(), name);
        }
        assert_eq!(Release::read("6.18-cloud").unwrap().to_string(), "6.18");
        for file in ["6", "6.", "bzImage", "6.18-lowlatency", "./6.18", "/boot/vmlinuz-6.18", ""] {
            assert_eq!(Release::read(file), None, "{file}");
        }
    }

    #[test]
    fn releases_are_listed_once_rising() {
        let all: Vec<String> = releases(&packages()).iter().map(Release::to_string).collect();
        assert_eq!(
            all.join(" "),
            "6.1.0-9 6.1.0-9-generic 6.1.0-9-rt 6.1.0-50 6.1.0-50-generic 6.1.0-50-rt 6.18.9 \
             6.18.9-generic 6.18.9-rt 6.18.15 6.18.15-generic 6.18.15-rt 6.18.99-generic 7.3 \
             7.3-generic 7.3-rt"
        );
        for release in releases(&packages()) {
            assert!(release.newest(&packages()).is_some(), "{release}");
        }
    }
}
