//! Finds the text of ftrace in a page of Android's systrace, and in what its atrace prints.
//!
//! Newer pages have it in elements `<script class="trace-data" …>`, one for each tool that
//! recorded. Older ones have it in a text of JavaScript, `var linuxPerfData = "\`, whose lines end
//! with `\n\`. A page without its end is cut off.

use std::io::Read;

use super::lines::Lines;
use super::{Form, lines_until};
use crate::import::error::Problem;
use crate::import::recorder::Recorder;

/// What stands before the text.
const STARTS: [&[u8]; 3] = [b"class=\"trace-data\"", b"linuxPerfData = \"", b"id=\"viewer-data\""];

/// Reads the events of a page.
pub(super) fn page(
    lines: &mut Lines<impl Read>,
    recorder: &mut Recorder<'_>,
) -> Result<(), Problem> {
    let mut found = false;
    while let Some(start) = lines.seek(&STARTS)? {
        found = true;
        let form = match start {
            0 if lines.seek(&[b">"])?.is_some() => Form::Element,
            1 => Form::Literal,
            0 => return Err(cut()),
            _ => {
                return Err(Problem::Foreign {
                    what: "a page of trace2html, with its trace packed",
                    instead: "give the trace that it was made of",
                });
            }
        };
        if !lines_until(lines, form, recorder)? {
            return Err(cut());
        }
    }
    if found {
        return Ok(());
    }
    Err(Problem::Foreign {
        what: "an HTML page without the data of systrace",
        instead: "give the page that systrace wrote, or the trace itself",
    })
}

/// Goes to the text that atrace prints behind `TRACE:`.
pub(super) fn behind_trace(lines: &mut Lines<impl Read>) -> Result<(), Problem> {
    lines.seek(&[b"TRACE:"])?;
    Ok(())
}

fn cut() -> Problem {
    Problem::Truncated("the text of ftrace has no end in it".to_owned())
}
