//! A trace file with any header and any events: read or refused, and what is read is exported
//! without a panic.

#![no_main]

use formats::export::{Format, export};
use formats::trace_source::TraceSource;
use libfuzzer_sys::fuzz_target;
use schedlab_fuzz::scratch;
use schedsim::trace::{Event, Observer, TraceHash};

fuzz_target!(|bytes: &[u8]| {
    let (header, body) = match bytes.iter().position(|&byte| byte == b'\n') {
        Some(end) => bytes.split_at(end + 1),
        None => (bytes, &[][..]),
    };
    let mut whole = [b"schedlab trace 1\n", header].concat();
    // With the right hash at the end, events are believed.
    let (mut hash, mut count) = (TraceHash::new(), 0u64);
    for record in body.chunks_exact(24) {
        let words = [0, 8, 16].map(|at| {
            record[at..at + 8].iter().rev().fold(0, |word: u64, &byte| word << 8 | u64::from(byte))
        });
        if let Some(event) = Event::from_words(words) {
            hash.events(&[event]);
            count += 1;
        }
        words.iter().for_each(|word| whole.extend_from_slice(&word.to_le_bytes()));
    }
    [u64::MAX, count, hash.value()]
        .iter()
        .for_each(|word| whole.extend_from_slice(&word.to_le_bytes()));
    let Ok(compressed) = zstd::encode_all(&whole[..], 1) else { return };
    let path = scratch("trace-file", &compressed);
    let Ok(source) = TraceSource::open(&path) else { return };
    for format in [Format::Perfetto, Format::Chrome, Format::PerfScript] {
        let _ = export(&source, format, &path.with_extension("exported"));
    }
});
