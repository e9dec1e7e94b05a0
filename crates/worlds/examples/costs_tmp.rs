use worlds::experiment::KnownCosts;
fn main() {
    for path in std::env::args().skip(1) {
        let known = KnownCosts::load(path.as_ref(), |f, o, v| Ok(formats::import::read(f, &o, v)?))
            .unwrap();
        println!("{path}");
        for of in known.calibrations() {
            let at = |s| of.at(s).unwrap_or(0);
            println!(
                "  {:12} n {:6} min {:6} q1 {:6} med {:6} q3 {:6} max {:6}",
                of.name,
                of.n,
                at(0.0),
                at(0.25),
                at(0.5),
                at(0.75),
                at(1.0)
            );
        }
    }
}
