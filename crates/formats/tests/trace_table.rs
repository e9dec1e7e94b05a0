//! Traces in Parquet: damaged files are refused, and do no harm.

use formats::export::{Format, export};
use formats::trace_file::Reader;
use formats::trace_source::TraceSource;
use std::path::Path;

fn table() -> Vec<u8> {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sort.perf.data.zst");
    let source = TraceSource::open(&recording).expect("a recording");
    let file = std::env::temp_dir().join(format!("schedlab-table-{}.parquet", std::process::id()));
    export(&source, Format::Parquet, &file).expect("an export");
    let bytes = std::fs::read(&file).expect("the file");
    std::fs::remove_file(&file).expect("the file");
    bytes
}

/// Reads it to its end; the number of events.
fn read(bytes: &[u8]) -> Result<u64, program::Error> {
    let file =
        std::env::temp_dir().join(format!("schedlab-damaged-{}.parquet", std::process::id()));
    std::fs::write(&file, bytes).expect("a scratch file");
    let mut events = 0;
    let mut reader = Reader::open(&file)?;
    while reader.next_event()?.is_some() {
        events += 1;
    }
    Ok(events)
}

#[test]
fn a_table_that_is_cut_or_changed_is_refused() {
    // The library panics on some damaged pages; that is caught, and need not be printed.
    std::panic::set_hook(Box::new(|_| {}));
    let whole = table();
    let events = read(&whole).expect("our own table");
    assert!(events > 100);
    for length in (0..whole.len()).step_by(whole.len() / 150 + 1) {
        assert!(read(&whole[..length]).is_err(), "cut after {length} bytes");
    }
    let mut harmless = 0;
    let tried = (0..whole.len()).step_by(whole.len() / 400 + 1);
    let count = tried.len();
    for place in tried {
        let mut changed = whole.clone();
        changed[place] ^= 1 << (place % 8);
        // Statistics, and what is said about encodings, may change without harm.
        harmless += usize::from(read(&changed).is_ok_and(|read| read == events));
    }
    assert!(harmless < count / 3, "{harmless} of {count} changed bits were not seen");
    let _ = std::panic::take_hook();
}
