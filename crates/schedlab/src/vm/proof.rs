//! Determinism is proved, not hoped for: every guest is booted twice, and what its runner says is compared byte for byte.

use super::{Guest, Transcript, boot};
use crate::Error;
use rayon::prelude::*;
use schedlab_runner::event::Event;

/// What a guest said, twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proved {
    /// The first time; but for the times on this machine's clock the second was the same.
    pub transcript: Transcript,
}

/// Boots each guest twice, as many at a time as this machine has cores. `follow` gets each event with the number of its guest.
///
/// # Errors
/// [`Error::Irreproducible`] with the first line that differs, or what [`boot()`] says.
pub fn prove(guests: &[Guest], follow: &(dyn Fn(usize, &Event) + Sync)) -> Result<Vec<Proved>, Error> {
    let boots: Vec<usize> = (0..guests.len()).flat_map(|guest| [guest, guest]).collect();
    let boots: Vec<Result<Transcript, Error>> =
        boots.par_iter().with_max_len(1).map(|&guest| boot(&guests[guest], &mut |event| follow(guest, event))).collect();
    let mut boots = boots.into_iter();
    let mut proved = Vec::new();
    for guest in guests {
        let (Some(first), Some(second)) = (boots.next(), boots.next()) else { break };
        let (first, second) = (first?, second?);
        if let Some(difference) = difference(&first.lines, &second.lines) {
            return Err(Error::Irreproducible(format!(
                "kernel {} on {} CPUs did not repeat itself: {difference}",
                guest.kernel.name, guest.cpus
            )));
        }
        proved.push(Proved { transcript: first });
    }
    Ok(proved)
}

/// Where two transcripts part.
pub(super) fn difference(first: &[String], second: &[String]) -> Option<String> {
    let length = first.len().max(second.len());
    let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_else(|| "(nothing)".to_string());
    let at = (0..length).find(|&at| first.get(at) != second.get(at))?;
    Some(format!("line {} of its reports is\n    {}\nand then\n    {}", at + 1, line(first, at), line(second, at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let lines = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(difference(&lines("a b c"), &lines("a b c")), None);
        let differs = difference(&lines("a b c"), &lines("a x c")).unwrap();
        assert!(differs.contains("line 2") && differs.contains('b') && differs.contains('x'), "{differs}");
        assert!(difference(&lines("a b"), &lines("a")).unwrap().contains("(nothing)"));
    }
}
