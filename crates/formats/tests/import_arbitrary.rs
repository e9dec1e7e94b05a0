//! No input makes an import panic or allocate without bound.

mod import_support;

use std::sync::LazyLock;

use import_support::{contents, import_bytes};
use proptest::prelude::*;

static TEXT: LazyLock<Vec<u8>> =
    LazyLock::new(|| contents("sort.perf-script.txt.zst")[..20_000].to_vec());
static PERF_DATA: LazyLock<Vec<u8>> = LazyLock::new(|| contents("sort-z.perf.data"));
static TRACE_DAT: LazyLock<Vec<u8>> = LazyLock::new(|| contents("ls.6.trace.dat.zst"));
/// Up to the addresses of functions, which are not read, and from the options behind them on.
static PACKED_TRACE_DAT: LazyLock<Vec<u8>> = LazyLock::new(|| contents("ls.7.trace.dat.zst"));
static PERFETTO: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| ["ls.plain.pftrace.zst", "ls.compact.pftrace.zst"].map(contents));
static PLAIN_PERF_DATA: LazyLock<Vec<u8>> =
    LazyLock::new(|| contents("sort-callchain.perf.data.zst"));

/// Of a phone and of Chrome.
static SMALL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    ["phone.systrace.html", "phone.atrace", "phone.chrome.json", "runs.chrome.json"]
        .map(contents)
        .to_vec()
});

/// A change of a file: bytes overwritten at an offset given as a share of its length.
fn change() -> impl Strategy<Value = (f64, Vec<u8>)> {
    (
        0.0..1.0f64,
        prop_oneof![
            prop::collection::vec(any::<u8>(), 1..9),
            Just(vec![0xff; 8]),
            Just(vec![0; 4])
        ],
    )
}

fn changed(bytes: &[u8], changes: &[(f64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (share, new) in changes {
        let at = (bytes.len() as f64 * share) as usize;
        let end = (at + new.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&new[..end - at]);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(100)
    })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = import_bytes(&bytes);
    }

    #[test]
    fn arbitrary_bytes_behind_a_magic_number(
        bytes in prop::collection::vec(any::<u8>(), 0..600), big_endian: bool,
    ) {
        let magic = if big_endian { b"2ELIFREP" } else { b"PERFILE2" };
        let header_size = if big_endian { 104u64.to_be_bytes() } else { 104u64.to_le_bytes() };
        let _ = import_bytes(&[&magic[..], &header_size, &bytes].concat());
        let _ = import_bytes(&[&b"\x28\xb5\x2f\xfd"[..], &bytes].concat());
    }

    #[test]
    fn arbitrary_text(
        text in "([a-z0-9 :=\\[\\]./\\-\\t+]\
                 |sched_(switch|waking): |comm=|pid=| ==> |\\n){0,300}",
    ) {
        let _ = import_bytes(text.as_bytes());
    }

    #[test]
    fn arbitrary_json(
        text in "(\\{|\\[|\\}|\\]|,|:|\"traceEvents\"|\"systemTraceEvents\"|\"otherData\"|\"writer\"\
                 |\"schedlab |\"|\\\\u?|[0-9a-f.-]|\\n){0,200}",
    ) {
        let _ = import_bytes(format!("{{\"{text}").as_bytes());
        let _ = import_bytes(format!("[{{{text}").as_bytes());
    }

    #[test]
    fn files_of_phones_and_of_chrome_changed(changes in prop::collection::vec(change(), 1..6)) {
        for bytes in &*SMALL {
            let _ = import_bytes(&changed(bytes, &changes));
        }
    }

    #[test]
    fn real_lines_changed(changes in prop::collection::vec(change(), 1..4)) {
        let _ = import_bytes(&changed(&TEXT, &changes));
    }

    #[test]
    fn real_perf_data_changed(changes in prop::collection::vec(change(), 1..6)) {
        let _ = import_bytes(&changed(&PERF_DATA, &changes));
        let _ = import_bytes(&changed(&PLAIN_PERF_DATA, &changes));
    }

    /// Most sizes and offsets are in the header.
    #[test]
    fn real_perf_data_with_a_changed_header(
        changes in prop::collection::vec((0.0..0.05f64, change()), 1..4),
    ) {
        let changes: Vec<_> =
            changes.into_iter().map(|(share, (_, bytes))| (share, bytes)).collect();
        let _ = import_bytes(&changed(&PERF_DATA, &changes));
        let from_the_end: Vec<_> =
            changes.iter().map(|(share, bytes)| (1.0 - share, bytes.clone())).collect();
        let _ = import_bytes(&changed(&PERF_DATA, &from_the_end));
    }

    #[test]
    fn real_traces_of_perfetto_changed(changes in prop::collection::vec(change(), 1..6)) {
        for bytes in &*PERFETTO {
            let _ = import_bytes(&changed(bytes, &changes));
        }
    }

    #[test]
    fn real_trace_dat_changed(changes in prop::collection::vec(change(), 1..6)) {
        let _ = import_bytes(&changed(&TRACE_DAT, &changes));
        // Nine tenths of version 7 are addresses of functions, which are not read.
        let ends: Vec<_> = changes
            .iter()
            .map(|(share, bytes)| {
                let share = if *share < 0.5 { share * 0.004 } else { 0.99 + share * 0.01 };
                (share, bytes.clone())
            })
            .collect();
        let _ = import_bytes(&changed(&PACKED_TRACE_DAT, &ends));
    }
}
