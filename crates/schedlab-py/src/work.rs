//! Runs long work without the interpreter's lock: it reports progress, and Ctrl-C ends the call at
//! once.

use crate::error::{exception, named};
use program::Error;
use program::progress::Watch;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The interval in which the caller checks for progress and signals.
const LOOK: Duration = Duration::from_millis(50);
const STACK: usize = 16 << 20;

/// Runs `job` on another thread and returns its result. Meanwhile `progress`, if given, is called
/// with the current work, its finished steps and all of its steps.
///
/// If a signal raises an exception, the work is stopped: it ends after its current step, a run or a
/// cell. The call does not wait for it.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let watch = Watch::default();
    let (send, receive) = mpsc::channel();
    let watched = watch.clone();
    let thread = move || drop(send.send(catch_unwind(AssertUnwindSafe(|| watched.over(job)))));
    let started =
        thread::Builder::new().name("schedlab".to_string()).stack_size(STACK).spawn(thread);
    started
        .map_err(|error| named(py, "InternalError", &format!("cannot start a thread: {error}")))?;
    let receive = Mutex::new(receive);
    loop {
        let done =
            py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
        match done {
            Ok(Ok(done)) => return done.map_err(|error| exception(py, &error)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(named(py, "InternalError", "the work panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let told = progress
                    .as_ref()
                    .zip(watch.seen())
                    .map_or(Ok(()), |(progress, seen)| progress.call1(seen).map(drop));
                if let Err(raised) = told.and_then(|()| py.check_signals()) {
                    watch.stop();
                    return Err(raised);
                }
            }
        }
    }
}
