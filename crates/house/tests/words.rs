//! The documents are easy to read, as far as a program can see, and get no harder.

use house::words::{BUDGET, Found, faults, lowered, pages, sentences};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn no_page_has_more_long_sentences_and_avoided_phrases_than_its_budget() {
    let pages = pages(&root()).unwrap_or_else(|why| panic!("{why}"));
    for read in ["README.md", "docs/METHODOLOGY.md", "conformance/README.md", "crates/schedsim/src"]
    {
        assert!(pages.contains_key(read), "{read} is not read");
    }
    let budget = fs::read_to_string(root().join(BUDGET)).expect("a budget");
    let faults = faults(&budget, &pages);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A page `page.md` with this text.
fn page(text: &str) -> BTreeMap<String, Found> {
    [("page.md".to_string(), Found::read("page.md", text))].into()
}

/// A sentence of `count` words.
fn of_words(count: usize) -> String {
    format!("It{}.", " is".repeat(count - 1))
}

#[test]
fn a_planted_long_sentence_is_found_wherever_a_page_can_have_one() {
    let [long, short] = [26, 25].map(of_words);
    for [before, after] in [
        ["", ""],
        ["# Title\n\nShort. ", " Short."],
        ["- An item.\n- ", ""],
        ["1. ", ""],
        ["| a | ", " |"],
        ["> ", ""],
        ["```sh\ncode\n```\n", ""],
        ["<!-- a\nmark -->", "<!-- end -->"],
        ["Of `a.b. C` and ", ""],
    ] {
        let counts = |text: &str| page(&format!("{before}{text}{after}\n"))["page.md"].counts();
        assert_eq!(counts(&long)[0], 1, "{before}…{after}");
        if !before.contains("Of") {
            assert_eq!(counts(&short)[0], 0, "{before}…{after}");
        }
    }
    let lines = long.replacen(' ', "\n", 9);
    assert_eq!(page(&lines)["page.md"].counts(), [1, 0]);
    for unread in
        [format!("```text\n{long}\n```\n"), format!("<!-- {long} -->\n"), format!("`{long}`")]
    {
        assert_eq!(page(&unread)["page.md"].counts(), [0, 0], "{unread}");
    }
}

#[test]
fn sentences_are_taken_apart_as_a_reader_does() {
    let text = "# A title\n\nOne, e.g. CODE, as usual. `Two` has 2.5 ms! Is [three](a.b. C) *one*?\nFour\n\
                goes\non.\n\n- Five\n  more\n- Six\n\n| a | b `c|d` |\n|---|---|\n";
    let found = sentences(text);
    let texts: Vec<&str> = found.iter().map(|sentence| sentence.text.as_str()).collect();
    let expected = [
        "A title",
        "One, e.g. CODE, as usual.",
        "CODE has 2.5 ms!",
        "Is three one?",
        "Four goes on.",
        "Five more",
        "Six",
        "a",
        "b CODE",
    ];
    assert_eq!(texts, expected);
    let lines: Vec<usize> = found.iter().map(|sentence| sentence.line).collect();
    assert_eq!(lines, [1, 3, 3, 3, 4, 8, 10, 12, 12]);
}

#[test]
fn a_planted_phrase_is_found_with_its_line_and_what_to_write() {
    let found = page("Fine.\n\nThe burst goes\non. A [Wake-up](x.md) is `told`.\n");
    assert_eq!(
        found["page.md"].avoided,
        ["page.md:3: `goes on`: write continues", "page.md:4: `wake-up`: write wakeup"]
    );
    for fine in ["It goes only on Sundays.", "`nobody`", "<!-- nobody -->", "[it](nobody.md)"] {
        assert_eq!(page(fine)["page.md"].counts(), [0, 0], "{fine}");
    }
}

#[test]
fn a_page_over_its_budget_is_named_and_so_is_a_budget_that_does_not_fall() {
    let text = format!("{} {} Nobody.", of_words(30), of_words(40));
    let over = |budget: &str| faults(budget, &page(&text));
    assert_eq!(over("# why\npage.md 2 1\n"), Vec::<String>::new());
    let new = over("");
    assert!(new.len() == 2 && new[0].starts_with("page.md has 2 long sentences; 0 are allowed"));
    assert!(new[1].contains("page.md:1: `nobody`"), "{new:?}");
    assert!(over("page.md 1 1")[0].starts_with("page.md has 2 long sentences; 1 are allowed"));
    assert!(over("page.md 3 1")[0].contains("--lower"));
    assert!(over("page.md 2 1\ngone.md 1 0")[0].contains("there is no page gone.md"));
    assert!(over("page.md 2")[0].contains("budget.txt:1: `page.md 2` is no path and two numbers"));
    // It is lowered, and never raised.
    assert_eq!(
        lowered("# why\ngone.md 1 0\npage.md 9 0", &page(&text)).unwrap(),
        "# why\npage.md 2 0\n"
    );
    assert_eq!(lowered("page.md 9 9", &page("Fine.")).unwrap(), "");
}

/// The messages in a text of the product that count CPUs and have `1 CPUs` for one.
fn miscounted(text: &str) -> Vec<&str> {
    let is_wrong = |line: &&str| {
        line.match_indices("} CPUs").any(|(at, _)| {
            let what = line[..at].rsplit('{').next().unwrap_or_default();
            // A constant is more than one, and a list is no count.
            what.is_empty() || what.contains(|letter: char| letter.is_lowercase())
        })
    };
    text.lines().filter(is_wrong).collect()
}

#[test]
fn one_cpu_is_never_written_in_the_plural() {
    for wrong in [r#""on {} CPUs""#, r#""{cpus} CPUs""#, "`${run.cpus} CPUs`"] {
        assert_eq!(miscounted(wrong), [wrong]);
    }
    assert!(miscounted("\"at most {MOST_CPUS} CPUs\" \"{:?} CPUs\" \"the CPUs\"").is_empty());
    let mut wrong = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "recorder", "scx", "python", "tools"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().to_string();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.extend((!["tests", "benches", "target"].contains(&&*name)).then_some(path));
            } else if let Ok(text) = fs::read_to_string(&path) {
                let lines = miscounted(&text);
                wrong.extend(lines.iter().map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "write it with `counted`:\n{}", wrong.join("\n"));
}
