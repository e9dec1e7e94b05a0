//! Measures the speed and the memory of a trace import: `import_speed TRACE [program]`. With
//! `program`, the program of a recording with causes is built, too.

use std::time::Instant;

use formats::import::{Options, read};
use schedsim::trace::{Event, Observer};
use schedsim::workload::{Recorded, ReplayBuilder, ReplayOptions};
use schedsim::{Nanos, Time};

/// Reads every event, so that none is optimised away.
#[derive(Default)]
struct Fold(u64);

impl Observer for Fold {
    fn events(&mut self, chunk: &[Event]) {
        self.0 = chunk
            .iter()
            .fold(self.0, |sum, event| sum.rotate_left(1) ^ event.time.0 ^ u64::from(event.cpu.0));
    }
}

fn main() {
    let path = std::env::args_os().nth(1).unwrap_or_else(|| {
        eprintln!("usage: import_speed TRACE [program]");
        std::process::exit(2)
    });
    let mut fold = Fold::default();
    let program = std::env::args_os().nth(2).is_some_and(|word| word == "program");
    let mut builder = ReplayBuilder::new(ReplayOptions { program, ..ReplayOptions::default() });
    let mut observers: Vec<&mut dyn Observer> = vec![&mut fold];
    if program {
        observers.push(&mut builder);
    }
    let start = Instant::now();
    match read(path.as_ref(), &Options { allow_lost: true, progress: None }, observers) {
        Ok(mut recording) => {
            if program {
                builder.share(std::mem::take(&mut recording.objects));
                let (workload, replay) = builder.finish(Recorded {
                    recorders: &[],
                    tasks: &recording.tasks,
                    cpus: recording.cpus,
                    end: Time(recording.duration.0),
                    switch_cost: Nanos::ZERO,
                });
                let steps: usize =
                    workload.tasks.iter().map(|task| task.script.steps().count()).sum();
                println!(
                    "{steps} steps, {} bytes in memory: {:.2} a step; the file has {} bytes",
                    replay.script_bytes,
                    replay.script_bytes as f64 / steps as f64,
                    std::fs::metadata(&path).map_or(0, |file| file.len()),
                );
            }
            let seconds = start.elapsed().as_secs_f64();
            print!("{}", recording.report);
            println!(
                "tasks: {}, CPUs: {}, duration: {}",
                recording.tasks.len(),
                recording.cpus,
                recording.duration
            );
            let records = recording.report.records as f64;
            println!(
                "{seconds:.3} s, {:.2} M events/s, peak {} KiB, fold {:x}",
                records / seconds / 1e6,
                peak_kib(),
                fold.0
            );
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(3)
        }
    }
}

/// The peak resident set.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
