//! How claims stand, over all of their checks and in each world that they were put to.

use super::is_of;
use crate::output::{self, Row, Verdict, quantity};
use std::collections::BTreeSet;
use std::fmt;

/// A claim of a paper's text: `A-CLM07` with all that is `A-CLM07-…`.
pub struct Claim<'r> {
    /// Its id, without a world.
    pub id: String,
    /// Its checks, in all worlds.
    pub checks: Vec<&'r Row>,
}

/// What becomes of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// Every check that decides anything says so.
    Holds,
    /// Some do, some do not.
    InPart,
    /// None does.
    Fails,
    /// None decides.
    Undecided,
    /// There was nothing to measure it by.
    Skipped,
}

/// Where a number comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum World {
    /// A ready queue alone.
    Queues,
    /// The simulator.
    Simulator,
    /// A real kernel under an emulator.
    Kernel,
    /// The machine at hand.
    Host,
}

impl Standing {
    /// All of them.
    pub const ALL: [Standing; 5] = [Standing::Holds, Standing::InPart, Standing::Fails, Standing::Undecided, Standing::Skipped];

    fn of<'r>(checks: impl IntoIterator<Item = &'r Row>) -> Standing {
        let verdicts: BTreeSet<Verdict> = checks.into_iter().filter_map(|check| check.verdict).collect();
        let has = |verdict| verdicts.contains(&verdict);
        match (has(Verdict::Reproduced), has(Verdict::NotReproduced), has(Verdict::Inconclusive)) {
            (true, false, _) => Standing::Holds,
            (true, true, _) => Standing::InPart,
            (false, true, _) => Standing::Fails,
            (false, false, true) => Standing::Undecided,
            _ => Standing::Skipped,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Holds => "holds",
            Standing::InPart => "in part",
            Standing::Fails => "does not hold",
            Standing::Undecided => "undecided",
            Standing::Skipped => "skipped",
        })
    }
}

impl World {
    /// All of them.
    pub const ALL: [World; 4] = [World::Queues, World::Simulator, World::Kernel, World::Host];

    /// That of a check: by its numbers; where they could not be had, by the claim's name.
    pub fn of(check: &Row) -> Option<World> {
        match &check.world {
            output::World::Sim => Some(World::Simulator),
            output::World::Host => Some(World::Host),
            output::World::Vm { .. } => Some(World::Kernel),
            output::World::Several(worlds) if worlds.is_empty() => match check.text("claim").rsplit('-').next()? {
                "sim" => Some(World::Simulator),
                "host" => Some(World::Host),
                "kernel" | "bpf" | "vm" => Some(World::Kernel),
                _ => None,
            },
            output::World::Several(worlds) => worlds.iter().all(|world| matches!(world, output::World::Vm { .. })).then_some(World::Kernel),
            _ => Some(World::Queues),
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            World::Queues => "ready queue alone",
            World::Simulator => "simulator",
            World::Kernel => "real kernel",
            World::Host => "this machine",
        })
    }
}

impl<'r> Claim<'r> {
    /// The claims that `rows` judge, in their order.
    pub fn all(rows: &'r [Row]) -> Vec<Claim<'r>> {
        let mut claims: Vec<Claim<'r>> = Vec::new();
        for row in rows.iter().filter(|row| row.verdict.is_some()) {
            let id = row.text("claim");
            if !id.contains("-CLM") {
                continue;
            }
            let text: String = id.split('-').take(2).collect::<Vec<_>>().join("-");
            match claims.iter_mut().find(|claim| claim.id == text) {
                Some(claim) => claim.checks.push(row),
                None => claims.push(Claim { id: text, checks: vec![row] }),
            }
        }
        claims
    }

    /// Which paper it is from.
    pub fn paper(&self) -> &'r str {
        self.checks[0].text("paper")
    }

    /// What it says.
    pub fn says(&self) -> &'r str {
        self.checks[0].text("says")
    }

    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing::of(self.checks.iter().copied())
    }

    /// Its checks in a world.
    pub fn in_world(&self, world: World) -> Vec<&'r Row> {
        self.checks.iter().copied().filter(|check| World::of(check) == Some(world)).collect()
    }

    /// Whether it was decided in several worlds, and otherwise in one than in another.
    pub fn is_disputed(&self) -> bool {
        let decided =
            World::ALL.map(|world| Standing::of(self.in_world(world))).into_iter().filter(|standing| *standing < Standing::Undecided);
        decided.collect::<BTreeSet<Standing>>().len() > 1
    }
}

/// How many claims of each paper, and of all at last, there are and stand in each way of [`Standing::ALL`].
pub fn tally(claims: &[Claim<'_>]) -> Vec<(String, usize, [usize; Standing::ALL.len()])> {
    let mut papers: Vec<&str> = claims.iter().map(Claim::paper).collect();
    papers.dedup();
    let of = |name: &str, one: &dyn Fn(&Claim) -> bool| {
        let count = |standing| claims.iter().filter(|claim| one(claim) && claim.standing() == standing).count();
        (name.to_string(), claims.iter().filter(|claim| one(claim)).count(), Standing::ALL.map(count))
    };
    let mut tally: Vec<_> = papers.into_iter().map(|paper| of(paper, &|claim| claim.paper() == paper)).collect();
    tally.push(of("all", &|_| true));
    tally
}

/// The checks of the claims that `ids` name.
pub fn checks_of<'r>(rows: &'r [Row], ids: &[String]) -> Vec<&'r Row> {
    let named = |row: &&Row| ids.iter().any(|one| is_of(row.text("claim"), one));
    rows.iter().filter(|row| row.verdict.is_some()).filter(named).collect()
}

/// A check in a few words: what was measured, what was expected, what follows.
pub fn told(check: &Row) -> String {
    let value = check.value.map_or("–".to_string(), |value| quantity(value, "1"));
    format!("{} {value} ({}): {}", check.text("claim"), check.text("expected"), check.verdict.map_or("", Verdict::word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claim: &str, world: &str, verdict: Verdict) -> Row {
        let row = Row::new(output::World::named(world).unwrap(), output::Metric::check);
        Row { verdict: Some(verdict), ..row }.at("claim", claim)
    }

    #[test]
    fn a_claim_stands_as_its_checks_do_in_all_worlds() {
        let rows = [
            check("X-CLM01-sim", "sim", Verdict::Reproduced),
            check("X-CLM01-kernel", "vm:6.1 | vm:6.18", Verdict::NotReproduced),
            check("X-CLM02", "callgrind", Verdict::Reproduced),
            check("X-CLM02", "callgrind", Verdict::Inconclusive),
            check("X-TAB01", "callgrind", Verdict::NotReproduced),
            check("X-CLM03-host", "", Verdict::Skipped),
        ];
        let claims = Claim::all(&rows);
        let standings: Vec<(&str, Standing)> = claims.iter().map(|claim| (claim.id.as_str(), claim.standing())).collect();
        assert_eq!(standings, [("X-CLM01", Standing::InPart), ("X-CLM02", Standing::Holds), ("X-CLM03", Standing::Skipped)]);
        assert_eq!(claims.iter().map(Claim::is_disputed).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(rows.each_ref().map(World::of)[1..3], [Some(World::Kernel), Some(World::Queues)]);
        assert_eq!(claims[2].in_world(World::Host).len(), 1);
        assert_eq!(tally(&claims), [(String::new(), 3, [1, 1, 0, 0, 1]), ("all".to_string(), 3, [1, 1, 0, 0, 1])]);
        assert_eq!(checks_of(&rows, &["X-CLM01".to_string()]).len(), 2);
    }
}
