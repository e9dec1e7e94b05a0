//! One list of versions: a member names a package, the workspace says which version it is. And a
//! feature reaches the program: none switches on a dependency that only tests have.

use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The folders of all packages, and their manifests.
fn manifests() -> Vec<(PathBuf, Table)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifests = house::manifests(&root).unwrap_or_else(|why| panic!("{why}"));
    assert!(manifests.len() > 15, "{manifests:?}");
    manifests
}

#[test]
fn the_versions_of_all_packages_stand_in_the_manifest_of_the_workspace() {
    let mut own = Vec::new();
    for (file, manifest) in manifests() {
        own.extend(with_a_version(&manifest).map(|name| format!("{}: {name}", file.display())));
    }
    assert!(own.is_empty(), "move these versions to the workspace's Cargo.toml: {own:#?}");
}

#[test]
fn a_version_in_a_member_is_found_in_both_forms() {
    let manifest = "[dependencies]\na = \"1\"\nb.workspace = true\n\
                    [dev-dependencies]\nc = { version = \"2\", optional = true }\n\
                    [build-dependencies]\nd = { workspace = true, features = [] }\n\
                    [target.x.dependencies]\ne = \"3\"\n";
    let manifest: Table = manifest.parse().unwrap();
    assert_eq!(with_a_version(&manifest).collect::<Vec<_>>(), ["a", "c", "e"]);
}

#[test]
fn no_feature_is_of_a_dependency_that_only_tests_have() {
    for (file, manifest) in manifests() {
        let lost: Vec<_> = of_tests_only(&manifest).collect();
        assert!(lost.is_empty(), "{}: no build but that of tests has {lost:?}", file.display());
    }
    let planted = "[dependencies]\na.workspace = true\n[dev-dependencies]\nb.workspace = true\n\
                   [features]\ndefault = [\"f\"]\nf = [\"dep:a\", \"a/f\", \"a?/g\", \"b/f\"]\n";
    let planted: Table = planted.parse().unwrap();
    assert_eq!(of_tests_only(&planted).collect::<Vec<_>>(), ["b/f"]);
}

/// What the features switch on in packages that are no dependencies of the program.
fn of_tests_only(manifest: &Table) -> impl Iterator<Item = &str> {
    let table = |name| manifest.get(name).and_then(Value::as_table);
    let features = table("features").into_iter().flat_map(Table::values);
    features.filter_map(Value::as_array).flatten().filter_map(Value::as_str).filter(move |part| {
        part.split_once('/').is_some_and(|(package, _)| {
            table("dependencies").is_none_or(|own| !own.contains_key(package.trim_end_matches('?')))
        })
    })
}

/// The dependencies of a manifest that do not take their version from the workspace.
fn with_a_version(manifest: &Table) -> impl Iterator<Item = String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let lists = [manifest].into_iter().chain(targets).flat_map(move |table| {
        kinds.into_iter().filter_map(|kind| table.get(kind).and_then(Value::as_table))
    });
    lists
        .flatten()
        .filter(|(_, value)| value.get("workspace").is_none())
        .map(|(name, _)| name.clone())
}

/// What is wrong with the list of hashes `locked`, which was made from what is `listed` for a
/// command.
fn unlocked(command: &str, listed: &str, locked: &str) -> Vec<String> {
    let wanted = listed.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.starts_with(&[command, "pip"]).then(|| words[2].to_string())
    });
    let logical = locked.replace("\\\n", " ");
    let lines: Vec<&str> =
        logical.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
    let names = |line: &str| line.split_whitespace().next().unwrap_or_default().to_string();
    let bare = lines.iter().filter(|line| !line.contains("--hash=sha256:")).map(|line| names(line));
    let missing = wanted.filter(|wanted| !lines.iter().any(|line| names(line) == *wanted));
    bare.map(|name| format!("no hash: {name}"))
        .chain(missing.map(|name| format!("not locked: {name}")))
        .collect()
}

#[test]
fn every_package_of_python_is_installed_by_hash() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let read = |name: &str| fs::read_to_string(tools.join(name)).unwrap();
    let (listed, locked) = (read("packages.txt"), read("pip.txt"));
    assert!(locked.matches("--hash=sha256:").count() > 100);
    assert_eq!(unlocked("test", &listed, &locked), Vec::<String>::new());
    assert_eq!(unlocked("release", &listed, &read("pip-release.txt")), Vec::<String>::new());
    assert!(listed.lines().all(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) != Some(&"pip") || ["test", "release"].contains(&words[0])
    }));
    assert!(read("setup").contains("--require-hashes"));
    // And it would be seen.
    let planted = locked.replacen("pytest==", "pytest==0.", 1) + "left-pad==1.0\n";
    let found = unlocked("test", &listed, &planted);
    assert!(found.iter().any(|what| what.starts_with("not locked: pytest")), "{found:?}");
    assert!(found.contains(&"no hash: left-pad==1.0".to_string()), "{found:?}");
}
