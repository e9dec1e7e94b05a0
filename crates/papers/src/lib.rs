//! Measures a paper's tables, figures and claims again, and compares them with the printed ones.
//!
//! A paper is a [`folder`] of data: the experiments, the printed numbers, and [claims](claim) as
//! comparisons in a small [language](expression). Everything that it names is [checked](check) when
//! it is read. Sources of numbers [measure](measurements) all required values at once: [`queues`]
//! uses the cost atlas, [`grids`] simulations, [`commands`] any `schedlab compare`. [`verdict`]
//! evaluates every comparison on our numbers and on the printed ones. Measured values are kept in a
//! [`cache`].

pub mod binding;
pub mod cache;
pub mod check;
pub mod citation;
pub mod claim;
pub mod commands;
mod compiler;
pub mod diagram;
pub mod evidence;
pub mod experiments;
pub mod expression;
mod fault;
pub mod figure;
pub mod findings;
mod flow_chart;
pub mod folder;
pub mod grids;
pub mod markdown;
pub mod measurements;
#[cfg(test)]
mod misspelt;
pub mod posterior;
pub mod queues;
pub mod series;
#[cfg(test)]
mod stopping;
pub mod table;
#[cfg(test)]
mod teeth;
pub mod text;
mod trust;
pub mod verdict;

use binding::Binding;
use cache::Cache;
use claim::Claim;
use commands::ensembles::Ensembles;
use experiments::Experiments;
use figure::FigureData;
use folder::Folder;
use grids::Grids;
use measurements::Measurements;
use posterior::Posterior;
use program::Error;
use results::figure::Figure;
use results::findings::Findings;
use results::{Row, is_of};
use std::collections::{BTreeMap, BTreeSet};
use table::{Printed, TableData};

/// A paper.
pub struct Paper {
    /// Its short name.
    pub name: String,
    /// Its files.
    pub folder: Folder,
    /// The experiments.
    pub experiments: Experiments,
    /// The printed results.
    pub printed: Printed,
    /// The simulations.
    pub grids: Grids,
    /// The conclusions.
    pub claims: Vec<Claim>,
    /// The claims over all readings that the text leaves open, where they were inferred.
    pub posterior: Posterior,
    /// The numbers of ensembles in guests that are on record.
    pub ensembles: Ensembles,
    /// The findings beyond the claims.
    pub findings: Findings,
}

/// How to measure a paper.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Ready queues.
    pub queues: queues::Settings,
    /// Simulations.
    pub grids: grids::Settings,
    /// Commands.
    pub commands: commands::Settings,
}

/// The results of a paper.
pub struct Outcome {
    /// Every number of tables and every verdict.
    pub rows: Vec<Row>,
    /// The numbers from commands behind them, with intervals, and of the first members.
    pub measured: Vec<Row>,
    /// The numbers of all members of ensembles in guests, as they are put on record.
    pub ensembles: Vec<Row>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What differs from the record: verdicts, and numbers of guests.
    pub surprises: Vec<String>,
    /// What became of the ensembles on record, in sentences.
    pub again: Vec<String>,
}

impl Paper {
    /// Reads a paper by name, or from the folder at a path if it only simulates and runs guests.
    ///
    /// # Errors
    /// If there is none, it would do more, or a file is wrong: with file, line and key.
    pub fn load(name: &str) -> Result<Paper, Error> {
        Paper::read(name, trust::expect)
    }

    /// Reads one that may do more.
    ///
    /// # Errors
    /// As of [`Paper::load`].
    pub fn load_trusted(name: &str) -> Result<Paper, Error> {
        Paper::read(name, |_, _| Ok(()))
    }

    fn read(
        name: &str,
        admit: impl Fn(&Folder, &Experiments) -> Result<(), Error>,
    ) -> Result<Paper, Error> {
        let folder = Folder::find(name)?;
        let experiments = folder.toml("experiments.toml")?;
        let done: Experiments = experiments.parse()?;
        admit(&folder, &done)?;
        let grids = match folder.text("grids.toml") {
            Some(text) => Grids::read(&folder.toml("grids.toml")?, text, done.regime.clone())?,
            None => Grids::default(),
        };
        let read = |text| Printed::read(&folder.path("tables.csv"), text);
        let printed = folder.text("tables.csv").map_or_else(|| Ok(Printed::default()), read)?;
        let mut paper = Paper {
            name: folder.name.clone(),
            folder,
            experiments: done,
            printed,
            grids,
            claims: Vec::new(),
            posterior: Posterior::default(),
            ensembles: Ensembles::default(),
            findings: Findings::default(),
        };
        paper.ensembles = Ensembles::read(&paper.folder).map_err(Error::Input)?;
        paper.check_experiments(&experiments)?;
        let claims = paper.folder.toml("claims.toml")?;
        paper.claims =
            Claim::read(&claims, &paper.regime_names(), |bindings| paper.known(bindings))?;
        if let Some(text) = paper.folder.text("posterior.csv") {
            let path = paper.folder.path("posterior.csv");
            paper.posterior = Posterior::read(&path, text, &paper.claims, &paper.regime_names())?;
        }
        if paper.folder.text("findings.toml").is_some() {
            paper.findings = findings::read(&paper.folder.toml("findings.toml")?, &paper.ids())?;
        }
        Ok(paper)
    }

    /// The ids of everything in it.
    pub fn ids(&self) -> Vec<String> {
        let tables = self.experiments.table.iter().map(TableData::claim_id);
        let mut ids: Vec<String> =
            tables.chain(self.experiments.figure.iter().map(|figure| figure.id.clone())).collect();
        ids.extend(self.claims.iter().map(|claim| claim.id.clone()));
        ids.sort();
        ids.dedup();
        ids
    }

    /// The claims and figures among `only` with a number that only a full run measures.
    pub fn needs_full(&self, only: &[String]) -> Vec<&str> {
        let is_left_out = |binding: &Binding| match binding {
            Binding::Command(binding) => self.experiments.command.iter().any(|command| {
                command.name == binding.command && command.needs_full(&self.ensembles)
            }),
            _ => false,
        };
        let claims = self.claims.iter().map(|claim| (claim.id.as_str(), &claim.bindings));
        let figures = self.experiments.figure.iter();
        claims
            .chain(figures.map(|figure| (figure.id.as_str(), &figure.bindings)))
            .filter(|(id, bindings)| {
                only.iter().any(|one| is_of(id, one)) && bindings.values().any(is_left_out)
            })
            .map(|(id, _)| id)
            .collect()
    }

    /// The table with this id, such as `T07`.
    pub fn table(&self, id: &str) -> Option<&TableData> {
        self.experiments.table.iter().find(|table| table.id == id)
    }

    /// Measures the parts in `only`, or everything.
    ///
    /// # Errors
    /// If a simulation fails or the cache cannot be written.
    pub fn reproduce(
        &self,
        only: &[String],
        settings: &Settings,
        cache: &Cache,
    ) -> Result<Outcome, Error> {
        let wanted = |id: &str| only.is_empty() || only.iter().any(|one| is_of(id, one));
        let tables: Vec<&TableData> =
            self.experiments.table.iter().filter(|table| wanted(&table.claim_id())).collect();
        let figures: Vec<&FigureData> =
            self.experiments.figure.iter().filter(|figure| wanted(&figure.id)).collect();
        let claims: Vec<&Claim> = self.claims.iter().filter(|claim| wanted(&claim.id)).collect();
        let regimes: Vec<Option<&str>> =
            self.grids.regimes().iter().map(|regime| Some(regime.name.as_str())).collect();

        let mut measurements = Measurements::new(self, settings)?;
        tables.iter().for_each(|table| {
            table.column.iter().for_each(|column| measurements.queues.want_column(table, column))
        });
        for figure in &figures {
            figure
                .series
                .iter()
                .try_for_each(|id| measurements.queues.want(id))
                .map_err(Error::Internal)?;
            let overhead = figure.overhead.iter().flat_map(|overhead| overhead.bindings());
            overhead
                .into_iter()
                .try_for_each(|binding| measurements.queues.want_binding(&binding))
                .map_err(Error::Internal)?;
            measurements.want(&figure.bindings, &regimes)?;
        }
        for claim in &claims {
            measurements.want(&claim.bindings, &claim.regimes(self))?;
        }
        measurements.measure(cache)?;

        let bindings = claims.iter().map(|claim| &claim.bindings);
        let bindings = bindings.chain(figures.iter().map(|figure| &figure.bindings));
        let [measured, ensembles] = measurements.rows_of(bindings.flat_map(BTreeMap::values));
        let mut rows: Vec<Row> =
            tables.iter().flat_map(|table| measurements.queues.table_rows(table)).collect();
        let (again, mut surprises) = measurements.again();
        for claim in claims {
            for regime in claim.regimes(self) {
                let (mut verdicts, mut unexpected) =
                    verdict::judge(claim, &measurements.evidence(&claim.bindings, regime));
                self.posterior.judge(&mut verdicts);
                rows.append(&mut verdicts);
                surprises.append(&mut unexpected);
            }
        }
        let drawn = figures
            .into_iter()
            .map(|figure| self.draw(figure, &measurements))
            .collect::<Result<Vec<Vec<Figure>>, Error>>()?;
        let figures = drawn.concat();
        Ok(Outcome { rows, measured, ensembles, figures, surprises, again })
    }

    /// A figure; one in each regime if its numbers come from grids.
    fn draw(&self, figure: &FigureData, measurements: &Measurements) -> Result<Vec<Figure>, Error> {
        let reproduce = format!("schedlab reproduce {} --only {}", self.folder.argument, figure.id);
        if let Some(diagram) = &figure.diagram {
            return Ok(vec![Figure { reproduce, ..diagram.draw(figure.empty(), &self.folder)? }]);
        }
        if figure.curve.is_empty() {
            let mut drawn = Figure { reproduce, ..measurements.queues.figure(figure)? };
            drawn.say_why_without_interval(figure.once.as_deref().unwrap_or(queues::COUNTED));
            return Ok(vec![drawn]);
        }
        let one = |regime: Option<&grids::Regime>| {
            let evidence =
                measurements.evidence(&figure.bindings, regime.map(|regime| regime.name.as_str()));
            let replicates = evidence.replicates();
            let curves = figure
                .curve
                .iter()
                .zip(&figure.formulas)
                .map(|(curve, formula)| curve.draw(formula, &replicates))
                .collect();
            let (id, title) = match regime {
                Some(regime) => (
                    format!("{}-{}", figure.id, regime.name),
                    format!("{} ({})", figure.title, regime.says),
                ),
                None => (figure.id.clone(), figure.title.clone()),
            };
            let (x, y, marks) = (figure.x.clone(), figure.y.clone(), figure.mark.clone());
            let missing: BTreeSet<&String> =
                evidence.curves.values().filter_map(|curves| curves.as_ref().err()).collect();
            let missing = missing.into_iter().cloned().collect();
            let reproduce = reproduce.clone();
            let mut drawn =
                Figure { id, title, x, y, curves, marks, missing, reproduce, ..Figure::default() };
            drawn.say_why_without_interval(figure.why_without_interval());
            Ok(drawn)
        };
        match figure.bindings.values().any(|binding| matches!(binding, Binding::Grid(_))) {
            true => self.grids.regimes().iter().map(Some).map(one).collect(),
            false => Ok(vec![one(None)?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_is_complete() {
        let paper = Paper::load("porter-2021").unwrap();
        assert_eq!(paper.experiments.table.len(), 23);
        assert_eq!(paper.printed.numbers(), 620);
        let ids = paper.ids();
        for id in
            (1..=19).map(|n| format!("P-CLM{n:02}")).chain((1..=4).map(|n| format!("P-CHK{n:02}")))
        {
            assert!(ids.contains(&id), "{id}");
        }
        let described: usize = paper
            .experiments
            .table
            .iter()
            .flat_map(|table| {
                table.column.iter().map(|column| paper.printed.rows(&table.id, &column.name).len())
            })
            .sum();
        assert_eq!(described, 620, "every printed number has a column that says what it measures");
        assert!(Paper::load("porter").is_err());
    }

    #[test]
    fn the_multiprocessor_study_is_complete() {
        let paper = Paper::load("curran-stumm-1990").unwrap_or_else(|why| panic!("{why}"));
        let ids = paper.ids();
        let figures = ["2.1", "3.1", "4.1L", "4.1R", "4.2", "5.1", "5.2", "5.3", "5.4"]
            .map(|figure| format!("C-FIG{figure}"));
        let unshown =
            ["03", "05", "06", "11", "14", "15"].map(|experiment| format!("C-EXP{experiment}"));
        let claims = (1..=18).map(|claim| format!("C-CLM{claim:02}"));
        for id in figures.into_iter().chain(unshown).chain(claims) {
            assert!(ids.contains(&id), "{id}");
        }
        assert!(
            ids.iter().filter(|id| id.starts_with("C-CLM19-")).count() >= 5,
            "each cited work is a claim"
        );
    }

    #[test]
    fn every_claim_of_the_other_papers_exists() {
        for (name, letter, claims) in [
            ("pslist", "L", 8),
            ("preempt-none", "N", 8),
            ("st-andrews", "A", 9),
            ("td-tp", "T", 5),
        ] {
            let ids = Paper::load(name).unwrap_or_else(|why| panic!("{why}")).ids();
            for claim in (1..=claims).map(|claim| format!("{letter}-CLM{claim:02}")) {
                assert!(ids.iter().any(|id| is_of(id, &claim)), "{claim}");
            }
        }
    }

    #[test]
    fn the_documents_give_the_score_of_the_records() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut rows: Vec<Row> = Vec::new();
        for name in folder::names() {
            let text = std::fs::read_to_string(root.join(format!("papers/{name}/record.csv")));
            rows.extend(results::from_csv(&text.unwrap()).unwrap());
        }
        let claims = results::standing::Claim::all(&rows);
        let score = results::standing::scores(&claims).pop().unwrap();
        let [holds, fails, undecided, untestable] = score.verdicts;
        let sentence = format!(
            "Of their {} claims {holds} hold in all their checks, {fails} do not hold, {undecided} \
             are undecided and {untestable} untestable; of {} that do not hold as a whole some \
             checks hold",
            score.claims, score.in_part
        );
        let page = std::fs::read_to_string(root.join("papers/README.md")).unwrap();
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains(&sentence), "papers/README.md does not say: {sentence}");
    }

    /// The verdicts on record follow from the members on record.
    #[test]
    fn the_record_is_what_the_ensembles_on_record_say() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let settings = Settings {
            queues: queues::Settings {
                source: atlas::measure::Source::Hardware,
                assignments: 1,
                seed: 1,
                slices: 1,
            },
            grids: grids::Settings { quick: true, seed: 1 },
            commands: commands::Settings { seed: 1, ..Default::default() },
        };
        for name in folder::names() {
            let paper = Paper::load(&name).unwrap();
            let record = std::fs::read_to_string(root.join(format!("papers/{name}/record.csv")));
            let record = results::from_csv(&record.unwrap()).unwrap();
            let mut judged = 0;
            for claim in &paper.claims {
                let is_command = |binding| matches!(binding, &Binding::Command(_));
                if claim.bindings.is_empty() || !claim.bindings.values().all(is_command) {
                    continue;
                }
                let mut measurements = Measurements::new(&paper, &settings).unwrap();
                measurements.want(&claim.bindings, &[None]).unwrap();
                if !measurements.commands.take_from_record() {
                    continue;
                }
                let (rows, surprises) =
                    verdict::judge(claim, &measurements.evidence(&claim.bindings, None));
                assert!(surprises.is_empty(), "{surprises:?}");
                for row in &rows {
                    let of = |row: &Row| {
                        let part = row.point.get("part").and_then(results::Coordinate::number);
                        (row.text("claim").to_string(), part)
                    };
                    let known = record.iter().find(|known| of(known) == of(row));
                    let number = |row: &Row| (row.value, row.ci_low, row.ci_high, row.verdict);
                    assert_eq!(known.map(number), Some(number(row)), "{name}: {:?}", of(row));
                    judged += 1;
                }
            }
            let is_on_record = paper.folder.text(commands::ensembles::ENSEMBLES).is_some();
            assert_eq!(judged > 0, is_on_record, "{name}");
        }
    }

    #[test]
    fn every_part_of_the_papers_is_covered_or_has_a_reason() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut seen = BTreeSet::new();
        for row in csv::Reader::from_path(root.join("papers/ids.csv")).unwrap().records() {
            let row = row.unwrap();
            let (id, place, note) = (&row[0], &row[2], &row[3]);
            assert!(seen.insert(id.to_string()), "{id} is there twice");
            assert!(
                if place.is_empty() { !note.is_empty() } else { root.join(place).exists() },
                "{id}: {place}"
            );
            if id.contains("-ERR") && !place.is_empty() {
                assert!(
                    std::fs::read_to_string(root.join(place)).unwrap().contains(id),
                    "{place} says nothing of {id}"
                );
            }
        }
        let papers: Vec<Paper> =
            folder::names().iter().map(|name| Paper::load(name).unwrap()).collect();
        for claim in papers.iter().flat_map(|paper| &paper.claims) {
            assert!(seen.iter().any(|id| is_of(&claim.id, id)), "{}", claim.id);
        }
        let of = |kind: &str| {
            seen.iter().filter(|id| id.contains(kind)).cloned().collect::<Vec<String>>()
        };
        assert_eq!(of("-CLM").len(), 68);
        for id in of("-CLM") {
            assert!(
                papers.iter().flat_map(|paper| &paper.claims).any(|claim| is_of(&claim.id, &id)),
                "{id} has no row"
            );
        }
        for id in of("-ERR") {
            let decision = papers
                .iter()
                .flat_map(|paper| &paper.findings.decision)
                .find(|decision| decision.id == id);
            let decision = decision.unwrap_or_else(|| panic!("{id} has no decision"));
            assert!(!decision.claims.is_empty(), "{id} is linked from no claim");
            assert!(
                decision.says.contains(". Otherwise: "),
                "{id} does not say what deciding otherwise changes"
            );
        }
    }

    /// Drawn before anything is measured: printed numbers, diagrams and orders exist, and every
    /// other curve has a reason for its absence.
    #[test]
    fn every_figure_is_in_the_report_with_its_command_and_reasons_for_missing_curves() {
        let queues = queues::Settings {
            source: atlas::measure::Source::Hardware,
            assignments: 1,
            seed: 1,
            slices: 1,
        };
        let grids = grids::Settings { quick: true, seed: 1 };
        let commands = commands::Settings { quick: true, seed: 1, ..Default::default() };
        let settings = Settings { queues, grids, commands };
        let mut html = String::new();
        for name in folder::names() {
            let paper = Paper::load(&name).unwrap();
            let measurements = Measurements::new(&paper, &settings).unwrap();
            let figures: Vec<Figure> = paper
                .experiments
                .figure
                .iter()
                .flat_map(|figure| paper.draw(figure, &measurements).unwrap())
                .collect();
            let lacks = |figure: &&Figure| {
                figure.diagram.is_none()
                    && figure.orders.is_empty()
                    && figure.curves.iter().all(|curve| curve.points.is_empty())
            };
            assert!(
                figures.iter().filter(lacks).all(|figure| !figure.missing.is_empty()),
                "{name}"
            );
            html += &report::papers::figures(&figures);
        }
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let ids = csv::Reader::from_path(root.join("papers/ids.csv")).unwrap().into_records();
        let ids: Vec<String> =
            ids.map(|row| row.unwrap()[0].to_string()).filter(|id| id.contains("-FIG")).collect();
        assert_eq!(ids.len(), 25 + 4 + 6 + 9 + 4 + 4);
        for id in ids {
            let is_there = ["", "-F", "-S"]
                .iter()
                .any(|regime| html.contains(&format!("<figure id=\"{id}{regime}\">")));
            assert!(is_there && html.contains(&format!("--only {id}</code>")), "{id}");
        }
    }

    /// A figure with numbers of one run says in its data why there is no interval, and no other does.
    #[test]
    fn every_figure_has_intervals_or_says_why_it_has_none() {
        for name in folder::names() {
            let paper = Paper::load(&name).unwrap();
            for figure in &paper.experiments.figure {
                let once: Vec<&str> = figure
                    .bindings
                    .values()
                    .filter_map(|binding| match binding {
                        Binding::Command(binding) => Some(&binding.command),
                        _ => None,
                    })
                    .filter(|name| {
                        let own = |command: &&commands::CommandData| command.name == **name;
                        paper.experiments.command.iter().find(own).unwrap().is_measured_once()
                    })
                    .map(String::as_str)
                    .collect();
                assert_eq!(
                    once.is_empty(),
                    figure.once.is_none(),
                    "{}: measured once: {once:?}; said: {:?}",
                    figure.id,
                    figure.once
                );
            }
        }
    }

    #[test]
    fn everything_that_a_paper_names_must_exist() {
        let dir = tempfile::tempdir().unwrap();
        let complaint = |file: &str, from: &str, to: &str| {
            for name in
                ["experiments.toml", "tables.csv", "builds.csv", "claims.toml", "real-time.toml"]
            {
                let text = Folder::find("porter-2021").unwrap().text(name).unwrap().to_string();
                std::fs::write(
                    dir.path().join(name),
                    if name == file { text.replacen(from, to, 1) } else { text },
                )
                .unwrap();
            }
            Paper::load(dir.path().to_str().unwrap())
                .map(|_| "fine".to_string())
                .unwrap_or_else(|why| why.to_string())
        };
        assert_eq!(complaint("claims.toml", "", ""), "fine");
        for (file, from, to, words) in [
            (
                "claims.toml",
                "\"T07/Linked List\"",
                "\"T77/Linked List\"",
                [
                    "claims.toml:11: claim[0].let.list",
                    "no column named `T77/Linked List`. Did you mean `T07/Linked List`?",
                ],
            ),
            (
                "tables.csv",
                "1 second,Number of Time-Slices,46751",
                "1 second,Number of Time-Slices,",
                ["tables.csv:2: value", "is missing"],
            ),
            (
                "tables.csv",
                "46751",
                "4675I",
                ["tables.csv:2: value", "`4675I`, which is not a number"],
            ),
            (
                "experiments.toml",
                "name = \"Number of Time-Slices\"",
                "name = \"Time-Slices\"",
                ["experiments.toml:11: table[0].column[0].name", "no cell of T01/Time-Slices"],
            ),
            (
                "experiments.toml",
                "slice\"\nqueue = \"rr-rbtree+idle\"",
                "slice\"\nqueu = \"rr\"",
                [
                    "experiments.toml:18: table[0].column[1].queu: there is no key named `queu`. \
                     Did you mean `queue`?",
                    "18 | queu = \"rr\"",
                ],
            ),
            (
                "experiments.toml",
                "slice\"\nqueue = \"rr-rbtree+idle\"",
                "slice\"\nlevels = 2",
                ["experiments.toml:16: table[0].column[1].queue", "there is no queue named ``"],
            ),
            (
                "experiments.toml",
                "slice\"\nqueue = \"rr-rbtree+idle\"",
                "slice\"\ndelta = \"x\"\nqueue = \"rr\"",
                ["experiments.toml:17: table[0].column[1].name", "give one of `queue`"],
            ),
        ] {
            let message = complaint(file, from, to);
            assert!(words.iter().all(|word| message.contains(word)), "{file}, {to}: {message}");
        }
        assert!(Paper::load("./nowhere").err().unwrap().to_string().contains("nowhere"));
    }
}
