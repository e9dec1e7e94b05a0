//! The wake graph by object: wakers on the left, objects in the middle, the woken on the right.

use super::tables::{escape, open};
use results::{Coordinate, Metric, Results, Row, SubjectKind, quantity};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most nodes of a column; with more tasks these are drawn by name of program.
const MOST: usize = 14;
/// The height of a node; the width of the drawing, and of a column.
const HEIGHT: usize = 26;
const WIDTH: usize = 760;
const COLUMN: usize = 170;

/// One edge: waker, object, wakee, wakes.
type Edge = (String, String, String, f64);

/// The section; empty if no object is known.
pub fn section(results: &Results) -> String {
    let edges = edges(&results.rows);
    let waits = waits(&results.rows);
    if edges.is_empty() && waits.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=objects><h2>Wakeups through objects</h2>\n");
    if !edges.is_empty() {
        html += "<p class=note>Who wakes whom through which object. The wider a line, the more \
                 wakeups.</p>\n";
        html += &drawn(&edges);
    }
    if !waits.is_empty() {
        html += "<h3>Sleeps by object</h3>\n";
        html += &open("class=bars", "Sleeps by object");
        let most = waits.iter().map(|(_, slept)| *slept).fold(1.0, f64::max);
        for (object, slept) in waits {
            let _ = writeln!(
                html,
                "<tr><th scope=row>{}<td><div style=\"width:{:.2}%\"></div><td class=number>{}",
                escape(object),
                100.0 * slept / most,
                quantity(slept, "ns")
            );
        }
        html += "</table></div>\n";
    }
    html + "</section>\n"
}

fn edges(rows: &[Row]) -> Vec<Edge> {
    let mut all: Vec<Edge> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == Metric::wakes) {
        let (Some(object), Some(wakes)) = (row.subject_of(SubjectKind::Object), row.value) else {
            continue;
        };
        let end = |name: &str| match row.point.get(name) {
            Some(Coordinate::Text(task)) => task.clone(),
            _ => String::new(),
        };
        all.push((end("waker"), object.to_string(), end("wakee"), wakes));
    }
    // Too many tasks: by program.
    let count = |of: fn(&Edge) -> &String, all: &[Edge]| {
        let mut names: Vec<&String> = all.iter().map(of).collect();
        names.sort();
        names.dedup();
        names.len()
    };
    if count(|edge| &edge.0, &all).max(count(|edge| &edge.2, &all)) > MOST {
        let program = |task: &str| task.rsplit_once('/').map_or(task, |(name, _)| name).to_string();
        all.iter_mut().for_each(|edge| (edge.0, edge.2) = (program(&edge.0), program(&edge.2)));
    }
    let mut sums: BTreeMap<(String, String, String), f64> = BTreeMap::new();
    for (waker, object, wakee, wakes) in all {
        *sums.entry((waker, object, wakee)).or_default() += wakes;
    }
    sums.into_iter().map(|((waker, object, wakee), wakes)| (waker, object, wakee, wakes)).collect()
}

fn waits(rows: &[Row]) -> Vec<(&str, f64)> {
    let of = |row: &Row| row.metric == Metric::object_slept_ns;
    let waits = rows.iter().filter(|row| of(row));
    waits.filter_map(|row| Some((row.subject_of(SubjectKind::Object)?, row.value?))).collect()
}

/// The nodes of a column with their sums, the largest first.
fn nodes(edges: &[Edge], of: fn(&Edge) -> &String) -> Vec<(&str, f64)> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for edge in edges {
        *sums.entry(of(edge)).or_default() += edge.3;
    }
    let mut nodes: Vec<(&str, f64)> = sums.into_iter().collect();
    nodes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    nodes.truncate(MOST);
    nodes
}

fn drawn(edges: &[Edge]) -> String {
    let columns: [Vec<(&str, f64)>; 3] =
        [nodes(edges, |edge| &edge.0), nodes(edges, |edge| &edge.1), nodes(edges, |edge| &edge.2)];
    let rows = columns.iter().map(Vec::len).max().unwrap_or_default();
    let left = [0, (WIDTH - COLUMN) / 2, WIDTH - COLUMN];
    let place = |column: usize, name: &str| {
        let at = columns[column].iter().position(|(known, _)| *known == name)?;
        Some(at * HEIGHT + HEIGHT / 2)
    };
    let (mut sums, most) = (BTreeMap::new(), edges.iter().map(|edge| edge.3).sum::<f64>());
    for (waker, object, wakee, wakes) in edges {
        for (column, from, to) in [(0, waker, object), (1, object, wakee)] {
            if let (Some(from), Some(to)) = (place(column, from), place(column + 1, to)) {
                *sums.entry((column, from, to)).or_insert(0.0) += wakes;
            }
        }
    }
    let mut svg = format!(
        "<div class=scroll tabindex=0 role=region aria-label=\"Wakeups through \
         objects\"><svg class=graph viewBox=\"0 0 {WIDTH} {}\" role=img aria-label=\"wake \
         graph by object\">",
        rows * HEIGHT
    );
    for ((column, from, to), wakes) in sums {
        let (x, end) = (left[column] + COLUMN, left[column + 1]);
        let middle = (x + end) / 2;
        let _ = write!(
            svg,
            "<path d=\"M{x} {from}C{middle} {from} {middle} {to} {end} {to}\" \
             stroke-width={:.1}><title>{wakes} wakeups</title></path>",
            (12.0 * wakes / most).max(0.6)
        );
    }
    for (column, nodes) in columns.iter().enumerate() {
        for (at, (name, sum)) in nodes.iter().enumerate() {
            let (x, y) = (left[column], at * HEIGHT);
            let _ = write!(
                svg,
                "<rect x={x} y={} width={COLUMN} height={} rx=4></rect><text x={} y={}>{} \
                 ({sum})</text>",
                y + 3,
                HEIGHT - 6,
                x + 6,
                y + HEIGHT - 9,
                escape(&shortened(name))
            );
        }
    }
    svg + "</svg></div>\n"
}

/// The beginning of a long name.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(18) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    fn wakes(object: &str, waker: &str, wakee: &str, count: f64) -> Row {
        Row { value: Some(count), ..Row::new(World::Recorded, Metric::wakes) }
            .of(SubjectKind::Object, object)
            .at("waker", waker)
            .at("wakee", wakee)
    }

    #[test]
    fn an_edge_leads_through_its_object_and_sums_are_kept() {
        let rows = [wakes("pipe 1", "a/1", "b/2", 3.0), wakes("pipe 1", "c/3", "b/2", 4.0)];
        let html = section(&Results::new(rows.to_vec()));
        assert_eq!(html.matches("<path").count(), 3, "two to the pipe, one from it");
        assert!(
            html.contains("pipe 1 (7)") && html.contains("b/2 (7)") && html.contains("a/1 (3)")
        );
        assert!(section(&Results::new(vec![])).is_empty());
    }

    #[test]
    fn many_tasks_are_drawn_by_program() {
        let rows: Vec<Row> =
            (0..20).map(|n| wakes("pipe 1", &format!("sender/{n}"), "reader/99", 1.0)).collect();
        let html = section(&Results::new(rows));
        assert!(html.contains("sender (20)") && html.contains("reader (20)"));
    }
}
