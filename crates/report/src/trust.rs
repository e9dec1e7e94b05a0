//! What the numbers rest on, in plain words: how far replays were from their recordings, and what
//! each world can and cannot show.

use super::effects::title;
use super::tables::{escape, open, percent};
use results::fidelity::{ReplayError, Replayed};
use results::{Results, World, counted, headline, quantity};
use std::fmt::Write;

/// Replays that are off by at most this are close; by at most the second, rough; else poor.
const CLOSE: f64 = 0.05;
const ROUGH: f64 = 0.2;

/// The section; empty if nothing was measured.
pub fn section(results: &Results, replays: &[Replayed]) -> String {
    let worlds = worlds(results, replays);
    if worlds.is_empty() && replays.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=trust><h2>How far to trust it</h2>\n");
    replays.iter().for_each(|replay| html += &of_replay(results, replay));
    if !worlds.is_empty() {
        html += "<ul>";
        worlds.iter().for_each(|says| html += &format!("<li>{says}\n"));
        html += "</ul>\n";
    }
    html + "</section>\n"
}

/// What a replay's error means.
fn of_replay(results: &Results, replay: &Replayed) -> String {
    let known: Vec<(&ReplayError, f64)> = replay
        .errors
        .iter()
        .filter(|one| headline().any(|(metric, _)| metric == one.metric))
        .filter_map(|one| Some((one, one.error?)))
        .collect();
    let mut html = format!(
        "<p>The recording of {} was first replayed unchanged, {} under {} on its {}, and compared \
         with what was recorded. Nine of ten replays are off by at most the error below. A \
         difference that is smaller than the error is not decided.</p>\n<ul>",
        escape(&replay.workload),
        if replay.runs == 1 { "once".to_string() } else { format!("{} times", replay.runs) },
        escape(&replay.policy),
        counted(replay.cpus.into(), "CPU"),
    );
    let within = |low: f64, high: f64| {
        let own = known.iter().filter(|(_, error)| *error > low && *error <= high);
        let named =
            own.map(|(one, error)| format!("{} ({})", escape(&title(one.metric)), percent(*error)));
        named.collect::<Vec<_>>().join(", ").replace("(+", "(")
    };
    for (word, means, low, high) in [
        ("Close, within 5 %", "small differences can be seen", -1.0, CLOSE),
        ("Rough, within 20 %", "only clear differences can be seen", CLOSE, ROUGH),
        ("Poor, beyond 20 %", "only large differences can be seen", ROUGH, f64::INFINITY),
    ] {
        let own = within(low, high);
        if !own.is_empty() {
            let _ = writeln!(html, "<li><b>{word}</b>: {own}. There {means}.");
        }
    }
    html += "</ul>\n";
    let elsewhere = results.rows.iter().any(|row| {
        row.world == replay.world
            && row.workload == replay.workload
            && row.cpus != replay.cpus
            && row.cpus > 0
    });
    if elsewhere {
        let _ = writeln!(
            html,
            "<p>On other numbers of CPUs there is no recording to hold a run against; the error of \
             {} is taken there, too.</p>",
            counted(replay.cpus.into(), "CPU")
        );
    }
    html + &table(replay)
}

/// The numbers behind the words.
fn table(replay: &Replayed) -> String {
    let caption = format!(
        "{}, {}: recorded, and {} of that unchanged",
        replay.workload,
        replay.world,
        counted(replay.runs as usize, "replay")
    );
    let mut html =
        String::from("<details><summary>Recorded and replayed, number by number</summary>\n");
    html += &open("class=fidelity", &caption);
    html += "<thead><tr><th scope=col>metric";
    for title in ["recorded", "replayed, median", "error"] {
        html += &format!("<th scope=col class=number>{title}");
    }
    html += "</thead><tbody>\n";
    for one in &replay.errors {
        let show = |value| escape(&quantity(value, one.metric.unit()));
        let error = match (one.least, one.error) {
            (Some(least), Some(error)) => {
                format!("{:.1} to {:.1} %", 100.0 * least, 100.0 * error)
            }
            _ => "–".to_string(),
        };
        let _ = writeln!(
            html,
            "<tr><th scope=row>{}<td class=number>{}<td class=number>{}<td class=number>{error}",
            escape(&title(one.metric)),
            show(one.recorded),
            show(one.replayed)
        );
    }
    html + "</tbody></table></div></details>\n"
}

/// What each world of the rows can show.
fn worlds(results: &Results, replays: &[Replayed]) -> Vec<String> {
    let mut worlds: Vec<&World> = results.rows.iter().map(|row| &row.world).collect();
    worlds.sort();
    worlds.dedup();
    let replayed = |world: &World| replays.iter().any(|replay| replay.world == *world);
    let says = |world: &World| match world {
        World::Sim if !replayed(world) => Some(
            "Simulated, from a description of the load: no real machine was held against it. The \
             differences between policies are those of the model."
                .to_string(),
        ),
        World::Sim => Some(
            "Simulated: a policy's decisions and the costs that the recording shows are in it; \
             caches, memory bandwidth and clock rates are not."
                .to_string(),
        ),
        World::Vm { kernel } => Some(format!(
            "Measured in Linux {}, unmodified, in a virtual machine whose clock counts \
             instructions: the kernel's decisions are real, but instructions are not cycles, and a \
             guest is not hardware.",
            escape(kernel)
        )),
        World::Host => Some(format!(
            "Measured on a real machine ({}, Linux {}): no two runs are equal, and another machine \
             may differ.",
            escape(&results.cpu),
            escape(&results.kernel)
        )),
        World::Callgrind => Some(
            "Counted by Valgrind, whose CPU is simulated: exact instructions, no caches or \
             pipelines of a real CPU."
                .to_string(),
        ),
        World::Hardware => Some(format!("Counted by the hardware of {}.", escape(&results.cpu))),
        World::Model => {
            Some("Counted or calculated: the same on every machine, and not a time.".to_string())
        }
        _ => None,
    };
    worlds.into_iter().filter_map(says).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Metric, Row};

    fn replay() -> Replayed {
        let error = |metric, error: Option<f64>| ReplayError {
            metric,
            recorded: 10.0,
            replayed: 11.0,
            least: error.map(|_| 0.0),
            error,
        };
        Replayed {
            workload: "<w>".to_string(),
            world: World::Sim,
            policy: "eevdf".to_string(),
            cpus: 2,
            runs: 16,
            errors: vec![
                error(Metric::makespan_ns, Some(0.05)),
                error(Metric::grr, Some(0.051)),
                error(Metric::wakeup_latency_ns_p99, Some(1.5)),
                error(Metric::idle_waste, None),
            ],
        }
    }

    #[test]
    fn errors_are_in_words_by_their_size_and_those_unknown_are_in_none() {
        let row = Row { cpus: 2, workload: "<w>".to_string(), ..Row::new(World::Sim, Metric::grr) };
        let html = section(&Results::new(vec![row.clone()]), &[replay()]);
        for words in [
            "&lt;w&gt; was first replayed unchanged, 16 times under eevdf on its 2 CPUs",
            "<b>Close, within 5 %</b>: makespan (5.0 %).",
            "<b>Rough, within 20 %</b>: GRR (5.1 %).",
            "<b>Poor, beyond 20 %</b>: wake p99 (150 %).",
            "caches, memory bandwidth",
        ] {
            assert!(html.contains(words), "{words}: {html}");
        }
        assert!(!html.contains("On other numbers of CPUs") && !html.contains("<w>"), "{html}");
        let more = Row { cpus: 4, ..row };
        let html = section(&Results::new(vec![more]), &[replay()]);
        assert!(html.contains("On other numbers of CPUs"), "{html}");
    }

    #[test]
    fn a_model_without_a_recording_says_so_and_an_empty_page_nothing() {
        let html = section(&Results::new(vec![Row::new(World::Sim, Metric::grr)]), &[]);
        assert!(html.contains("no real machine was held against it"), "{html}");
        assert_eq!(section(&Results::new(Vec::new()), &[]), "");
    }
}
