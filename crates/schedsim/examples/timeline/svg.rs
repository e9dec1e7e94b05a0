//! Draws a small load on one CPU (two, if the policy places tasks), or a closed workload.

use schedsim::engine::{self, Options};
use schedsim::policy::PolicySpec;
use schedsim::trace::{Event, EventKind, Observer, PrevState, TaskInfo, Trace};
use schedsim::workload::{
    Action, Affinity, Attributes, Closed, Reservation, Script, Start, TaskSpec, Workload,
};
use schedsim::{CpuId, Machine, Nanos, TaskId, Time};
use std::fmt::Write;

const MS: u64 = 1_000_000;
/// The drawn window of the small load, in ms.
const WINDOW: u64 = 400;
/// Pixels: the total width, the height of a row, the width of the names.
const WIDTH: u64 = 800;
const ROW: u64 = 26;
const LEFT: u64 = 110;

/// The tasks: name, kernel priority, and the burst and pause that they repeat.
const TASKS: [(&str, u8, u64, u64); 5] = [
    ("hog, nice 0", 120, 10_000, 0),
    ("hog, nice 0", 120, 10_000, 0),
    ("hog, nice 5", 125, 10_000, 0),
    ("3 of 20 ms", 120, 3, 17),
    ("real time", 50, 1, 49),
];

/// Draws the load under the policy `policy`.
///
/// # Errors
/// If there is no such policy.
pub fn timeline(policy: &str) -> Result<String, String> {
    picture(policy, &load(), if policy.contains(':') { 2 } else { 1 }, WINDOW)
}

/// Draws the first `window` ms of a closed workload in JSON on one CPU, with or without priority
/// inheritance.
///
/// # Errors
/// If there is no such policy, or the workload cannot be run under it.
pub fn timeline_of(policy: &str, json: &str, inherit: bool, window: u64) -> Result<String, String> {
    let mut closed: Closed = serde_json::from_str(json).map_err(|error| error.to_string())?;
    closed.mutexes.values_mut().for_each(|mutex| mutex.inherit = inherit);
    let workload = Workload::of(&closed, 1)
        .map_err(|invalid| format!("{}: {}", invalid.key, invalid.message))?;
    picture(policy, &workload, 1, window)
}

fn picture(policy: &str, workload: &Workload, cpus: u16, window: u64) -> Result<String, String> {
    let spec = PolicySpec::parse(policy).map_err(|error| error.to_string())?;
    let mut stretches = Stretches { done: Vec::new(), open: vec![None; workload.tasks.len()] };
    let options = Options { seed: 1, until: Time(window * MS) };
    let trace = Trace::new(vec![&mut stretches]);
    engine::simulate_named(workload, &Machine::ideal(cpus), &spec, options, trace)
        .map_err(|error| error.to_string())?;
    Ok(draw(policy, workload, &stretches, window))
}

fn load() -> Workload {
    let task = |(name, prio, run, pause): (&str, u8, u64, u64)| {
        let step = if pause > 0 { Action::Sleep(Nanos(pause * MS)) } else { Action::Exit };
        let times = (2 * WINDOW / (run + pause)).max(1) as usize;
        let script: Script = vec![(Nanos(run * MS), step); times].into_iter().collect();
        let info = TaskInfo { name: name.to_string(), pid: 0, tgid: 0, prio };
        let start = Start::At(Time::ZERO);
        TaskSpec {
            info,
            attributes: Attributes::default(),
            affinity: Affinity::Any,
            cpu: CpuId(0),
            start,
            script,
        }
    };
    // The last two reserve what they need, for the schedulers that support reservations.
    let reserves = |(_, _, run, pause): (&str, u8, u64, u64)| {
        let period = Nanos((run + pause) * MS);
        (pause > 0).then_some(Reservation { runtime: Nanos(run * MS), deadline: period, period })
    };
    Workload {
        tasks: TASKS.map(task).into(),
        reservations: TASKS.map(reserves).into(),
        ..Workload::default()
    }
}

/// The intervals of each task's states.
struct Stretches {
    done: Vec<(usize, Option<CpuId>, u64, u64)>,
    /// The open interval of each task: the CPU if it runs, and the start, if it is runnable.
    open: Vec<Option<(Option<CpuId>, u64)>>,
}

impl Stretches {
    fn turn(&mut self, task: TaskId, to: Option<Option<CpuId>>, now: Time) {
        let index = task.index();
        if index >= self.open.len() {
            return;
        }
        let ended = std::mem::replace(&mut self.open[index], to.map(|cpu| (cpu, now.0)));
        if let Some((cpu, since)) = ended.filter(|ended| ended.1 < now.0) {
            self.done.push((index, cpu, since, now.0));
        }
    }
}

impl Observer for Stretches {
    fn events(&mut self, chunk: &[Event]) {
        for event in chunk {
            match event.kind {
                EventKind::SchedSwitch { prev, next, prev_state } => {
                    self.turn(
                        prev,
                        (prev_state == PrevState::Runnable).then_some(None),
                        event.time,
                    );
                    self.turn(next, Some(Some(event.cpu)), event.time);
                }
                EventKind::SchedWaking { task, .. } | EventKind::SchedWakeupNew { task, .. } => {
                    self.turn(task, Some(None), event.time)
                }
                _ => {}
            }
        }
    }
}

fn draw(policy: &str, workload: &Workload, stretches: &Stretches, window: u64) -> String {
    let (rows, scale) = (workload.tasks.len() as u64, WIDTH / window);
    let (width, height) = (LEFT + window * scale + 10, ROW * rows + 34);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>Running (blocks) and waiting (lines) tasks under \
         {policy}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (row, task) in workload.tasks.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"4\" y=\"{}\">{}</text>",
            row as u64 * ROW + 19,
            task.info.name
        );
    }
    for ms in (0..=window).step_by(window as usize / 8) {
        let (x, bottom) = (LEFT + ms * scale, ROW * rows + 6);
        let _ = writeln!(
            svg,
            "<path d=\"M{x} 4V{bottom}\" stroke=\"#ddd\"/><text x=\"{x}\" y=\"{}\" \
             text-anchor=\"middle\">{ms}</text>",
            bottom + 18
        );
    }
    let x = |ns: u64| LEFT as f64 + (ns * scale) as f64 / MS as f64;
    let open = stretches
        .open
        .iter()
        .enumerate()
        .filter_map(|(row, open)| open.map(|(cpu, since)| (row, cpu, since, window * MS)));
    for (row, cpu, from, to) in stretches.done.iter().copied().chain(open) {
        let (y, height, color) = match cpu {
            Some(CpuId(0)) => (5, 18, "#3465a4"),
            Some(_) => (5, 18, "#73a946"),
            None => (13, 2, "#cc8844"),
        };
        let (x, width, y) = (x(from), x(to) - x(from), row as u64 * ROW + y);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" \
             fill=\"{color}\"/>"
        );
    }
    svg + "</svg>\n"
}
