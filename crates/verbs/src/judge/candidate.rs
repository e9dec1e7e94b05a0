//! Candidates as lines of JSON, and how they become policies.

use super::MakerArguments;
use crate::PolicyName;
use results::judge::Limits;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use worlds::examinee::{Examinee, Failure};
use worlds::stranger::{Kit, Python, Terms};

/// A candidate as its line says it.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    id: String,
    kind: Result<Kind, String>,
}

/// The kinds of candidates.
#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Policy(String),
    Crate(PathBuf),
    Python(PathBuf),
    Bpf(PathBuf),
}

/// What a candidate has become.
pub struct Made {
    /// The policy, or why there is none.
    pub examinee: Result<Examinee, Failure>,
    /// How long its compilation took.
    pub compile: Option<Duration>,
}

const EXAMPLE: &str = r#"{"policy": "eevdf"}"#;
const KINDS: [&str; 4] = ["policy", "crate", "python", "bpf"];

impl Wanted {
    /// Reads a line; what is no candidate becomes one whose verdict says so.
    pub fn read(line: &str, number: usize) -> Wanted {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        let object = match &parsed {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(format!("a candidate is an object, as {EXAMPLE}")),
            Err(error) => Err(format!("not JSON ({error}); give a candidate, as {EXAMPLE}")),
        };
        let id = object.as_ref().ok().and_then(|object| object.get("id"));
        let id = match id {
            Some(Value::String(id)) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => number.to_string(),
        };
        let kind = object.and_then(|object| {
            let own: Vec<&str> =
                object.keys().map(String::as_str).filter(|key| *key != "id").collect();
            let [key] = own[..] else {
                return Err(format!(
                    "a candidate has one of {}, and this one has {}",
                    KINDS.join(", "),
                    if own.is_empty() { "none".to_string() } else { own.join(", ") }
                ));
            };
            let Some(text) = object[key].as_str() else {
                return Err(format!("`{key}` is a text"));
            };
            match key {
                "policy" => Ok(Kind::Policy(text.to_string())),
                "crate" => Ok(Kind::Crate(text.into())),
                "python" => Ok(Kind::Python(text.into())),
                "bpf" => Ok(Kind::Bpf(text.into())),
                _ => Err(program::no_such("kind of candidate", key, &KINDS.map(String::from), "")),
            }
        });
        Wanted { id, kind: kind.map_err(|why| format!("line {number}: {}", why.trim())) }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Ok(Kind::Policy(text)) => f.write_str(text),
            Ok(Kind::Crate(path) | Kind::Python(path) | Kind::Bpf(path)) => path.display().fmt(f),
            Err(_) => f.write_str("none"),
        }
    }
}

/// What candidates are made with; each is found when the first candidate needs it.
pub struct Makers {
    arguments: MakerArguments,
    limits: Limits,
    secret: u128,
    /// The files of the suite.
    hidden: Vec<PathBuf>,
    kit: OnceLock<Result<Kit, Failure>>,
    python: OnceLock<Result<Python, Failure>>,
}

impl Makers {
    /// By these arguments; `hidden` are the files of the suite.
    pub fn new(
        arguments: MakerArguments,
        limits: Limits,
        secret: u128,
        hidden: Vec<PathBuf>,
    ) -> Makers {
        let (kit, python) = (OnceLock::new(), OnceLock::new());
        Makers { arguments, limits, secret, hidden, kit, python }
    }

    /// Makes a candidate.
    pub fn make(&self, wanted: &Wanted) -> Made {
        let made = |examinee| Made { examinee, compile: None };
        match &wanted.kind {
            Err(why) => made(Err(Failure::NotAPolicy(why.clone()))),
            Ok(Kind::Policy(text)) => made(named(text).map_err(Failure::NotAPolicy)),
            Ok(Kind::Crate(folder)) => self.compile(folder),
            Ok(Kind::Python(file)) => made(self.interpret(file)),
            Ok(Kind::Bpf(file)) => made(match file.is_file() {
                true => Ok(Examinee::Bpf(format!("scx:{}", file.display()))),
                false => Err(Failure::NotAPolicy(format!("{}: no such file", file.display()))),
            }),
        }
    }

    fn compile(&self, folder: &Path) -> Made {
        if let Err(failure) = self.expect_apart(folder) {
            return Made { examinee: Err(failure), compile: None };
        }
        let kit = self.kit.get_or_init(|| {
            Kit::build(self.arguments.sources.as_deref())
                .map_err(|error| Failure::Missing(error.to_string()))
        });
        let kit = match kit {
            Ok(kit) => kit,
            Err(failure) => return Made { examinee: Err(failure.clone()), compile: None },
        };
        let begin = Instant::now();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let made = kit.compile(&folder, &name, self.terms());
        Made { examinee: made.map(Examinee::Stranger), compile: Some(begin.elapsed()) }
    }

    fn interpret(&self, file: &Path) -> Result<Examinee, Failure> {
        let program = self.arguments.python.clone().unwrap_or_else(|| "python3".into());
        let python = self.python.get_or_init(|| {
            Python::find(&program).map_err(|error| Failure::Missing(error.to_string()))
        });
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let python = python.as_ref().map_err(Clone::clone)?;
        python.prepare(file, &name, self.terms()).map(Examinee::Stranger)
    }

    /// A compiler reads all of a crate's folder, and can put what it reads into the policy.
    fn expect_apart(&self, folder: &Path) -> Result<(), Failure> {
        let whole = folder
            .canonicalize()
            .map_err(|error| Failure::NotAPolicy(format!("{}: {error}", folder.display())))?;
        match self.hidden.iter().find(|file| file.starts_with(&whole)) {
            None => Ok(()),
            Some(file) => Err(Failure::Refused(format!(
                "{} has {}, a file of the suite: a candidate could read it; move one of them",
                folder.display(),
                file.display()
            ))),
        }
    }

    fn terms(&self) -> Terms {
        Terms {
            secret: self.secret,
            memory: self.limits.memory_mib << 20,
            deadline: Instant::now() + Duration::from_secs(self.limits.compile_seconds),
        }
    }
}

/// The policy, the scheduling class or the scheduler in BPF that `text` names.
pub fn named(text: &str) -> Result<Examinee, String> {
    match PolicyName::parse(text)? {
        PolicyName::Ours(policy) => Ok(Examinee::Named(policy)),
        PolicyName::Kernel(class) => Ok(Examinee::Class(class)),
        PolicyName::Bpf(name) => Ok(Examinee::Bpf(name)),
        PolicyName::All | PolicyName::Classic => {
            Err(format!("`{text}` are several policies: give each a line"))
        }
    }
}
