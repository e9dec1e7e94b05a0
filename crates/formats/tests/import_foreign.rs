//! Known files without a schedule are refused by name, with what to record instead.

mod import_support;

use import_support::{complaint, import};

#[test]
fn summaries_and_tables_are_refused_by_name() {
    let events = "record the events themselves";
    let perf_data = "made of a perf.data: give that file itself";
    let files = [
        (
            "Attaching 5 probes...\nTracing CPU scheduler... Hit Ctrl-C to end.\n^C\n\n@usecs:\n\
             [0]                    1 |                                      |\n\
             [2, 4)                16 |@@@                                   |\n",
            "a histogram of bpftrace",
            events,
        ),
        (
            "Tracing run queue latency... Hit Ctrl-C to end.\n^C\n\
             \x20    usecs               : count     distribution\n\
             \x20        0 -> 1          : 233      |***********                             |\n",
            "a histogram of BCC",
            events,
        ),
        (
            "Tracing run queue latency higher than 10000 us\n\
             TIME     COMM             TID           LAT(us)\n\
             04:16:32 cc1              12924           12739\n",
            "a list of latencies",
            events,
        ),
        (
            "\n -----------------------------------------------------------\n\
             \x20 Task                  |   Runtime ms  |  Count   | Avg delay ms    | Max delay ms    |\n",
            "a table of `perf sched latency`",
            perf_data,
        ),
        (
            "Samples do not have callchains.\n\
             \x20          time    cpu  task name                       wait time  sch delay   run time\n\
             \x20                       [tid/pid]                          (msec)     (msec)     (msec)\n",
            "a table of `perf sched timehist`",
            perf_data,
        ),
        (
            "  *A0           1234.567890 secs A0 => perf:17\n",
            "a map of `perf sched map`",
            perf_data,
        ),
        (
            "     0.000 ( 0.005 ms): ls/1234 openat(dfd: CWD, filename: \"/x\") = 3\n",
            "text of `perf trace`",
            "schedlab record",
        ),
        (
            "     0.000 (         ): ls/1234 nanosleep(rqtp: 0x7f) ...\n   100.1 ( 0.1 ms): ls/1 read()\n",
            "text of `perf trace`",
            "schedlab record",
        ),
        (
            "[12:01:02.123456789] (+?.?????????) host sched_switch: { cpu_id = 0 }, { prev_comm = \"a\" }\n",
            "text of babeltrace",
            "trace-cmd record -e sched",
        ),
        ("/* CTF 1.8 */\n\ntypealias integer\n", "metadata of CTF", "trace-cmd record"),
        (
            "{\n\"Comment\" : \"V2\",\n\"axisLabelX\" : \"Time (sec)\",\n\"tracebase\" : \"2024\",\n\"events\" : [\n",
            "KUtrace's JSON",
            "who ran and not why",
        ),
    ];
    for (text, what, instead) in files {
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for bytes in [text.as_bytes(), &packed] {
            let message = complaint(bytes);
            assert!(message.contains(&format!("this is {what}")), "{what}: {message}");
            assert!(message.contains(instead), "{what}: {message}");
        }
    }
}

/// What `trace-cmd report -R` prints: a state is 64 there, and 128 in a later kernel.
#[test]
fn states_without_a_meaning_are_refused() {
    let text = "version = 6\ncpus=6\n           <...>-1701  [001]    76.211513: sched_switch:  \
                prev_comm=trace-cmd prev_pid=1701 prev_prio=120 prev_state=64 \
                next_comm=swapper/1 next_pid=0 next_prio=120\n";
    let message = complaint(text.as_bytes());
    assert!(message.contains(":3: this is text of `trace-cmd report -R`"), "{message}");
    assert!(message.contains("give the trace.dat itself"), "{message}");
}

#[test]
fn binary_files_of_others_are_refused_by_name() {
    let ctf = [&[0x57, 0x1d, 0xd1, 0x75][..], &[0; 60]].concat();
    assert!(complaint(&ctf).contains("this is metadata of CTF"));
    let stream = [&[0xc1, 0x1f, 0xfc, 0xc1][..], &[0; 60]].concat();
    assert!(complaint(&stream).contains("this is a stream of CTF"));
    // A buffer of 64 KiB, and a header of the log for 64 bits.
    let mut etl = vec![0u8; 0x10000];
    etl[..4].copy_from_slice(&0x10000u32.to_le_bytes());
    etl[72..76].copy_from_slice(&[2, 0, 2, 0xc0]);
    let message = complaint(&etl);
    assert!(message.contains("this is a trace of Windows (ETL)"), "{message}");
    assert!(message.contains("record the load on Linux"), "{message}");
    assert!(complaint(b"PK\x03\x04\x14\0\0\0").contains("zip archive"));
}

#[test]
fn a_directory_of_lttng_is_refused_by_name() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("lttng-session");
    std::fs::create_dir_all(directory.join("kernel")).unwrap();
    std::fs::write(directory.join("kernel/metadata"), b"/* CTF 1.8 */").unwrap();
    for path in [directory.clone(), directory.join("kernel")] {
        let message = import(&path).err().unwrap().to_string();
        assert!(message.contains("this is a trace of LTTng (CTF)"), "{message}");
        assert!(message.contains("trace-cmd record -e sched"), "{message}");
    }
}
