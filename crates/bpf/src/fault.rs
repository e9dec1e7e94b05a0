//! What a program did that it may not do.

use crate::lines::Line;
use std::fmt;

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An access through a null pointer.
    Null,
    /// An access that is not within one object.
    Bounds,
    /// An access to what was freed.
    Freed,
    /// A write to what cannot be written.
    ReadOnly,
    /// More instructions than it may run.
    Budget,
    /// Calls that are nested too deep.
    Depth,
    /// An instruction or a function that is not there.
    Missing,
    /// A call with arguments that make no sense.
    Argument,
    /// What the outside says.
    Outside,
}

/// What a program did that it may not do, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault(Box<Inside>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inside {
    kind: FaultKind,
    what: String,
    place: Option<(String, u32)>,
    line: Option<Line>,
}

impl Fault {
    /// A fault of the outside: what the function that was called refuses. The machine adds where.
    #[cold]
    pub fn new(what: impl Into<String>) -> Fault {
        Fault::of(FaultKind::Outside, what)
    }

    /// A fault of a kind.
    #[cold]
    pub fn of(kind: FaultKind, what: impl Into<String>) -> Fault {
        Fault(Box::new(Inside { kind, what: what.into(), place: None, line: None }))
    }

    /// Where it was, unless that is known already.
    #[must_use]
    pub(crate) fn at(mut self, program: &str, instruction: u32, line: Option<Line>) -> Fault {
        if self.0.place.is_none() {
            self.0.place = Some((program.to_string(), instruction));
            self.0.line = line;
        }
        self
    }

    /// Its kind.
    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }

    /// What was done, as a sentence without its subject.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// The program that did it.
    pub fn program(&self) -> Option<&str> {
        self.0.place.as_ref().map(|(program, _)| program.as_str())
    }

    /// The instruction of the program.
    pub fn instruction(&self) -> Option<u32> {
        self.0.place.as_ref().map(|&(_, instruction)| instruction)
    }

    /// The line of source.
    pub fn line(&self) -> Option<&Line> {
        self.0.line.as_ref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inside { what, place, line, .. } = &*self.0;
        match place {
            None => write!(formatter, "{what}")?,
            Some((program, instruction)) => {
                write!(formatter, "`{program}` {what}, at its instruction {instruction}")?;
            }
        }
        if let Some(Line { file, line, text }) = line {
            write!(formatter, " ({file}:{line}: {text})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fault({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for Fault {}
