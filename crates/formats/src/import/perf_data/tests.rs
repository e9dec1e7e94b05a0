//! Compares this reader with the crate `linux-perf-data`, which knows the file format and nothing
//! of scheduling.

use super::*;
use crate::import::input::{Content, Input};
use linux_perf_data::linux_perf_event_reader::{Endianness, EventRecord, RecordType};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use std::fs;
use std::path::{Path, PathBuf};

/// A sample: time, CPU, ids and the tracepoint's fields.
type Plain = (u64, u32, Option<(u32, u32)>, Vec<u8>);

/// The samples of scheduling tracepoints from this reader, in order, and the number of other
/// samples.
fn ours(path: &Path) -> (Vec<Plain>, u64) {
    let Content::Pieces(_, source) = Input::open(path, None).unwrap().content else {
        panic!("{} is no perf.data", path.display())
    };
    let layout = Layout::read(source.open(Announced::No).unwrap()).unwrap();
    let file = Header::parse(&layout).unwrap();
    let mut reader = source.open(Announced::No).unwrap();
    reader.seek(SeekFrom::Start(layout.data.offset)).unwrap();
    let mut recorder = Recorder::new(schedsim::trace::Trace::new(Vec::new()));
    let mut reading = Reading {
        others: vec![0; file.events.len()],
        file,
        rounds: Rounds::default(),
        to: To { recorder: &mut recorder, calls: None },
    };
    let mut samples = Vec::new();
    let mut keep = |stamp: Stamp, fields: Bytes<'_>| -> Result<(), (Place, Problem)> {
        let ids = stamp.current.map(|current| (current.tgid, current.pid));
        samples.push((stamp.time, stamp.cpu.0.into(), ids, fields.get().to_vec()));
        Ok(())
    };
    records::read(&mut reader, layout.data, layout.big_endian, |record| match record.kind {
        FINISHED_ROUND => reading.rounds.finish_round(layout.big_endian, &mut keep),
        _ => reading.take(record),
    })
    .unwrap();
    reading.rounds.finish(layout.big_endian, &mut keep).unwrap();
    let others = reading.others.iter().sum();
    (samples, others)
}

/// All samples from the crate.
fn theirs(path: &Path) -> (Vec<Plain>, bool) {
    let mut bytes = fs::read(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "zst") {
        bytes = zstd::decode_all(&bytes[..]).unwrap();
    }
    let PerfFileReader { mut perf_file, mut record_iter } =
        PerfFileReader::parse_file(std::io::Cursor::new(bytes)).unwrap();
    let mut samples = Vec::new();
    let mut big_endian = false;
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let PerfFileRecord::EventRecord { record, .. } = record else { continue };
        if record.record_type != RecordType::SAMPLE {
            continue;
        }
        big_endian = record.parse_info.endian == Endianness::BigEndian;
        let EventRecord::Sample(sample) = record.parse().unwrap() else {
            panic!("a sample is one")
        };
        let ids =
            sample.pid.zip(sample.tid).map(|(pid, tid)| (pid.cast_unsigned(), tid.cast_unsigned()));
        let raw = sample.raw.map(|raw| raw.as_slice().into_owned()).unwrap_or_default();
        samples.push((sample.timestamp.unwrap(), sample.cpu.unwrap(), ids, raw));
    }
    (samples, big_endian)
}

/// Every perf.data in the repository.
fn bundled() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [here.join("tests/data"), here.join("../../workloads")];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains(".perf.data")).collect()
}

fn expect_agreement(path: &Path) {
    let ((ours, others), (theirs, big_endian)) = (ours(path), theirs(path));
    assert!(!ours.is_empty(), "{}", path.display());
    assert_eq!(
        (ours.len() as u64).saturating_add(others),
        theirs.len() as u64,
        "{}",
        path.display()
    );
    // The crate returns equal times in compressed records in any order.
    let sorted = |mut samples: Vec<Plain>| {
        assert!(samples.is_sorted_by_key(|sample| sample.0), "{}", path.display());
        samples.sort();
        samples
    };
    let ids: std::collections::BTreeSet<u64> =
        ours.iter().filter_map(|sample| Bytes::new(&sample.3, big_endian).unsigned(0, 2)).collect();
    let theirs: Vec<Plain> = theirs
        .into_iter()
        .filter(|sample| {
            Bytes::new(&sample.3, big_endian).unsigned(0, 2).is_some_and(|id| ids.contains(&id))
        })
        .collect();
    assert!(sorted(ours) == sorted(theirs), "{}", path.display());
}

#[test]
fn both_readers_agree_on_every_bundled_recording() {
    let files = bundled();
    assert!(files.len() >= 4, "{files:?}");
    files.iter().for_each(|path| expect_agreement(path));
}

/// Not run by default: `SCHEDLAB_PERF_DATA=FILE cargo test -p schedlab-formats --lib perf_data --
/// --ignored`.
#[test]
#[ignore = "needs a recording of your own"]
fn both_readers_agree_on_a_recording_of_your_own() {
    expect_agreement(Path::new(
        &std::env::var_os("SCHEDLAB_PERF_DATA").expect("SCHEDLAB_PERF_DATA names a perf.data"),
    ));
}
