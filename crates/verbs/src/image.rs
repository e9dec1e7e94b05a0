//! `schedlab image`: what an image of one's own takes, in instructions and time.

use crate::output::Format;
use clap::Args;
use laboratory::results_directory::ResultsDirectory;
use program::Error;
use results::{Align, Answer, Metric, Results, Row, Table, World, quantity};
use schedsim::Nanos;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use worlds::vm::marks::{Image as Started, Said};

/// Runs an image that is no Linux of schedlab's, and measures what it marks
///
/// The image says by no-operations of nine bytes what begins, ends and happens (docs/marks.md). It
/// runs twice on an emulated CPU whose clock counts instructions, one a nanosecond; both runs must
/// be the same byte for byte.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  (cd marks-kernel && cargo build --offline)\n  schedlab image \
                        marks-kernel/target/x86_64-unknown-none/debug/marks-kernel")]
pub struct Image {
    /// An ELF file with a PVH or Multiboot header, or a Linux bzImage, for x86-64
    #[arg(value_name = "FILE")]
    image: PathBuf,
    /// The longest it may run, on this machine's clock
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    limit: Nanos,
    /// Also write results (JSON, CSV, Parquet) and report.html to this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Image {
    /// Runs the image and prints the result.
    pub fn run(self) -> Result<(), Error> {
        self.format.answer(self.answer()?)
    }

    /// The result.
    fn answer(&self) -> Result<Answer, Error> {
        let directory = self.output.as_deref().map(ResultsDirectory::begin).transpose()?;
        let image = Started::open(&self.image, Duration::from_nanos(self.limit.0), &program::say)?;
        let said = image.run()?;
        let name = self.image.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rows = rows(&name, &image, &said);
        let text = format!(
            "{name}, started twice: the same bytes\nsha256 {}, QEMU {} sha256 {}\n\n{}{}",
            &image.sha256[..12],
            image.qemu.version,
            &image.qemu.sha256[..12],
            table(&rows),
            console(&said)
        );
        let results = Results::new(rows);
        if let Some(directory) = directory {
            directory.write(&results, Vec::new())?;
            crate::output::finish(directory)?;
        }
        Ok(Answer::new(results, text))
    }
}

/// What the image wrote, if anything.
fn console(said: &Said) -> String {
    if said.text.is_empty() { String::new() } else { format!("\nIt wrote:\n{}", said.text) }
}

/// Two rows for each window and each event.
fn rows(name: &str, image: &Started, said: &Said) -> Vec<Row> {
    let world = World::Vm { kernel: name.to_string() };
    let mut seen: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    let mut of = |kind: &'static str, number: u64, values: [(Metric, u64); 2]| {
        let repetition = seen.entry((kind, number)).or_default();
        *repetition += 1;
        let repetition = *repetition;
        values.map(|(metric, value)| {
            let row = Row::new(world.clone(), metric)
                .at(kind, number)
                .at("repetition", repetition)
                .at("image_sha256", image.sha256.as_str())
                .at("qemu", image.qemu.version.as_str())
                .at("qemu_sha256", image.qemu.sha256.as_str())
                .at("instruction_ns", 1u64);
            Row { workload: name.to_string(), cpus: 1, runs: 1, value: Some(value as f64), ..row }
        })
    };
    let mut rows = Vec::new();
    for window in &said.windows {
        let values =
            [(Metric::window_instructions, window.instructions), (Metric::window_ns, window.ns)];
        rows.extend(of("window", window.number, values));
    }
    for event in &said.events {
        let values =
            [(Metric::event_instructions, event.instructions), (Metric::event_ns, event.ns)];
        rows.extend(of("event", event.number, values));
    }
    rows
}

/// A line for each window and each event, of which `rows` has two each.
fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        ("", Align::Left),
        ("number", Align::Right),
        ("instructions", Align::Right),
        ("time", Align::Right),
    ]);
    for pair in rows.chunks(2) {
        let [instructions, ns] = pair else { continue };
        let kind = if instructions.coordinate("window").is_some() { "window" } else { "event" };
        let number = instructions.coordinate(kind).map_or(String::new(), |of| of.to_string());
        let value = |row: &Row| row.value.unwrap_or_default();
        table.row([
            kind.to_string(),
            number,
            format!("{}", value(instructions)),
            quantity(value(ns), ns.unit()),
        ]);
    }
    table
}
