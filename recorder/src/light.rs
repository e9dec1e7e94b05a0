//! Light runs: the command without the recorder and with it, in pairs, before it is recorded.

use crate::command::Command;
use crate::error::Error;
use crate::log::Log;
use crate::machine::{self, process_time};
use crate::probe::{Probe, Wanted};
use crate::{ENDED, PAUSE};
use recording::{LightRun, Machine, Ratio, Writer};
use std::ffi::OsString;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// What a run took, in nanoseconds.
struct Cost {
    wall: f64,
    cpu: f64,
    own: f64,
}

/// Runs the command twice for each pair: without the recorder and with it, in turn first.
///
/// # Errors
/// If the command cannot be started, or this machine cannot record.
pub fn pairs(count: u32, wanted: Wanted, command: &[OsString]) -> Result<LightRun, Error> {
    let (mut wall, mut cpu, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..count {
        let (light, full) = if number % 2 == 0 {
            let light = run(None, command)?;
            (light, run(Some(wanted), command)?)
        } else {
            let full = run(Some(wanted), command)?;
            (run(None, command)?, full)
        };
        if ENDED.load(Relaxed) {
            return Err(Error::Usage("interrupted before the recording began".into()));
        }
        wall.push(full.wall / light.wall);
        cpu.push(full.cpu / light.cpu);
        own.push(full.own / light.cpu);
    }
    let (wall, cpu, own_cpu) = (Ratio::of(wall), Ratio::of(cpu), Ratio::of(own));
    Ok(LightRun { pairs: count, wall, cpu, own_cpu })
}

/// Runs the command once; recorded if that is wanted, and the events written to nowhere.
fn run(wanted: Option<Wanted>, command: &[OsString]) -> Result<Cost, Error> {
    let mut probe = wanted.map(Probe::load).transpose()?;
    let mut command = Command::hold(command)?;
    if let Some(probe) = &mut probe {
        probe.attach()?;
        machine::threads(command.pid()).try_for_each(|tid| probe.trace(tid))?;
    }
    let buffer = probe.as_ref().map(Probe::buffer).transpose()?;
    let mut log = Log::new(false);
    let nowhere = |error: io::Error| Error::Internal(error.to_string());
    let mut writer = Writer::new(io::sink(), &Machine::default()).map_err(nowhere)?;
    let (own, begin) = (process_time(), machine::now());
    command.release()?;
    while command.ended_within(PAUSE).is_none() && !ENDED.load(Relaxed) {
        if let Some(buffer) = &buffer {
            let until = machine::now();
            buffer.consume(&mut log)?;
            log.write(until, &mut writer).map_err(nowhere)?;
        }
    }
    command.interrupt();
    let wall = (machine::now() - begin) as f64;
    let own = (process_time() - own) as f64;
    // A command that only sleeps takes a few microseconds of CPU time.
    Ok(Cost { wall, cpu: command.cpu_time().max(1) as f64, own })
}
