//! Parses JSON as rt-app and its workgen accept it: with comments, trailing commas, repeated keys
//! in an object, and `suspend` without a value.

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use program::Error;
use schedsim::admission::OutOfRange;

/// What LISA replaces in a template before rt-app reads it.
const PLACEHOLDERS: [&str; 4] = ["__DURATION__", "__PVALUE__", "__LOGDIR__", "__WORKDIR__"];

/// A parsed file.
pub struct Json {
    file: String,
    root: Entry,
}

/// A key of an object and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The line of the key.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// A value; numbers keep their text.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    String(String),
    Number(String),
    Bool(bool),
    Null,
    Array(Vec<Value>),
    Object(Vec<Entry>),
}

impl Json {
    /// Parses `text`.
    ///
    /// # Errors
    /// If it is not JSON; the message has the line.
    pub fn parse(file: &str, text: &str) -> Result<Json, Error> {
        let wrong = |line: usize, message: &str| Error::Input(format!("{file}:{line}: {message}"));
        for (line, text) in text.lines().enumerate() {
            if let Some(name) = PLACEHOLDERS.iter().find(|name| text.contains(*name)) {
                let message = format!(
                    "{name} is a placeholder in a template of LISA, which puts a value in its \
                     place: write the value"
                );
                return Err(wrong(line.saturating_add(1), &message));
            }
        }
        let text = with_values(text);
        let parsed = parse_to_ast(&text, &CollectOptions::default(), &ParseOptions::default())
            .map_err(|error| wrong(error.line_display(), &format!("no JSON: {}", error.kind())))?;
        let value = parsed.value.ok_or_else(|| wrong(1, "an empty file"))?;
        let lines = Lines(memchr::memchr_iter(b'\n', text.as_bytes()).collect());
        Ok(Json {
            file: file.to_string(),
            root: Entry { key: "the file".to_string(), line: 1, value: lines.convert(value) },
        })
    }

    /// The entries of the top-level object.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn root(&self) -> Result<&[Entry], Error> {
        self.object(&self.root)
    }

    /// The entries of an object; a repeated key has several entries.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn object<'e>(&self, entry: &'e Entry) -> Result<&'e [Entry], Error> {
        match &entry.value {
            Value::Object(entries) => Ok(entries),
            _ => Err(self.wrong(entry.line, &format!("{}: give an object in braces", entry.key))),
        }
    }

    /// One entry of an object, if it exists.
    pub fn part<'e>(&self, entry: &'e Entry, key: &str) -> Option<&'e Entry> {
        match &entry.value {
            Value::Object(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// A text.
    ///
    /// # Errors
    /// If it is not a text.
    pub fn text<'e>(&self, entry: &'e Entry) -> Result<&'e str, Error> {
        match &entry.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(entry.line, &format!("{}: give a text in quotes", entry.key))),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// If it is not an integer.
    pub fn integer(&self, entry: &Entry) -> Result<i64, Error> {
        let number = match &entry.value {
            Value::Number(number) => number.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(entry.line, &format!("{}: give a whole number", entry.key)))
    }

    /// An integer that is not negative.
    ///
    /// # Errors
    /// If it is none.
    pub fn amount(&self, entry: &Entry) -> Result<i64, Error> {
        match self.integer(entry)? {
            amount @ 0.. => Ok(amount),
            _ => {
                let how = format!("{}: give a number that is not negative", entry.key);
                Err(self.wrong(entry.line, &how))
            }
        }
    }

    /// Unwraps a checked number of an entry.
    ///
    /// # Errors
    /// If it is out of range; the message has the line.
    pub fn admit<T>(&self, entry: &Entry, number: Result<T, OutOfRange>) -> Result<T, Error> {
        number.map_err(|wrong| self.wrong(entry.line, &format!("{}: {wrong}", entry.key)))
    }

    /// An error for a line.
    pub fn wrong(&self, line: usize, message: &str) -> Error {
        Error::Input(format!("{}:{line}: {message}", self.file))
    }
}

/// Adds an empty value to every `"suspend"` without one, as workgen does.
fn with_values(text: &str) -> String {
    const BARE: &str = "\"suspend\"";
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BARE) {
        let (before, found) = rest.split_at(at);
        let behind = found.strip_prefix(BARE).unwrap_or_default();
        let is_value = before.trim_end().ends_with(':');
        let is_bare = behind.trim_start().starts_with([',', '}']);
        whole += before;
        whole += BARE;
        if is_bare && !is_value {
            whole += " : \"\"";
        }
        rest = behind;
    }
    whole + rest
}

/// The ends of the lines of a text.
struct Lines(Vec<usize>);

impl Lines {
    /// The parser refuses nesting that is too deep for this recursion.
    fn convert(&self, value: ast::Value<'_>) -> Value {
        match value {
            ast::Value::StringLit(string) => Value::String(string.value.into_owned()),
            ast::Value::NumberLit(number) => Value::Number(number.value.to_string()),
            ast::Value::BooleanLit(truth) => Value::Bool(truth.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(array) => {
                Value::Array(array.elements.into_iter().map(|value| self.convert(value)).collect())
            }
            ast::Value::Object(object) => Value::Object(
                object.properties.into_iter().map(|property| self.entry(property)).collect(),
            ),
        }
    }

    fn entry(&self, property: ast::ObjectProp<'_>) -> Entry {
        let start = property.range().start;
        let line = self.0.partition_point(|&end| end < start).saturating_add(1);
        Entry { key: property.name.into_string(), line, value: self.convert(property.value) }
    }
}
