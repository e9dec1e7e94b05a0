//! Differences from the baseline as a picture: for each decided number a dot, and a whisker that is
//! its 95 % interval.
//!
//! A table for each metric, so that every picture has a scale of its own and its numbers stand
//! beside it as text. The scale is of ratios: half and twice are equally far from the baseline.

use super::place::{Place, Places};
use super::tables::{escape, percent, size};
use results::{Better, Metric, Results, Row, Verdict, counted, headline, is_headline};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The ratios at which a scale may end.
const FACTORS: [f64; 12] = [1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0];
/// The most pictures that are open, and the most rows of all.
const OPEN: usize = 24;
const MOST_ROWS: usize = 400;
/// The room at both sides of a picture, in hundredths of its width.
const BORDER: f64 = 4.0;

/// The rows of one metric in one place: a picture.
struct Panel<'r> {
    metric: Metric,
    place: Place<'r>,
    rows: Vec<&'r Row>,
}

impl Panel<'_> {
    fn has(&self, verdict: Verdict) -> bool {
        self.rows.iter().any(|row| row.verdict == Some(verdict))
    }
}

/// The section; empty if nothing was compared.
pub fn section(results: &Results) -> String {
    let panels = panels(results);
    if panels.is_empty() {
        return String::new();
    }
    let (main, others): (Vec<_>, Vec<_>) =
        panels.iter().partition(|panel| is_main(results, panel.metric));
    let places = Places::of(panels.iter().map(|panel| &panel.place));
    let mut room = MOST_ROWS;
    let mut html = String::from(
        "<section id=effects><h2>Differences from the baseline</h2>\n<p class=note>The line in the \
         picture is the baseline. A dot is the mean difference, its whisker the 95 % interval: \
         <span class=better>● better</span>, <span class=worse>◆ worse</span>, ○ equivalent. The \
         scale is of ratios and each metric's own; an arrow (‹ ›) is a difference beyond it.</p>\n",
    );
    html += &group(&main, &places, &mut room);
    if !others.is_empty() {
        let _ = writeln!(
            html,
            "<details><summary>The other metrics: {}</summary>\n{}</details>",
            counts(&others),
            group(&others, &places, &mut room)
        );
    }
    if room == 0 {
        let _ = writeln!(
            html,
            "<p class=note>The first {MOST_ROWS} numbers are drawn; results.json has all.</p>"
        );
    }
    html + &reasons(&main) + "</section>\n"
}

/// Pictures of the metrics in which something is better or worse, and the names of the others.
fn group(panels: &[&Panel<'_>], places: &Places<'_>, room: &mut usize) -> String {
    let is_shown = |panel: &&&Panel<'_>| panel.has(Verdict::Better) || panel.has(Verdict::Worse);
    let (shown, even): (Vec<_>, Vec<_>) = panels.iter().partition(is_shown);
    let mut html = format!("<p>{}.</p>\n", counts(panels));
    let (open, folded) = shown.split_at(shown.len().min(OPEN));
    html += &pictures(open, places, room);
    if !folded.is_empty() {
        let _ = writeln!(
            html,
            "<details><summary>{} more</summary>\n{}</details>",
            folded.len(),
            pictures(folded, places, room)
        );
    }
    if !even.is_empty() {
        let names: Vec<String> =
            even.iter().take(OPEN).map(|panel| caption(panel, places)).collect();
        let more = even.len().saturating_sub(OPEN);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let _ = writeln!(
            html,
            "<p class=note>Nothing is better or worse in: {}{more}.</p>",
            names.join("; ")
        );
    }
    html
}

/// How many numbers have which verdict.
fn counts(panels: &[&Panel<'_>]) -> String {
    let count = |verdict| {
        let all = panels.iter().flat_map(|panel| &panel.rows);
        all.filter(|row| row.verdict == Some(verdict)).count()
    };
    format!(
        "{} better, {} worse, {} equivalent, {} undecided",
        count(Verdict::Better),
        count(Verdict::Worse),
        count(Verdict::Equivalent),
        count(Verdict::Undecided)
    )
}

/// Whether a metric is one of those in the tables for people; all are if none of the results' is.
pub fn is_main(results: &Results, metric: Metric) -> bool {
    let titled = |metric: Metric| {
        matches!(metric, Metric::printed(_)) || headline().any(|(one, _)| one == metric)
    };
    let compared = || {
        let rows = results.rows.iter().filter(|row| row.subject.is_none());
        rows.filter(|row| row.verdict.is_some_and(is_of_comparison)).map(|row| row.metric)
    };
    match (compared().any(titled), compared().any(is_headline)) {
        (true, _) => titled(metric),
        (false, true) => is_headline(metric),
        (false, false) => true,
    }
}

/// Why numbers are undecided, the most frequent reason first.
fn reasons(panels: &[&Panel<'_>]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in panels.iter().flat_map(|panel| &panel.rows) {
        if let (Some(Verdict::Undecided), Some(reason)) = (row.verdict, &row.reason) {
            *counts.entry(reason).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    if counts.is_empty() {
        return String::new();
    }
    let more = counts.len().saturating_sub(OPEN);
    counts.truncate(OPEN);
    let mut html = String::from("<details><summary>Why numbers are undecided</summary>\n<ul>");
    for (reason, count) in counts {
        let _ = writeln!(html, "<li>{}: {}", counted(count, "number"), escape(reason));
    }
    if more > 0 {
        let _ = writeln!(html, "<li>and {}", counted(more, "other reason"));
    }
    html + "</ul></details>\n"
}

/// The numbers of complete runs that were compared, in the metrics of the tables for people.
pub fn main(results: &Results) -> Vec<&Row> {
    let rows = results.rows.iter().filter(|row| {
        row.subject.is_none() && row.baseline.is_some() && row.verdict.is_some_and(is_of_comparison)
    });
    rows.filter(|row| is_main(results, row.metric)).collect()
}

/// All metrics with a verdict, in the order of the tables, then by place.
fn panels(results: &Results) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    let rows = results.rows.iter().filter(|row| {
        row.subject.is_none() && row.baseline.is_some() && row.verdict.is_some_and(is_of_comparison)
    });
    for row in rows {
        let place = Place::of(row);
        match panels.iter_mut().find(|panel| panel.metric == row.metric && panel.place == place) {
            Some(panel) => panel.rows.push(row),
            None => panels.push(Panel { metric: row.metric, place, rows: vec![row] }),
        }
    }
    let rank = |metric: Metric| headline().position(|(one, _)| one == metric);
    panels.sort_by_key(|panel| {
        (rank(panel.metric).unwrap_or(usize::MAX), !is_headline(panel.metric))
    });
    panels
}

/// Whether a verdict compares a candidate with a baseline.
pub fn is_of_comparison(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent | Verdict::Undecided)
}

fn caption(panel: &Panel<'_>, places: &Places<'_>) -> String {
    let place = places.label(&panel.place);
    let separator = if place.is_empty() { "" } else { ", " };
    format!("{}{separator}{}", escape(&title(panel.metric)), escape(&place))
}

fn pictures(panels: &[&&Panel<'_>], places: &Places<'_>, room: &mut usize) -> String {
    let mut html = String::from("<div class=panels>\n");
    for panel in panels {
        let decided = |row: &&&Row| row.verdict != Some(Verdict::Undecided);
        let decided: Vec<&Row> = panel.rows.iter().filter(decided).take(*room).copied().collect();
        if decided.is_empty() {
            continue;
        }
        *room -= decided.len();
        let scale = Scale::of(&decided);
        let wish = match panel.metric.description().direction {
            Better::Lower => " <small>less is better</small>",
            Better::Higher => " <small>more is better</small>",
            Better::Neither => "",
        };
        let against = panel.rows[0].baseline.as_deref().unwrap_or_default();
        let _ = writeln!(
            html,
            "<table class=effects><caption>{}{wish}</caption><thead><tr><th scope=col>against \
             {}<th scope=col class=axis>{}<th scope=col class=number>difference</thead><tbody>",
            caption(panel, places),
            escape(against),
            scale.axis()
        );
        decided.iter().for_each(|row| html += &line(&row.candidate, row, &scale));
        html += "</tbody>";
        let open: Vec<&str> = panel
            .rows
            .iter()
            .filter(|row| row.verdict == Some(Verdict::Undecided))
            .map(|row| row.candidate.as_str())
            .collect();
        if !open.is_empty() {
            let _ = write!(
                html,
                "<tfoot><tr><td colspan=3>Undecided: {}</tfoot>",
                escape(&open.join(", "))
            );
        }
        html += "</table>\n";
    }
    html + "</div>\n"
}

/// The title of a metric in tables, or its name.
pub fn title(metric: Metric) -> String {
    if let Metric::printed(printed) = metric {
        return printed.name().to_string();
    }
    headline()
        .find(|(one, _)| *one == metric)
        .map_or_else(|| metric.id().replace('_', " "), |(_, title)| title.to_string())
}

/// A line of a picture: its name, dot and whisker, and the same as text.
fn line(name: &str, row: &Row, scale: &Scale) -> String {
    let (class, word) = match row.verdict {
        Some(Verdict::Better) => ("better", "better"),
        Some(Verdict::Worse) => ("worse", "worse"),
        _ => ("equivalent", "="),
    };
    let interval = row.effect_low.zip(row.effect_high);
    let interval = interval.map_or(String::new(), |(low, high)| {
        let (low, high) = (percent(low), percent(high));
        let low = low.strip_suffix(" %").unwrap_or(&low);
        format!(" <small>{}</small>", no_break(&format!("{low} to {high}")))
    });
    let difference = row.effect.map_or_else(|| size(row), percent);
    format!(
        "<tr><th scope=row>{}<td class=picture>{}<td class=\"number {class}\">{word} \
         {}{interval}\n",
        escape(name),
        scale.picture(row, class),
        escape(&no_break(&difference))
    )
}

/// The logarithm of the ratio of an effect.
fn log(effect: f64) -> f64 {
    (1.0 + effect).max(1e-9).ln()
}

/// Text that stays on one line.
fn no_break(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// A scale of ratios around the baseline.
struct Scale {
    /// The ratios at its ends: below one, and above.
    least: f64,
    most: f64,
    /// Whether differences decide the end on each side; only such an end has a label.
    decided: [bool; 2],
}

impl Scale {
    /// The smallest that holds all intervals of `rows`, or the largest there is. A side without
    /// differences has half the room of the other, so that the baseline is not at the border.
    fn of(rows: &[&Row]) -> Scale {
        let ends = rows.iter().flat_map(|row| [row.effect_low, row.effect, row.effect_high]);
        let logs: Vec<f64> = ends.flatten().map(log).collect();
        let most = |sign: f64| logs.iter().map(|log| log * sign).fold(0.0, f64::max);
        let (below, above) = (most(-1.0), most(1.0));
        let factor = |most: f64| {
            let holds = |factor: &&f64| factor.ln() >= most - 1e-9;
            *FACTORS.iter().find(holds).unwrap_or(&FACTORS[FACTORS.len() - 1])
        };
        Scale {
            least: 1.0 / factor(below.max(above / 2.0)),
            most: factor(above.max(below / 2.0)),
            decided: [below >= above / 2.0, above >= below / 2.0],
        }
    }

    /// The place of a ratio's logarithm, in hundredths of the width.
    fn at(&self, log: f64) -> f64 {
        let (least, most) = (self.least.ln(), self.most.ln());
        BORDER + (100.0 - 2.0 * BORDER) * (log.clamp(least, most) - least) / (most - least)
    }

    /// The place of an effect, and whether it lies beyond the scale.
    fn place(&self, effect: f64) -> (f64, bool) {
        let log = log(effect);
        (self.at(log), log < self.least.ln() - 1e-9 || log > self.most.ln() + 1e-9)
    }

    /// What stands above the picture: both ends and the baseline.
    fn axis(&self) -> String {
        let end = |side: usize, ratio: f64| {
            let text = format!("{:+.0} %", 100.0 * (ratio - 1.0)).replace('-', "−");
            if self.decided[side] { no_break(&text) } else { String::new() }
        };
        format!(
            "<span>{}</span><span style=\"left:{:.1}%\">0</span><span>{}</span>",
            end(0, self.least),
            self.at(0.0),
            end(1, self.most)
        )
    }

    /// The dot and the whisker. The text beside them says the same, so they are not read aloud.
    fn picture(&self, row: &Row, class: &str) -> String {
        let Some(effect) = row.effect else {
            return "<small>no share: the baseline is near zero</small>".to_string();
        };
        let mut svg =
            String::from("<svg class=whisker aria-hidden=true><line class=zero y1=0 y2=100% ");
        let _ = write!(svg, "x1={0:.1}% x2={0:.1}% />", self.at(0.0));
        let (at, beyond) = self.place(effect);
        let arrow = |svg: &mut String, end: f64| {
            let way = if end < self.at(0.0) { '‹' } else { '›' };
            let _ = write!(svg, "<text class={class} x={end:.2}% y=75%>{way}</text>");
        };
        if beyond {
            arrow(&mut svg, at);
            return svg + "</svg>";
        }
        if let Some((low, high)) = row.effect_low.zip(row.effect_high) {
            let ends = [self.place(low), self.place(high)];
            let [(from, _), (to, _)] = ends;
            let _ = write!(svg, "<line class={class} x1={from:.2}% x2={to:.2}% y1=50% y2=50% />");
            ends.iter().filter(|end| end.1).for_each(|end| arrow(&mut svg, end.0));
        }
        let _ = match class {
            "worse" => write!(
                svg,
                "<svg x={at:.2}% y=50% overflow=visible><path class={class} d=\"M0-6L6 0L0 6L-6 \
                 0z\" /></svg>"
            ),
            _ => write!(svg, "<circle class={class} cx={at:.2}% cy=50% r=5 />"),
        };
        svg + "</svg>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    fn row(candidate: &str, verdict: Verdict, [low, effect, high]: [f64; 3]) -> Row {
        Row {
            candidate: candidate.to_string(),
            baseline: Some("eevdf".to_string()),
            verdict: Some(verdict),
            effect_low: Some(low),
            effect: Some(effect),
            effect_high: Some(high),
            ..Row::new(World::Sim, Metric::makespan_ns)
        }
    }

    #[test]
    fn half_and_twice_are_equally_far_from_the_baseline_and_more_is_an_arrow() {
        let scale = Scale { least: 0.5, most: 2.0, decided: [true; 2] };
        assert_eq!(scale.place(0.0), (50.0, false));
        let ((half, cut), (twice, _)) = (scale.place(-0.5), scale.place(1.0));
        assert!((half - 4.0).abs() < 1e-9 && (twice - 96.0).abs() < 1e-9 && !cut);
        assert_eq!((scale.place(5.0), scale.place(-1.0)), ((96.0, true), (4.0, true)));
        assert_eq!(
            scale.axis(),
            "<span>−50\u{a0}%</span><span style=\"left:50.0%\">0</span><span>+100\u{a0}%</span>"
        );
    }

    #[test]
    fn a_scale_holds_every_interval_of_its_rows() {
        let rows = [
            row("a", Verdict::Better, [-0.2, -0.1, -0.05]),
            row("b", Verdict::Worse, [0.1, 0.2, 0.4]),
        ];
        let scale = Scale::of(&[&rows[0], &rows[1]]);
        assert_eq!((1.0 / scale.least, scale.most), (1.35, 1.5));
        assert!(rows.iter().all(|row| !scale.place(row.effect_high.unwrap()).1));
        let large = Scale::of(&[&row("c", Verdict::Worse, [8.0, 90.0, 99.0])]);
        assert_eq!((1.0 / large.least, large.most), (10.0, 20.0));
        assert!(large.place(0.0).0 > 33.0, "the baseline is not at the border");
    }

    #[test]
    fn a_difference_beyond_the_scale_is_one_arrow_and_a_side_without_differences_has_no_label() {
        let far = row("far", Verdict::Worse, [40.0, 80.0, 99.0]);
        let scale = Scale::of(&[&far]);
        assert!(scale.axis().starts_with("<span></span>"), "{}", scale.axis());
        let picture = scale.picture(&far, "worse");
        assert_eq!([picture.matches('›').count(), picture.matches('‹').count()], [1, 0]);
        assert!(!picture.contains("<path"), "{picture}");
        let cut = scale.picture(&row("cut", Verdict::Better, [-0.99, -0.2, -0.1]), "better");
        assert!(cut.contains('‹') && cut.contains("<circle"), "{cut}");
    }

    #[test]
    fn decided_rows_are_drawn_undecided_ones_named_and_markup_stays_text() {
        let rows = vec![
            row("<good>", Verdict::Better, [-0.2, -0.1, -0.05]),
            row("bad", Verdict::Worse, [0.1, 0.2, 0.4]),
            row("same", Verdict::Equivalent, [-0.01, 0.0, 0.01]),
            row("open", Verdict::Undecided, [-0.5, 0.1, 0.9]),
        ];
        let html = section(&Results::new(rows));
        assert_eq!(html.matches("<svg class=whisker").count(), 3, "{html}");
        assert!(html.contains("1 better, 1 worse, 1 equivalent, 1 undecided"), "{html}");
        assert!(html.contains("Undecided: open") && html.contains("&lt;good&gt;"), "{html}");
        assert!(
            html.contains("better −10\u{a0}%") && html.contains("−20\u{a0}to\u{a0}−5.0\u{a0}%"),
            "{html}"
        );
        assert!(!html.contains("<good>"), "{html}");
        let open = vec![row("open", Verdict::Undecided, [-0.5, 0.1, 0.9])];
        let html = section(&Results::new(open));
        assert!(html.contains("Nothing is better or worse in: makespan"), "{html}");
    }

    #[test]
    fn without_a_baseline_there_is_no_section_and_rows_are_limited() {
        let rows = vec![Row::new(World::Sim, Metric::makespan_ns)];
        assert_eq!(section(&Results::new(rows)), "");
        let many = (0..500).map(|n| row(&format!("c{n}"), Verdict::Worse, [0.1, 0.2, 0.4]));
        let html = section(&Results::new(many.collect()));
        assert_eq!(html.matches("<svg class=whisker").count(), MOST_ROWS);
        assert!(html.contains("The first 400 numbers are drawn"), "it is said");
    }
}
