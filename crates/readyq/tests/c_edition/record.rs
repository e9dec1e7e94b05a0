//! The committed record of what the C edition costs, `docs/c-edition.json`, and the page and the
//! table that are made of it.

use crate::target::TARGETS;
use std::fmt::Write;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c-edition.json");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c-edition.md");
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/c/README.md");
pub const COMMAND: &str = "tools/c-edition";
pub const TASKS: [u32; 4] = [1, 10, 100, 1000];
pub const OURS: [&str; 5] = ["rr", "priority", "ruler", "wheel", "rbtree"];
const OPERATIONS: [&str; 4] = ["pop", "insert", "remove", "insert_front"];

/// What was measured, and the number or numbers that it came to. Each is a line of the record.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Names and texts that say what was measured.
    pub of: Vec<(String, String)>,
    /// Names and numbers.
    pub values: Vec<(String, f64)>,
}

impl Cell {
    pub fn new(of: &[(&str, &str)], values: &[(&str, f64)]) -> Cell {
        Cell {
            of: of.iter().map(|&(name, text)| (name.to_string(), text.to_string())).collect(),
            values: values.iter().map(|&(name, number)| (name.to_string(), number)).collect(),
        }
    }

    fn line(&self) -> String {
        let of = self.of.iter().map(|(name, text)| format!("\"{name}\": \"{text}\""));
        let values = self.values.iter().map(|(name, number)| format!("\"{name}\": {number}"));
        format!("{{{}}}", of.chain(values).collect::<Vec<_>>().join(", "))
    }

    /// Reads what [`line`](Cell::line) wrote.
    fn read(line: &str) -> Cell {
        let mut cell = Cell { of: vec![], values: vec![] };
        for field in line.trim_matches(['{', '}']).split(", \"") {
            let (name, value) = field.split_once("\": ").expect("a field is \"name\": value");
            let name = name.trim_start_matches('"').to_string();
            match value.parse() {
                Ok(number) => cell.values.push((name, number)),
                Err(_) => cell.of.push((name, value.trim_matches('"').to_string())),
            }
        }
        cell
    }

    pub fn is(&self, of: &[(&str, &str)]) -> bool {
        of.iter().all(|wanted| self.of.iter().any(|(name, text)| (&name[..], &text[..]) == *wanted))
    }

    pub fn value(&self, name: &str) -> f64 {
        let found = self.values.iter().find(|(other, _)| other == name);
        found.unwrap_or_else(|| panic!("{self:?} has no {name}")).1
    }
}

/// The record.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// The versions of the tools.
    pub tools: Cell,
    pub cells: Vec<Cell>,
}

impl Record {
    pub fn committed() -> Record {
        let text = std::fs::read_to_string(RECORD).unwrap_or_else(|error| {
            panic!("{RECORD}: {error}; {COMMAND} writes it");
        });
        let line = |line: &str| Cell::read(line.trim().trim_end_matches(','));
        let mut lines = text.lines().filter_map(|text| match text.trim_start().chars().next() {
            Some('{') if text.len() > 1 => Some(line(text)),
            _ => None,
        });
        Record { tools: lines.next().expect("the tools come first"), cells: lines.collect() }
    }

    pub fn commit(&self) {
        let cells: Vec<String> = self.cells.iter().map(Cell::line).collect();
        let text = format!(
            "{{\n\"command\": \"{COMMAND}\",\n\"tools\":\n{},\n\"cells\": [\n{}\n]\n}}\n",
            self.tools.line(),
            cells.join(",\n")
        );
        std::fs::write(RECORD, text).unwrap();
        std::fs::write(PAGE, between(PAGE, &self.page())).unwrap();
        std::fs::write(README, between(README, &self.sizes(&["cortex-m4", "x86-64"]))).unwrap();
    }

    /// The documents that are not what the record says.
    pub fn outdated(&self) -> Vec<&'static str> {
        let is = |path: &&str, made: String| {
            std::fs::read_to_string(path).unwrap() != between(path, &made)
        };
        let pages = [(PAGE, self.page()), (README, self.sizes(&["cortex-m4", "x86-64"]))];
        pages
            .into_iter()
            .filter(|(path, made)| is(path, made.clone()))
            .map(|(path, _)| path)
            .collect()
    }

    pub fn find(&self, of: &[(&str, &str)]) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.is(of))
    }

    /// Instructions of a pop and an insert, without the loop.
    pub fn slice(&self, target: &str, queue: &str, levels: &str, tasks: u32) -> Option<f64> {
        let tasks = tasks.to_string();
        let of = [("target", target), ("queue", queue), ("levels", levels), ("tasks", &tasks)];
        self.find(&of).map(|cell| cell.value("instructions"))
    }

    /// The goals that this record misses, in words.
    pub fn missed(&self) -> Vec<String> {
        let mut missed = vec![];
        let mut hold = |what: String, pairs: &[(f64, f64)]| {
            // Counts have a digit behind the point.
            if pairs.iter().any(|(cost, goal)| *cost > goal + 0.05) {
                let list = |values: Vec<f64>| {
                    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(" / ")
                };
                let [costs, goals] = [|pair: &(f64, f64)| pair.0, |pair: &(f64, f64)| pair.1]
                    .map(|side| list(pairs.iter().map(side).collect()));
                missed.push(format!("{what}: {costs}, goal {goals}"));
            }
        };
        for queue in OURS {
            let peer = match queue {
                "rr" => Some("list_head"),
                "priority" | "ruler" => Some("multiq"),
                _ => None,
            };
            for target in &TARGETS {
                let against = |other: &str, name: &str, factor: f64| -> Vec<(f64, f64)> {
                    let pair = |tasks| {
                        Some((
                            self.slice(target.name, queue, "10", tasks)?,
                            factor * self.slice(other, name, "10", tasks)?,
                        ))
                    };
                    TASKS.into_iter().filter_map(pair).collect()
                };
                let what = format!("{queue} on {}", target.name);
                if target.native {
                    hold(format!("{what}, 1.1 × Rust"), &against("x86-64 Rust", queue, 1.1));
                }
                if let Some(peer) = peer {
                    hold(format!("{what}, {peer}"), &against(target.name, peer, 1.0));
                }
            }
        }
        for (queue, code, ram) in
            [("rr", 120.0, 8.0), ("priority", 500.0, 300.0), ("ruler", 500.0, 300.0)]
        {
            if let Some(size) =
                self.find(&[("target", "cortex-m4"), ("queue", queue), ("of", "size")])
            {
                hold(
                    format!("{queue} on cortex-m4, bytes of code"),
                    &[(size.value("code_bytes_small"), code)],
                );
                hold(
                    format!("{queue} on cortex-m4, bytes of RAM"),
                    &[(size.value("queue_bytes"), ram)],
                );
            }
        }
        missed
    }

    fn page(&self) -> String {
        let mut page = String::new();
        let tools = self.tools.of.iter().map(|(name, version)| format!("{name}: {version}"));
        let _ = writeln!(page, "Counted with {}.\n", tools.collect::<Vec<_>>().join("; "));
        let _ = writeln!(page, "## A pop and an insert: mean\n");
        let _ =
            writeln!(page, "Instructions without the loop's own, N = 1 / 10 / 100 / 1000 tasks.\n");
        for (levels, words) in [("10", "10 levels at random"), ("one", "all tasks at one level")] {
            let _ = writeln!(
                page,
                "| {words} | Rust, x86-64 | {} |",
                names(&TARGETS.map(|target| target.name))
            );
            let _ = writeln!(page, "|---|---{}|", "|---".repeat(TARGETS.len()));
            for queue in OURS.iter().chain(&["list_head", "list_head_init", "multiq"]) {
                let column = |target: &str| {
                    let costs = TASKS.map(|tasks| self.slice(target, queue, levels, tasks));
                    costs
                        .map(|cost| cost.map_or("–".to_string(), |cost| format!("{cost:.1}")))
                        .join(" / ")
                };
                let columns = ["x86-64 Rust"].into_iter().chain(TARGETS.map(|target| target.name));
                let columns: Vec<String> = columns.map(column).collect();
                let _ = writeln!(
                    page,
                    "| {queue} | {} |",
                    columns.join(" | ").replace("– / – / – / –", "")
                );
            }
            let _ = writeln!(page);
        }
        page += &self.operations();
        let _ = writeln!(page, "## Memory\n");
        page += &self.sizes(&TARGETS.map(|target| target.name));
        let _ = writeln!(page, "\n## Goals that are missed\n");
        for line in self.missed() {
            let _ = writeln!(page, "- {line}");
        }
        page
    }

    /// The costs of each operation alone.
    fn operations(&self) -> String {
        let mut text = "## Each operation: mean and maximum\n\nInstructions of the inlined operation \
                        between two marks: in a random mix of operations on N tasks at 10 levels the \
                        mean, the 99th percentile and the maximum; and the maximum of all sequences \
                        of six operations on four tasks at two levels.\n"
            .to_string();
        for target in &TARGETS {
            let heading = "| operation | mean, p99, max at N = 10 | at N = 1000 | all sequences |";
            let _ = writeln!(text, "\n| {} {heading}\n|---|---|---|---|---|", target.name);
            for queue in OURS.iter().chain(&["list_head", "multiq"]) {
                for operation in OPERATIONS {
                    let place = [("target", target.name), ("queue", queue)];
                    let mixed = |tasks| {
                        let cell = self.find(&[
                            place[0],
                            place[1],
                            ("operation", operation),
                            ("tasks", tasks),
                        ]);
                        let cell = cell.unwrap_or_else(|| panic!("no {operation} of {queue}"));
                        format!(
                            "{:.1}, {}, {}",
                            cell.value("mean"),
                            cell.value("p99"),
                            cell.value("max")
                        )
                    };
                    let worst = self.find(&[place[0], place[1], ("of", "all sequences")]);
                    let worst =
                        worst.map_or("".to_string(), |cell| cell.value(operation).to_string());
                    let columns = [mixed("10"), mixed("1000"), worst].join(" | ");
                    let _ = writeln!(text, "| {queue} | {operation} | {columns} |");
                }
            }
        }
        text + "\n"
    }

    /// The table of code and RAM.
    fn sizes(&self, targets: &[&str]) -> String {
        let mut table = "| target | queue | code at -Os, -O2 | RAM of a queue | RAM of a task |\n|---|---|---|---|---|\n".to_string();
        for target in targets {
            for queue in OURS {
                let Some(cell) = self.find(&[("target", target), ("queue", queue), ("of", "size")])
                else {
                    continue;
                };
                let _ = writeln!(
                    table,
                    "| {target} | {queue} | {}, {} | {} | {} |",
                    cell.value("code_bytes_small"),
                    cell.value("code_bytes_fast"),
                    cell.value("queue_bytes"),
                    cell.value("task_bytes")
                );
            }
        }
        table
    }
}

fn names(names: &[&str]) -> String {
    names.join(" | ")
}

/// The document at `path` with `made` between its two marks.
fn between(path: &str, made: &str) -> String {
    const MARKS: [&str; 2] = ["<!-- made from docs/c-edition.json -->\n", "<!-- end -->"];
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) =
        text.split_once(MARKS[0]).unwrap_or_else(|| panic!("{path} has no {}", MARKS[0]));
    let (_, after) =
        rest.split_once(MARKS[1]).unwrap_or_else(|| panic!("{path} has no {}", MARKS[1]));
    format!("{before}{}\n{made}\n{}{after}", MARKS[0], MARKS[1])
}
