//! Draws the decisions by true effect.

use super::Tally;
use std::fmt::Write;

/// The possible decisions, from the bottom up, with their colours.
const PARTS: [(&str, &str); 4] = [
    ("right", "#2a7f62"),
    ("equivalent", "#9ec5e8"),
    ("undecided", "#dddddd"),
    ("wrong", "#c0392b"),
];
/// The width of a bar with its gap, and the height of a full bar.
const BAR: f64 = 62.0;
const GAP: f64 = 14.0;
const HEIGHT: f64 = 220.0;
/// The start of the first bar, and the baseline of the bars.
const LEFT: f64 = 48.0;
const TOP: f64 = 44.0;

/// Draws a bar for each size of true effect, divided by decision.
pub fn picture(tally: &Tally) -> String {
    let curve = tally.curve();
    let (width, height) = (LEFT + curve.len() as f64 * (BAR + GAP) + GAP, TOP + HEIGHT + 56.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (number, (name, colour)) in PARTS.iter().enumerate() {
        let x = LEFT + 100.0 * number as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.0}\" y=\"14\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
        );
        let _ = writeln!(svg, "<text x=\"{:.0}\" y=\"24\">{name}</text>", x + 17.0);
    }
    for percent in [0, 50, 100] {
        let y = TOP + HEIGHT * (1.0 - f64::from(percent) / 100.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{percent} %</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (number, (range, line)) in curve.iter().enumerate() {
        let x = LEFT + GAP + number as f64 * (BAR + GAP);
        let mut bottom = TOP + HEIGHT;
        let parts =
            [line.better + line.worse - line.wrong, line.equivalent, line.undecided, line.wrong];
        for ((name, colour), rows) in PARTS.iter().zip(parts) {
            let height = HEIGHT * f64::from(rows) / f64::from(line.rows);
            bottom -= height;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{bottom:.1}\" width=\"{BAR:.0}\" height=\"{height:.1}\" \
                 fill=\"{colour}\"><title>{name}: {rows} of {}</title></rect>",
                line.rows
            );
        }
        let middle = x + BAR / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{range}</text>",
            TOP + HEIGHT + 16.0
        );
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666\">{} \
             rows</text>",
            TOP + HEIGHT + 30.0,
            line.rows
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT:.0}\" y=\"{:.0}\" fill=\"#666\">true effect, as a share of the \
         baseline</text>",
        height - 8.0
    );
    svg + "</svg>\n"
}
