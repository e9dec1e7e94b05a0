//! The instructions of an operation by the kernel's functions. They are a flame graph by the parts
//! of the scheduler's path, and bars, all on one scale.

use super::scheduler_path;
use super::tables::{escape, open};
use results::{CALLBACKS, Metric, Results, Row, SubjectKind};
use std::fmt::Write;

/// The most functions of one kernel and candidate that have a bar of their own.
const MOST: usize = 24;

/// What one candidate's operation consists of, in one kernel.
struct Split<'a> {
    of: &'a Row,
    /// Functions with their instructions, the most first.
    parts: Vec<(&'a str, f64)>,
}

/// The section; empty if nothing was split by function.
pub fn section(results: &Results) -> String {
    let splits = splits(&results.rows);
    let most = splits.iter().filter_map(|split| split.parts.first()).map(|part| part.1);
    let most = most.fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    let mut html = String::from(
        "<section id=functions><h2>Instructions by function</h2>\n<p class=note>Of one yield, or of \
         a whole run, all code included. At the left all instructions, then the part of the \
         scheduler's path that a function belongs to by its name, then the function. Heights are \
         instructions, on one scale for all yields and one for all runs. Hold the pointer over a \
         field for its numbers; the bars below have them, too.</p>\n",
    );
    let all_of = |split: &Split<'_>| split.parts.iter().map(|(_, count)| count).sum::<f64>();
    for split in &splits {
        let Split { of, parts } = split;
        let like = || splits.iter().filter(|other| other.of.metric == of.metric);
        let largest = like().map(all_of).fold(0.0, f64::max);
        let most = like().filter_map(|other| other.parts.first()).map(|part| part.1);
        let (all, most) = (all_of(split), most.fold(0.0, f64::max));
        if most == 0.0 {
            continue;
        }
        let name = format!("{}, {}, {}", of.workload, of.world, of.candidate);
        let _ = write!(
            html,
            "<h3>{}: {all:.1}</h3>\n{}{}<details><summary>As bars</summary>{}",
            escape(&name),
            sides(&results.rows, of, all),
            scheduler_path::picture(parts, largest),
            open("class=bars", &format!("Instructions by function of {name}"))
        );
        for (name, count) in parts.iter().take(MOST) {
            html += &bar(name, *count, most, all);
        }
        let rest: f64 = parts.iter().skip(MOST).map(|(_, count)| count).sum();
        if let Some(others) = parts.len().checked_sub(MOST).filter(|others| *others > 0) {
            html += &bar(&format!("{others} others"), rest, most, all);
        }
        html += "</table></div></details>\n";
        html += &callbacks(&results.rows, of, &name);
    }
    html + "</section>\n"
}

/// Whether two rows are of the same run of a candidate.
fn is_same_run(a: &Row, b: &Row) -> bool {
    let key = |row: &Row| (row.cpus, row.workload.clone(), row.candidate.clone());
    a.world == b.world && key(a) == key(b)
}

/// Whose instructions they are, in a sentence.
fn sides(rows: &[Row], of: &Row, all: f64) -> String {
    let metric = match of.metric {
        Metric::instructions_in_function => Metric::instructions_of_side,
        _ => Metric::instructions_per_yield_of_side,
    };
    let own = rows.iter().filter(|row| row.metric == metric && is_same_run(row, of));
    let mut sides: Vec<(&str, f64)> =
        own.filter_map(|row| Some((row.subject_of(SubjectKind::Side)?, row.value?))).collect();
    sides.retain(|(_, count)| *count >= 0.05);
    sides.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let side = |(name, count): &(&str, f64)| {
        format!("{} {count:.1} ({:.0} %)", escape(name), 100.0 * count / all)
    };
    match &sides[..] {
        [] => String::new(),
        _ => format!("<p>{}.</p>\n", sides.iter().map(side).collect::<Vec<_>>().join(", ")),
    }
}

/// What each callback of a scheduler takes; empty if it has none.
fn callbacks(rows: &[Row], of: &Row, run: &str) -> String {
    let value = |callback: &str, metric| {
        rows.iter().find(|row| {
            row.metric == metric
                && is_same_run(row, of)
                && row.subject_of(SubjectKind::Callback) == Some(callback)
        })
    };
    let all =
        rows.iter().filter(|row| row.metric == Metric::callback_calls && is_same_run(row, of));
    let mut names: Vec<(&str, f64)> =
        all.filter_map(|row| Some((row.subject_of(SubjectKind::Callback)?, row.value?))).collect();
    if names.is_empty() {
        return String::new();
    }
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let mut html = String::from(
        "<details><summary>Callbacks: instructions of a call, with all that it calls</summary>",
    );
    html += &open("class=callbacks", &format!("Callbacks of {run}"));
    html += "<thead><tr><th scope=col>callback";
    CALLBACKS.iter().for_each(|(_, head)| html += &format!("<th scope=col>{head}"));
    html += "</thead>\n";
    for (name, _) in names {
        html += &format!("<tr><th scope=row>{}", escape(name));
        for (metric, _) in CALLBACKS {
            let value = value(name, metric).and_then(|row| row.value);
            html += &value.map_or_else(
                || "<td>".to_string(),
                |value| match metric {
                    Metric::callback_calls => format!("<td class=number>{value:.4}"),
                    _ => format!("<td class=number>{value:.0}"),
                },
            );
        }
        html.push('\n');
    }
    html + "</table></div></details>\n"
}

/// A row with the name, a bar as wide as `count` is of `most`, the number and its share of `all`.
fn bar(name: &str, count: f64, most: f64, all: f64) -> String {
    format!(
        "<tr><th scope=row>{}<td><div style=\"width:{:.2}%\"></div><td class=number>{count:.1}<td \
         class=number>{:.1} %\n",
        escape(name),
        (100.0 * count / most).min(100.0),
        100.0 * count / all
    )
}

fn splits(rows: &[Row]) -> Vec<Split<'_>> {
    let mut splits: Vec<Split<'_>> = Vec::new();
    let metrics = [Metric::instructions_per_yield_in_function, Metric::instructions_in_function];
    for row in rows.iter().filter(|row| metrics.contains(&row.metric)) {
        let (Some(function), Some(count)) = (row.subject_of(SubjectKind::Function), row.value)
        else {
            continue;
        };
        let is_same = |split: &&mut Split<'_>| {
            let of = split.of;
            let of = (of.metric, &of.workload, &of.world, of.cpus, &of.candidate);
            of == (row.metric, &row.workload, &row.world, row.cpus, &row.candidate)
        };
        match splits.iter_mut().find(is_same) {
            Some(split) => split.parts.push((function, count)),
            None => splits.push(Split { of: row, parts: vec![(function, count)] }),
        }
    }
    for split in &mut splits {
        split.parts.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::World;

    fn row(candidate: &str, function: &str, count: f64) -> Row {
        let world = World::Vm { kernel: "6.18".to_string() };
        let row = Row::new(world, Metric::instructions_per_yield_in_function);
        Row {
            workload: "yield:2".to_string(),
            candidate: candidate.to_string(),
            value: Some(count),
            ..row
        }
        .of(SubjectKind::Function, function)
    }

    #[test]
    fn bars_of_all_candidates_have_one_scale_and_small_functions_are_summed_up() {
        let rows_of_two = || {
            let mut rows =
                vec![row("kernel:other", "__schedule", 200.0), row("bpf:rr", "<b>", 100.0)];
            rows.extend((0..30).map(|number| row("kernel:other", &format!("f{number}"), 10.0)));
            rows
        };
        let html = section(&Results::new(rows_of_two()));
        assert!(html.contains("kernel:other: 500.0") && html.contains("bpf:rr: 100.0"), "{html}");
        assert!(html.contains("width:100.00%") && html.contains("width:50.00%"), "{html}");
        // 23 of the 30 have a bar.
        assert!(
            html.contains("7 others") && html.contains("70.0<td class=number>14.0 %"),
            "{html}"
        );
        assert!(html.contains("&lt;b>") || html.contains("&lt;b&gt;"), "{html}");
        let side = Row {
            metric: Metric::instructions_per_yield_of_side,
            ..row("bpf:rr", "scheduler in BPF", 25.0)
        };
        let side = side.of(SubjectKind::Side, "scheduler in BPF");
        let call = Row { metric: Metric::callback_instructions_max, ..row("bpf:rr", "", 77.0) };
        let calls = Row { metric: Metric::callback_calls, ..row("bpf:rr", "", 1.0) };
        let callback = |row: Row| row.of(SubjectKind::Callback, "<i>enqueue");
        let more = [side, callback(call), callback(calls)];
        let html_of_side = section(&Results::new(rows_of_two().into_iter().chain(more).collect()));
        assert!(html_of_side.contains("scheduler in BPF 25.0 (25 %)"), "{html_of_side}");
        assert!(html_of_side.contains("&lt;i") && html_of_side.contains(">77"), "{html_of_side}");
        // A picture each, and that of the whole run has a scale of its own.
        assert_eq!(html.matches("<svg class=flame").count(), 2, "{html}");
        let run = Row { metric: Metric::instructions_in_function, ..row("kernel:other", "f", 1e6) };
        let both = section(&Results::new([rows_of_two(), vec![run]].concat()));
        assert_eq!(both.matches("<svg class=flame").count(), 3, "{both}");
        assert_eq!(both.matches("viewBox=\"0 0 360 560.0\"").count(), 2, "{both}");
    }

    #[test]
    fn without_functions_there_is_no_section() {
        let row = Row { metric: Metric::instructions_per_yield, ..row("a", "f", 1.0) };
        assert_eq!(section(&Results::new(vec![row])), "");
    }
}
