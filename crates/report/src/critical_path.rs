//! Critical paths: who held up the end, over time, task by task.

use super::tables::escape;
use results::critical_path::{CriticalPath, Piece};
use results::quantity;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most tasks with a track of their own.
const MOST: usize = 16;
/// A track has this many cells; a cell shows what takes most of it.
const CELLS: usize = 1000;
/// What a task does, and its colour.
const DOINGS: [(&str, &str); 4] =
    [("runs", "runs"), ("waits for a CPU", "waits"), ("sleeps", "sleeps"), ("not seen", "unseen")];

/// The section; empty without paths.
pub fn section(paths: &[CriticalPath]) -> String {
    if paths.iter().all(|path| path.pieces.is_empty()) {
        return String::new();
    }
    let mut html = String::from(
        "<section id=path><h2>Critical path</h2>\n<p class=note>Read backwards from the end: a \
         task ran since it got its CPU, waited for it since it was woken, and before that the \
         task that woke it is on the path. What is not on the path may take longer without \
         delaying the end.</p>\n<p class=legend>",
    );
    for (doing, class) in DOINGS {
        let _ = write!(html, "<span><i class=\"key {class}\"></i> {doing}</span>");
    }
    html += "</p>\n";
    for path in paths.iter().filter(|path| !path.pieces.is_empty()) {
        html += &drawn(path);
    }
    html + "</section>\n"
}

fn drawn(path: &CriticalPath) -> String {
    let (begin, length) = (path.pieces[0].start, path.length());
    let mut html = format!(
        "<h3>{}: {}</h3>\n<div class=path>\n",
        escape(&path.of),
        quantity(length as f64, "ns")
    );
    let (shown, others) = tasks(path);
    for (task, time) in &shown {
        let own: Vec<&Piece> = path.pieces.iter().filter(|piece| piece.task == *task).collect();
        html += &track(task, *time, &own, begin, length);
    }
    if others > 0 {
        let is_shown = |piece: &&Piece| shown.iter().any(|(task, _)| *task == piece.task);
        let own: Vec<&Piece> = path.pieces.iter().filter(|piece| !is_shown(piece)).collect();
        let time = own.iter().map(|piece| piece.end - piece.start).sum();
        html += &track(&format!("{others} others"), time, &own, begin, length);
    }
    html + "</div>\n"
}

/// The tasks with the longest time on the path, in the order in which it comes to them, and the
/// number of others.
fn tasks(path: &CriticalPath) -> (Vec<(&str, u64)>, usize) {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in &path.pieces {
        *times.entry(&piece.task).or_default() += piece.end - piece.start;
    }
    let mut by_time: Vec<(&str, u64)> = times.into_iter().collect();
    by_time.sort_by_key(|&(task, time)| (std::cmp::Reverse(time), task));
    let others = by_time.len().saturating_sub(MOST);
    by_time.truncate(MOST);
    let first = |task: &str| path.pieces.iter().position(|piece| piece.task == task);
    by_time.sort_by_key(|(task, _)| first(task));
    (by_time, others)
}

/// One task's pieces on the scale of the path.
fn track(task: &str, time: u64, pieces: &[&Piece], begin: u64, length: u64) -> String {
    let mut html = format!(
        "<div class=name>{}</div><div class=number>{} <small>{:.1} %</small></div><svg \
         viewBox=\"0 0 {CELLS} 10\" preserveAspectRatio=none role=img aria-label=\"{0} on the \
         critical path\">",
        escape(task),
        quantity(time as f64, "ns"),
        100.0 * time as f64 / length.max(1) as f64
    );
    for (from, to, kind) in runs(&cells(pieces, begin, length)) {
        let (doing, class) = DOINGS[kind];
        let at = |cell: usize| begin + (length as f64 * cell as f64 / CELLS as f64) as u64;
        let _ = write!(
            html,
            "<rect class={class} x={from} width={} height=10><title>{doing}, {} to \
             {}</title></rect>",
            to - from,
            quantity(at(from) as f64, "ns"),
            quantity(at(to) as f64, "ns")
        );
    }
    html + "</svg>\n"
}

/// For each cell what takes most of it, if anything is in it.
fn cells(pieces: &[&Piece], begin: u64, length: u64) -> Vec<Option<usize>> {
    let width = length as f64 / CELLS as f64;
    let mut times = vec![[0.0; DOINGS.len()]; CELLS];
    for piece in pieces {
        let kind = DOINGS.iter().position(|(doing, _)| *doing == piece.doing).unwrap_or(3);
        let (start, end) = ((piece.start - begin) as f64, (piece.end - begin) as f64);
        let first = (start / width) as usize;
        for cell in (first..CELLS).take_while(|cell| (*cell as f64) * width < end) {
            let (from, to) = (cell as f64 * width, (cell + 1) as f64 * width);
            times[cell][kind] += end.min(to) - start.max(from);
        }
    }
    let most = |times: &[f64; DOINGS.len()]| {
        let kinds = (0..DOINGS.len()).filter(|kind| times[*kind] > 0.0);
        kinds.max_by(|a, b| times[*a].total_cmp(&times[*b]))
    };
    times.iter().map(most).collect()
}

/// Equal neighbours together: first cell, the one behind the last, and the kind.
fn runs(cells: &[Option<usize>]) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (at, kind) in cells.iter().enumerate() {
        let Some(kind) = *kind else { continue };
        match runs.last_mut() {
            Some(last) if last.1 == at && last.2 == kind => last.1 = at + 1,
            _ => runs.push((at, at + 1, kind)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, end: u64, task: &str, doing: &str) -> Piece {
        let (task, doing) = (task.to_string(), doing.to_string());
        Piece { start, end, task, doing, object: None }
    }

    #[test]
    fn a_cell_shows_what_takes_most_of_it_and_neighbours_are_one_rectangle() {
        let pieces = [
            piece(1_000, 3_000, "a/1", "runs"),
            piece(3_000, 3_100, "a/1", "sleeps"),
            piece(3_100, 5_000, "a/1", "runs"),
            piece(5_000, 11_000, "a/1", "waits for a CPU"),
        ];
        let all: Vec<&Piece> = pieces.iter().collect();
        let runs = runs(&cells(&all, 1_000, 10_000));
        assert_eq!(runs, [(0, 200, 0), (200, 210, 2), (210, 400, 0), (400, 1000, 1)]);
    }

    #[test]
    fn the_longest_tasks_have_tracks_in_order_of_time_and_the_others_are_one() {
        let tasks = (0..20).map(|n| piece(n * 10, n * 10 + 10, &format!("t/{n}"), "runs"));
        let path = CriticalPath { of: "the <run>".to_string(), pieces: tasks.collect() };
        let html = section(std::slice::from_ref(&path));
        assert_eq!(html.matches("<svg").count(), MOST + 1);
        assert!(html.contains("4 others") && html.contains("the &lt;run&gt;"));
        assert!(section(&[]).is_empty());
        assert_eq!(path.length(), 200);
    }
}
