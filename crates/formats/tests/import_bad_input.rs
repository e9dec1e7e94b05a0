//! Every bad file is refused with its place and the next step. None gives a shorter trace that
//! looks complete.

mod import_support;

use std::path::Path;

use formats::import::{Options, Place, Problem};
use import_support::{
    Temporary, complaint, contents, data, import, import_bytes, import_with, script,
};

const WAKING: &str = "sched_waking: comm=a pid=7 prio=120 target_cpu=000";

fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_missing_file_is_refused() {
    let message = import(Path::new("no/such/trace.txt")).err().unwrap().to_string();
    assert_says(&message, &["no/such/trace.txt: no such file", "perf record"]);
}

#[test]
fn a_directory() {
    let message = import(Path::new(env!("CARGO_TARGET_TMPDIR"))).err().unwrap().to_string();
    assert_says(&message, &["is a directory", "name the recording"]);
}

#[cfg(unix)]
#[test]
fn an_unreadable_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let file = Temporary::new(b"x");
    std::fs::set_permissions(&file.0, std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything; then the file is refused for another reason.
    let error = import(&file.0).err().unwrap();
    assert!(matches!(error.problem, Problem::Permission | Problem::Truncated(_)), "{error}");
}

#[test]
fn an_empty_file_is_refused_compressed_or_not() {
    assert_says(&complaint(b""), &["is empty", "record or copy it again"]);
    assert_says(&complaint(&zstd::stream::encode_all(&b""[..], 1).unwrap()), &["is empty"]);
}

#[test]
fn binary_data_and_other_formats_are_refused() {
    let junk: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_says(
        &complaint(&junk),
        &["binary data", "expected a recording of schedlab, perf.data, trace.dat"],
    );
    assert_says(&complaint(b"\x1f\x8b\x08\x00rest"), &["gzip", "decompress"]);
    assert_says(&complaint(b"\x17\x08\x44tracing6"), &["cut off", "its description ends"]);
    assert_says(
        &complaint(b"just some text\nin lines\n"),
        &[":1: not a line of `perf script`: `just some text`"],
    );
    let mut later = script(&[(0, WAKING)]);
    later.extend_from_slice(b"\x01\x02\x03\xff\xfe\n");
    assert_says(&complaint(&later), &[":2: not a line of `perf script`"]);
    assert_says(
        &complaint(&vec![b'x'; 3 << 20]),
        &[":1: this is a file with longer lines than any trace"],
    );
}

#[test]
fn a_text_without_a_last_newline_is_refused() {
    let text = script(&[(0, WAKING), (0, WAKING)]);
    for cut in [1, 2, 20, 60] {
        let message = complaint(&text[..text.len() - cut]);
        assert_says(
            &message,
            &[":2: the file is cut off: its last line has no end", "copy or record it again"],
        );
    }
}

#[test]
fn a_line_cut_in_the_middle_of_a_file_is_refused() {
    let line = String::from_utf8(script(&[(0, WAKING)])).unwrap();
    let whole = line.trim_end();
    for length in 1..whole.len() - 1 {
        let text = format!("{line}{}\n{line}", &whole[..length]);
        match import_bytes(text.as_bytes()) {
            // Only spaces are left, which is an empty line, or all but zeros of the last number.
            Ok(imported) => {
                let blank = whole[..length].trim().is_empty();
                assert!(blank || length >= whole.len() - 2, "{length}: {}", &whole[..length]);
                assert_eq!(imported.events.len(), if blank { 2 } else { 3 });
            }
            Err(error) => {
                assert_eq!(error.place, Place::Line(2), "{error}");
                assert_says(&error.to_string(), &["perf script"]);
            }
        }
    }
}

#[test]
fn a_missing_column() {
    let fields = "sched:sched_waking: comm=a pid=7 prio=120 target_cpu=000";
    for line in [
        format!("a 7 1.000000: {fields}"),
        format!("a 7 [000] {fields}"),
        "a 7 [000] 1.000000: comm=a pid=7 prio=120".to_owned(),
    ] {
        assert_says(
            &complaint(format!("{line}\n").as_bytes()),
            &[":1: not a line", "each event needs task, CPU, time, event", "-F comm"],
        );
    }
    assert_says(
        &complaint(b"a 7 [000] 1.000000: sched:sched_waking: \n"),
        &[":1: cannot read the fields of sched_waking"],
    );
}

#[test]
fn impossible_fields_are_refused() {
    let refused =
        |fields: &str| complaint(&script(&[(0, WAKING), (0, &format!("sched_waking: {fields}"))]));
    let no_fields = refused("comm=a pid=-7 prio=120 target_cpu=000");
    assert_says(
        &no_fields,
        &[":2: cannot read the fields of sched_waking: `comm=a", "import the perf.data itself"],
    );
    let no_cpu = |cpu: &str| {
        assert_says(
            &refused(&format!("comm=a pid=7 prio=120 target_cpu={cpu}")),
            &[":2: the CPU", cpu, "from 0 to 4095"],
        )
    };
    ["4096", "5000", "9999", "99999", "9999999999999999999"].into_iter().for_each(no_cpu);
    assert_says(
        &refused("comm=a pid=99999999 prio=1 target_cpu=0"),
        &[":2: the pid 99999999 is out of range: give a whole number from 0 to 4194304"],
    );
}

#[test]
fn a_cpu_number_out_of_range_is_refused() {
    assert!(import_bytes(&script(&[(4095, WAKING)])).is_ok());
    for cpu in [4096, 5000, 9999, 65_535] {
        let says = format!(":2: the CPU {cpu} is out of range: give a whole number from 0 to 4095");
        assert_says(&complaint(&script(&[(0, WAKING), (cpu, WAKING)])), &[&says]);
    }
    let header = [&b"# nrcpus online : 5000\n"[..], &script(&[(0, WAKING)])].concat();
    assert_says(
        &complaint(&header),
        &[":1: the number of CPUs 5000 is out of range: give a whole number from 1 to 4096"],
    );
}

#[test]
fn a_file_without_scheduling_events_is_refused() {
    assert_says(&complaint(b"# only a comment\n\n"), &[": no scheduling events; record with"]);
    assert_says(
        &complaint(b"a 7 [000] 1.000000: cycles: x\n"),
        &["no scheduling events, only 1 cycles"],
    );
}

#[test]
fn time_going_backwards() {
    let text = "a 7 [000] 2.000001: sched_waking: comm=a pid=7 prio=120 target_cpu=000\na 7 [001] \
                2.000000: sched_waking: comm=a pid=7 prio=120 target_cpu=000\n";
    assert_says(
        &complaint(text.as_bytes()),
        &[":2: time goes backwards by 1.00us", "`perf script` from one perf.data"],
    );
}

/// Found by fuzzing: a damaged timestamp in a perf.data gave a run of 73 years, too long for a
/// script.
#[test]
fn a_clock_that_jumps_by_decades_is_refused() {
    let text = "a 7 [000] 2.000001: sched_waking: comm=a pid=7 prio=120 target_cpu=000\na 7 [001] \
                2300000000.000000: sched_waking: comm=a pid=7 prio=120 target_cpu=000\n";
    assert_says(&complaint(text.as_bytes()), &[":2: the clock jumps", "a timestamp is damaged"]);
}

#[test]
fn lost_events_are_refused_unless_allowed() {
    let mut text = script(&[(0, WAKING); 99]);
    text.extend_from_slice(b"a 7 [000] 11.000000: PERF_RECORD_LOST lost 1\n");
    let imported = import_bytes(&text).unwrap();
    assert_eq!(imported.recording.report.lost, 1);
    assert!(imported.recording.report.to_string().starts_with("lost events: 1 (1.00 %)\n"));
    text.extend_from_slice(b"a 7 [000] 11.000000: PERF_RECORD_LOST lost 2\n");
    // The total per event counts the same losses again.
    text.extend_from_slice(b"a 7 [000] 11.000000: PERF_RECORD_LOST_SAMPLES lost 3\n");
    assert_says(
        &complaint(&text),
        &["3 events were lost while recording, 2.9 % of all", "-m 16M", "--allow-lost"],
    );
    let file = Temporary::new(&text);
    let imported =
        import_with(&file.0, &Options { allow_lost: true, ..Options::default() }).unwrap();
    assert_eq!(imported.recording.report.lost, 3);
}

#[test]
fn cut_or_damaged_zstd_data_is_refused() {
    for name in ["sort.perf-script.txt.zst", "sort.perf.data.zst"] {
        let whole = std::fs::read(data(name)).unwrap();
        for length in [5, 100, whole.len() / 2, whole.len() - 1] {
            assert_says(
                &complaint(&whole[..length]),
                &["the file is cut off", "copy or record it again"],
            );
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        assert_says(&complaint(&damaged), &["zstd -t"]);
        let mut trailing = whole.clone();
        trailing.extend_from_slice(b"something else");
        assert_says(&complaint(&trailing), &["the zstd data is damaged"]);
    }
}

#[test]
fn perf_data_cut_anywhere_is_refused() {
    let whole = contents("sort.perf.data.zst");
    for length in (8..2000).chain((2000..whole.len()).step_by(1999)) {
        let error =
            import_bytes(&whole[..length]).err().unwrap_or_else(|| panic!("cut to {length} bytes"));
        assert!(matches!(error.problem, Problem::Truncated(_)), "{length}: {error}");
        assert!(matches!(error.place, Place::Byte(_)), "{length}: {error}");
    }
}

#[test]
fn a_trace_of_perfetto_is_cut_at_a_packet_or_refused() {
    for name in ["ls.plain.pftrace.zst", "ls.compact.pftrace.zst"] {
        let whole = contents(name);
        for length in (1..whole.len()).step_by(97).chain([whole.len() - 1]) {
            // A file of whole packets is one: Perfetto writes no end.
            let Err(error) = import_bytes(&whole[..length]) else { continue };
            let message = error.to_string();
            let says =
                ["cut off", "cannot be used", "no scheduling events", "binary data", "this is"];
            assert!(says.iter().any(|why| message.contains(why)), "{name}, {length}: {message}");
        }
    }
}

#[test]
fn a_trace_dat_is_read_completely_or_not_at_all() {
    for name in ["ls.6.trace.dat.zst", "ls.7.trace.dat.zst"] {
        let whole = contents(name);
        let step = if name.contains(".7.") { 20_011 } else { 501 };
        for length in (11..whole.len()).step_by(step).chain([whole.len() - 1]) {
            // Behind the events lie texts that are not needed.
            if let Ok(imported) = import_bytes(&whole[..length]) {
                assert_eq!((imported.events.len(), length > whole.len() - 4096), (217, true));
                continue;
            }
            let message = complaint(&whole[..length]);
            let says = ["cut off", "cannot be used", "no scheduling events", "damaged"];
            assert!(says.iter().any(|why| message.contains(why)), "{name}, {length}: {message}");
        }
    }
    // Events that begin where the page does: a fuzzer found that this was read for ever.
    let mut whole = contents("ls.6.trace.dat.zst");
    let at = memchr::memmem::find(&whole, b"char data;\toffset:16;").expect("the format of a page");
    whole[at + 18..at + 20].copy_from_slice(b"00");
    assert_says(&complaint(&whole), &["its description ends in the middle"]);
    let version = [b"\x17\x08\x44tracing8\0".as_slice(), &[0; 64]].concat();
    assert_says(&complaint(&version), &["version 8", "versions 6 and 7"]);
}

#[test]
fn perf_data_of_a_killed_perf_record_is_refused() {
    let mut bytes = contents("sort.perf.data.zst");
    bytes[48..56].fill(0);
    assert_says(&complaint(&bytes), &["the file is cut off", "perf record was killed"]);
}

#[test]
fn perf_data_written_to_a_pipe_is_refused() {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend_from_slice(&16u64.to_le_bytes());
    bytes.extend_from_slice(&[0; 200]);
    assert_says(&complaint(&bytes), &["pipe", "perf record -o FILE"]);
}

#[test]
fn perf_data_with_lost_events_is_refused() {
    let mut bytes = contents("sort.perf.data.zst");
    let offset = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let end = offset + u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
    // Replaces the first sample by a record of 40 lost events: `u64 id, u64 lost`.
    let mut at = offset;
    while at < end && bytes[at] != 9 {
        at += usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
    }
    bytes[at] = 2;
    bytes[at + 16..at + 24].copy_from_slice(&40u64.to_le_bytes());
    assert_says(&complaint(&bytes), &["40 events were lost while recording, 1.5 % of all"]);
    let file = Temporary::new(&bytes);
    assert_eq!(
        import_with(&file.0, &Options { allow_lost: true, ..Options::default() })
            .unwrap()
            .recording
            .report
            .lost,
        40
    );
}
