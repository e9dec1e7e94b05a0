//! Prints the pslist post's simulation: one row per step, the list with everybody's virtual run time, who runs, and where it goes.
//!
//! `cargo run -p readyq --example pslist_steps` prints 100 steps as CSV; give another number for more.

mod steps;

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100);
    println!("step,list,runs,from,to,moves,spread");
    for (number, step) in steps::simulate(&steps::GRANULARITIES).take(count).enumerate() {
        let list: Vec<String> = step.list.iter().map(|(task, time)| format!("{}:{time}", steps::name(*task))).collect();
        let moves = if step.to_middle { "to the middle" } else { "to the tail" };
        println!("{},{},{},{},{},{moves},{}", number + 1, list.join(" "), steps::name(step.runs), step.from, step.to, step.spread);
    }
}
