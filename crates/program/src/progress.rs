//! Progress of long work, on standard error: a bar on a terminal, else a line every ten seconds. Or
//! to a [`Watch`], which can also stop the work.

use crate::Error;
use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar,
};
use std::cell::RefCell;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a file or a pipe gets a line.
const PERIOD: Duration = Duration::from_secs(10);

/// A progress bar for `total` steps of `what`. Where standard error is not a terminal, a line every
/// ten seconds says how far the work is. On a watched thread the progress is sent to the [`Watch`]
/// instead.
pub fn bar(what: &str, total: u64) -> ProgressBar {
    if let Some(watch) = WATCH.with_borrow(Clone::clone) {
        return watch.begin(what, total);
    }
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target).with_prefix(what.to_string());
    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {percent}% {msg}{left}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("left", |state: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&left(state.elapsed(), state.pos(), state.len().unwrap_or(0)));
        });
    bar.set_style(style.progress_chars("=> "));
    if bar.is_hidden() {
        *lock(&REPORTED) = Some(bar.downgrade());
    } else {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

/// The work that the lines are about: the last that began. The thread that writes them starts with
/// the first work, so that work of less than a period writes none.
static REPORTED: LazyLock<Mutex<Option<WeakProgressBar>>> = LazyLock::new(|| {
    // Without a thread there are no lines, and the work is the same.
    let _ = thread::Builder::new().name("progress".to_string()).spawn(|| {
        loop {
            thread::sleep(PERIOD);
            let bar = lock(&REPORTED).as_ref().and_then(WeakProgressBar::upgrade);
            if let Some(line) = bar.and_then(|bar| line(&bar)) {
                crate::say(&line);
            }
        }
    });
    Mutex::new(None)
});

/// How far the work is, unless it is at its end.
fn line(bar: &ProgressBar) -> Option<String> {
    let total = bar.length().filter(|total| *total > 0 && !bar.is_finished())?;
    let percent = 100 * bar.position().min(total) / total;
    let left = left(bar.elapsed(), bar.position(), total);
    Some(format!("{}: {percent} %{left}", bar.prefix()))
}

/// The time that is left at the pace since the begin, in words; none before a step is done. The
/// last steps alone would be a bad measure: neighbours are often all short or all long.
fn left(elapsed: Duration, done: u64, total: u64) -> String {
    if done == 0 || done >= total {
        return String::new();
    }
    let left = elapsed.mul_f64((total - done) as f64 / done as f64);
    format!(", about {} left", HumanDuration(left))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that one step is done.
///
/// # Errors
/// If the caller stops the work.
pub fn step(bar: &ProgressBar) -> Result<(), Error> {
    bar.inc(1);
    if bar.is_finished() { Err(Error::Stopped) } else { Ok(()) }
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Follows the work of one thread from another, and can stop it after a step.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    bar: Option<ProgressBar>,
    stopped: bool,
}

impl Watch {
    /// Runs `work` on this thread under this watch.
    pub fn over<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = WATCH.replace(Some(self.clone()));
        let done = work();
        WATCH.set(before);
        done
    }

    /// The current work, its finished steps and all of its steps.
    pub fn seen(&self) -> Option<(String, u64, u64)> {
        let watched = self.lock();
        let bar = watched.bar.as_ref()?;
        Some((bar.prefix(), bar.position(), bar.length().unwrap_or(0)))
    }

    /// Stops the work after its current step.
    pub fn stop(&self) {
        let mut watched = self.lock();
        watched.stopped = true;
        watched.bar.iter().for_each(ProgressBar::abandon);
    }

    fn begin(&self, what: &str, total: u64) -> ProgressBar {
        let mut watched = self.lock();
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden())
            .with_prefix(what.to_string());
        if watched.stopped {
            bar.abandon();
        }
        watched.bar = Some(bar.clone());
        bar
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_at_the_pace_since_the_begin() {
        let of = |done| left(Duration::from_secs(30), done, 100);
        assert_eq!([of(25), of(75)], [", about 2 minutes left", ", about 10 seconds left"]);
        assert_eq!([of(0), of(100), of(101)], ["", "", ""]);
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        assert_eq!(line(&bar), None, "how long it is, is not known");
        bar.set_length(4);
        bar.set_prefix("counting");
        bar.inc(1);
        let line = line(&bar).expect("a line");
        assert!(line.starts_with("counting: 25 %, about "), "{line}");
    }

    #[test]
    fn a_watch_sees_the_steps_and_stops_the_work_at_the_next_one() {
        let watch = Watch::default();
        let told = watch.over(|| {
            let bar = bar("counting", 3);
            step(&bar).expect("the work was not stopped");
            let told = watch.seen();
            watch.stop();
            assert!(matches!(step(&bar), Err(Error::Stopped)));
            assert!(
                matches!(step(&super::bar("the next", 1)), Err(Error::Stopped)),
                "work that begins later stops too"
            );
            told
        });
        assert_eq!(told, Some(("counting".to_string(), 1, 3)));
        assert!(step(&bar("elsewhere", 1)).is_ok());
    }
}
