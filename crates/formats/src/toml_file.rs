//! A TOML file that a person wrote: its content, and errors with file, line and key.

use program::{Error, no_such};
use schedsim::admission::LARGEST_TEXT;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a TOML file and its name for messages.
#[derive(Clone, Debug)]
pub struct TomlFile {
    name: String,
    text: String,
}

impl TomlFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is not text.
    pub fn read(path: &Path) -> Result<TomlFile, Error> {
        Ok(TomlFile { name: path.display().to_string(), text: read_text(path)? })
    }

    /// A text that is not on disk.
    pub fn of(name: &str, text: &str) -> TomlFile {
        TomlFile { name: name.to_string(), text: text.to_string() }
    }

    /// The name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Parses the content.
    ///
    /// # Errors
    /// If it is not TOML, or does not fit `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        toml::from_str(&self.text).map_err(|error: toml::de::Error| {
            let at = error.span().unwrap_or(0..0);
            let key = DeTable::parse(&self.text)
                .ok()
                .and_then(|document| key_in_table(document.get_ref(), at.start));
            let message = match self.other_kind(at.start, error.message()) {
                Some(kind) => format!("this file is {kind}"),
                None => with_nearest(error.message()),
            };
            self.error(at, key.as_deref(), &message)
        })
    }

    /// What the file is, and who takes it, if by its keys it is not of the kind in whose place it
    /// was given. Then a key of its own, at byte `at`, is unknown there. `message` is serde's, with
    /// the keys of that kind.
    fn other_kind(&self, at: usize, message: &str) -> Option<&'static str> {
        const KINDS: [(&str, &str); 5] = [
            ("task", "a workload; give it to `schedlab compare`"),
            ("class", "a workload; give it to `schedlab compare`"),
            ("axes", "a grid; give it to `schedlab sweep`"),
            ("policies", "a grid; give it to `schedlab sweep`"),
            ("cluster", "a machine; give it with --machine"),
        ];
        let document = DeTable::parse(&self.text).ok()?;
        let is_own = document.get_ref().keys().any(|key| key.span().contains(&at));
        let is_key = |name: &str| document.get_ref().keys().any(|key| key.get_ref() == name);
        // The first name that it quotes is the wrong key.
        let mut quoted = message.split('`').skip(1).step_by(2).skip(1);
        let kind = KINDS.iter().find(|(key, _)| is_key(key))?;
        let is_other =
            is_own && message.starts_with("unknown field") && !quoted.any(|key| key == kind.0);
        is_other.then_some(kind.1)
    }

    /// The error for a bad value of `key`, such as `class[1].share`. If the key is missing, the
    /// error points to the nearest part of it that exists.
    pub fn wrong(&self, key: &str, message: &str) -> Error {
        self.error(self.place(key).0, Some(key), message)
    }

    /// The error for the bytes `within` the text value of `key`.
    pub fn wrong_within(&self, key: &str, within: &Range<usize>, message: &str) -> Error {
        let (named, value) = self.place(key);
        let (start, token) = (value.start, self.text.get(value).unwrap_or_default());
        let quotes = token.len() - token.trim_start_matches(['"', '\'']).len();
        // After an escape, offsets in the text differ from those in the file.
        let is_plain = quotes > 0 && !token.contains('\\');
        let at = if is_plain {
            start + quotes + within.start..start + quotes + within.end
        } else {
            named
        };
        self.error(at, Some(key), message)
    }

    fn place(&self, key: &str) -> (Range<usize>, Range<usize>) {
        DeTable::parse(&self.text)
            .ok()
            .map_or((0..0, 0..0), |document| place(document.get_ref(), key))
    }

    /// An error with file, line and key, the message, and the line with a mark under the bad part.
    fn error(&self, at: Range<usize>, key: Option<&str>, message: &str) -> Error {
        let key = key.map_or(String::new(), |key| format!("{key}: "));
        let line = self.text.bytes().take(at.start).filter(|&byte| byte == b'\n').count() + 1;
        Error::Input(format!("{}:{line}: {key}{message}{}", self.name, self.excerpt(line, at)))
    }

    /// The line of `at`; of a long line the part around `at`.
    fn excerpt(&self, line: usize, at: Range<usize>) -> String {
        const BEFORE: usize = 60;
        const SHOWN: usize = 120;
        let begin = self
            .text
            .get(..at.start)
            .and_then(|before| before.rfind('\n'))
            .map_or(0, |end| end + 1);
        let text = self.text[begin..].lines().next().unwrap_or_default();
        if text.trim().is_empty() {
            return String::new();
        }
        let chars =
            |bytes: usize| text.get(..bytes.min(text.len())).unwrap_or_default().chars().count();
        let (column, end) = (chars(at.start - begin), chars(at.end.saturating_sub(begin)));
        let left_out = column.saturating_sub(BEFORE);
        let shown: String = text
            .chars()
            .skip(left_out)
            .take(SHOWN)
            .map(|one| if one.is_control() { ' ' } else { one })
            .collect();
        let marks = end.min(left_out + SHOWN).saturating_sub(column).max(1);
        let (number, blank) = (line.to_string(), " ".repeat(line.to_string().len()));
        format!(
            "\n{number} | {}\n{blank} | {}{}",
            shown.trim_end(),
            " ".repeat(column - left_out),
            "^".repeat(marks)
        )
    }
}

/// Reads a text that a person wrote. A file larger than any person writes is refused.
///
/// # Errors
/// If it cannot be read, is too large, or is not text.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let wrong = |what: String| Error::Input(format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    let unreadable = |error| {
        Error::unreadable(path, &error, "a file that describes a workload, machine, grid or suite")
    };
    let file = File::open(path).map_err(unreadable)?;
    let is_compressed = path.extension().is_some_and(|extension| extension == "zst");
    let file: Box<dyn Read> = if is_compressed {
        Box::new(zstd::Decoder::new(file).map_err(|error| wrong(error.to_string()))?)
    } else {
        Box::new(file)
    };
    file.take(LARGEST_TEXT.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LARGEST_TEXT) {
        return Err(wrong(format!(
            "it has more than {LARGEST_TEXT} bytes; a description is smaller, so name another file"
        )));
    }
    String::from_utf8(bytes).map_err(|_| {
        wrong("not UTF-8 text, so not a description of a workload or a machine".to_string())
    })
}

/// serde's message for an unknown name, with the nearest known name.
pub fn with_nearest(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (&quoted[..], message.starts_with("unknown ")) {
        ([wrong, names @ ..], true) if !names.is_empty() => {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            let what = message
                .split(' ')
                .nth(1)
                .unwrap_or_default()
                .replace("field", "key")
                .replace("variant", "choice");
            no_such(&what, wrong, &names, &format!("It can be {}.", names.join(", ")))
        }
        _ => message.lines().collect::<Vec<_>>().join(" "),
    }
}

/// The key at byte `at`: in its name or its value.
fn key_in_table(table: &DeTable<'_>, at: usize) -> Option<String> {
    let inner = |value: &Spanned<DeValue<'_>>, key: &str| {
        key_in_value(value.get_ref(), at).map(|inner| format!("{key}{inner}"))
    };
    table.iter().find_map(|(key, value)| inner(value, key.get_ref())).or_else(|| {
        let (key, _) = table
            .iter()
            .find(|(key, value)| key.span().contains(&at) || value.span().contains(&at))?;
        Some(key.get_ref().to_string())
    })
}

/// The part of the key after the value's own key.
fn key_in_value(value: &DeValue<'_>, at: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => key_in_table(table, at).map(|key| format!(".{key}")),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let inner = key_in_value(item.get_ref(), at)
                .or_else(|| item.span().contains(&at).then(String::new));
            inner.map(|inner| format!("[{index}]{inner}"))
        }),
        _ => None,
    }
}

/// The position of `key`, or of the part of it that exists: its name or its place in a list, and
/// its value.
fn place(table: &DeTable<'_>, key: &str) -> (Range<usize>, Range<usize>) {
    let mut found = (0..0, 0..0);
    let mut value: Option<&DeValue<'_>> = None;
    for step in key.split(['.', '[']) {
        let next =
            match (value, step.strip_suffix(']').and_then(|index| index.parse::<usize>().ok())) {
                (Some(DeValue::Array(items)), Some(index)) => {
                    items.get(index).map(|item| (item.span(), item))
                }
                (Some(DeValue::Table(table)), None) => entry(table, step),
                (None, None) => entry(table, step),
                _ => None,
            };
        let Some((span, inner)) = next else { break };
        (found, value) = ((span, inner.span()), Some(inner.get_ref()));
    }
    found
}

/// The position of a table's key, and its value.
fn entry<'t, 'i>(
    table: &'t DeTable<'i>,
    name: &str,
) -> Option<(Range<usize>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(key, _)| key.get_ref() == name).map(|(key, value)| (key.span(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        #[serde(default)]
        #[allow(dead_code)]
        load: f64,
        #[serde(default)]
        #[allow(dead_code)]
        class: Vec<Class>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Class {
        #[allow(dead_code)]
        share: f64,
    }

    #[test]
    fn errors_show_line_and_key() {
        let message =
            |text: &str| TomlFile::of("w.toml", text).parse::<Wanted>().unwrap_err().to_string();
        let shown = "w.toml:4: class[0].share: invalid type: string \"x\", expected f64\n4 | \
                     share = 'x'\n  |         ^^^";
        assert_eq!(message("load = 1\n\n[[class]]\nshare = 'x'\n"), shown);
        assert!(
            message("lood = 1")
                .contains("w.toml:1: lood: there is no key named `lood`. Did you mean `load`?"),
            "{}",
            message("lood = 1")
        );
        let grid = message("load = 1\npolicies = ['take:rr']\n");
        assert!(
            grid.starts_with(
                "w.toml:2: policies: this file is a grid; give it to `schedlab sweep`"
            ),
            "{grid}"
        );
        let inner = message("load = 1\n[[class]]\nshare = 1.0\nsher = 2\n[cluster.a]\n");
        assert!(inner.contains("class[0].sher: there is no key named `sher`"), "{inner}");
        let wanted = message("load = 1\nlood = 2\n[[class]]\nshare = 1.0\n");
        assert!(wanted.contains("there is no key named `lood`"), "it is of this kind: {wanted}");
        assert!(message("load = \n").starts_with("w.toml:1: "), "{}", message("load = \n"));
        assert!(
            message("[[class]]\n").starts_with("w.toml:1: class[0]: missing field `share`"),
            "{}",
            message("[[class]]\n")
        );
        let file = TomlFile::of("w.toml", "load = 2\n[[class]]\nshare = 1\n[[class]]\nshare = 2\n");
        let wrong = |key: &str, message: &str| file.wrong(key, message).to_string();
        assert_eq!(
            wrong("class[1].share", "too much"),
            "w.toml:5: class[1].share: too much\n5 | share = 2\n  | ^^^^^"
        );
        assert!(
            wrong("class[1].pause", "missing")
                .starts_with("w.toml:4: class[1].pause: missing\n4 | [[class]]\n")
        );
        assert!(
            wrong("quantum", "missing").starts_with("w.toml:1: quantum: missing\n1 | load = 2\n")
        );
        assert_eq!(
            TomlFile::of("w.toml", "").wrong("load", "missing").to_string(),
            "w.toml:1: load: missing"
        );
    }

    #[test]
    fn a_mark_shows_the_bad_part_of_a_text_and_a_long_line_is_shortened() {
        let mark = |text: &str| {
            let error =
                TomlFile::of("w.toml", text).wrong_within("check[1]", &(4..6), "wrong").to_string();
            let lines: Vec<String> = error.lines().map(str::to_string).collect();
            assert_eq!(lines[0], "w.toml:1: check[1]: wrong");
            let (line, marks) = (lines[1].chars(), lines[2].chars());
            line.zip(marks)
                .filter(|(_, mark)| *mark == '^')
                .map(|(char, _)| char)
                .collect::<String>()
        };
        assert_eq!(mark("check = [\"a\", \"max(ab) < 1\"]"), "ab");
        assert_eq!(mark("check = ['ä', '''max(ab) < 1''']"), "ab");
        assert_eq!(
            mark(&format!("check = ['{}', 'max(ab) < 1 {}']", "ä".repeat(500), "x".repeat(500))),
            "ab"
        );
        assert_eq!(mark("check = [\"a\", \"\\u006dax(ab) < 1\"]"), "\"\\u006dax(ab) < 1\"");
        let long = TomlFile::of("w.toml", &format!("a = \"{}\"\n", "\tä".repeat(900)))
            .wrong("a", "long")
            .to_string();
        assert!(long.chars().count() < 400 && !long.contains('\t'), "{long}");
    }
}
