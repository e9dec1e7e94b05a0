//! Checks the committed counts; `tools/test` counts them again.

use super::*;

const COMMITTED: &str = include_str!("../../../../../docs/coverage.csv");
const PICTURE: &str = include_str!("../../../../../docs/images/coverage.svg");

#[test]
fn the_committed_counts_pass_include_the_quick_workloads_and_match_the_picture() {
    let committed = from_csv(COMMITTED).expect("lines");
    expect(&committed).expect("95 % intervals are");
    assert!(committed.iter().all(|line| line.intervals >= QUICK));
    for name in QUICK_LAWS {
        assert!(
            laws().iter().any(|law| law.name == name),
            "{name} is not a workload with known means"
        );
        assert!(
            committed.iter().any(|line| line.workload == name),
            "{name} is not in docs/coverage.csv"
        );
    }
    assert_eq!(
        PICTURE,
        picture(&committed),
        "docs/images/coverage.svg is not of docs/coverage.csv"
    );
}

#[test]
fn a_table_with_a_biased_mean_fails() {
    let mut lines = from_csv(COMMITTED).expect("lines");
    lines[0].held = lines[0].intervals / 2;
    assert_eq!(expect(&lines).expect_err("it is biased").exit_code(), 4);
}
