//! Fragments of a kernel's configuration: what guests need, and what a user adds.
//!
//! Source: linux/Documentation/kbuild/kconfig.rst (`KCONFIG_ALLCONFIG`).

use super::configuration::Configuration;
use program::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What a guest needs, on top of `make allnoconfig`.
const MINIMAL: &str = include_str!("../../data/minimal.config");

/// Symbols and their values; of two values of one symbol the later holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fragment(Vec<Setting>);

/// A value of a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Setting {
    /// As in CONFIG_SMP.
    symbol: String,
    /// As it stands in a `.config`; none if the symbol is not set.
    value: Option<String>,
    /// The file and line that asks for it.
    place: String,
}

impl Fragment {
    /// What a guest needs.
    ///
    /// # Errors
    /// None, as a test reads it.
    pub fn minimal() -> Result<Fragment, Error> {
        Fragment::parse(MINIMAL, "minimal.config")
    }

    /// What `files` say, one after another.
    ///
    /// # Errors
    /// [`Error::Input`] if one cannot be read, or a line is no setting.
    pub fn read(files: &[PathBuf]) -> Result<Fragment, Error> {
        let mut all = Fragment::default();
        for file in files {
            let name = file.display().to_string();
            let text = fs::read_to_string(file)
                .map_err(|error| Error::Input(format!("the configuration {name}: {error}")))?;
            all = all.with(Fragment::parse(&text, &name)?);
        }
        Ok(all)
    }

    fn parse(text: &str, name: &str) -> Result<Fragment, Error> {
        let mut settings = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", number + 1);
            let line = line.trim();
            let unset = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
            let (symbol, value) = match (unset, line.split_once('=')) {
                (Some(symbol), _) => (symbol, "n"),
                _ if line.is_empty() || line.starts_with('#') => continue,
                (None, Some((symbol, value))) => (symbol, value),
                (None, None) => (line, ""),
            };
            if !is_symbol(symbol) || value.is_empty() {
                return Err(Error::Input(format!(
                    "{place}: `{line}` is no setting; give lines as CONFIG_SCHED_CLASS_EXT=y or \
                     # CONFIG_SMP is not set"
                )));
            }
            let value = (value != "n").then(|| value.to_string());
            settings.push(Setting { symbol: symbol.to_string(), value, place });
        }
        Ok(Fragment(Vec::new()).with(Fragment(settings)))
    }

    /// This, and then `later`.
    #[must_use]
    pub fn with(mut self, later: Fragment) -> Fragment {
        for setting in later.0 {
            self.0.retain(|earlier| earlier.symbol != setting.symbol);
            self.0.push(setting);
        }
        self
    }

    /// As lines of a `.config`.
    pub fn text(&self) -> String {
        let line = |Setting { symbol, value, .. }: &Setting| {
            let set = value.as_ref().map(|value| format!("{symbol}={value}\n"));
            set.unwrap_or_else(|| format!("# {symbol} is not set\n"))
        };
        self.0.iter().map(line).collect()
    }

    /// Whether it says something of `symbol`.
    pub fn has(&self, symbol: &str) -> bool {
        self.0.iter().any(|setting| setting.symbol == symbol)
    }

    /// The symbols whose values differ in `configuration`.
    pub fn lost<'a>(&'a self, configuration: &Configuration) -> Vec<&'a str> {
        self.lost_settings(configuration).iter().map(|setting| setting.symbol.as_str()).collect()
    }

    fn lost_settings<'a>(&'a self, configuration: &Configuration) -> Vec<&'a Setting> {
        let is_lost = |of: &&Setting| configuration.value(&of.symbol) != of.value.as_deref();
        self.0.iter().filter(is_lost).collect()
    }

    /// Checks that `configuration`, which was made of it in the sources `tree`, has all its values.
    ///
    /// # Errors
    /// [`Error::Input`] with the first symbol that the sources do not know, or whose value is not
    /// kept.
    pub fn expect_in(&self, configuration: &Configuration, tree: &Path) -> Result<(), Error> {
        let lost = self.lost_settings(configuration);
        let Some(Setting { symbol, value, place }) = lost.first() else { return Ok(()) };
        let asked = value.as_deref().unwrap_or("n");
        Err(Error::Input(match configuration.value(symbol) {
            None if !is_known(symbol, tree) => {
                format!("{place}: the sources in {} have no symbol {symbol}", tree.display())
            }
            now => format!(
                "{place}: {symbol}={asked} is not kept: it is {} after make allnoconfig; what it \
                 depends on is not set, or another symbol selects it",
                now.unwrap_or("n")
            ),
        }))
    }
}

fn is_symbol(text: &str) -> bool {
    let name = text.strip_prefix("CONFIG_").unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a Kconfig file in `tree` has the symbol.
fn is_known(symbol: &str, tree: &Path) -> bool {
    let name = symbol.trim_start_matches("CONFIG_");
    let declares = |line: &str| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some("config" | "menuconfig")) && words.next() == Some(name)
    };
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().starts_with("Kconfig")
                && fs::read_to_string(entry.path()).is_ok_and(|text| text.lines().any(declares))
            {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::kernel;

    fn fragment(text: &str) -> Fragment {
        Fragment::parse(text, "some.config").unwrap()
    }

    #[test]
    fn the_later_value_holds_and_n_is_not_set() {
        let base = fragment("CONFIG_A=y\n# a comment\n\nCONFIG_B=250\n# CONFIG_C is not set\n");
        let all = base.with(fragment("CONFIG_A=n\nCONFIG_D=\"a=b\"\n"));
        assert_eq!(
            all.text(),
            "CONFIG_B=250\n# CONFIG_C is not set\n# CONFIG_A is not set\nCONFIG_D=\"a=b\"\n"
        );
        assert_eq!(Fragment::parse(&all.text(), "x").unwrap().text(), all.text());
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        for line in ["CONFIG_A", "A=y", "CONFIG_A =y", "CONFIG_=y", "CONFIG_A=", "select A"] {
            let text = format!("CONFIG_B=y\n{line}\n");
            let error = Fragment::parse(&text, "some.config").unwrap_err();
            assert_eq!(error.exit_code(), 3);
            assert!(error.to_string().starts_with("some.config:2: "), "{error}");
        }
    }

    #[test]
    fn a_symbol_that_is_unknown_and_one_whose_value_is_not_kept_are_named() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("init")).unwrap();
        fs::write(tree.path().join("init/Kconfig"), "config KNOWN\n\tbool\nmenuconfig MENU\n")
            .unwrap();
        let configuration = Configuration::new("CONFIG_A=y\nCONFIG_HZ=250\n");
        let said = |text: &str| {
            fragment(text).expect_in(&configuration, tree.path()).map_err(|error| error.to_string())
        };
        assert_eq!(said("CONFIG_A=y\nCONFIG_HZ=250\nCONFIG_KNOWN=n\nCONFIG_NEVER=n\n"), Ok(()));
        for (text, word) in [
            ("CONFIG_A=y\nCONFIG_NEVER=y\n", "some.config:2: the sources in "),
            ("CONFIG_NOW=y\n", "have no symbol CONFIG_NOW"),
            ("CONFIG_KNOWN=y\n", "CONFIG_KNOWN=y is not kept: it is n"),
            ("CONFIG_MENU=m\n", "CONFIG_MENU=m is not kept: it is n"),
            ("CONFIG_A=m\n", "CONFIG_A=m is not kept: it is y"),
            ("# CONFIG_A is not set\n", "CONFIG_A=n is not kept: it is y"),
            ("CONFIG_HZ=1000\n", "CONFIG_HZ=1000 is not kept: it is 250"),
        ] {
            let said = said(text).unwrap_err();
            assert!(said.contains(word), "{word:?} is not in {said}");
        }
    }

    /// A kernel that is built here runs whatever a guest can run, programs and groups included.
    #[test]
    fn the_minimal_configuration_has_what_guests_and_programs_need() {
        let minimal = Fragment::minimal().unwrap();
        let needs = kernel::NEEDS.iter().chain(&kernel::LIMITS).chain(&kernel::CGROUPS);
        let calls = ["FUTEX", "EPOLL", "EVENTFD", "TIMERFD", "TMPFS", "TTY", "UNIX", "SYSVIPC"];
        let calls = calls.iter().map(|name| format!("CONFIG_{name}"));
        for option in needs.map(|(option, _)| option.to_string()).chain(calls) {
            let setting = minimal.0.iter().find(|setting| setting.symbol == option);
            assert_eq!(setting.and_then(|of| of.value.as_deref()), Some("y"), "{option}");
        }
    }

    #[test]
    fn the_minimal_configuration_is_a_fragment_without_doubles() {
        let lines = MINIMAL.lines().filter(|line| line.starts_with("CONFIG_")).count();
        assert_eq!(Fragment::minimal().unwrap().0.len(), lines);
    }
}
