//! Draws the shares of intervals that include the theoretical value.

use super::{LEAST, Length, Line, MOST};
use std::fmt::Write;

/// The height of a line, the start and width of the scale, and the position of the first line.
const LINE: f64 = 15.0;
const LEFT: f64 = 330.0;
const WIDTH: f64 = 420.0;
const TOP: f64 = 46.0;
/// The lowest share on the scale.
const LOWEST: f64 = 0.5;

/// Draws a dot for each line: filled for the usual length, hollow from an empty system.
pub fn picture(lines: &[Line]) -> String {
    let x = |share: f64| LEFT + WIDTH * (share.max(LOWEST) - LOWEST) / (1.0 - LOWEST);
    let mut places: Vec<(&str, &str, String)> = Vec::new();
    for line in lines {
        let place = (line.workload.as_str(), line.policy.as_str(), line.metric.to_string());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let bottom = TOP + LINE * places.len() as f64;
    let (width, height) = (LEFT + WIDTH + 20.0, bottom + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
         font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let (from, to) = (x(LEAST), x(MOST));
    let _ = writeln!(
        svg,
        "<rect x=\"{from:.1}\" y=\"{TOP:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"#dcefe6\"/>",
        to - from,
        bottom - TOP
    );
    let _ = writeln!(
        svg,
        "<circle cx=\"{LEFT:.0}\" cy=\"18\" r=\"4\" fill=\"#2a7f62\"/><text x=\"{:.0}\" \
         y=\"22\">usual length</text>",
        LEFT + 9.0
    );
    let hollow = LEFT + 110.0;
    let _ = writeln!(
        svg,
        "<circle cx=\"{hollow:.0}\" cy=\"18\" r=\"4\" fill=\"none\" stroke=\"#c0392b\"/><text \
         x=\"{:.0}\" y=\"22\">1,000 tasks from an empty system</text>",
        hollow + 9.0
    );
    for percent in [50, 60, 70, 80, 90, 95, 100] {
        let at = x(f64::from(percent) / 100.0);
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#666\">{percent}</text>",
            bottom + 14.0
        );
    }
    for (number, (workload, policy, metric)) in places.iter().enumerate() {
        let y = TOP + LINE * (number as f64 + 0.5);
        let _ = writeln!(svg, "<text x=\"4\" y=\"{:.1}\">{workload}, {policy}</text>", y + 3.0);
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#666\">{metric}</text>",
            LEFT - 8.0,
            y + 3.0
        );
        for line in lines.iter().filter(|line| {
            (line.workload.as_str(), line.policy.as_str(), line.metric.to_string())
                == (*workload, *policy, metric.clone())
        }) {
            let fill = if line.length == Length::Usual.to_string() {
                "fill=\"#2a7f62\""
            } else {
                "fill=\"none\" stroke=\"#c0392b\""
            };
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" {fill}><title>{}: {} of \
                 {}</title></circle>",
                x(line.share()),
                line.length,
                line.held,
                line.intervals
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT:.0}\" y=\"{:.0}\" fill=\"#666\">intervals that include the theoretical \
         value, in percent; 50 and less at the left</text>",
        bottom + 30.0
    );
    svg + "</svg>\n"
}
