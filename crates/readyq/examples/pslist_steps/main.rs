//! Simulates the example of the pslist post. Each row is one step: the list with all virtual run
//! times, the running task, and where it is inserted.
//!
//! ```sh
//! # 100 steps as CSV; give another number for more:
//! cargo run -q -p readyq --example pslist_steps
//! # The same as a picture (L-FIG06), and its first steps (L-FIG05):
//! cargo run -q -p readyq --example pslist_steps -- 100 svg > docs/policies/pslist-100-steps.svg
//! cargo run -q -p readyq --example pslist_steps -- 12 svg > docs/policies/pslist-steps.svg
//! ```

mod picture;
mod steps;

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100);
    if std::env::args().nth(2).as_deref() == Some("svg") {
        print!("{}", picture::draw(&steps::GRANULARITIES, count));
        return;
    }
    println!("step,list,runs,from,to,moves,spread");
    for (number, step) in steps::simulate(&steps::GRANULARITIES).take(count).enumerate() {
        let list: Vec<String> =
            step.list.iter().map(|(task, time)| format!("{}:{time}", steps::name(*task))).collect();
        let moves = if step.to_middle { "to the middle" } else { "to the tail" };
        println!(
            "{},{},{},{},{},{moves},{}",
            number + 1,
            list.join(" "),
            steps::name(step.runs),
            step.from,
            step.to,
            step.spread
        );
    }
}
