//! The critical path of a recording, and of the longest wait of a task: as text, rows and a file.

use super::{Inspect, Inspection, name, object_name};
use formats::import::Recording;
use program::Error;
use results::critical_path::{CriticalPath as Drawn, CriticalPaths, Piece as DrawnPiece};
use results::{Align, Metric, Row, SubjectKind, Table, counted};
use schedsim::metrics::{Doing, Piece, shares};
use schedsim::{Nanos, TaskId};
use std::fmt::Write;

/// A path and what it is of.
pub(super) struct Path {
    of: String,
    /// The name of the task whose wait it is.
    request: Option<String>,
    pieces: Vec<Piece>,
}

/// The paths of an inspection: of the run, if a task of it ends, and of the wait of `request`.
pub(super) fn paths(inspection: &Inspection, request: Option<&str>) -> Result<Vec<Path>, Error> {
    let Inspection { recording, path, .. } = inspection;
    let mut all = Vec::new();
    let pieces = path.of_run();
    if let Some(last) = pieces.last() {
        let of = format!("the run, to the end of {}", name(recording, last.task));
        all.push(Path { of, request: None, pieces });
    }
    let Some(request) = request else { return Ok(all) };
    if let Some(why) = path.refusal() {
        return Err(Error::Input(format!("--request: {why}")));
    }
    let tasks: Vec<TaskId> = (0..)
        .zip(&recording.tasks)
        .filter(|(task, info)| info.name == request || name(recording, TaskId(*task)) == request)
        .map(|(task, _)| TaskId(task))
        .collect();
    if tasks.is_empty() {
        return Err(Error::Usage(format!(
            "--request: no task is named {request}; give a name, or a name with its thread id as \
             in name/123"
        )));
    }
    let waits = tasks.into_iter().map(|task| path.of_longest_wait(task));
    let longest = waits.max_by_key(|pieces| length(pieces)).filter(|pieces| !pieces.is_empty());
    let Some(pieces) = longest else {
        return Err(Error::Input(format!("--request: no task ends a sleep of {request}")));
    };
    let of = match pieces.last() {
        Some(last) => format!("the longest wait of {}", name(recording, last.task)),
        None => String::new(),
    };
    all.push(Path { of, request: Some(request.to_string()), pieces });
    Ok(all)
}

fn length(pieces: &[Piece]) -> Nanos {
    pieces.iter().map(Piece::length).sum()
}

/// The word for what a task does, and the object of it.
fn words(recording: &Recording, doing: Doing) -> (&'static str, Option<String>) {
    let known = |object: u32| (object > 0).then(|| object_name(recording, object));
    match doing {
        Doing::Runs => ("runs", None),
        Doing::WaitsForCpu(object) => ("waits for a CPU", object.and_then(known)),
        Doing::Sleeps(object) => ("sleeps", known(object)),
        Doing::Unseen => ("not seen", None),
    }
}

/// The tables of the paths.
pub(super) fn text(inspect: &Inspect, inspection: &Inspection, paths: &[Path]) -> String {
    let recording = &inspection.recording;
    let mut text = String::new();
    if let Some(why) = inspection.path.refusal() {
        let _ = writeln!(text, "\nNo critical path: {why}");
    }
    for Path { of, pieces, .. } in paths {
        let length = length(pieces);
        let begin = pieces.first().map_or(0, |piece| piece.start.0);
        let _ = writeln!(
            text,
            "\nCritical path of {of}: {length} from {}, {}\n",
            Nanos(begin),
            counted(pieces.len(), "piece")
        );
        let columns = [("  task", Align::Left), ("does", Align::Left), ("object", Align::Left)];
        let numbers = ["time", "share", "pieces"].map(|title| (title, Align::Right));
        let mut table = Table::new(columns.into_iter().chain(numbers));
        let shares = shares(pieces);
        for (task, doing, time, count) in shares.iter().take(inspect.tasks) {
            let (doing, object) = words(recording, *doing);
            table.row([
                format!("  {}", name(recording, *task)),
                doing.to_string(),
                object.unwrap_or_default(),
                time.to_string(),
                format!("{:.1}%", 100.0 * time.0 as f64 / length.0.max(1) as f64),
                count.to_string(),
            ]);
        }
        text += &table.to_string();
        if let Some(rest) = shares.get(inspect.tasks..).filter(|rest| !rest.is_empty()) {
            let time: Nanos = rest.iter().map(|(.., time, _)| *time).sum();
            let _ = writeln!(text, "  and {} more with {time} (--tasks N shows more)", rest.len());
        }
    }
    text
}

/// The rows of the paths; `row` makes one of the recording.
pub(super) fn rows(
    inspection: &Inspection,
    paths: &[Path],
    row: impl Fn(Metric, Option<f64>) -> Row,
) -> Vec<Row> {
    let recording = &inspection.recording;
    let mut rows = Vec::new();
    for Path { request, pieces, .. } in paths {
        for (task, doing, time, _) in shares(pieces) {
            let (doing, object) = words(recording, doing);
            let mut of = row(Metric::critical_path_ns, Some(time.0 as f64))
                .of(SubjectKind::Task, name(recording, task))
                .at("does", doing);
            if let Some(object) = object {
                of = of.at("object", object);
            }
            if let Some(request) = request {
                of = of.at("request", request.as_str());
            }
            rows.push(of);
        }
    }
    rows
}

/// The paths as the report draws them.
pub(super) fn drawn(inspection: &Inspection, paths: &[Path]) -> CriticalPaths {
    let recording = &inspection.recording;
    let piece = |piece: &Piece| {
        let (doing, object) = words(recording, piece.doing);
        DrawnPiece {
            start: piece.start.0,
            end: piece.end.0,
            task: name(recording, piece.task),
            doing: doing.to_string(),
            object,
        }
    };
    let path = |path: &Path| Drawn {
        of: path.of.clone(),
        pieces: path.pieces.iter().map(piece).collect(),
    };
    CriticalPaths::new(paths.iter().map(path).collect())
}
