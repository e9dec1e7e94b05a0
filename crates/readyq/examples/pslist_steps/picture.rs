//! Draws the steps (L-FIG05, L-FIG06): a row per step, virtual run times as numbers, moves as
//! lines.

use super::steps::{Step, name, simulate};
use std::fmt::Write;

/// Pixels: the height of a row, the width of a place in the list, the left margin.
const ROW: u64 = 30;
const PLACE: u64 = 62;
const LEFT: u64 = 60;
/// A colour for each task.
const COLORS: [&str; 6] = ["#cfe2f3", "#d9ead3", "#fff2cc", "#f4cccc", "#d9d2e9", "#fce5cd"];

/// Draws the first `count` steps of tasks with these granularities as SVG.
pub fn draw(granularities: &[u64], count: usize) -> String {
    let steps: Vec<Step> = simulate(granularities).take(count).collect();
    let (width, height) =
        (LEFT + PLACE * granularities.len() as u64 + 90, ROW * (steps.len() as u64 + 1) + 6);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
         text-anchor=\"middle\">\n<title>pslist: the running task (bold), the waiting ones, \
         and where the running one goes</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#fff\"/>\n<text x=\"28\" \
         y=\"18\">step</text><text x=\"{}\" y=\"18\">runs</text><text x=\"{}\" \
         y=\"18\">next</text><text x=\"{}\" y=\"18\">spread</text>\n",
        x(0),
        x(1),
        width - 44
    );
    for (row, pair) in steps.windows(2).enumerate() {
        movements(&mut svg, row as u64, &pair[0], &pair[1]);
    }
    for (row, step) in steps.iter().enumerate() {
        let y = y(row as u64);
        let _ = writeln!(
            svg,
            "<text x=\"28\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">{}</text>",
            y + 4,
            row + 1,
            width - 44,
            y + 4,
            step.spread
        );
        for (place, (task, time)) in places(step).enumerate() {
            let (x, weight) = (x(place), if place == 0 { "bold" } else { "normal" });
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"44\" height=\"18\" rx=\"4\" fill=\"{}\" \
                 stroke=\"#666\"/><text x=\"{x}\" y=\"{}\" font-weight=\"{weight}\">{} \
                 {time}</text>",
                x - 22,
                y - 9,
                COLORS[task as usize % COLORS.len()],
                y + 4,
                name(readyq::TaskId(task))
            );
        }
    }
    svg + "</svg>\n"
}

/// The running task, then the list, with virtual run times.
fn places(step: &Step) -> impl Iterator<Item = (u32, u64)> + '_ {
    std::iter::once((step.runs.0, step.from))
        .chain(step.list.iter().map(|(task, time)| (task.0, *time)))
}

/// Draws a line from each task's place to its place in the next row. The running task's line is
/// thick.
fn movements(svg: &mut String, row: u64, step: &Step, next: &Step) {
    for (from, (task, _)) in places(step).enumerate() {
        let Some(to) = places(next).position(|(other, _)| other == task) else { continue };
        let (color, width) = if from == 0 { ("#cc0000", 2) } else { ("#bbb", 1) };
        let (top, bottom) = (y(row) + 9, y(row + 1) - 9);
        let _ = writeln!(
            svg,
            "<path d=\"M{} {top}L{} {bottom}\" stroke=\"{color}\" stroke-width=\"{width}\"/>",
            x(from),
            x(to)
        );
    }
}

fn x(place: usize) -> u64 {
    LEFT + PLACE * place as u64 + PLACE / 2
}

fn y(row: u64) -> u64 {
    ROW * (row + 1) + 10
}
