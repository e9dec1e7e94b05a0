//! How each claim stands, over all of its checks and in each world that tested it.

use crate::{self as results, Row, Verdict, is_of, quantity};
use std::collections::BTreeSet;
use strum::{Display, VariantArray};

/// A claim of a paper's text: `A-CLM07` with all checks `A-CLM07-…`.
pub struct Claim<'r> {
    /// The id, without a world.
    pub id: String,
    /// Its checks in all worlds.
    pub checks: Vec<&'r Row>,
}

/// The kind of world that a number comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, VariantArray)]
pub enum World {
    /// A ready queue alone.
    #[strum(serialize = "ready queue alone")]
    Queues,
    /// The simulator.
    #[strum(serialize = "simulator")]
    Simulator,
    /// A real kernel in an emulator.
    #[strum(serialize = "real kernel")]
    Kernel,
    /// This machine.
    #[strum(serialize = "this machine")]
    Host,
}

/// The verdict on a claim: it holds only if all its checks do.
fn verdict<'r>(checks: impl IntoIterator<Item = &'r Row>) -> Verdict {
    let verdicts: BTreeSet<Verdict> =
        checks.into_iter().filter_map(|check| check.verdict).collect();
    let all = |one| verdicts.iter().all(|&verdict| verdict == one);
    match verdicts.contains(&Verdict::DoesNotHold) {
        true => Verdict::DoesNotHold,
        false if all(Verdict::Untestable) => Verdict::Untestable,
        false if all(Verdict::Holds) => Verdict::Holds,
        false => Verdict::Undecided,
    }
}

impl World {
    /// All of them.
    pub const ALL: &'static [World] = World::VARIANTS;

    /// The world of a check: from its numbers; if there are none, from the claim's id.
    pub fn of(check: &Row) -> Option<World> {
        match &check.world {
            results::World::Sim => Some(World::Simulator),
            results::World::Host => Some(World::Host),
            results::World::Vm { .. } => Some(World::Kernel),
            results::World::Multiple(worlds) if worlds.is_empty() => {
                match check.text("claim").rsplit('-').next()? {
                    "sim" => Some(World::Simulator),
                    "host" => Some(World::Host),
                    "kernel" | "bpf" | "vm" => Some(World::Kernel),
                    _ => None,
                }
            }
            results::World::Multiple(worlds) => worlds
                .iter()
                .all(|world| matches!(world, results::World::Vm { .. }))
                .then_some(World::Kernel),
            _ => Some(World::Queues),
        }
    }
}

impl<'r> Claim<'r> {
    /// The claims that `rows` test, in the order of the rows.
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

    /// The letter of its paper.
    pub fn paper(&self) -> &'r str {
        self.checks[0].text("paper")
    }

    /// Its statement.
    pub fn says(&self) -> &'r str {
        self.checks[0].text("says")
    }

    /// The verdict over all its checks.
    pub fn verdict(&self) -> Verdict {
        verdict(self.checks.iter().copied())
    }

    /// How many of its checks hold, where it does not hold itself: a share of zero says more than
    /// the verdict alone.
    pub fn in_part(&self) -> bool {
        self.verdict() != Verdict::Holds
            && self.checks.iter().any(|check| check.verdict == Some(Verdict::Holds))
    }

    /// Its checks in one world.
    pub fn in_world(&self, world: World) -> Vec<&'r Row> {
        self.checks.iter().copied().filter(|check| World::of(check) == Some(world)).collect()
    }

    /// Whether several worlds gave a result, and the results differ.
    pub fn is_disputed(&self) -> bool {
        let decided = World::ALL
            .iter()
            .map(|&world| verdict(self.in_world(world)))
            .filter(|verdict| [Verdict::Holds, Verdict::DoesNotHold].contains(verdict));
        decided.collect::<BTreeSet<Verdict>>().len() > 1
    }
}

/// The claims of a paper, or of all papers, by verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Score {
    /// The paper's name; `all` for the last row.
    pub paper: String,
    /// The number of claims.
    pub claims: usize,
    /// The numbers by verdict, in the order of [`Verdict::OF_CLAIMS`].
    pub verdicts: [usize; Verdict::OF_CLAIMS.len()],
    /// The number of claims that do not hold as a whole, and of which some check does.
    pub in_part: usize,
}

impl Score {
    /// The titles of a table's columns behind the paper's name.
    pub fn titles() -> Vec<String> {
        let verdicts = Verdict::OF_CLAIMS.map(|verdict| verdict.to_string());
        ["claims".to_string()].into_iter().chain(verdicts).chain(["in part".to_string()]).collect()
    }

    /// The numbers under [`Score::titles`].
    pub fn numbers(&self) -> Vec<usize> {
        [self.claims].into_iter().chain(self.verdicts).chain([self.in_part]).collect()
    }
}

/// The score of each paper, and last that of all papers.
pub fn scores(claims: &[Claim<'_>]) -> Vec<Score> {
    let mut papers: Vec<&str> = claims.iter().map(Claim::paper).collect();
    papers.dedup();
    let of = |paper: &str, claims: Vec<&Claim<'_>>| Score {
        paper: paper.to_string(),
        claims: claims.len(),
        verdicts: Verdict::OF_CLAIMS
            .map(|one| claims.iter().filter(|claim| claim.verdict() == one).count()),
        in_part: claims.iter().filter(|claim| claim.in_part()).count(),
    };
    let own = |paper: &str| claims.iter().filter(|claim| claim.paper() == paper).collect();
    let mut scores: Vec<Score> = papers.into_iter().map(|paper| of(paper, own(paper))).collect();
    scores.push(of("all", claims.iter().collect()));
    scores
}

/// The checks of the claims with these ids.
pub fn checks_of<'r>(rows: &'r [Row], ids: &[String]) -> Vec<&'r Row> {
    let named = |row: &&Row| ids.iter().any(|one| is_of(row.text("claim"), one));
    rows.iter().filter(|row| row.verdict.is_some()).filter(named).collect()
}

/// One check in a sentence: measured, expected, verdict.
pub fn sentence(check: &Row) -> String {
    let value = check.value.map_or("–".to_string(), |value| quantity(value, "1"));
    format!(
        "{} {value} ({}): {}",
        check.text("claim"),
        check.text("expected"),
        check.verdict.map_or("", Verdict::word)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claim: &str, world: &str, verdict: Verdict) -> Row {
        let row = Row::new(results::World::named(world).unwrap(), results::Metric::check);
        Row { verdict: Some(verdict), ..row }.at("claim", claim)
    }

    #[test]
    fn a_claim_stands_as_its_checks_do_in_all_worlds() {
        let rows = [
            check("X-CLM01-sim", "sim", Verdict::Holds),
            check("X-CLM01-kernel", "vm:6.1 | vm:6.18", Verdict::DoesNotHold),
            check("X-CLM02", "callgrind", Verdict::Holds),
            check("X-CLM02", "callgrind", Verdict::Undecided),
            check("X-TAB01", "callgrind", Verdict::DoesNotHold),
            check("X-CLM03-host", "", Verdict::Untestable),
        ];
        let claims = Claim::all(&rows);
        let verdicts: Vec<(&str, Verdict)> =
            claims.iter().map(|claim| (claim.id.as_str(), claim.verdict())).collect();
        assert_eq!(
            verdicts,
            [
                ("X-CLM01", Verdict::DoesNotHold),
                ("X-CLM02", Verdict::Undecided),
                ("X-CLM03", Verdict::Untestable)
            ]
        );
        assert_eq!(claims.iter().map(Claim::is_disputed).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(
            rows.each_ref().map(World::of)[1..3],
            [Some(World::Kernel), Some(World::Queues)]
        );
        assert_eq!(claims[2].in_world(World::Host).len(), 1);
        let scores = scores(&claims);
        assert_eq!(scores.len(), 2);
        assert_eq!(scores[1].numbers(), [3, 0, 1, 1, 1, 2]);
        assert_eq!(Score::titles().len(), scores[1].numbers().len());
        assert_eq!(checks_of(&rows, &["X-CLM01".to_string()]).len(), 2);
    }
}
