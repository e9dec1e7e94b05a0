//! Proves determinism: boots every guest twice and compares its reports byte for byte.

use super::{Guest, Settled, Transcript, boot};
use program::Error;
use rayon::prelude::*;
use results::counted;
use schedlab_runner::event::Event;
use schedlab_runner::session::Job;

/// The output of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proved {
    /// The first time.
    pub transcript: Transcript,
    /// How often it ran, each time in another boot with the same output.
    pub repeats: u32,
}

/// What each of several guests or sessions gave.
pub type Each<T> = Vec<Result<T, Error>>;

/// A session to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Orders {
    /// The number of its guest.
    pub guest: usize,
    /// What it does.
    pub jobs: Vec<Job>,
    /// By how many instructions the CPUs of the guest are interleaved, if not as the guest says.
    pub interleave: Option<u32>,
    /// Whether it is run in both boots.
    pub is_repeated: bool,
}

impl Orders {
    /// How often it is run.
    pub fn runs(&self) -> usize {
        if self.is_repeated { 2 } else { 1 }
    }
}

/// Boots each guest twice, as many at a time as this machine has cores. `follow` receives each
/// event with the number of its guest.
///
/// # Errors
/// [`Error::Irreproducible`] with the first line that differs, or what [`boot()`] says.
pub fn prove(
    guests: &[Guest],
    follow: &(dyn Fn(usize, &Event) + Sync),
) -> Result<Vec<Proved>, Error> {
    let boots: Vec<usize> = (0..guests.len()).flat_map(|guest| [guest, guest]).collect();
    let boots: Vec<Result<Transcript, Error>> = boots
        .par_iter()
        .with_max_len(1)
        .map(|&guest| boot(&guests[guest], &mut |event| follow(guest, event)))
        .collect();
    let mut boots = boots.into_iter();
    let mut proved = Vec::new();
    for guest in guests {
        let (Some(first), Some(second)) = (boots.next(), boots.next()) else { break };
        let (first, second) = (first?, second?);
        expect_same(guest, &first.lines, &second.lines)?;
        proved.push(Proved { transcript: first, repeats: 2 });
    }
    Ok(proved)
}

/// Boots each guest twice, or once if none of its sessions is repeated. Runs each of `sessions`
/// from the settled state of the first, or of both, as many at a time as this machine has cores.
/// `follow` receives each event with the number of its guest. Also returns the first of both,
/// settled. A guest that fails takes its own sessions with it, not those of others. Each error is
/// [`Error::Irreproducible`] with the first line that differs, or what [`boot()`] says.
pub fn prove_each(
    guests: &[Guest],
    sessions: &[Orders],
    follow: &(dyn Fn(usize, &Event) + Sync),
) -> (Each<Settled>, Each<Proved>) {
    let pairs = guests.par_iter().enumerate().with_max_len(1);
    let pairs = pairs.map(|(number, guest)| {
        let boot = || Settled::boot(guest, &mut |event| follow(number, event));
        if !sessions.iter().any(|orders| orders.guest == number && orders.is_repeated) {
            return Ok(vec![boot()?]);
        }
        let (first, second) = rayon::join(boot, boot);
        let pair = vec![first?, second?];
        expect_same(guest, pair[0].said(), pair[1].said())?;
        Ok(pair)
    });
    let pairs: Vec<Result<Vec<Settled>, Error>> = pairs.collect();
    let runs: Vec<(&Orders, usize)> = sessions
        .iter()
        .flat_map(|orders| (0..orders.runs()).map(move |boot| (orders, boot)))
        .collect();
    let run = |(orders, boot): &(&Orders, usize)| -> Result<Transcript, Error> {
        let pair = pairs[orders.guest].as_ref().map_err(Error::clone)?;
        pair[*boot].run_interleaved(&orders.jobs, orders.interleave, &mut |event| {
            follow(orders.guest, event)
        })
    };
    let runs: Vec<Result<Transcript, Error>> = runs.par_iter().with_max_len(1).map(run).collect();
    let mut runs = runs.into_iter();
    let proved = sessions.iter().map(|orders| {
        let own: Result<Vec<Transcript>, Error> = runs.by_ref().take(orders.runs()).collect();
        let mut own = own?.into_iter();
        let none = || Error::Internal("a session did not run".to_string());
        let transcript = own.next().ok_or_else(none)?;
        for again in own {
            expect_same(&guests[orders.guest], &transcript.lines, &again.lines)?;
        }
        Ok(Proved { transcript, repeats: orders.runs() as u32 })
    });
    let proved = proved.collect();
    let first = |pair: Result<Vec<Settled>, Error>| pair.map(|mut boots| boots.swap_remove(0));
    (pairs.into_iter().map(first).collect(), proved)
}

/// Checks that two boots of `guest` said the same.
///
/// # Errors
/// [`Error::Irreproducible`] with the first line that differs.
pub(crate) fn expect_same(guest: &Guest, first: &[String], second: &[String]) -> Result<(), Error> {
    difference(first, second).map_or(Ok(()), |differs| {
        Err(Error::Irreproducible(format!(
            "kernel {} on {} did not repeat itself: {differs}",
            guest.kernel.name,
            counted(guest.cpus.into(), "CPU")
        )))
    })
}

/// The first difference of two transcripts.
pub(super) fn difference(first: &[String], second: &[String]) -> Option<String> {
    let length = first.len().max(second.len());
    let line = |lines: &[String], at: usize| {
        lines.get(at).cloned().unwrap_or_else(|| "(nothing)".to_string())
    };
    let at = (0..length).find(|&at| first.get(at) != second.get(at))?;
    Some(format!(
        "line {} of its reports is\n    {}\nand then\n    {}",
        at + 1,
        line(first, at),
        line(second, at)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let lines = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(difference(&lines("a b c"), &lines("a b c")), None);
        let differs = difference(&lines("a b c"), &lines("a x c")).unwrap();
        assert!(
            differs.contains("line 2") && differs.contains('b') && differs.contains('x'),
            "{differs}"
        );
        assert!(difference(&lines("a b"), &lines("a")).unwrap().contains("(nothing)"));
    }
}
