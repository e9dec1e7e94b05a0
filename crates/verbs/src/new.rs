//! `schedlab new policy NAME`: creates a crate with a policy of your own, and a complete program
//! around it.

use clap::{Args, Subcommand};
use program::{Error, prepare_directory, print, write_whole};
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("new/template.rs");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Creates something of your own
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  schedlab new policy patient && cd patient\n  cargo test\n  \
                        cargo run --release -- compare hackbench:1 --policy eevdf,patient")]
pub struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// A scheduling policy: a working crate outside of schedlab's sources
    ///
    /// It is the complete program with the policy inside. A separate folder, because of its
    /// licence, has the program that lets a kernel run the policy.
    Policy {
        /// Its name: small letters, digits and underscores
        name: String,
        /// The folder to create [default: NAME]
        #[arg(value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Build against the sources of schedlab in this folder [default: the published crates]
        #[arg(long, value_name = "CHECKOUT")]
        sources: Option<PathBuf>,
    },
}

impl New {
    /// Creates the crate and prints the next steps.
    pub fn run(self) -> Result<(), Error> {
        let What::Policy { name, dir, sources } = self.what;
        let dir = dir.unwrap_or_else(|| PathBuf::from(&name));
        new_policy(&name, &dir, sources.as_deref())?;
        print(&format!(
            "{dir}/src/lib.rs is a working policy; change it. In {dir}:\n\n  cargo test\n  \
             cargo run --release -- check --policy {name}\n  cargo run --release -- compare \
             hackbench:1 --policy eevdf,{name}\n\nIn a kernel, in a guest (this needs clang-19, \
             libelf-dev, zlib1g-dev and pkg-config):\n\n  cargo build --release -p {name}-scx\n  \
             cargo run --release -- compare yield:2,64 --on vm --policy kernel:other,{name}\n",
            dir = dir.display()
        ))
    }
}

/// Writes the crate.
fn new_policy(name: &str, dir: &Path, sources: Option<&Path>) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.chars().all(plain)
        || is_word_of_rust(name)
    {
        return Err(Error::Usage(format!(
            "`{name}` cannot be the name of a Rust crate: use small letters, digits and \
             underscores, as in my_policy"
        )));
    }
    if ["test", "schedlab", "schedsim", "readyq"].contains(&name)
        || worlds::experiment::catalog().descriptors().iter().any(|other| other.name == name)
    {
        return Err(Error::Usage(format!(
            "a policy or a crate named `{name}` exists already: choose another name"
        )));
    }
    if dir.exists() {
        return Err(Error::Usage(format!(
            "{} exists already: give another folder, or remove it",
            dir.display()
        )));
    }
    let sources = sources.map(checkout).transpose()?;
    let dependency = |package: &str, folder: &str| match &sources {
        Some(checkout) => format!("{package} = {{ path = {:?} }}", checkout.join(folder)),
        None => format!("{package} = \"{VERSION}\""),
    };
    let [schedsim, schedlab, scx] =
        [("schedsim", "crates/schedsim"), ("schedlab", "crates/schedlab"), ("schedlab-scx", "scx")]
            .map(|(package, folder)| dependency(package, folder));
    let optional = if sources.is_some() {
        schedlab.replace(" }", ", optional = true }")
    } else {
        format!("schedlab = {{ version = \"{VERSION}\", optional = true }}")
    };
    let of = |template: &str| template.replace("template", name);
    let library = TEMPLATE.replace("Template", &type_name(name)).replace("template", name);
    for (file, text) in [
        (
            "Cargo.toml",
            of(MANIFEST).replace("{schedsim}", &schedsim).replace("{schedlab}", &optional),
        ),
        ("src/lib.rs", library),
        ("src/main.rs", of(MAIN)),
        ("scx/Cargo.toml", of(SCX_MANIFEST).replace("{scx}", &scx)),
        ("scx/src/main.rs", of(SCX_MAIN)),
        (".gitignore", "/target\n".to_string()),
    ] {
        let path = dir.join(file);
        path.parent().map_or(Ok(()), prepare_directory)?;
        write_whole(&path, text.as_bytes())?;
    }
    Ok(())
}

const MANIFEST: &str = r#"[package]
name = "template"
version = "0.1.0"
edition = "2024"

[features]
default = ["program"]
# The program around the policy; what runs in a kernel does without.
program = ["dep:schedlab"]

[dependencies]
{schedsim}
{schedlab}

[[bin]]
name = "template"
required-features = ["program"]

[workspace]
members = ["scx"]
default-members = ["."]

# A guest loads what runs in it: small, and the same in every folder.
[profile.release.package.template-scx]
strip = true
"#;

const MAIN: &str = "//! schedlab, with this policy inside.\n\nfn main() -> std::process::ExitCode \
                    {\n    schedlab::main(&[template::POLICY])\n}\n";

const SCX_MANIFEST: &str = r#"[package]
name = "template-scx"
description = "Lets a Linux kernel run the policy template, through sched_ext"
version = "0.1.0"
edition = "2024"
license = "GPL-2.0-only"

[dependencies]
template = { path = "..", default-features = false }
{scx}
"#;

const SCX_MAIN: &str = "//! The bridge from sched_ext to this policy.\n\nfn main() -> \
                        std::process::ExitCode {\n    schedlab_scx::main(&[template::POLICY])\n}\n";

/// The absolute path of a checkout of schedlab.
fn checkout(path: &Path) -> Result<PathBuf, Error> {
    let whole =
        path.canonicalize().ok().filter(|path| path.join("crates/schedsim/Cargo.toml").is_file());
    whole.ok_or_else(|| {
        Error::Input(format!(
            "{} has no crates/schedsim: give --sources the folder of a checkout of schedlab",
            path.display()
        ))
    })
}

/// `my_policy` becomes `MyPolicy`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capital).collect()
}

/// Keywords, which cannot be the name of a crate (The Rust Reference, "Keywords").
fn is_word_of_rust(name: &str) -> bool {
    const WORDS: &str = "abstract as async await become box break const continue crate do dyn \
                         else enum extern false final fn for gen if impl in let loop macro match \
                         mod move mut override priv pub ref return self static struct super trait \
                         true try type typeof unsafe unsized use virtual where while yield";
    WORDS.split_ascii_whitespace().any(|word| word == name)
}

/// The template of a new policy; its tests also run here.
#[cfg(test)]
mod template;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_new_policy_is_two_packages_and_a_bad_name_or_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("my_policy");
        let refused = |name: &str, word: &str| {
            let error = new_policy(name, &dir, None).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused("eevdf", "choose another name");
        refused("central", "choose another name");
        refused("My-Policy", "my_policy");
        refused("yield", "my_policy");
        assert!(!dir.exists());
        assert!(
            new_policy("my_policy", &dir, Some(folder.path()))
                .unwrap_err()
                .to_string()
                .contains("no crates/schedsim")
        );
        new_policy("my_policy", &dir, None).unwrap();
        refused("my_policy", "exists already");
        let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
        let (manifest, library) = (read("Cargo.toml"), read("src/lib.rs"));
        assert!(
            library.contains("impl Policy for MyPolicy")
                && library.contains("name: \"my_policy\"")
                && !library.contains("emplate"),
            "{library}"
        );
        assert!(
            manifest.contains(&format!("schedsim = \"{VERSION}\""))
                && manifest.contains("default-members"),
            "{manifest}"
        );
        assert!(read("src/main.rs").contains("schedlab::main(&[my_policy::POLICY])"));
        assert!(
            read("scx/Cargo.toml").contains("GPL-2.0-only")
                && read("scx/src/main.rs").contains("schedlab_scx::main")
        );
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let dir = folder.path().join("other");
        new_policy("other", &dir, Some(&checkout)).unwrap();
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        assert_eq!(manifest["dependencies"]["schedlab"]["optional"].as_bool(), Some(true));
        assert!(
            Path::new(manifest["dependencies"]["schedsim"]["path"].as_str().unwrap())
                .join("Cargo.toml")
                .exists()
        );
    }
}
