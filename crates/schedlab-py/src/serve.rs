//! The other end of a judge's channel: a policy in Python answers callbacks.

use crate::policy::{Caller, Instance};
use pyo3::prelude::*;
use schedsim::Machine;
use schedsim::policy::remote;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::{FromRawFd, RawFd};

/// Serves the policy that `make` builds on the file `channel` until that ends; without one, says
/// why there is none.
#[pyfunction]
pub fn serve(
    py: Python<'_>,
    make: Option<&Bound<'_, PyAny>>,
    why: &str,
    channel: RawFd,
) -> PyResult<()> {
    // SAFETY: the sandbox of the judge gives this file to this function alone.
    let channel = unsafe { File::from_raw_fd(channel) };
    let (mut from, mut to) = (BufReader::new(&channel), &channel);
    let caller = match make.map(Caller::new) {
        Some(Ok(caller)) => Ok(caller),
        Some(Err(raised)) => Err(raised.to_string()),
        None => Err(why.to_string()),
    };
    let made = match &caller {
        Ok(caller) => Instance::new(py, caller).map_err(|raised| raised.to_string()),
        Err(why) => Err(why.clone()),
    };
    let ended: io::Result<()> = remote::serve(|_: &Machine| made, &mut from, &mut to);
    Ok(ended?)
}
