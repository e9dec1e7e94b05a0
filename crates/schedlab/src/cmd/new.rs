//! `schedlab new policy NAME`: a policy of one's own, ready to be changed, in a checkout of schedlab.

use crate::Error;
use crate::output::{print, write_whole};
use clap::{Args, Subcommand};
use schedsim::policy::{PolicySpec, topologies};
use std::fs;
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("../../../schedsim/src/policy/own/template.rs");
/// Where policies of one's own are registered, in a checkout, and the line above which a new one goes.
const REGISTER: &str = "crates/schedsim/src/policy/own.rs";
const MARK: &str = "    // name: Type, \"what it does, in a line\";\n";

/// Begins something of your own
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  schedlab new policy patient\n  cargo build --release\n  target/release/schedlab check --policy patient"
)]
pub struct New {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// A scheduling policy: a file of Rust that works as it is, and its name among all others
    Policy {
        /// Its name: small letters, digits and underscores
        name: String,
        /// The checkout of schedlab to put it into
        #[arg(long = "in", value_name = "DIR", default_value = ".")]
        checkout: PathBuf,
    },
}

impl New {
    pub fn run(self) -> Result<(), Error> {
        let What::Policy { name, checkout } = self.what;
        let file = new_policy(&name, &checkout)?;
        let file = file.display();
        print(&format!(
            "{file} is a policy that works; change it.\n\nThen, in {}:\n  cargo build --release\n  target/release/schedlab check --policy {name}\n  \
             target/release/schedlab compare hackbench:1 --policy eevdf,{name}\n  cargo build --release -p schedlab-scx\n  \
             target/release/schedlab compare yield:2,64 --on vm --policy kernel:other,{name}\n",
            checkout.display()
        ))
    }
}

/// Writes the policy and its line, and says where it is.
fn new_policy(name: &str, checkout: &Path) -> Result<PathBuf, Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) || is_word_of_rust(name) {
        return Err(Error::Usage(format!(
            "`{name}` cannot name a file of Rust: give small letters, digits and underscores, as in my_policy"
        )));
    }
    if name == "template" || PolicySpec::parse(name).is_ok() || topologies().any(|topology| topology.name == name) {
        return Err(Error::Usage(format!("there is a policy, a topology or a file named `{name}` already: take another name")));
    }
    let register = checkout.join(REGISTER);
    let known = fs::read_to_string(&register).ok().filter(|text| text.contains(MARK)).ok_or_else(|| {
        let here = checkout.display();
        Error::Input(format!("{here} is no checkout of schedlab's: it has no {REGISTER} to put a policy into; give --in DIR"))
    })?;
    let file = register.with_extension("").join(format!("{name}.rs"));
    if file.exists() {
        return Err(Error::Usage(format!("{} is there already: take another name, or remove it", file.display())));
    }
    let policy = type_name(name);
    write_whole(&file, TEMPLATE.replace("Template", &policy).replace("`template`", &format!("`{name}`")).as_bytes())?;
    let line = format!("    {name}: {policy}, \"first come, first served (what it does, in a line)\";\n");
    write_whole(&register, known.replacen(MARK, &(MARK.to_string() + &line), 1).as_bytes())?;
    Ok(file)
}

/// `my_policy` becomes `MyPolicy`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capital).collect()
}

/// Words that cannot name a module (The Rust Reference, "Keywords").
fn is_word_of_rust(name: &str) -> bool {
    const WORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop macro \
                         match mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe unsized use virtual where \
                         while yield";
    WORDS.split_ascii_whitespace().any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_policy_is_a_file_and_a_line_and_what_cannot_be_one_is_refused() {
        let checkout = tempfile::tempdir().unwrap();
        let refused = |name: &str, word: &str| {
            let error = new_policy(name, checkout.path()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused("my_policy", "no checkout");
        let register = checkout.path().join(REGISTER);
        fs::create_dir_all(register.with_extension("")).unwrap();
        let original = concat!(env!("CARGO_MANIFEST_DIR"), "/../schedsim/src/policy/own.rs");
        fs::copy(original, &register).unwrap();
        let text = fs::read_to_string(new_policy("my_policy", checkout.path()).unwrap()).unwrap();
        assert!(text.contains("impl Policy for MyPolicy") && text.contains("`my_policy`") && !text.contains("emplate"), "{text}");
        assert!(fs::read_to_string(&register).unwrap().contains("    my_policy: MyPolicy, \""));
        refused("my_policy", "is there already");
        refused("eevdf", "take another name");
        refused("central", "take another name");
        refused("My-Policy", "my_policy");
        refused("yield", "my_policy");
    }
}
