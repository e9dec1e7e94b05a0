//! `schedlab list`: lists policies, workloads and kernels.

mod kernels;
mod policies;

use clap::{Args, ValueEnum};
use formats::workload::{built_in, list_parameters};
use program::{Error, print};
use results::{Align, Table};

/// Lists the available choices.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab list policies\n  \
                  schedlab list policies --format schema\n  \
                  schedlab list workloads\n  schedlab list kernels --refresh")]
pub struct List {
    /// The kind to list
    what: What,
    /// Output format of policies
    #[arg(long, value_enum, default_value_t)]
    format: Form,
    /// Of kernels: read the lists of Debian's mirror again, which takes seconds
    #[arg(long)]
    refresh: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Default, Debug)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// The complete descriptions of the policies.
    Json,
    /// A JSON Schema of the options of each policy.
    Schema,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Debug)]
enum What {
    /// Scheduling policies and their options.
    Policies,
    /// Built-in workloads, kinds of files, and the parameters of stochastic workloads.
    Workloads,
    /// Kernels for `--on vm`: those in the cache, and those that can be fetched.
    Kernels,
}

impl List {
    /// Prints the list.
    pub fn run(self) -> Result<(), Error> {
        if self.refresh && self.what != What::Kernels {
            return Err(Error::Usage(
                "only kernels are listed from a mirror: leave --refresh out".to_string(),
            ));
        }
        match self.what {
            What::Policies => {
                let catalog = worlds::experiment::catalog();
                let document = |value| {
                    serde_json::to_string_pretty(&value)
                        .map_err(|error| Error::Internal(error.to_string()))
                };
                print(&match self.format {
                    Form::Text => policies::text(catalog),
                    Form::Json => document(policies::json(catalog))? + "\n",
                    Form::Schema => document(policies::schema(catalog))? + "\n",
                })
            }
            _ if self.format != Form::Text => Err(Error::Usage(
                "only policies are listed in this format: leave --format out".to_string(),
            )),
            What::Workloads => print(&workloads()),
            What::Kernels => print(&kernels::text(self.refresh)?),
        }
    }
}

fn workloads() -> String {
    let mut named = Table::new([("built in", Align::Left), ("", Align::Left)]);
    for built_in in built_in::ALL {
        let argument = if built_in.argument.is_empty() {
            String::new()
        } else {
            format!(":{}", built_in.argument)
        };
        named.row([format!("{}{argument}", built_in.name), built_in.summary.to_string()]);
        for option in built_in.options {
            let default = if option.default.is_empty() {
                String::new()
            } else {
                format!(" [default: {}]", option.default)
            };
            named.row([format!("  ?{}=", option.name), format!("{}{default}", option.meaning)]);
        }
    }
    let mut files = Table::new([("file", Align::Left), ("", Align::Left)]);
    files.row([
        "NAME.toml",
        "a workload of schedlab, stochastic or closed; docs/workload.schema.json describes it \
         to editors",
    ]);
    files.row(["NAME.json", "a workload of rt-app; see docs/rt-app.md for what is honoured"]);
    files.row(["perf.data", "a recording of perf, plain or compressed with zstd"]);
    files.row(["any other", "the text of `perf script`, plain or compressed with zstd"]);
    let mut parameters = Table::new([("parameter", Align::Left), ("", Align::Left)]);
    list_parameters().into_iter().for_each(|(name, meaning)| parameters.row([name, meaning]));
    format!(
        "A WORKLOAD is a built-in one or a file. Options follow a question mark, as in \
         hackbench:2?loops=50&bytes=1000 (in quotes, for the shell);\nan argument after a colon \
         is the first option.\n\n{named}\n{files}\nParameters of a stochastic workload, for \
         --set KEY=VALUE, for the axes of a sweep and for a workload file.\n\n{parameters}"
    )
}
