//! Long work, done without the interpreter's lock: it tells how far it is, and Ctrl-C ends the call at once.

use crate::error::{exception, named};
use pyo3::prelude::*;
use schedlab::Error;
use schedlab::progress::Watch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the caller looks up from waiting.
const LOOK: Duration = Duration::from_millis(50);
const STACK: usize = 16 << 20;

/// Does `job` on a thread of its own and gives what comes of it. Meanwhile `progress`, if it is there, is called with what is being done, how many steps of it are done,
/// and of how many.
///
/// When a signal raises an exception the work is told to stop and ends at its next step, a run or a cell, which nobody waits for.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let watch = Watch::default();
    let (send, receive) = mpsc::channel();
    let watched = watch.clone();
    let thread = move || drop(send.send(catch_unwind(AssertUnwindSafe(|| watched.over(job)))));
    let started = thread::Builder::new().name("schedlab".to_string()).stack_size(STACK).spawn(thread);
    started.map_err(|error| named(py, "InternalError", &format!("cannot start a thread: {error}")))?;
    let receive = Mutex::new(receive);
    loop {
        let done = py.detach(|| receive.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK));
        match done {
            Ok(Ok(done)) => return done.map_err(|error| exception(py, &error)),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(named(py, "InternalError", "the work panicked")),
            Err(RecvTimeoutError::Timeout) => {
                let told = progress.as_ref().zip(watch.seen()).map_or(Ok(()), |(progress, seen)| progress.call1(seen).map(drop));
                if let Err(raised) = told.and_then(|()| py.check_signals()) {
                    watch.stop();
                    return Err(raised);
                }
            }
        }
    }
}
