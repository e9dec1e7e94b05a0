//! The committed record of what the C edition costs, `docs/c-edition.json`, and the documents that
//! have tables of it.

use crate::page;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c-edition.json");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/c-edition.md");
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/c/README.md");
pub const COMMAND: &str = "tools/c-edition";
pub const TASKS: [u32; 4] = [1, 10, 100, 1000];
pub const OURS: [&str; 5] = ["rr", "priority", "ruler", "wheel", "rbtree"];

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
        for (path, tables) in self.documents() {
            std::fs::write(path, between(path, &tables)).unwrap();
        }
    }

    /// The documents that are not what the record says.
    pub fn outdated(&self) -> Vec<&'static str> {
        let is_old = |(path, tables): &(&'static str, String)| {
            std::fs::read_to_string(path).unwrap() != between(path, tables)
        };
        self.documents().into_iter().filter(is_old).map(|(path, _)| path).collect()
    }

    fn documents(&self) -> [(&'static str, String); 2] {
        let sizes = page::sizes(self, &["cortex-m4", "rv32imc", "aarch64", "x86-64"]);
        [(PAGE, page::tables(self)), (README, sizes)]
    }

    pub fn find(&self, of: &[(&str, &str)]) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.is(of))
    }

    /// Instructions of a pop and an insert in C or Rust, without the loop.
    pub fn slice(
        &self,
        language: &str,
        target: &str,
        queue: &str,
        levels: &str,
        tasks: u32,
    ) -> Option<f64> {
        let tasks = tasks.to_string();
        let of = [
            ("of", language),
            ("target", target),
            ("queue", queue),
            ("levels", levels),
            ("tasks", &tasks),
        ];
        self.find(&of).map(|cell| cell.value("instructions"))
    }
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
