//! `cargo run -p schedlab-house` prints rooms, floors, circles and tokens of the product. Followed
//! by `-- words`, it prints how long the sentences of each page are, and each phrase to avoid.
//! `-- words --lower` also lowers the budget of long sentences to what it finds.

use house::{House, words};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let printed = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => print_house(),
        ["words"] => print_words(false),
        ["words", "--lower"] => print_words(true),
        _ => Err("usage: schedlab-house [words [--lower]], from the root of the project".into()),
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(3)
        }
    }
}

fn print_words(lower: bool) -> Result<(), String> {
    let pages = words::pages(Path::new("."))?;
    let mut total = [0; 3];
    println!("sentences  words each  long  avoided");
    let line = |path: &str, [sentences, words, long]: [usize; 3], avoided: usize| {
        let mean = words as f64 / sentences.max(1) as f64;
        println!("{sentences:9}  {mean:10.1}  {long:4}  {avoided:7}  {path}");
    };
    for (path, found) in &pages {
        let counts = [found.sentences, found.words, found.long.len()];
        total = [0, 1, 2].map(|at| total[at] + counts[at]);
        line(path, counts, found.avoided.len());
    }
    line("all", total, pages.values().map(|found| found.avoided.len()).sum());
    for (path, found) in &pages {
        if !path.ends_with("/src") {
            found.long.iter().chain(&found.avoided).for_each(|what| println!("{what}"));
        }
    }
    if lower {
        let wrong = |error| format!("{}: {error}", words::BUDGET);
        let budget = fs::read_to_string(words::BUDGET).map_err(wrong)?;
        fs::write(words::BUDGET, words::lowered(&budget, &pages)?).map_err(wrong)?;
    }
    Ok(())
}

fn print_house() -> Result<(), String> {
    let house = House::read(Path::new("."))?;
    let (floors, tokens) = (house.floors(), house.tokens());
    for package in &house.packages {
        let rooms = house.rooms.iter().filter(|room| room.package == package.name).count();
        let (floor, tokens) =
            (floors[package.name.as_str()], tokens.get(package.name.as_str()).unwrap_or(&0));
        println!("{:22} floor {floor}  {rooms:4} rooms  {tokens:7} tokens", package.name);
    }
    let circles = house.circles();
    for circle in &circles {
        println!("circle: {}", circle.join(" "));
    }
    let upwards = house.upwards();
    for (from, to) in &upwards {
        println!("upwards: {} imports {}", from.path, to.path);
    }
    println!(
        "{} rooms, {} arrows, {} upwards, {} circles, {} tokens",
        house.rooms.len(),
        house.arrows.len(),
        upwards.len(),
        circles.len(),
        tokens.values().sum::<usize>()
    );
    Ok(())
}
