//! Counts what is hard to read in the documents: long sentences, and words that have a better one.
//!
//! A page may have as many as `words/budget.txt` allows it, and a page that is not listed none. The
//! budget only falls: a page that has fewer must be listed with fewer.

use crate::source::manifests;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A sentence of more words than this is long.
pub const LONG: usize = 25;

/// Where the budget is, from the root of the project.
pub const BUDGET: &str = "crates/house/words/budget.txt";

/// Phrases to avoid, and what to write instead: a table of strings by phrase.
const AVOIDED: &str = include_str!("../words/avoid.toml");

/// Folders whose pages are read, and single pages.
const READ: [&str; 13] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "conformance",
    "docs",
    "kernel",
    "papers",
    "recorder",
    "rtos",
    "workloads",
];

/// Parts of the paths of pages that a program writes.
const GENERATED: [&str; 10] = [
    "/record.md",
    "/verdicts.md",
    "/posterior.md",
    "docs/c-edition.md",
    "docs/queue-atlas.md",
    "docs/scoreboard.md",
    "docs/scx-atlas.md",
    "docs/studies/",
    "docs/sched-ext-selftests.md",
    "docs/figures/README.md",
];

/// A sentence of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The line on which it begins, from 1 on.
    pub line: usize,
    /// Its words; code counts as one word, `CODE`.
    pub text: String,
}

impl Sentence {
    /// Its number of words: what has a letter or a digit.
    pub fn words(&self) -> usize {
        self.text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    }
}

/// What was found in a page, or in the documentation of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many sentences there are; a heading and a cell of a table count as one.
    pub sentences: usize,
    /// How many words they have.
    pub words: usize,
    /// Sentences of more than [`LONG`] words.
    pub long: Vec<String>,
    /// Phrases that have a better one, with the place and what to write.
    pub avoided: Vec<String>,
}

impl Found {
    /// Reads `markdown`, which is at `path`.
    pub fn read(path: &str, markdown: &str) -> Self {
        let avoided: toml::Table = AVOIDED.parse().expect("words/avoid.toml is a table");
        let mut found = Self::default();
        for sentence in sentences(markdown) {
            let (words, place) = (sentence.words(), format!("{path}:{}", sentence.line));
            found.sentences += 1;
            found.words += words;
            if words > LONG {
                found.long.push(format!("{place}: {words} words: {}", sentence.text));
            }
            let spoken = spoken(&sentence.text);
            for (phrase, write) in &avoided {
                for _ in 0..spoken.matches(&format!(" {phrase} ")).count() {
                    let write = write.as_str().unwrap_or_default();
                    found.avoided.push(format!("{place}: `{phrase}`: write {write}"));
                }
            }
        }
        found
    }

    fn add(&mut self, other: Self) {
        self.sentences += other.sentences;
        self.words += other.words;
        self.long.extend(other.long);
        self.avoided.extend(other.avoided);
    }

    /// How many long sentences and avoided phrases there are.
    pub fn counts(&self) -> [usize; 2] {
        [self.long.len(), self.avoided.len()]
    }
}

/// The words of a sentence in small letters, with a space before and after each.
fn spoken(text: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || "-'_".contains(letter);
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|letter| !kept(letter)).filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" "))
}

/// What the pages of the project at `root`, and the documentation in its packages, have.
///
/// # Errors
/// If a file cannot be read.
pub fn pages(root: &Path) -> Result<BTreeMap<String, Found>, String> {
    let mut files = Vec::new();
    READ.iter().for_each(|name| list(&root.join(name), "md", &mut files));
    let packages: Vec<_> = manifests(root)?.into_iter().map(|(folder, _)| folder).collect();
    for package in &packages {
        files.push(package.join("README.md"));
        list(&package.join("src"), "rs", &mut files);
    }
    files.retain(|file| file.is_file());
    files.sort();
    files.dedup();
    let mut pages = BTreeMap::<String, Found>::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        if GENERATED.iter().any(|part| path.contains(part)) {
            continue;
        }
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let (page, text) = match path.split_once("/src/").filter(|_| path.ends_with(".rs")) {
            Some((package, _)) => (format!("{package}/src"), documentation(&text)),
            None if path == "CHANGELOG.md" => (path.clone(), newest(&text)),
            None => (path.clone(), text),
        };
        pages.entry(page).or_default().add(Found::read(&path, &text));
    }
    Ok(pages)
}

fn list(path: &Path, extension: &str, files: &mut Vec<std::path::PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            list(&entry.path(), extension, files);
        }
    } else if path.extension().is_some_and(|found| found == extension) {
        files.push(path.to_path_buf());
    }
}

/// The comments of a source file that document, each on its line.
fn documentation(source: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        text.unwrap_or_default().to_string()
    };
    source.lines().map(|line| comment(line).trim_start().to_string() + "\n").collect()
}

/// A changelog up to the end of its first version.
fn newest(changelog: &str) -> String {
    let mut versions = 0;
    let first = changelog.lines().take_while(|line| {
        versions += usize::from(line.starts_with("## "));
        versions < 2
    });
    first.map(|line| format!("{line}\n")).collect()
}

/// What is wrong with `pages`, held against `budget`: lines of a path, the number of long sentences
/// and the number of avoided phrases.
pub fn faults(budget: &str, pages: &BTreeMap<String, Found>) -> Vec<String> {
    let allowed = match allowed(budget) {
        Ok(allowed) => allowed,
        Err(why) => return vec![why],
    };
    let gone = allowed.keys().filter(|path| !pages.contains_key(*path));
    let mut faults: Vec<String> =
        gone.map(|path| format!("{BUDGET}: there is no page {path}: take its line out")).collect();
    for (path, found) in pages {
        let may = allowed.get(path).copied().unwrap_or_default();
        let lists = [("long sentences", &found.long), ("avoided phrases", &found.avoided)];
        for ((what, list), may) in lists.into_iter().zip(may) {
            let has = list.len();
            if has > may {
                let list = list.join("\n  ");
                faults.push(format!("{path} has {has} {what}; {may} are allowed:\n  {list}"));
            } else if has < may {
                let lower = "run `cargo run -p schedlab-house -- words --lower`";
                faults.push(format!("{path} has {has} {what}, and {BUDGET} says {may}: {lower}"));
            }
        }
    }
    faults
}

/// The lines of a budget by path.
fn allowed(budget: &str) -> Result<BTreeMap<String, [usize; 2]>, String> {
    let row = |(place, line): (usize, &str)| {
        let parts: Vec<&str> = line.split_whitespace().collect();
        match (parts[..].first(), parts.get(1).map(|n| n.parse()), parts.get(2).map(|n| n.parse()))
        {
            (Some(path), Some(Ok(long)), Some(Ok(avoided))) if parts.len() == 3 => {
                Ok((path.to_string(), [long, avoided]))
            }
            _ => Err(format!("{BUDGET}:{}: `{line}` is no path and two numbers", place + 1)),
        }
    };
    let lines = budget.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines.map(row).collect()
}

/// The budget with the smaller of its numbers and those found; pages with nothing have no line.
///
/// # Errors
/// If the budget cannot be read.
pub fn lowered(budget: &str, pages: &BTreeMap<String, Found>) -> Result<String, String> {
    let allowed = allowed(budget)?;
    let mut lines: String = budget
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    for (path, found) in pages {
        let (has, may) = (found.counts(), allowed.get(path).copied().unwrap_or_default());
        let [long, avoided] = [0, 1].map(|kind| has[kind].min(may[kind]));
        if long + avoided > 0 {
            lines += &format!("{path} {long} {avoided}\n");
        }
    }
    Ok(lines)
}

/// The sentences of a page: paragraphs, headings, items of lists, and cells of tables. Neither code
/// blocks nor comments.
pub fn sentences(markdown: &str) -> Vec<Sentence> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let (mut is_open, mut is_code, mut in_list) = (false, false, false);
    let page = without_comments(markdown);
    for (place, line) in page.lines().enumerate() {
        let text = line.trim_start().trim_start_matches("> ");
        let is_fence = text.starts_with("```") || text.starts_with("~~~");
        let item = after_marker(text);
        if is_fence || is_code || text.is_empty() {
            is_code ^= is_fence;
            is_open = false;
        } else if line.starts_with("    ") && !is_open && !in_list {
            // Code by its indentation.
        } else if text.starts_with('|') {
            let cells = inline(&text.replace("\\|", "/"));
            blocks.extend(cells.split('|').map(|cell| (place + 1, cell.to_string())));
            is_open = false;
        } else if is_open && item.is_none() && !text.starts_with('#') {
            let block = &mut blocks.last_mut().expect("a block is open").1;
            *block += "\n";
            *block += text;
        } else {
            in_list = item.is_some() || in_list && line.starts_with(' ');
            blocks.push((place + 1, item.unwrap_or(text).trim_start_matches('#').to_string()));
            is_open = !text.starts_with('#');
        }
    }
    blocks.iter().flat_map(|(line, block)| split(*line, &inline(block))).collect()
}

/// What follows the marker of an item of a list.
fn after_marker(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = (digits.len() < text.len()).then(|| digits.strip_prefix(". ")).flatten();
    numbered.or_else(|| ["- ", "* ", "+ "].iter().find_map(|marker| text.strip_prefix(marker)))
}

/// The page without comments; lines stay where they are.
fn without_comments(markdown: &str) -> String {
    let mut parts = markdown.split("<!--");
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (comment, after) = part.split_once("-->").unwrap_or((part, ""));
        kept.extend(comment.chars().filter(|letter| *letter == '\n'));
        kept += after;
    }
    kept
}

/// The words that a reader sees: code is `CODE`, a link its text, a picture nothing.
fn inline(text: &str) -> String {
    let mut seen = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[', ']', '!', '*']) {
        seen += &rest[..at];
        let from = &rest[at..];
        let ticks = from.len() - from.trim_start_matches('`').len();
        let end = match from.as_bytes()[0] {
            b'`' => from[ticks..].find(&from[..ticks]).map(|end| {
                seen += "CODE";
                end + 2 * ticks
            }),
            b']' => from.starts_with("](").then(|| from.find(')').map(|end| end + 1)).flatten(),
            b'!' if from.starts_with("![") => from.find(')').map(|end| end + 1),
            b'!' => {
                seen.push('!');
                None
            }
            _ => None,
        };
        let end = end.unwrap_or(1);
        seen.extend(from[..end].chars().filter(|letter| *letter == '\n'));
        rest = &from[end..];
    }
    seen + rest
}

/// The sentences of a block that begins on `line`.
fn split(line: usize, block: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let (mut begin, mut rest) = (0, block);
    while !rest.is_empty() {
        let at = rest.find(['.', '!', '?']).map_or(rest.len(), |at| at + 1);
        let closed = rest[at..].trim_start_matches([')', '"', '\'', '”', '’']);
        let end = block.len() - closed.len();
        let next = closed.trim_start();
        let begins = |letter: char| !letter.is_lowercase() && !"-–—=<>+/·,;:".contains(letter);
        let is_gap = next.len() < closed.len() && next.starts_with(begins);
        let text = &block[begin..end];
        let short = ["e.g.", "i.e.", "vs.", "cf.", "al.", "Fig.", "no.", "p."];
        let last = text.split_whitespace().next_back().unwrap_or_default();
        let is_short = short.contains(&last.trim_start_matches('('));
        if next.is_empty() || is_gap && !is_short {
            let before = text.len() - text.trim_start().len();
            let lines = block[..begin + before].matches('\n').count();
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if text.contains(char::is_alphanumeric) {
                sentences.push(Sentence { line: line + lines, text });
            }
            begin = end;
        }
        rest = closed;
    }
    sentences
}
