//! `schedlab list`: what there is.

mod policies;

use crate::output::{Align, Table, print};
use crate::vm::{debian, kernel};
use crate::workload::{built_in, list_parameters};
use crate::{Error, program};
use clap::{Args, ValueEnum};

/// Lists what there is to choose from.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  schedlab list policies\n  schedlab list policies --format schema\n  schedlab list workloads\n  schedlab list kernels"
)]
pub struct List {
    /// Of what
    what: What,
    /// How policies are listed
    #[arg(long, value_enum, default_value_t)]
    format: Form,
}

#[derive(Clone, Copy, PartialEq, ValueEnum, Default, Debug)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// All that policies say of themselves.
    Json,
    /// A JSON Schema of the options of each policy.
    Schema,
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum What {
    /// Scheduling policies and their options.
    Policies,
    /// Built-in workloads, kinds of files, and the parameters of stochastic workloads.
    Workloads,
    /// Kernels for `--on vm`: those in the cache, and those that can be fetched.
    Kernels,
}

impl List {
    pub fn run(self) -> Result<(), Error> {
        match self.what {
            What::Policies => {
                let catalog = program::catalog();
                let document = |value| serde_json::to_string_pretty(&value).map_err(|error| Error::Internal(error.to_string()));
                print(&match self.format {
                    Form::Text => policies::text(catalog),
                    Form::Json => document(policies::json(catalog))? + "\n",
                    Form::Schema => document(policies::schema(catalog))? + "\n",
                })
            }
            _ if self.format != Form::Text => Err(Error::Usage("only policies are listed in this format: leave --format out".to_string())),
            What::Workloads => print(&workloads()),
            What::Kernels => print(&kernels()?),
        }
    }
}

fn workloads() -> String {
    let mut named = Table::new([("built in", Align::Left), ("", Align::Left)]);
    for built_in in built_in::ALL {
        let argument = if built_in.argument.is_empty() { String::new() } else { format!(":{}", built_in.argument) };
        named.row([format!("{}{argument}", built_in.name), built_in.summary.to_string()]);
        for option in built_in.options {
            let default = if option.default.is_empty() { String::new() } else { format!(" [default: {}]", option.default) };
            named.row([format!("  ?{}=", option.name), format!("{}{default}", option.meaning)]);
        }
    }
    let mut files = Table::new([("file", Align::Left), ("", Align::Left)]);
    files.row(["NAME.toml", "a workload of schedlab's, stochastic or closed; docs/workload.schema.json describes it to editors"]);
    files.row(["NAME.json", "a workload of rt-app's; docs/rt-app.md says what is honoured"]);
    files.row(["perf.data", "a recording of perf's, which may be compressed with zstd"]);
    files.row(["any other", "the text of `perf script`, which may be compressed with zstd"]);
    let mut parameters = Table::new([("parameter", Align::Left), ("", Align::Left)]);
    list_parameters().into_iter().for_each(|(name, meaning)| parameters.row([name, meaning]));
    format!(
        "A WORKLOAD is a built-in one or a file. Options follow behind a question mark, as in hackbench:2?loops=50&bytes=1000 (in quotes, for the shell);\n\
         an argument behind a colon is the first of them.\n\n{named}\n{files}\n\
         Parameters of a stochastic workload, for --set KEY=VALUE, for the axes of a sweep and for a workload file.\n\n{parameters}"
    )
}

fn kernels() -> Result<String, Error> {
    let cached = kernel::in_cache()?;
    let mut table = Table::new([("kernel", Align::Left), ("", Align::Left), ("in the cache", Align::Left)]);
    for (series, what) in debian::KNOWN {
        let package = cached.iter().find(|(name, _)| name == series).map_or("-".to_string(), |(_, fetched)| fetched.package.clone());
        table.row([series.to_string(), format!("{what}, from Debian's {}", debian::suite(series)), package]);
    }
    for (name, fetched) in cached.iter().filter(|(name, _)| debian::KNOWN.iter().all(|(series, _)| series != name)) {
        table.row([name.clone(), format!("from Debian's {}", fetched.suite), fetched.package.clone()]);
    }
    Ok(format!(
        "Kernels for --kernel; one that is not in the cache is fetched by apt and installed nowhere. Any other series of the backports can be named,\n\
         and any bzImage by its path. The cache is {}.\n\n{table}",
        kernel::cache()?.display()
    ))
}
