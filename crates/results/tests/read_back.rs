//! In every format, what is written is read back unchanged.

use proptest::prelude::*;
use results::{
    Coordinate, Metric, Point, Row, SubjectKind, Verdict, World, from_csv, from_parquet, to_csv,
    to_parquet,
};

/// Names as tasks and files can have them: with quotes, commas, newlines, semicolons, or empty.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[\"',;=\\r\\n\\t {}\\[\\]|\\\\\u{0}é😀]{0,8}",
        Just(String::new())
    ]
}

fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(name()).prop_map(|text| text.filter(|text| !text.is_empty()))
}

fn number() -> impl Strategy<Value = Option<f64>> {
    proptest::option::of(any::<f64>()).prop_map(|number| number.filter(|number| number.is_finite()))
}

fn world() -> impl Strategy<Value = World> {
    let vm = "[^|]{1,8}".prop_map(|kernel| World::Vm { kernel });
    let one =
        || prop_oneof![Just(World::Sim), Just(World::Host), Just(World::Callgrind), vm.clone()];
    prop_oneof![one(), proptest::collection::vec(one(), 0..3).prop_map(World::all)]
}

fn coordinate() -> impl Strategy<Value = Coordinate> {
    let quantity = (any::<i32>(), "[a-z]{1,3}")
        .prop_map(|(value, unit)| Coordinate::Quantity { value: f64::from(value) / 8.0, unit });
    prop_oneof![
        name().prop_map(Coordinate::from),
        any::<f64>().prop_map(Coordinate::from),
        any::<u64>().prop_map(Coordinate::from),
        quantity
    ]
}

fn point() -> impl Strategy<Value = Point> {
    proptest::collection::vec((name(), coordinate()), 0..4)
        .prop_map(|coordinates| coordinates.into_iter().collect())
}

fn row() -> impl Strategy<Value = Row> {
    let names = (name(), text(), name(), proptest::option::of((0..SubjectKind::ALL.len(), name())));
    let place = (world(), any::<u16>(), point(), 0..Metric::ALL.len());
    let numbers =
        (number(), number(), number(), any::<u32>(), number(), proptest::option::of(any::<u64>()));
    let ends = (proptest::option::of(0..Verdict::OF_CLAIMS.len()), text(), text(), text());
    (names, place, numbers, ends).prop_map(|(names, place, numbers, ends)| Row {
        workload: names.0,
        baseline: names.1,
        candidate: names.2,
        subject_kind: names.3.as_ref().map(|(kind, _)| SubjectKind::ALL[*kind]),
        subject: names.3.map(|(_, subject)| subject),
        cpus: place.1,
        point: place.2,
        value: numbers.0,
        ci_low: numbers.1,
        ci_high: numbers.2,
        runs: numbers.3,
        difference: numbers.2,
        effect: numbers.4,
        seed: numbers.5,
        verdict: ends.0.map(|index| Verdict::OF_CLAIMS[index]),
        reason: ends.1,
        provenance: ends.2,
        note: ends.3,
        ..Row::new(place.0, Metric::ALL[place.3])
    })
}

proptest! {
    #[test]
    fn rows_are_read_as_they_are_written(rows in proptest::collection::vec(row(), 0..6)) {
        let json = serde_json::to_string(&rows).unwrap();
        prop_assert_eq!(serde_json::from_str::<Vec<Row>>(&json).unwrap(), rows.clone());
        prop_assert_eq!(from_csv(&to_csv(&rows).unwrap()).unwrap(), rows.clone());
        let file = to_parquet(&rows, &[("schedlab.version", "1")]).unwrap();
        prop_assert_eq!(from_parquet(file).unwrap(), rows);
    }

    #[test]
    fn damaged_and_foreign_bytes_are_refused(
        bytes in any::<Vec<u8>>(), cut in any::<usize>(), flip in any::<usize>(),
    ) {
        let _ = from_csv(&String::from_utf8_lossy(&bytes));
        prop_assert!(from_parquet(bytes).is_err());
        let mut file = to_parquet(&[Row::new(World::Sim, Metric::grr)], &[]).unwrap();
        let at = flip % file.len();
        file[at] ^= 1 << (cut % 8);
        let _ = from_parquet(file.clone());
        file.truncate(cut % file.len());
        prop_assert!(from_parquet(file).is_err());
    }
}

#[test]
fn values_that_a_file_cannot_distinguish_read_back_the_same_from_each_format() {
    let row = Row {
        value: Some(f64::NAN),
        note: Some(String::new()),
        ..Row::new(World::Sim, Metric::grr)
    };
    let plain = Row::new(World::Sim, Metric::grr);
    assert_eq!(
        from_csv(&to_csv(std::slice::from_ref(&row)).unwrap()).unwrap(),
        vec![plain.clone()]
    );
    assert_eq!(
        from_parquet(to_parquet(std::slice::from_ref(&row), &[]).unwrap()).unwrap(),
        vec![plain.clone()]
    );
    assert_eq!(serde_json::from_str::<Row>(&serde_json::to_string(&row).unwrap()).unwrap(), plain);
}

#[test]
fn a_file_of_another_version_is_refused_by_name() {
    let file = to_csv(&[Row::new(World::Sim, Metric::grr)]).unwrap();
    let refused = |from: &str, to: &str| from_csv(&file.replacen(from, to, 1)).unwrap_err();
    assert!(refused("candidate", "policy").contains(
        "line 1: these are not the columns of results version 2: `policy` is not one of them"
    ));
    assert!(refused(",note", "").contains("some are missing"));
    for (from, to, why) in [
        (",grr,", ",gr,", "line 2: there is no metric `gr`"),
        (",1,", ",ns,", "line 2: the unit of grr is `1`, not `ns`"),
        ("\nSIM", "", ""),
        (",sim,", ",moon,", "line 2: there is no world `moon`"),
        (",{},", ",{,", "line 2: point: "),
        (",0,,,,,,", ",many,,,,,,", "line 2: runs: "),
    ] {
        if file.contains(from) {
            assert!(refused(from, to).contains(why), "{}", refused(from, to));
        }
    }
    let parquet = |version: &str| {
        let written = to_parquet(&[], &[]).unwrap();
        let text: Vec<u8> = written
            .windows(15)
            .position(|part| part == b"schedlab.schema")
            .map_or_else(Vec::new, |at| {
                let mut changed = written.clone();
                changed[at + 17] = version.as_bytes()[0];
                changed
            });
        from_parquet(text).unwrap_err()
    };
    assert!(
        parquet("7").contains("results of version 7; this program reads version 2"),
        "{}",
        parquet("7")
    );
}
