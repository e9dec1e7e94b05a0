//! Numbers that a command prints itself, as benchmarks do: what `--metric` names.
//!
//! A reading is a name, where the number stands (a JSON pointer or a regular expression), its unit
//! and its better direction. Some benchmarks are known by name.

use crate::Program;
use regex_lite::Regex;
use results::{Metric, Printed, Row, World as Name, counted};
use serde_json::Value;

/// One number that a command prints.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its metric.
    pub metric: &'static Printed,
    place: Place,
}

/// All readings of one `--metric`.
#[derive(Clone, Debug)]
pub struct Readers(pub Vec<Reader>);

/// What a command wrote.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// To its standard output.
    pub stdout: &'a [u8],
    /// To its standard error.
    pub stderr: &'a [u8],
}

/// Where a number stands.
#[derive(Clone, Debug)]
enum Place {
    /// In a JSON document on the standard output, by its pointer (RFC 6901).
    Json(String),
    /// In the first group of a regular expression, in either output.
    Matches(Regex, Several),
}

/// What counts of several matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Several {
    Last,
    Largest,
    Mean,
}

/// A benchmark whose output is known: its readings as name, place, unit and direction.
struct Known {
    name: &'static str,
    readings: &'static [(&'static str, &'static str, Several, &'static str, &'static str)],
}

/// All of them, with the versions whose output is tested.
const KNOWN: [Known; 6] = [
    // perf 6.1.
    Known {
        name: "perf-bench",
        readings: &[(
            "total",
            r"regex:Total time: *([0-9.]+) \[sec\]",
            Several::Last,
            "s",
            "lower",
        )],
    },
    // rt-tests 2.4 and hackbench as in LTP.
    Known {
        name: "hackbench",
        readings: &[("time", r"regex:(?m)^Time: *([0-9.]+)", Several::Last, "s", "lower")],
    },
    // rt-tests 2.4, with -q: the worst thread, and the mean of all threads' means.
    Known {
        name: "cyclictest",
        readings: &[
            ("latency_max", r"regex:(?m)^T: .*Max: *([0-9]+)", Several::Largest, "us", "lower"),
            ("latency_mean", r"regex:(?m)^T: .*Avg: *([0-9]+)", Several::Mean, "us", "lower"),
        ],
    },
    // schbench 1.0: the last report.
    Known {
        name: "schbench",
        readings: &[
            (
                "wakeup_p50",
                r"regex:Wakeup Latencies[^\n]*\n[^W]*?50\.0th: *([0-9]+)",
                Several::Last,
                "us",
                "lower",
            ),
            (
                "wakeup_p99",
                r"regex:Wakeup Latencies[^\n]*\n[^W]*?99\.0th: *([0-9]+)",
                Several::Last,
                "us",
                "lower",
            ),
            (
                "request_p99",
                r"regex:Request Latencies[^\n]*\n[^W]*?99\.0th: *([0-9]+)",
                Several::Last,
                "us",
                "lower",
            ),
            ("rps", r"regex:average rps: *([0-9.]+)", Several::Last, "1/s", "higher"),
        ],
    },
    // redis-benchmark 7.0, one test (-t), without -q.
    Known {
        name: "redis-benchmark",
        readings: &[
            ("rps", r"regex:throughput summary: *([0-9.]+)", Several::Last, "1/s", "higher"),
            (
                "p50",
                r"regex:latency summary \(msec\):[^\n]*\n[^\n]*\n +[0-9.]+ +[0-9.]+ +([0-9.]+)",
                Several::Last,
                "ms",
                "lower",
            ),
            (
                "p99",
                r"regex:latency summary \(msec\):[^\n]*\n[^\n]*\n(?: +[0-9.]+){4} +([0-9.]+)",
                Several::Last,
                "ms",
                "lower",
            ),
        ],
    },
    // fio 3.33 with --output-format=json and one job or --group_reporting.
    Known {
        name: "fio",
        readings: &[
            ("read_iops", "json:/jobs/0/read/iops", Several::Last, "1/s", "higher"),
            ("write_iops", "json:/jobs/0/write/iops", Several::Last, "1/s", "higher"),
            (
                "read_p99",
                "json:/jobs/0/read/clat_ns/percentile/99.000000",
                Several::Last,
                "ns",
                "lower",
            ),
            (
                "write_p99",
                "json:/jobs/0/write/clat_ns/percentile/99.000000",
                Several::Last,
                "ns",
                "lower",
            ),
        ],
    },
];

impl Readers {
    /// What `text` names: `NAME=json:/POINTER,UNIT,DIRECTION`, `NAME=regex:PATTERN,UNIT,DIRECTION`,
    /// or a benchmark whose output is known.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Readers, String> {
        let Some((name, rest)) = text.split_once('=') else {
            let known = KNOWN.iter().find(|known| known.name == text).ok_or_else(|| {
                let names = KNOWN.map(|known| known.name).join(", ");
                format!(
                    "`{text}` is no benchmark whose output is known: give {names}, or say where a \
                     number stands, as in 'p99=json:/latency/p99,us,lower' or \
                     'time=regex:Time: ([0-9.]+),s,lower'"
                )
            })?;
            return known.readings().map(Readers);
        };
        // A pattern may have commas; the last two are ours.
        let mut parts = rest.rsplitn(3, ',');
        let (Some(direction), Some(unit), Some(place)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("`{text}` has no unit or no direction: end it as in ',us,lower'"));
        };
        Reader::new(name, place, Several::Last, unit, direction).map(|one| Readers(vec![one]))
    }
}

impl Known {
    fn readings(&self) -> Result<Vec<Reader>, String> {
        let of = |&(name, place, several, unit, direction): &(&str, &str, Several, &str, &str)| {
            Reader::new(name, place, several, unit, direction)
        };
        self.readings.iter().map(of).collect()
    }
}

impl Place {
    /// `json:/POINTER` or `regex:PATTERN`.
    fn parse(text: &str, several: Several) -> Result<Place, String> {
        match text.split_once(':') {
            Some(("json", pointer)) if pointer.starts_with('/') => {
                Ok(Place::Json(pointer.to_string()))
            }
            Some(("json", pointer)) => Err(format!(
                "`{pointer}` is no JSON pointer: it begins with a slash, as in /latency/p99"
            )),
            Some(("regex", pattern)) => Place::matches(pattern, several),
            _ => Err(format!(
                "`{text}` does not say where the number stands: give json:/POINTER or \
                 regex:PATTERN"
            )),
        }
    }

    fn matches(pattern: &str, several: Several) -> Result<Place, String> {
        let regex =
            Regex::new(pattern).map_err(|error| format!("`{pattern}` is no pattern: {error}"))?;
        match regex.captures_len() {
            2.. => Ok(Place::Matches(regex, several)),
            _ => Err(format!(
                "`{pattern}` has no group: put the number in parentheses, as in ([0-9.]+)"
            )),
        }
    }
}

impl Reader {
    fn new(
        name: &str,
        place: &str,
        several: Several,
        unit: &str,
        direction: &str,
    ) -> Result<Reader, String> {
        let place = Place::parse(place, several)?;
        Ok(Reader { metric: Printed::new(name, unit, direction)?, place })
    }

    /// Those of `all` that `program` prints: a command does, and no other.
    pub fn of<'a>(all: &'a [Reader], program: &Program) -> &'a [Reader] {
        if program.command().is_some() { all } else { &[] }
    }

    /// The number.
    ///
    /// # Errors
    /// Why there is none.
    pub fn read(&self, written: Written<'_>) -> Result<f64, String> {
        match &self.place {
            Place::Json(pointer) => in_json(written.stdout, pointer),
            Place::Matches(regex, several) => in_text(written, regex, *several),
        }
    }

    /// The number as a row.
    pub fn row(&self, world: Name, written: Written<'_>) -> Row {
        let read = self.read(written);
        Row {
            note: read.as_ref().err().cloned(),
            value: read.ok(),
            ..Row::new(world, self.metric())
        }
    }

    /// Its metric.
    pub fn metric(&self) -> Metric {
        Metric::printed(self.metric)
    }

    /// What a world knows of it.
    pub fn measure(&self) -> crate::Measure {
        crate::Measure {
            metric: self.metric(),
            direction: self.metric.direction(),
            title: Some(self.metric.name()),
            missing: Some("the command did not print it"),
        }
    }
}

/// The number in the document, or in the last line that is one.
fn in_json(stdout: &[u8], pointer: &str) -> Result<f64, String> {
    let is_document = |value: &Value| value.is_object() || value.is_array();
    let of = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok().filter(is_document);
    let document = of(stdout)
        .or_else(|| stdout.rsplit(|byte| *byte == b'\n').find_map(of))
        .ok_or("the command's output has no JSON document")?;
    let value = document
        .pointer(pointer)
        .ok_or_else(|| format!("the JSON that the command printed has no {pointer}"))?;
    let number = value.as_f64().or_else(|| value.as_str().and_then(number));
    number.ok_or_else(|| format!("{pointer} in the JSON that the command printed is no number"))
}

/// The number in the group of the matches.
fn in_text(written: Written<'_>, regex: &Regex, several: Several) -> Result<f64, String> {
    let text = [written.stdout, b"\n", written.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let groups = regex.captures_iter(&text).filter_map(|captures| captures.get(1));
    let numbers: Option<Vec<f64>> = groups.map(|group| number(group.as_str())).collect();
    let numbers = numbers.ok_or_else(|| format!("what `{regex}` found is no number"))?;
    let value = match several {
        _ if numbers.is_empty() => None,
        Several::Last => numbers.last().copied(),
        Several::Largest => numbers.iter().copied().reduce(f64::max),
        Several::Mean => Some(numbers.iter().sum::<f64>() / numbers.len() as f64),
    };
    value.ok_or_else(|| {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        format!("`{regex}` matches none of the {} that the command printed", counted(lines, "line"))
    })
}

/// A finite number.
fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// Refuses two metrics of one name.
///
/// # Errors
/// The name.
pub fn expect_distinct(all: &[Reader]) -> Result<(), String> {
    for (place, reading) in all.iter().enumerate() {
        if all[..place].iter().any(|other| other.metric.name() == reading.metric.name()) {
            return Err(format!("--metric names `{}` twice", reading.metric.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that `text` reads in an output.
    fn read(text: &str, stdout: &str, stderr: &str) -> Vec<(String, Result<f64, String>)> {
        let written = Written { stdout: stdout.as_bytes(), stderr: stderr.as_bytes() };
        let Readers(all) = Readers::parse(text).unwrap();
        all.iter().map(|one| (one.metric.name().to_string(), one.read(written))).collect()
    }

    /// The same, where all are there.
    fn numbers(text: &str, stdout: &str, stderr: &str) -> Vec<(String, f64)> {
        let all = read(text, stdout, stderr).into_iter();
        all.map(|(name, value)| (name, value.unwrap())).collect()
    }

    fn pairs(all: &[(&str, f64)]) -> Vec<(String, f64)> {
        all.iter().map(|(name, value)| (name.to_string(), *value)).collect()
    }

    #[test]
    fn a_number_is_read_where_it_stands() {
        let json = r#"{"latency": {"p99": 12.5, "unit": "us", "text": "7"}, "runs": [3, 4]}"#;
        assert_eq!(numbers("a=json:/latency/p99,us,lower", json, ""), pairs(&[("a", 12.5)]));
        assert_eq!(numbers("a=json:/runs/1,count,higher", json, ""), pairs(&[("a", 4.0)]));
        assert_eq!(numbers("a=json:/latency/text,us,lower", json, ""), pairs(&[("a", 7.0)]));
        let lines = format!("starting\n{{\"x\": 1}}\n{json}\ndone\n");
        assert_eq!(numbers("a=json:/runs/0,count,neither", &lines, ""), pairs(&[("a", 3.0)]));
        // A pattern with commas; the last match counts; both outputs are searched.
        let found = numbers(r"a=regex:t=(\d{1,3}),ms,lower", "t=1 t=2\n", "t=33 ms");
        assert_eq!(found, pairs(&[("a", 33.0)]));
    }

    #[test]
    fn a_number_that_is_not_there_has_a_reason() {
        for (text, stdout, word) in [
            ("a=json:/x,us,lower", "no document\n5\n", "no JSON document"),
            ("a=json:/x,us,lower", "{\"y\": 1}", "has no /x"),
            ("a=json:/x,us,lower", "{\"x\": \"fast\"}", "no number"),
            ("a=json:/x,us,lower", "{\"x\": null}", "no number"),
            ("a=regex:t=(.*),us,lower", "t=fast", "no number"),
            ("a=regex:t=(.*),us,lower", "t=inf", "no number"),
            ("a=regex:t=(.*),us,lower", "u=1\nv=2\n\n", "none of the 2 lines"),
        ] {
            let (_, value) = read(text, stdout, "").remove(0);
            let why = value.unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn what_reads_nothing_is_refused_with_what_does() {
        for (text, word) in [
            ("sysbench", "perf-bench, hackbench, cyclictest, schbench, redis-benchmark, fio"),
            ("a=json:/x", "no unit"),
            ("a=json:x,us,lower", "slash"),
            ("a=xml:x,us,lower", "json:/POINTER"),
            ("a=regex:t=.*,us,lower", "no group"),
            ("a=regex:t=(.*,us,lower", "no pattern"),
            ("a=json:/x,us,faster", "lower, higher or neither"),
            ("a=json:/x,,lower", "no unit"),
            ("=json:/x,us,lower", "no name"),
        ] {
            let error = Readers::parse(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let twice: Vec<Reader> = ["hackbench", "time=json:/t,s,lower"]
            .iter()
            .flat_map(|text| Readers::parse(text).unwrap().0)
            .collect();
        assert!(expect_distinct(&twice).unwrap_err().contains("`time` twice"));
        assert_eq!(expect_distinct(&twice[..1]), Ok(()));
    }

    /// Outputs of the real programs, cut where only the beginning is the same.
    #[test]
    fn benchmarks_are_known_by_their_real_output() {
        let perf = "# Running 'sched/pipe' benchmark:\n# Executed 1000 pipe operations between two \
                    processes\n\n     Total time: 0.026 [sec]\n\n      26.223000 usecs/op\n          \
                    38134 ops/sec\n";
        assert_eq!(numbers("perf-bench", perf, ""), pairs(&[("total", 0.026)]));
        let hackbench = "Running in process mode with 1 groups using 40 file descriptors each (== \
                         40 tasks)\nEach sender will pass 100 messages of 100 bytes\nTime: 0.090\n";
        assert_eq!(numbers("hackbench", hackbench, ""), pairs(&[("time", 0.09)]));
        let cyclictest = "# /dev/cpu_dma_latency set to 0us\nT: 0 ( 4453) P: 0 I:1000 C:     50 \
                          Min:     66 Act: 3535 Avg:  499 Max:    3571\nT: 1 ( 4454) P: 0 I:1500 \
                          C:     50 Min:     32 Act:   82 Avg:   76 Max:     117\n";
        assert_eq!(
            numbers("cyclictest", cyclictest, ""),
            pairs(&[("latency_max", 3571.0), ("latency_mean", 287.5)])
        );
        let report = |wakeup, request, rps| {
            format!(
                "Wakeup Latencies percentiles (usec) runtime 2 (s) (1296 total samples)\n\t  \
                 50.0th: 2          (0 samples)\n\t  90.0th: 3          (349 samples)\n\t* \
                 99.0th: {wakeup}          (54 samples)\n\t  99.9th: 23         (10 samples)\n\t  \
                 min=1, max=150\nRequest Latencies percentiles (usec) runtime 2 (s) (1296 total \
                 samples)\n\t  50.0th: 781        (390 samples)\n\t  90.0th: 3996       (521 \
                 samples)\n\t* 99.0th: {request}       (112 samples)\n\t  99.9th: 14960      (11 \
                 samples)\n\t  min=706, max=15397\nRPS percentiles (requests) runtime 2 (s) (3 \
                 total samples)\n\t  20.0th: 0          (1 samples)\n\taverage rps: {rps}\n"
            )
        };
        let schbench = report(9, 1, "1.00") + &report(6, 5736, "648.00");
        assert_eq!(
            numbers("schbench", "", &schbench),
            pairs(&[
                ("wakeup_p50", 2.0),
                ("wakeup_p99", 6.0),
                ("request_p99", 5736.0),
                ("rps", 648.0)
            ])
        );
        let redis = "Summary:\n  throughput summary: 66666.67 requests per second\n  latency \
                     summary (msec):\n          avg       min       p50       p95       p99       \
                     max\n        0.510     0.200     0.439     0.647     3.479     3.623\n";
        assert_eq!(
            numbers("redis-benchmark", redis, ""),
            pairs(&[("rps", 66666.67), ("p50", 0.439), ("p99", 3.479)])
        );
        let fio = r#"{"jobs": [{"read": {"iops": 5.5, "clat_ns": {"percentile": {"99.000000": 70}}},
                     "write": {"iops": 0.0, "clat_ns": {"N": 0}}}]}"#;
        let all = read("fio", fio, "");
        assert_eq!((all[0].1.clone(), all[2].1.clone()), (Ok(5.5), Ok(70.0)));
        assert!(all[3].1.as_ref().unwrap_err().contains("has no /jobs/0/write"));
    }
}
