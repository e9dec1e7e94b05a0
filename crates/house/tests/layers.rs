//! The layers of the product, held against its sources, and shown to be held.

use house::House;
use std::fs;
use std::path::Path;

/// What each crate may import, of this product. What is not here may not be.
const MAY_IMPORT: [(&str, &[&str]); 26] = [
    ("bpf", &[]),
    ("recording", &[]),
    ("readyq", &[]),
    ("readyq_c", &["readyq"]),
    ("phases", &[]),
    ("schedlab_runner", &["phases"]),
    ("schedlab_qemu_plugin", &[]),
    ("schedlab_sources", &[]),
    ("house", &[]),
    ("schedsim", &["phases", "readyq"]),
    ("program", &[]),
    ("results", &["phases", "program", "schedsim"]),
    ("statistics", &["results", "schedsim"]),
    // The kit of vectors is used without us.
    ("vectors", &[]),
    ("formats", &["program", "recording", "schedsim"]),
    ("sched_ext", &["bpf", "schedsim"]),
    (
        "worlds",
        &["formats", "program", "recording", "results", "sched_ext", "schedlab_runner", "schedsim"],
    ),
    ("atlas", &["program", "readyq", "results", "schedsim", "statistics"]),
    (
        "laboratory",
        &[
            "formats",
            "program",
            "results",
            "schedlab_runner",
            "schedsim",
            "statistics",
            "vectors",
            "worlds",
        ],
    ),
    ("report", &["atlas", "formats", "laboratory", "program", "results", "schedsim", "statistics"]),
    (
        "verbs",
        &[
            "atlas",
            "formats",
            "laboratory",
            "program",
            "readyq",
            "report",
            "results",
            "schedlab_runner",
            "schedsim",
            "statistics",
            "vectors",
            "worlds",
        ],
    ),
    (
        "papers",
        &[
            "atlas",
            "formats",
            "laboratory",
            "program",
            "results",
            "schedsim",
            "statistics",
            "verbs",
            "worlds",
        ],
    ),
    (
        "schedlab",
        &[
            "laboratory",
            "papers",
            "program",
            "results",
            "schedlab_sources",
            "schedsim",
            "verbs",
            "worlds",
        ],
    ),
    (
        "_native",
        &[
            "formats",
            "laboratory",
            "program",
            "results",
            "schedlab_sources",
            "schedsim",
            "verbs",
            "worlds",
        ],
    ),
    ("schedlab_scx", &["schedsim"]),
    ("schedlab_recorder", &["recording"]),
];

/// Modules that a crate may not know, though it may import the crate that has them.
const MAY_NOT_KNOW: [(&str, &str); 2] =
    [("formats", "crates/schedsim/src/engine"), ("formats", "crates/schedsim/src/seat")];

/// Whether `from` may import `to`, itself or by what another crate hands on.
fn lies_below(from: &str, to: &str) -> bool {
    let listed = MAY_IMPORT.iter().find(|(name, _)| *name == from);
    listed.is_some_and(|(_, below)| below.iter().any(|&below| below == to || lies_below(below, to)))
}

/// What is wrong with the arrows of `house`.
fn faults(house: &House) -> Vec<String> {
    let mut faults: Vec<String> =
        house.circles().iter().map(|circle| format!("a circle: {}", circle.join(", "))).collect();
    for (&(from, to), names) in &house.arrows {
        let (from, to) = (&house.rooms[from], &house.rooms[to]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let arrow = format!("{} imports {} of {}", from.path, names.join(", "), to.path);
        if from.package != to.package && !lies_below(&from.package, &to.package) {
            faults.push(format!("not in the list: {arrow}"));
        }
        if MAY_NOT_KNOW
            .iter()
            .any(|(package, folder)| from.package == *package && to.path.starts_with(folder))
        {
            faults.push(format!("may not know: {arrow}"));
        }
    }
    faults
}

/// The packages that a manifest names and no source file does.
fn unused(house: &House) -> Vec<String> {
    let uses = |from: &str, to: &str| {
        house
            .arrows
            .keys()
            .any(|&(a, b)| house.rooms[a].package == from && house.rooms[b].package == to)
    };
    let unused = |package: &house::Package| {
        let name = package.name.clone();
        // The build script alone needs it, or a feature of it.
        let is_hidden = |need: &str| {
            need == "schedlab_runner"
                || need == "schedlab_sources"
                || need == "readyq" && name == "readyq_c"
        };
        package
            .needs
            .iter()
            .filter(|need| !is_hidden(need) && !uses(&name, need))
            .map(|need| format!("{name} needs {need}"))
            .collect::<Vec<_>>()
    };
    house.packages.iter().flat_map(unused).collect()
}

fn project() -> House {
    House::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn no_import_runs_upwards_and_no_files_import_each_other() {
    let house = project();
    assert_eq!(faults(&house), Vec::<String>::new());
    assert_eq!(unused(&house), Vec::<String>::new());
    let known: Vec<&str> = MAY_IMPORT.iter().map(|(name, _)| *name).collect();
    let new: Vec<&str> = house
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .filter(|name| !known.contains(name))
        .collect();
    assert_eq!(new, Vec::<&str>::new(), "say what it may import");
}

#[test]
fn the_list_itself_runs_one_way() {
    for (place, (name, below)) in MAY_IMPORT.iter().enumerate() {
        let above = |other: &&str| !MAY_IMPORT[..place].iter().any(|(name, _)| name == other);
        assert_eq!(
            below.iter().find(|other| above(other)),
            None,
            "{name} stands above what it may import"
        );
    }
}

/// A project of two crates, `program` and `results`, with these files in `results`.
fn planted(files: &[(&str, &str)]) -> House {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write(
        "crates/program/Cargo.toml",
        "[package]\nname = \"schedlab-program\"\n[lib]\nname = \"program\"\n",
    );
    write("crates/program/src/lib.rs", "mod upward;\n");
    write(
        "crates/results/Cargo.toml",
        "[package]\nname = \"results\"\n[dependencies]\nprogram = \"1\"\n",
    );
    write("crates/results/src/lib.rs", "mod a;\nmod b;\npub use a::A;\n");
    write("crates/program/src/upward.rs", "");
    files.iter().for_each(|(path, text)| write(path, text));
    House::read(dir.path()).expect("a house")
}

const A: (&str, &str) = ("crates/results/src/a.rs", "pub struct A;\n");

#[test]
fn a_planted_circle_and_a_planted_arrow_upwards_are_found() {
    assert_eq!(
        faults(&planted(&[A, ("crates/results/src/b.rs", "use crate::A;\npub type B = A;\n")])),
        Vec::<String>::new()
    );
    let circle = |a: &str| {
        let faults = faults(&planted(&[
            ("crates/results/src/a.rs", a),
            ("crates/results/src/b.rs", "use crate::A;\npub struct B(A);\n"),
        ]));
        assert!(
            faults.len() == 1
                && faults[0] == "a circle: crates/results/src/a.rs, crates/results/src/b.rs",
            "{a}: {faults:?}"
        );
    };
    // By an import, by a path in a signature, through another name, in a macro, in an attribute, in
    // a module inside the file.
    circle("use crate::b::B;\npub struct A;\npub fn b(_: B) {}\n");
    circle("pub struct A;\npub fn b(_: super::b::B) {}\n");
    circle("use crate::b as other;\npub struct A;\npub fn b(_: other::B) {}\n");
    circle("pub struct A;\npub fn b() -> Vec<u8> {\n    vec![crate::b::B::size()]\n}\n");
    circle("#[error(\"{}\", crate::b::B)]\npub struct A;\n");
    circle("pub struct A;\nmod inside {\n    use super::super::b::B;\n    pub type C = B;\n}\n");
    let upward = [
        A,
        ("crates/results/src/b.rs", "pub struct B;\n"),
        ("crates/program/src/upward.rs", "pub fn up(_: results::A) {}\n"),
    ];
    assert_eq!(
        faults(&planted(&upward)),
        ["not in the list: crates/program/src/upward.rs imports A of crates/results/src/a.rs"]
    );
    let upwards =
        [project(), planted(&upward[..2]), planted(&upward)].map(|house| house.upwards().len());
    assert_eq!(upwards, [0, 0, 1]);
}

#[test]
fn tests_are_no_rooms_and_neither_documentation_nor_tests_are_tokens() {
    let with = |text: &str| planted(&[A, ("crates/results/src/b.rs", text)]);
    let plain = with("pub struct B;\n");
    let tested = with(
        "//! A file.\n\n/// A thing.\npub struct B; // a comment\n\n#[cfg(test)]\nmod tests \
             {\n    use crate::A;\n    fn f(_: A) {}\n}\n",
    );
    assert_eq!((plain.tokens(), plain.arrows.len()), (tested.tokens(), tested.arrows.len()));
    assert_ne!(plain.tokens(), with("pub struct B;\npub struct C;\n").tokens());
}
