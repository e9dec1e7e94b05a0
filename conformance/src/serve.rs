//! Makes a [`Subject`] a process that a runner can start.

use crate::format::{Answer, Event};
use crate::lines::line;
use crate::subject::Subject;
use std::io::{BufRead, Error, Write};

/// Answers each event of `input` on `output`, until `input` ends.
///
/// An event that cannot be read, and a broken subject, are answered by an `error`.
pub fn serve(
    subject: &mut dyn Subject,
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<()> {
    let mut text = String::new();
    while line(&mut input, &mut text).map_err(Error::other)? {
        let refused = |why: String| Answer { error: Some(why), ..Answer::default() };
        let answer = match Event::parse(&text) {
            Ok(event) => subject.event(&event).unwrap_or_else(|why| refused(why.0)),
            Err(why) => refused(why),
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}
