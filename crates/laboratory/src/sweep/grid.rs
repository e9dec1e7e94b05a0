//! The format of a grid file, and its cells.
//!
//! ```toml
//! workload = "unix1990"                # a built-in stochastic workload or a file beside this one
//! policies = ["central:rr", "initial:rr", "take:rr"]
//! baseline = "initial:rr"              # the policy to compare the others with
//! seeds = 20                           # 1 to 20; or a list of them
//!
//! [parameters]                         # of the workload, in all cells
//! tasks = 1000
//!
//! [axes]                               # every combination of these
//! load = [0.3, 0.5, 0.7]
//! tmc = ["0ms", "1ms"]
//! ```
//!
//! `workload` can also be a table with the keys of a workload file. Such a grid file is complete,
//! and [`Sweep::complete`] is one. Without `[[grid]]`, `name` sets the name of the grid in results;
//! the default is the name of the file.
//!
//! There can be several `[[grid]]`, each with a `name`. The keys above them apply to all grids,
//! unless a grid overrides them.
#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::arithmetic_side_effects
)]

use super::{Cell, Sweep};
use formats::toml_file::TomlFile;
use formats::workload::{Parameters, Template, Workload};
use program::{Error, no_such};
use schedsim::admission::Whole;
use schedsim::policy::PolicySpec;
use serde::{Deserialize, Deserializer, de};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use toml::Value;
use worlds::experiment::parse_policy;

/// A part of a sweep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Its name.
    pub name: Arc<str>,
    /// The baseline policy.
    pub baseline: Option<String>,
}

/// The content of a grid file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    name: Option<String>,
    workload: Option<Value>,
    policies: Option<Vec<String>>,
    baseline: Option<String>,
    seeds: Option<Seeds>,
    /// Not a key; present only for a helpful error.
    on: Option<Value>,
    #[serde(default)]
    parameters: toml::Table,
    #[serde(default)]
    axes: toml::Table,
    #[serde(default)]
    grid: Vec<Named>,
}

/// One of several grids.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    workload: Option<Value>,
    policies: Option<Vec<String>>,
    baseline: Option<String>,
    seeds: Option<Seeds>,
    #[serde(default)]
    parameters: toml::Table,
    #[serde(default)]
    axes: toml::Table,
}

/// A number of seeds from 1 on, or a list of them.
#[derive(Clone)]
enum Seeds {
    UpTo(u64),
    These(Vec<u64>),
}

/// Cells run in parallel on all cores; measurements must not.
const SIMULATES: &str = "a sweep simulates, and its cells share a machine; `schedlab compare --on \
                         host` measures this one, and `schedlab.measure` in Python the hosts of a \
                         cluster, one at a time on each";

/// The largest number of cells of a sweep, of 32 bytes each.
const MOST_CELLS: usize = 4_000_000;

/// The largest number of points of a grid; each point holds a workload.
const MOST_POINTS: usize = 50_000;

impl Seeds {
    const ONE: Seeds = Seeds::UpTo(1);

    fn count(&self) -> usize {
        match self {
            Seeds::UpTo(last) => usize::try_from(*last).unwrap_or(usize::MAX),
            Seeds::These(seeds) => seeds.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> + Clone {
        let (last, these) = match self {
            Seeds::UpTo(last) => (*last, &[][..]),
            Seeds::These(seeds) => (0, &seeds[..]),
        };
        (1..=last).chain(these.iter().copied())
    }
}

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seeds, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Seeds;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("how many seeds, or a list of them")
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Seeds, E> {
                Whole::<u64, 0, { MOST_CELLS as u64 }>::admit(count.into())
                    .map(|count| Seeds::UpTo(count.get()))
                    .map_err(E::custom)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = list.next_element()? {
                    seeds.push(seed);
                }
                Ok(Seeds::These(seeds))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The sweep of `file`. Workload files are in `folder`; `stem` is the default name of a grid.
pub(super) fn read(file: &TomlFile, folder: &Path, stem: &OsStr) -> Result<Sweep, Error> {
    let mut content: Content = file.parse()?;
    if content.on.is_some() {
        return Err(file.wrong("on", SIMULATES));
    }
    let named = std::mem::take(&mut content.grid);
    Part::whole(&content, stem).check_names(file, folder)?;
    let parts: Vec<Part<'_>> = match &named[..] {
        [] => vec![Part::whole(&content, stem)],
        named => named
            .iter()
            .enumerate()
            .map(|(index, named)| Part::of(&content, index, named))
            .collect(),
    };
    let mut sweep = Sweep { grids: Vec::new(), cells: Vec::new(), complete: String::new() };
    for part in &parts {
        if sweep.grids.iter().any(|grid| *grid.name == part.name) {
            return Err(file.wrong(
                &part.key("name"),
                &format!("there is another grid named `{}`", part.name),
            ));
        }
        part.add_to(&mut sweep, file, folder)?;
    }
    sweep.complete = complete(file, folder, stem)?;
    Ok(sweep)
}

/// The file with the content of the files that it names, and with its name.
fn complete(file: &TomlFile, folder: &Path, stem: &OsStr) -> Result<String, Error> {
    let mut content: toml::Table = file.parse()?;
    content.entry("name").or_insert_with(|| stem.to_string_lossy().into_owned().into());
    let include = |grid: &mut toml::Table| -> Result<(), Error> {
        let beside = grid
            .get("workload")
            .and_then(Value::as_str)
            .map(|name| folder.join(name))
            .filter(|path| path.is_file());
        let Some(path) = beside else { return Ok(()) };
        let mut workload: toml::Table = TomlFile::read(&path)?.parse()?;
        workload.entry("name").or_insert_with(|| {
            path.file_stem().unwrap_or_default().to_string_lossy().into_owned().into()
        });
        grid.insert("workload".to_string(), workload.into());
        Ok(())
    };
    include(&mut content)?;
    for grid in content
        .get_mut("grid")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_table_mut)
    {
        include(grid)?;
    }
    toml::to_string(&content)
        .map_err(|error| Error::Internal(format!("cannot write TOML: {error}")))
}

/// A grid with the keys above it. Each part also knows its position, for messages.
struct Part<'c> {
    name: String,
    /// The prefix of its own keys: `grid[0].`, or nothing.
    own: String,
    workload: Option<(&'c Value, String)>,
    policies: Option<(&'c [String], String)>,
    baseline: Option<(&'c str, String)>,
    seeds: Option<(&'c Seeds, String)>,
    parameters: Vec<(&'c str, &'c Value, String)>,
    axes: Vec<(&'c str, &'c Value, String)>,
}

impl<'c> Part<'c> {
    fn whole(content: &'c Content, stem: &OsStr) -> Part<'c> {
        let keyed = |table: &'c toml::Table, of: &str| {
            table
                .iter()
                .map(|(key, value)| (key.as_str(), value, format!("{of}.{key}")))
                .collect::<Vec<_>>()
        };
        Part {
            name: content.name.clone().unwrap_or_else(|| stem.to_string_lossy().into_owned()),
            own: String::new(),
            workload: content.workload.as_ref().map(|source| (source, "workload".to_string())),
            policies: content
                .policies
                .as_deref()
                .map(|policies| (policies, "policies".to_string())),
            baseline: content.baseline.as_deref().map(|policy| (policy, "baseline".to_string())),
            seeds: content.seeds.as_ref().map(|seeds| (seeds, "seeds".to_string())),
            parameters: keyed(&content.parameters, "parameters"),
            axes: keyed(&content.axes, "axes"),
        }
    }

    fn of(content: &'c Content, index: usize, named: &'c Named) -> Part<'c> {
        let own = format!("grid[{index}].");
        let mut part = Part { name: named.name.clone(), ..Part::whole(content, OsStr::new("")) };
        let key = |name: &str| format!("{own}{name}");
        part.workload =
            named.workload.as_ref().map(|source| (source, key("workload"))).or(part.workload);
        part.policies =
            named.policies.as_deref().map(|policies| (policies, key("policies"))).or(part.policies);
        part.baseline =
            named.baseline.as_deref().map(|policy| (policy, key("baseline"))).or(part.baseline);
        part.seeds = named.seeds.as_ref().map(|seeds| (seeds, key("seeds"))).or(part.seeds);
        // An axis replaces a parameter from above, and a parameter replaces an axis from above.
        let is_own =
            |name: &str| named.parameters.contains_key(name) || named.axes.contains_key(name);
        part.parameters.retain(|(name, ..)| !is_own(name));
        part.axes.retain(|(name, ..)| !is_own(name));
        part.parameters.extend(
            named
                .parameters
                .iter()
                .map(|(name, value)| (name.as_str(), value, key(&format!("parameters.{name}")))),
        );
        part.axes.extend(
            named
                .axes
                .iter()
                .map(|(name, value)| (name.as_str(), value, key(&format!("axes.{name}")))),
        );
        part.axes.sort_by_key(|&(name, ..)| name);
        part.own = own;
        part
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.own)
    }

    fn add_to(&self, sweep: &mut Sweep, file: &TomlFile, folder: &Path) -> Result<(), Error> {
        let template = self.template(file, folder)?;
        let policies = self.policies(file)?;
        let (seeds, key) = self.seeds.clone().unwrap_or((&Seeds::ONE, self.key("seeds")));
        if seeds.count() == 0 {
            return Err(file.wrong(&key, "without seeds there are no cells"));
        }
        let places = self.places(file)?;
        let (all, most) = (
            places.len().saturating_mul(policies.len()).saturating_mul(seeds.count()),
            MOST_CELLS.saturating_sub(sweep.cells.len()),
        );
        if all > most {
            return Err(file.wrong(
                &self.key("axes"),
                &format!("{all} cells are more than the {MOST_CELLS} that a sweep may have"),
            ));
        }
        let name: Arc<str> = self.name.as_str().into();
        for parameters in &places {
            let workload = Arc::new(template.build(parameters).map_err(|invalid| {
                match self.key_of(&invalid.key) {
                    Some(key) => file.wrong(key, &invalid.message),
                    None => template.refuse(parameters, &invalid),
                }
            })?);
            let cell = |policy: &Arc<PolicySpec>, seed: u64| Cell {
                grid: name.clone(),
                workload: workload.clone(),
                policy: policy.clone(),
                seed,
            };
            sweep.cells.extend(
                policies
                    .iter()
                    .flat_map(|policy| seeds.iter().map(move |seed| (policy, seed)))
                    .map(|(policy, seed)| cell(policy, seed)),
            );
        }
        sweep.grids.push(Grid {
            name,
            baseline: self.baseline.as_ref().map(|(policy, _)| policy.to_string()),
        });
        Ok(())
    }

    /// Checks the keys above all grids, even if each grid overrides them.
    fn check_names(&self, file: &TomlFile, folder: &Path) -> Result<(), Error> {
        self.workload.as_ref().map_or(Ok(()), |_| self.template(file, folder).map(drop))?;
        self.policies
            .as_ref()
            .map_or(Ok(()), |(names, key)| parse_policies(names, key, file).map(drop))?;
        self.places(file).map(drop)
    }

    fn template(&self, file: &TomlFile, folder: &Path) -> Result<Template, Error> {
        let Some((source, key)) = &self.workload else {
            return Err(file.wrong(&self.key("workload"), "the workload is missing"));
        };
        let name = match source {
            Value::String(name) => name,
            Value::Table(keys) => {
                return Template::read(TomlFile::of(
                    &format!("{}: {key}", file.name()),
                    &keys.to_string(),
                ));
            }
            _ => {
                return Err(file.wrong(
                    key,
                    "a workload is a name, a file, or a table with the keys of a workload file",
                ));
            }
        };
        let beside = folder.join(name);
        let argument = if beside.is_file() { beside.as_os_str() } else { OsStr::new(name) };
        match Workload::resolve(argument) {
            Ok(Workload::Stochastic(template)) => Ok(template),
            Ok(_) => Err(file.wrong(
                key,
                &format!("a sweep needs a stochastic workload, and `{name}` is not one"),
            )),
            Err(error) => Err(file.wrong(key, &error.to_string())),
        }
    }

    fn policies(&self, file: &TomlFile) -> Result<Vec<Arc<PolicySpec>>, Error> {
        let Some((names, key)) = self.policies.as_ref().filter(|(names, _)| !names.is_empty())
        else {
            return Err(file.wrong(&self.key("policies"), "without policies there are no cells"));
        };
        let policies = parse_policies(names, key, file)?;
        if let Some((baseline, key)) = self
            .baseline
            .as_ref()
            .filter(|(baseline, _)| !names.iter().any(|name| name == baseline))
        {
            let see = "It is one of the policies.";
            return Err(file.wrong(key, &no_such("baseline", baseline, names, see)));
        }
        Ok(policies)
    }

    /// Every combination of the axes' values with the parameters; the first axis changes slowest.
    fn places(&self, file: &TomlFile) -> Result<Vec<Parameters>, Error> {
        let check = |parameters: Parameters, name: &str, value: &Value, key: &str| {
            Parameters::check(name, value).map_err(|message| file.wrong(key, &message))?;
            Ok(parameters.with(name, value.clone()))
        };
        let mut fixed = Parameters::default();
        for (name, value, key) in &self.parameters {
            fixed = check(fixed, name, value, key)?;
        }
        let mut places = vec![fixed];
        for (name, values, key) in &self.axes {
            let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
                return Err(file.wrong(
                    key,
                    "an axis is a list of at least one value; without, there are no cells",
                ));
            };
            if places.len().saturating_mul(values.len()) > MOST_POINTS {
                return Err(file.wrong(
                    key,
                    &format!(
                        "these are more than the {MOST_POINTS} points that a grid may have; give \
                         fewer values"
                    ),
                ));
            }
            let with = |place: &Parameters| {
                let place = place.clone();
                values.iter().enumerate().map(move |(index, value)| {
                    check(place.clone(), name, value, &format!("{key}[{index}]"))
                })
            };
            places = places.iter().flat_map(with).collect::<Result<_, Error>>()?;
        }
        Ok(places)
    }

    /// The key of a parameter in the file, if it is there.
    fn key_of(&self, parameter: &str) -> Option<&str> {
        self.axes
            .iter()
            .chain(&self.parameters)
            .find(|(name, ..)| *name == parameter)
            .map(|(_, _, key)| key.as_str())
    }
}

/// The policies with these names; `key` is their position.
fn parse_policies(
    names: &[String],
    key: &str,
    file: &TomlFile,
) -> Result<Vec<Arc<PolicySpec>>, Error> {
    let parse = |(index, name): (usize, &String)| {
        parse_policy(name)
            .map(Arc::new)
            .map_err(|message| file.wrong(&format!("{key}[{index}]"), &message))
    };
    names.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "workload = 'unix1990'\npolicies = ['initial:rr', 'take:rr']\n";

    #[test]
    fn cells_are_ordered_by_grid_parameters_policy_and_seed() {
        let text = format!(
            "{HEAD}seeds = 2\n[parameters]\ntasks = 10\n[axes]\nload = [0.3, 0.5]\n[[grid]]\nname \
             = 'a'\n[grid.axes]\ntmc = ['0ms', '1ms']\n[[grid]]\nname = 'b'\nseeds = \
             [7]\npolicies = ['take:rr']\n[grid.parameters]\nload = 0.9\ntasks = 20\n"
        );
        let sweep = Sweep::parse("grid.toml", &text).unwrap();
        let described = |cell: &Cell| {
            let of = |key: &str| cell.workload.parameters.get(key).cloned().unwrap_or_default();
            format!(
                "{} {} {} {} {} {}",
                cell.grid,
                of("tasks"),
                of("load"),
                of("tmc"),
                cell.policy,
                cell.seed
            )
        };
        assert_eq!(sweep.cells.len(), 2 * 2 * 2 * 2 + 1);
        assert_eq!(described(&sweep.cells[0]), "a 10 0.3 0ms initial:rr 1");
        assert_eq!(described(&sweep.cells[1]), "a 10 0.3 0ms initial:rr 2");
        assert_eq!(described(&sweep.cells[2]), "a 10 0.3 0ms take:rr 1");
        assert_eq!(described(&sweep.cells[4]), "a 10 0.3 1ms initial:rr 1");
        assert_eq!(described(&sweep.cells[8]), "a 10 0.5 0ms initial:rr 1");
        assert_eq!(described(&sweep.cells[16]), "b 20 0.9  take:rr 7");
        let mut keys: Vec<String> = sweep.cells.iter().map(|cell| cell.key().to_string()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), sweep.cells.len());
    }

    #[test]
    fn a_complete_grid_has_the_same_cells_in_any_directory() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(
            scratch.path().join("heavy.toml"),
            "base = 'unix1990'\nload = 0.9\ntmc = '2ms'\n",
        )
        .unwrap();
        let grid = scratch.path().join("mine.grid.toml");
        std::fs::write(
            &grid,
            "workload = 'heavy.toml'\npolicies = ['take:rr']\nseeds = 2\n[axes]\ncpus = [2, 4]\n",
        )
        .unwrap();
        let here = Sweep::read(&grid).unwrap();
        let there = Sweep::parse("elsewhere.toml", &here.complete).unwrap();
        let keys = |sweep: &Sweep| {
            sweep.cells.iter().map(|cell| (cell.grid.to_string(), cell.key())).collect::<Vec<_>>()
        };
        assert_eq!(keys(&here), keys(&there));
        assert_eq!(
            (there.cells.len(), &*there.cells[0].grid, &*there.cells[0].workload.name),
            (4, "mine.grid", "heavy")
        );
        assert_eq!(there.complete, here.complete);
    }

    #[test]
    fn an_invalid_grid_is_refused_with_line_and_key() {
        for (tail, words) in [
            (
                "[axes]\nload = []",
                "g.toml:4: axes.load: an axis is a list of at least one value; without, there are \
                 no cells",
            ),
            ("seeds = 0", "g.toml:3: seeds: without seeds there are no cells"),
            ("seeds = []", "g.toml:3: seeds: without seeds there are no cells"),
            (
                "[axes]\nload = [0.5, 1.0]",
                "g.toml:4: axes.load: a load of 1.000 never reaches a steady state",
            ),
            (
                "[axes]\nlaod = [0.5]",
                "g.toml:4: axes.laod[0]: there is no parameter named `laod`. Did you mean `load`?",
            ),
            (
                "[axes]\ntmc = ['1ms', 2]",
                "g.toml:4: axes.tmc[1]: invalid type: integer `2`, expected a duration",
            ),
            ("[axes]\ntmc = '1ms'", "g.toml:4: axes.tmc: an axis is a list"),
            (
                "[parameters]\nload = nan",
                "g.toml:4: parameters.load: NaN is out of range: give a number from",
            ),
            ("[parameters]\nload = [0.5]", "g.toml:4: parameters.load: invalid type: sequence"),
            (
                "baseline = 'central:rr'",
                "g.toml:3: baseline: there is no baseline named `central:rr`. Did you mean `initial:rr`?",
            ),
            (
                "[[grid]]\nname = 'a'\n[[grid]]\nname = 'a'",
                "g.toml:6: grid[1].name: there is another grid named `a`",
            ),
            (
                "[[grid]]\nname = 'a'\npolicies = ['take:rr', 'takerr']",
                "g.toml:5: grid[0].policies[1]: there is no policy named `takerr`. Did you",
            ),
            (
                "[[grid]]\nname = 'a'\nworkload = 'unix199'",
                "g.toml:5: grid[0].workload: there is no workload named `unix199`. Did you mean",
            ),
            ("[[grid]]", "g.toml:3: grid[0]: missing field `name`"),
            ("cpus = 4", "g.toml:3: cpus: there is no key named `cpus`"),
            (
                "on = 'host'",
                "g.toml:3: on: a sweep simulates, and its cells share a machine; `schedlab \
                 compare --on host`",
            ),
            (
                "[[grid]]\nname = 'a'\nworkload = 3",
                "g.toml:5: grid[0].workload: a workload is a name, a file, or a table",
            ),
            (
                "[[grid]]\nname = 'a'\n[grid.workload]\nbase = 'unix'",
                "g.toml: grid[0].workload:1: base: ",
            ),
            (
                "seeds = 1000000\n[axes]\nload = [0.5, 0.6, 0.7]",
                "g.toml:4: axes: 6000000 cells are more than",
            ),
            (
                "seeds = 9000000",
                "g.toml:3: seeds: 9000000 is out of range: give a whole number from 0 to 4000000",
            ),
            ("seeds = -1", "g.toml:3: seeds: -1 is out of range"),
        ] {
            let error = Sweep::parse("g.toml", &format!("{HEAD}{tail}\n")).expect_err(tail);
            assert!(error.to_string().starts_with(words), "{tail}\n{error}");
            assert_eq!(error.exit_code(), 3);
        }
        for (text, words) in [
            ("policies = ['take:rr']", "g.toml:1: workload: the workload is missing"),
            (
                "workload = 'unix1990'\npolicies = []",
                "g.toml:2: policies: without policies there are no cells",
            ),
            ("workload = 'unix1990'", "g.toml:1: policies: without policies there are no cells"),
            ("workload = 'Cargo.toml'\npolicies = ['take:rr']", "g.toml:1: workload: Cargo.toml:"),
        ] {
            let error = Sweep::parse("g.toml", text).expect_err(text);
            assert!(error.to_string().starts_with(words), "{text}\n{error}");
        }
    }
}
