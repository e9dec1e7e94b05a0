//! Prints rooms, floors, circles and tokens of the product: `cargo run -p schedlab-house`.

use house::House;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let house = match House::read(Path::new(&root)) {
        Ok(house) => house,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(3);
        }
    };
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
    ExitCode::SUCCESS
}
