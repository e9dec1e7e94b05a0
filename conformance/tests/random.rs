//! Scenarios by chance: the reference keeps every bound, and its faults do not.

use std::fmt::Write;
use vectors::{Options, Property, Reference, Vector, Version, play};

/// A small generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn among(&mut self, values: &[u64]) -> u64 {
        values[self.below(values.len() as u64) as usize]
    }
}

/// Up to 9 tasks; some sleep, some change their weight.
fn scenario(seed: u64) -> String {
    let mut random = Random(seed);
    let (tick, slice) = (
        random.among(&[100_000, 1_000_000, 4_000_000, 10_000_000]),
        random.among(&[700_000, 3_000_000]),
    );
    let mut text = format!(
        r#"{{"format":1,"name":"random-{seed}","kind":"scenario","claims":"eevdf","properties":["charge","mean","eligible","deadline","pick","conserve","lag-bound"],"source":"seed {seed}","until":300000000,"tick":{tick},"slice":{slice}}}"#
    );
    let (all_equal, all_at_0) = (random.below(3) == 0, random.below(2) == 0);
    let is_calm = random.below(3) == 0;
    for task in 1..=2 + random.below(8) {
        let weights = [15, 110, 335, 820, 1024, 1277, 3121, 9548, 88761];
        let weight = if all_equal { 1024 } else { random.among(&weights) };
        let slice = if random.below(2) == 0 { slice } else { 100_000 + random.below(20_000_000) };
        let begin = if all_at_0 { 0 } else { random.below(50_000_000) };
        let time = |random: &mut Random| 1 + random.below(10_000_000);
        let program = match if is_calm { 0 } else { random.below(4) } {
            0 | 1 => r#"["run",1000000000]"#.to_string(),
            2 => format!(
                r#"["run",{}],["sleep",{}],["run",{}],["sleep",{}]"#,
                time(&mut random),
                time(&mut random),
                time(&mut random),
                time(&mut random)
            ),
            _ => format!(
                r#"["run",{}],["weight",{}],["run",{}],["weight",{weight}]"#,
                time(&mut random),
                random.among(&weights),
                time(&mut random)
            ),
        };
        let _ = write!(
            text,
            "\n{{\"at\":0,\"op\":\"task\",\"task\":{task},\"weight\":{weight},\"slice\":{slice},\"begin\":{begin},\"program\":[{program}]}}"
        );
    }
    text
}

#[test]
fn the_reference_keeps_every_bound_whatever_its_switches() {
    let (mut compared, mut of_lags, mut late, mut out_of_turn) = (0, 0, 0, 0);
    for seed in 0..240 {
        let text = scenario(seed);
        let vector = Vector::parse("random", text.as_bytes()).unwrap();
        let version = match seed % 4 {
            0 => Version::Linux6_12,
            1 => Version::Linux7_3,
            _ => Version::Linux6_18,
        };
        let options = Options {
            version,
            delay_dequeue: seed % 3 > 0,
            run_to_parity: seed % 5 > 0,
            fault: None,
        };
        let mut outcome = play(&vector, &mut Reference::new(options));
        if version == Version::Linux6_12 && text.contains("[\"weight\"") {
            // Linux 6.12 keeps the rest of a request in virtual time when the weight changes, so the
            // deadline of a light task that becomes heavy may be many requests away.
            let at = outcome.difference().map(|found| found.property);
            assert!([None, Some(Property::Deadline), Some(Property::LagBound)].contains(&at));
            late += u32::from(at.is_some());
            continue;
        }
        if version == Version::Linux7_3 {
            // In Linux 7.3 who preempts with a shorter request runs next, and another may be due
            // before. Without this claim it keeps all others.
            let at = outcome.difference().map(|found| found.property);
            out_of_turn += u32::from(at == Some(Property::Pick));
            let claims = text.replace(",\"pick\"", "");
            let vector = Vector::parse("random", claims.as_bytes()).unwrap();
            outcome = play(&vector, &mut Reference::new(options));
        }
        assert!(outcome.agrees(), "{options:?}: {:#?}\n{text}", outcome.verdict);
        compared += outcome.compared.iter().sum::<u64>();
        of_lags += outcome.compared[Property::LagBound as usize];
    }
    assert!(compared > 500_000 && of_lags > 100_000, "{compared}, {of_lags}");
    assert!(late > 0, "Linux 6.12 is not told from EEVDF");
    assert!(out_of_turn > 0, "Linux 7.3 is not told from EEVDF");
}

#[test]
fn faults_are_found_by_chance_too() {
    for fault in [
        Property::Charge,
        Property::Mean,
        Property::Eligible,
        Property::Deadline,
        Property::Pick,
        Property::Conserve,
        Property::LagBound,
        Property::Tick,
        Property::Weight,
        Property::Share,
    ] {
        let found = (0..40).filter(|&seed| {
            let vector = Vector::parse("random", scenario(seed).as_bytes()).unwrap();
            let options = Options { fault: Some(fault), ..Options::default() };
            play(&vector, &mut Reference::new(options)).difference().is_some()
        });
        let found = found.count();
        println!("{}: {found} of 40", fault.name());
        assert!(found > 0, "{}", fault.fault());
    }
}
