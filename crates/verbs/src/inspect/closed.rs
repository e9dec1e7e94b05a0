//! `schedlab inspect` of a closed workload: its tasks; as JSON the description itself, which is the
//! input of the runner.

use crate::output::Format;
use formats::workload::ClosedWorkload;
use program::{Error, print, print_data};
use results::{Align, Table};
use schedsim::workload::{SchedulingPolicy, Tasks};

/// Prints the content of `workload`.
pub fn inspect(workload: &ClosedWorkload, format: Format) -> Result<(), Error> {
    let scripts = workload.scripts(workload.cpus().max(4096))?;
    match format {
        Format::Json => {
            let json = serde_json::to_string_pretty(workload.description())
                .map_err(|error| Error::Internal(error.to_string()))?;
            print_data(&(json + "\n"))
        }
        Format::Csv => Err(Error::Usage(
            "a closed workload is not a table: use --format json for its description".into(),
        )),
        Format::Text => {
            let columns = [
                ("task", Align::Left),
                ("count", Align::Right),
                ("importance", Align::Left),
                ("CPUs", Align::Left),
                ("CPU time each", Align::Right),
                ("begins", Align::Left),
            ];
            let mut table = Table::new(columns);
            let mut first = 0;
            for tasks in &workload.description().tasks {
                let demand = scripts.tasks[first].script.demand();
                let cpus = tasks.affinity.as_ref().map_or("all".to_string(), |cpus| {
                    cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
                });
                let time = if demand == schedsim::Nanos::MAX {
                    "endless".to_string()
                } else {
                    demand.to_string()
                };
                let begins = if tasks.forked {
                    "when forked".to_string()
                } else {
                    format!("at {}", tasks.start)
                };
                let daemon = if tasks.daemon { ", daemon" } else { "" };
                table.row([
                    tasks.name.clone(),
                    tasks.count.to_string(),
                    importance(tasks),
                    cpus,
                    time,
                    begins + daemon,
                ]);
                first += tasks.count as usize;
            }
            print(&format!("{}\n{table}", workload.headline()))
        }
    }
}

fn importance(tasks: &Tasks) -> String {
    let (nice, priority) = (tasks.nice.unwrap_or(0), tasks.priority.unwrap_or(0));
    match tasks.policy {
        SchedulingPolicy::Other => format!("nice {nice}"),
        SchedulingPolicy::Batch => format!("batch, nice {nice}"),
        SchedulingPolicy::Idle => "idle".to_string(),
        SchedulingPolicy::Fifo => format!("fifo {priority}"),
        SchedulingPolicy::Rr => format!("rr {priority}"),
    }
}
