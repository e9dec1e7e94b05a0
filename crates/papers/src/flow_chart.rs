//! The phases of a task as a flow chart: a box for each phase, from top to bottom, and a frame
//! around each loop.

use schedsim::workload::{LoopPhase, Phase, Tasks};
use serde_json::Value;
use std::fmt::Write;

/// In pixels: a box, the gap between two boxes, and the margin of a frame.
const WIDTH: u32 = 240;
const HEIGHT: u32 = 26;
const GAP: u32 = 16;
const FRAME: u32 = 14;

/// The chart of the phases of each of `tasks`.
pub fn flow_chart(tasks: &Tasks) -> String {
    let depth = depth(&tasks.phases);
    let mut chart = Chart { svg: String::new(), middle: FRAME * depth + WIDTH / 2 + 2 };
    let mut y = chart.mark(&tasks.name, 2, "rx=13");
    y = chart.phases(&tasks.phases, y, depth);
    let bottom = chart.mark("end", y, "rx=13");
    format!(
        "<svg viewBox=\"0 0 {} {}\" style=\"max-width:24rem\" role=img \
         xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
        2 * chart.middle + 90,
        bottom - GAP + 2,
        chart.svg
    )
}

/// The nesting depth of loops.
fn depth(phases: &[Phase]) -> u32 {
    let of =
        |phase: &Phase| if let Phase::Loop(inner) = phase { 1 + depth(&inner.phases) } else { 0 };
    phases.iter().map(of).max().unwrap_or(0)
}

struct Chart {
    svg: String,
    middle: u32,
}

impl Chart {
    /// Draws a box at `y`, with a line down from it. Returns the position of the next box.
    fn mark(&mut self, text: &str, y: u32, shape: &str) -> u32 {
        let (left, bottom) = (self.middle - WIDTH / 2, y + HEIGHT);
        let _ = write!(
            self.svg,
            "<rect x={left} y={y} width={WIDTH} height={HEIGHT} {shape} fill=none \
             stroke=currentColor />"
        );
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(
            self.svg,
            "<text x={} y={} font-size=13 text-anchor=middle fill=currentColor>{text}</text>",
            self.middle,
            y + 17
        );
        if text != "end" {
            let _ = write!(
                self.svg,
                "<path d=\"M{} {bottom}v{GAP}\" stroke=currentColor />",
                self.middle
            );
        }
        bottom + GAP
    }

    /// Draws all of these; `depth` counts the frames around them or in them.
    fn phases(&mut self, phases: &[Phase], mut y: u32, depth: u32) -> u32 {
        for phase in phases {
            y = match phase {
                Phase::Loop(inner) => self.repeated(inner, y, depth),
                other => self.mark(&words(other), y, ""),
            };
        }
        y
    }

    fn repeated(&mut self, LoopPhase { times, phases }: &LoopPhase, y: u32, depth: u32) -> u32 {
        let bottom = self.phases(phases, y + FRAME, depth - 1) - GAP + FRAME;
        let (left, width) = (self.middle - WIDTH / 2 - FRAME * depth, WIDTH + 2 * FRAME * depth);
        let _ = write!(
            self.svg,
            "<rect x={left} y={y} width={width} height={} rx=4 fill=none stroke=currentColor \
             stroke-dasharray=\"5 3\" />",
            bottom - y
        );
        let times = times.map_or("for ever".to_string(), |times| format!("{times} times"));
        let _ = write!(
            self.svg,
            "<text x={} y={} font-size=13 fill=currentColor>{times}</text>",
            2 * self.middle + 4,
            y + 14
        );
        let _ =
            write!(self.svg, "<path d=\"M{} {bottom}v{GAP}\" stroke=currentColor />", self.middle);
        bottom + GAP
    }
}

/// A phase in the words of a workload file.
fn words(phase: &Phase) -> String {
    fn of(value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| format!("{key} {}", of(value)))
                .collect::<Vec<_>>()
                .join(" "),
            other => other.to_string(),
        }
    }
    serde_json::to_value(phase).map_or_else(|_| String::new(), |value| of(&value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::Nanos;

    #[test]
    fn each_phase_has_a_box_and_each_loop_a_frame() {
        let inner = Phase::repeat(3, vec![Phase::Run(Nanos(16_000)), Phase::Yield]);
        let tasks =
            Tasks::new("a < b", vec![Phase::Lock("stdout".into()), Phase::forever(vec![inner])]);
        let svg = flow_chart(&tasks);
        for text in ["a &lt; b", "lock stdout", "run 16us", "yield", "3 times", "for ever", "end"] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}: {svg}");
        }
        assert_eq!((svg.matches("<rect").count(), svg.matches("stroke-dasharray").count()), (7, 2));
    }
}
