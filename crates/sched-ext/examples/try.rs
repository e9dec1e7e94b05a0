use sched_ext::{Compiled, Loaded};
use schedsim::engine::{Options, simulate};
use schedsim::metrics::Metrics;
use schedsim::trace::{Trace, TraceHash};
use schedsim::{Machine, Time};

fn main() {
    let mut args = std::env::args().skip(1);
    let (object, workload, cpus) =
        (args.next().unwrap(), args.next().unwrap(), args.next().unwrap().parse::<u16>().unwrap());
    let constants: Vec<(String, String)> = args
        .filter_map(|a| a.split_once('=').map(|(a, b)| (a.to_string(), b.to_string())))
        .collect();
    let bytes = std::fs::read(object).unwrap();
    let loaded = match Loaded::read(&bytes, &constants) {
        Ok(l) => l,
        Err(e) => {
            println!("unfit: {e}");
            return;
        }
    };
    let text = std::fs::read_to_string(workload).unwrap();
    let closed = formats::workload::ClosedWorkload::parse("w", &text).unwrap();
    let scripts = closed.scripts();
    let machine = Machine { cpus, ..Machine::ideal(cpus) };
    let mut metrics = Metrics::new(cpus);
    let mut hash = TraceHash::new();
    let begin = std::time::Instant::now();
    let out = simulate(
        &scripts,
        &machine,
        Compiled::new(loaded, cpus),
        Options { seed: 1, until: closed.until() },
        Trace::new(vec![&mut metrics, &mut hash]),
    );
    println!("{out:?} {:x} {:?}", hash.value(), begin.elapsed());
    if let Ok(out) = out {
        let s = metrics.finish(out.end);
        println!("{:?}", s.tasks.iter().take(8).map(|t| t.cpu_time).collect::<Vec<_>>());
    }
    let _ = Time::ZERO;
}
