//! The committed tables of peers are of the vectors that are here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use vectors::Vector;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// The names of the vectors whose claim satisfies `claims`.
fn names(claims: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let files = vectors::files(&[home().join("vectors")]).expect("vectors");
    let headers = files.iter().map(|file| Vector::read(file).expect("a vector").header);
    headers.filter(|header| claims(&header.claims)).map(|header| header.name).collect()
}

/// The first two columns of a table: vector and verdict. Only later ones are quoted.
fn rows(peer: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(home().join(format!("peers/{peer}.csv"))).expect(peer);
    let cells = |line: &str| {
        let mut cells = line.split(',').map(str::to_string);
        (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
    };
    text.lines().skip(1).map(cells).collect()
}

#[test]
fn the_tables_of_peers_have_each_vector_that_they_claim() {
    for (peer, family) in [
        ("patchworkos", "eevdf"),
        ("skyloft-eevdf", "eevdf"),
        ("skyloft-cfs", "cfs"),
        ("asterinas", "cfs"),
    ] {
        let rows = rows(peer);
        let listed: BTreeSet<String> = rows.iter().map(|(name, _)| name.clone()).collect();
        let claimed = names(|claims| claims == "proportional" || claims.ends_with(family));
        assert_eq!(listed, claimed, "{peer}: run tools/peers --source DIR");
        let known = ["agree", "differ", "refused", "broken"];
        assert!(rows.iter().all(|(_, verdict)| known.contains(&verdict.as_str())), "{peer}");
        assert!(rows.iter().any(|(_, verdict)| verdict == "differ"), "{peer} has findings");
    }
}
