//! The timelines: exact within a window, and down-sampled over the complete run.

mod overview;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use formats::export::{Interval, Names, Occupancy};
use formats::trace_file::Header;
use formats::trace_source::TraceSource;
use program::Error;
use schedsim::trace::{Event, Observer};
use schedsim::{Nanos, TaskId, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use overview::{Overview, varint};

/// The limit on intervals of all timelines together, so that a report opens fast and stays small.
const MOST_INTERVALS: usize = 320_000;
const MOST_CELLS: usize = 480_000;
/// The limit on bytes of all timelines together: a page is then below 2 MB.
const MOST_BYTES: usize = 1_200_000;
/// The limit for one timeline.
const MOST_INTERVALS_EACH: usize = 20_000;
const MOST_CELLS_EACH: usize = 60_000;
/// The limit on cells of a CPU in the overview: about one for each pixel.
const MOST_CELLS_PER_CPU: usize = 1_500;

/// A window of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Its start.
    pub start: Time,
    /// Its end.
    pub end: Time,
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let (start, end) = text.split_once("..").ok_or("write two times, as in 100ms..120ms")?;
        let time = |text: &str| match text {
            "0" => Ok(Time::ZERO),
            text => text.parse().map(|Nanos(ns)| Time(ns)).map_err(|error| error.to_string()),
        };
        let window = Window { start: time(start)?, end: time(end)? };
        if window.start < window.end {
            Ok(window)
        } else {
            Err(format!("{text} ends before it begins"))
        }
    }
}

/// The timelines of a report.
#[derive(Serialize)]
pub struct Timelines {
    /// One for each trace, recordings first.
    pub timelines: Vec<Timeline>,
    /// Name and thread id of the shown tasks; the other numbers are indexes into this list.
    pub tasks: Vec<(String, u32)>,
}

/// The timeline of one run.
#[derive(Serialize)]
pub struct Timeline {
    workload: String,
    policy: String,
    cpus: u16,
    /// The end of the run, in nanoseconds.
    end: u64,
    /// The number of intervals of the run.
    intervals: u64,
    /// The window in which every interval is shown.
    exact: [u64; 2],
    /// The intervals in the window: see [`pack_intervals`].
    runs: String,
    /// The length of a cell of the overview, in nanoseconds.
    cell: u64,
    /// The overview: see [`Overview::pack`].
    overview: String,
}

impl Timelines {
    /// Reads the traces one after another; once more with less detail if the page would be too
    /// large.
    pub fn read(traces: &[(PathBuf, Header)], window: Option<Window>) -> Result<Timelines, Error> {
        let intervals = MOST_INTERVALS_EACH.min(MOST_INTERVALS / traces.len().max(1));
        let cells = MOST_CELLS_EACH.min(MOST_CELLS / traces.len().max(1));
        fitting(|share| {
            let part = |most: usize| ((most as f64 * share) as usize).max(1);
            Timelines::read_within(traces, window, part(intervals), part(cells))
        })
    }

    /// The bytes of its packed numbers and names.
    fn bytes(&self) -> usize {
        let packed = self.timelines.iter().map(|one| one.runs.len() + one.overview.len());
        packed.chain(self.tasks.iter().map(|(name, _)| name.len() + 12)).sum()
    }

    /// The same, with a limit of intervals and cells in each.
    fn read_within(
        traces: &[(PathBuf, Header)],
        window: Option<Window>,
        intervals: usize,
        cells: usize,
    ) -> Result<Timelines, Error> {
        let mut tasks = Tasks::default();
        let mut timelines: Vec<Timeline> = Vec::new();
        let mut chosen = window;
        for (path, header) in traces {
            let source = TraceSource::open(path)?;
            let run = Run::read(&source)?;
            let chosen = *chosen.get_or_insert_with(|| run.middle(intervals));
            timelines.push(run.timeline(header, chosen, intervals, cells, &mut tasks));
        }
        let longest = timelines.iter().map(|timeline| timeline.end).max();
        match (window, longest) {
            (Some(_), None) => Err(Error::Usage(
                "--window: these results have no traces, so there is no timeline".to_string(),
            )),
            (Some(asked), Some(end)) if asked.start.0 >= end => {
                let (start, end) = (Nanos(asked.start.0), Nanos(end));
                Err(Error::Usage(format!(
                    "--window: {start} is outside the runs, the longest of which lasts {end}; \
                     choose a window within 0..{end}"
                )))
            }
            _ => Ok(Timelines { timelines, tasks: tasks.shown }),
        }
    }
}

/// What `read` gives for the largest share of detail that is tried and fits.
fn fitting(mut read: impl FnMut(f64) -> Result<Timelines, Error>) -> Result<Timelines, Error> {
    let mut share = 1.0;
    loop {
        let timelines = read(share)?;
        let bytes = timelines.bytes();
        if bytes <= MOST_BYTES || share < 1e-3 {
            return Ok(timelines);
        }
        share *= (0.95 * MOST_BYTES as f64 / bytes as f64).min(0.9);
    }
}

/// The tasks of the timelines, numbered in order of appearance.
#[derive(Default)]
struct Tasks {
    shown: Vec<(String, u32)>,
    numbers: BTreeMap<(String, u32), u32>,
}

impl Tasks {
    fn number(&mut self, name: &str, tid: u32) -> u32 {
        let key = (name.to_string(), tid);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let number = self.shown.len() as u32;
        self.shown.push(key.clone());
        self.numbers.insert(key, number);
        number
    }
}

/// All intervals of a run, in order of their ends.
struct Run {
    intervals: Vec<Interval>,
    end: Time,
}

#[derive(Default)]
struct Collect {
    occupancy: Occupancy,
    intervals: Vec<Interval>,
}

impl Observer for Collect {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            self.intervals.extend_from_slice(self.occupancy.event(event));
        }
    }
}

impl Run {
    fn read(source: &TraceSource) -> Result<Run, Error> {
        let mut collect = Collect::default();
        let end = source.feed(vec![&mut collect])?;
        let Collect { mut occupancy, mut intervals } = collect;
        intervals.extend_from_slice(occupancy.finish(end));
        Ok(Run { intervals, end })
    }

    /// The complete run if it has at most `most` intervals, else a window around its middle.
    fn middle(&self, most: usize) -> Window {
        let Some(skip) = self.intervals.len().checked_sub(most).filter(|&skip| skip > 0) else {
            return Window { start: Time::ZERO, end: Time::NEVER };
        };
        let first = skip / 2;
        Window { start: self.intervals[first].end, end: self.intervals[first + most - 1].end }
    }

    fn timeline(
        &self,
        header: &Header,
        window: Window,
        most: usize,
        most_cells: usize,
        tasks: &mut Tasks,
    ) -> Timeline {
        let names = Names::new(&header.tasks);
        let mut local = vec![u32::MAX; names.all().len()];
        let mut number = |task: TaskId| match local.get_mut(task.index()) {
            Some(known) if *known != u32::MAX => *known,
            place => {
                let name = names.of(task);
                let number = tasks.number(&name.comm, name.tid);
                if let Some(place) = place {
                    *place = number;
                }
                number
            }
        };
        let inside =
            |interval: &&Interval| interval.end > window.start && interval.start < window.end;
        // They are in order of their ends. If there is not enough room, the intervals that are open
        // at the cut, one per CPU, are added.
        let mut shown: Vec<&Interval> = self.intervals.iter().filter(inside).take(most).collect();
        let mut exact = Window { end: window.end.min(self.end), ..window };
        if let Some(last) = shown.get(most - 1) {
            let cut = last.end;
            let rest = self.intervals.iter().filter(inside).skip(most);
            let mut left_out = false;
            let going_on =
                rest.inspect(|_| left_out = true).filter(|interval| interval.start < cut);
            shown.extend(going_on.collect::<Vec<_>>());
            if left_out {
                exact.end = cut;
            }
        }
        let per_cpu = (most_cells / usize::from(header.cpus.max(1))).clamp(1, MOST_CELLS_PER_CPU);
        let cell = (self.end.0 / per_cpu as u64 + 1).max(1);
        let mut overview = Overview::new(header.cpus, cell, self.end);
        self.intervals.iter().for_each(|interval| overview.add(interval, number(interval.task)));
        Timeline {
            workload: header.workload.clone(),
            policy: header.candidate.clone(),
            cpus: header.cpus,
            end: self.end.0,
            intervals: self.intervals.len() as u64,
            exact: [exact.start.0, exact.end.0],
            runs: pack_intervals(&shown, header.cpus, &mut number),
            cell,
            overview: overview.pack(),
        }
    }
}

/// CPU by CPU the number of intervals. Then for each interval the gap since the one before (from
/// zero), its length and its task. All are varints, in base64.
fn pack_intervals(
    intervals: &[&Interval],
    cpus: u16,
    number: &mut impl FnMut(TaskId) -> u32,
) -> String {
    let mut by_cpu: Vec<Vec<&Interval>> = vec![Vec::new(); usize::from(cpus)];
    for interval in intervals {
        if let Some(cpu) = by_cpu.get_mut(interval.cpu.index()) {
            cpu.push(interval);
        }
    }
    let mut bytes = Vec::new();
    for cpu in by_cpu {
        varint(&mut bytes, cpu.len() as u64);
        let mut latest = 0;
        for interval in cpu {
            varint(&mut bytes, interval.start.0 - latest);
            varint(&mut bytes, (interval.end - interval.start).0);
            varint(&mut bytes, u64::from(number(interval.task)));
            latest = interval.end.0;
        }
    }
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::CpuId;

    fn interval(cpu: u16, task: u32, start: u64, end: u64) -> Interval {
        Interval { cpu: CpuId(cpu), task: TaskId(task), start: Time(start), end: Time(end) }
    }

    fn header() -> Header {
        let task = |name: &str, pid| formats::trace_file::Task {
            name: name.to_string(),
            pid,
            tgid: 0,
            prio: 120,
        };
        let tasks = vec![task("a", 1), task("b", 2)];
        Header {
            workload: "w".to_string(),
            candidate: "p".to_string(),
            cpus: 2,
            seed: 1,
            version: "0".to_string(),
            tasks,
        }
    }

    #[test]
    fn windows_are_two_times() {
        assert_eq!("0..5ms".parse(), Ok(Window { start: Time(0), end: Time(5_000_000) }));
        for bad in ["5ms", "5..6", "6ms..5ms", "1s..1s", "..1s"] {
            assert!(bad.parse::<Window>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_that_would_be_too_large_has_less_detail_and_any_other_has_all() {
        let of = |bytes: usize| {
            let mut tasks = Tasks::default();
            let run = Run { intervals: Vec::new(), end: Time(10) };
            let window = Window { start: Time(0), end: Time(10) };
            let mut one = run.timeline(&header(), window, 1, 1, &mut tasks);
            one.runs = "x".repeat(bytes);
            Ok(Timelines { timelines: vec![one], tasks: tasks.shown })
        };
        let mut shares = Vec::new();
        let fitted = fitting(|share| {
            shares.push(share);
            of((4_000_000.0 * share) as usize)
        });
        let bytes = fitted.expect("timelines").bytes();
        assert!(bytes <= MOST_BYTES && bytes > MOST_BYTES / 2, "{bytes}");
        assert!(shares.len() == 2 && shares[0] == 1.0, "{shares:?}");
        assert_eq!(fitting(|_| of(1_000)).expect("timelines").bytes(), 1_000 + 4);
        // What does not get smaller ends, too.
        assert!(fitting(|_| of(9_000_000)).expect("timelines").bytes() > MOST_BYTES);
    }

    #[test]
    fn too_many_intervals_only_shorten_the_exact_window() {
        let intervals: Vec<Interval> = (0..100)
            .map(|i| interval((i % 2) as u16, (i % 2) as u32, i * 10, i * 10 + 10))
            .collect();
        let run = Run { intervals, end: Time(1_000) };
        let (mut tasks, window) = (Tasks::default(), Window { start: Time(200), end: Time(600) });
        let timeline = run.timeline(&header(), window, 10, 100, &mut tasks);
        assert_eq!((timeline.exact, timeline.intervals), ([200, 300], 100));
        let whole = run.timeline(&header(), window, 100, 100, &mut tasks);
        assert_eq!(whole.exact, [200, 600]);
        assert_eq!(run.middle(10), Window { start: Time(460), end: Time(550) });
        assert_eq!(tasks.shown, [("a".to_string(), 1), ("b".to_string(), 2)]);
    }
}
