//! The files of the product and the imports between them.

use crate::imports::Imports;
use crate::source::{self, Package, Room};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The whole product.
pub struct House {
    /// Its packages.
    pub packages: Vec<Package>,
    /// Its files, which it calls rooms.
    pub rooms: Vec<Room>,
    /// Which file imports which, and the names that it takes.
    pub arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
}

/// Resolves names to files.
struct Names<'h> {
    rooms: &'h [Room],
    imports: Vec<Imports>,
    modules: BTreeMap<(&'h str, &'h [String]), usize>,
}

impl House {
    /// The project at `root`.
    ///
    /// # Errors
    /// If a file cannot be read or parsed.
    pub fn read(root: &Path) -> Result<House, String> {
        let packages = source::packages(root)?;
        let rooms = packages
            .iter()
            .map(|package| source::rooms(root, package))
            .collect::<Result<Vec<_>, String>>()?;
        Ok(House::of(packages, rooms.into_iter().flatten().collect()))
    }

    /// These rooms, with their arrows.
    pub fn of(packages: Vec<Package>, rooms: Vec<Room>) -> House {
        let names = Names {
            rooms: &rooms,
            imports: rooms.iter().map(Imports::of).collect(),
            modules: rooms
                .iter()
                .enumerate()
                .map(|(index, room)| ((room.package.as_str(), &room.module[..]), index))
                .collect(),
        };
        let mut arrows: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        for from in 0..rooms.len() {
            for (inside, path) in &names.imports[from].paths {
                let is_elsewhere = |to: usize| to != from && !rooms[from].is_within(&rooms[to]);
                if let Some((to, name)) =
                    names.lead(from, inside, path).filter(|(to, _)| is_elsewhere(*to))
                {
                    arrows.entry((from, to)).or_default().insert(name);
                }
            }
        }
        House { packages, rooms, arrows }
    }

    /// The files that import one another in a loop, each loop once.
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let reach: Vec<BTreeSet<usize>> =
            (0..self.rooms.len()).map(|from| self.reached(from)).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for room in 0..self.rooms.len() {
            let circle: Vec<usize> =
                reach[room].iter().copied().filter(|&other| reach[other].contains(&room)).collect();
            if !circle.is_empty() && seen.insert(circle.clone()) {
                circles
                    .push(circle.into_iter().map(|room| self.rooms[room].path.as_str()).collect());
            }
        }
        circles
    }

    fn reached(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(room) = open.pop() {
            let next = self.arrows.range((room, 0)..=(room, usize::MAX)).map(|((_, to), _)| *to);
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// The floor of each package: one above the highest package that it needs.
    pub fn floors(&self) -> BTreeMap<&str, usize> {
        let mut floors: BTreeMap<&str, usize> = BTreeMap::new();
        for _ in &self.packages {
            for package in &self.packages {
                let below = package.needs.iter().filter_map(|need| floors.get(need.as_str())).max();
                floors.insert(&package.name, below.map_or(1, |below| below + 1));
            }
        }
        floors
    }

    /// The imports that do not run down, as pairs of files: the package of the second has no lower
    /// floor.
    pub fn upwards(&self) -> Vec<(&Room, &Room)> {
        let floors = self.floors();
        let ends = self.arrows.keys().map(|&(from, to)| (&self.rooms[from], &self.rooms[to]));
        ends.filter(|(from, to)| {
            from.package != to.package
                && floors[from.package.as_str()] <= floors[to.package.as_str()]
        })
        .collect()
    }

    /// Tokens of each package.
    pub fn tokens(&self) -> BTreeMap<&str, usize> {
        let mut tokens = BTreeMap::new();
        self.rooms
            .iter()
            .for_each(|room| *tokens.entry(room.package.as_str()).or_default() += room.tokens);
        tokens
    }
}

impl Names<'_> {
    /// The file that `path`, named in the file `from`, leads to, and the name that is taken there.
    fn lead(&self, from: usize, inside: &[String], path: &[String]) -> Option<(usize, String)> {
        let room = &self.rooms[from];
        let alias = self.imports[from].aliases.get(&path[0]).filter(|alias| alias[0] != path[0]);
        if let Some(alias) = alias {
            return self.lead(from, &[], &[&alias[..], &path[1..]].concat());
        }
        let here = [&room.module[..], inside].concat();
        let (package, mut module, rest) = match path[0].as_str() {
            "crate" => (room.package.as_str(), Vec::new(), &path[1..]),
            "self" => (room.package.as_str(), here, &path[1..]),
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                (
                    room.package.as_str(),
                    here[..here.len().saturating_sub(ups)].to_vec(),
                    &path[ups..],
                )
            }
            first => {
                let child = [&here[..], &[first.to_string()]].concat();
                if self.modules.contains_key(&(room.package.as_str(), &child[..])) {
                    (room.package.as_str(), here, path)
                } else if let Some(package) = self
                    .rooms
                    .iter()
                    .map(|room| room.package.as_str())
                    .find(|package| *package == first)
                {
                    (package, Vec::new(), &path[1..])
                } else {
                    return None;
                }
            }
        };
        let mut rest = rest;
        while let Some((name, behind)) = rest.split_first() {
            module.push(name.clone());
            if !self.modules.contains_key(&(package, &module[..])) {
                module.pop();
                break;
            }
            rest = behind;
        }
        // An inline module has no file of its own.
        while !self.modules.contains_key(&(package, &module[..])) {
            module.pop()?;
        }
        let to = *self.modules.get(&(package, &module[..]))?;
        let name = rest.first().cloned().unwrap_or_else(|| "*".to_string());
        Some(self.definer(to, &name, 0))
    }

    /// The file that defines what `room` calls `name`; files that only re-export it are followed.
    fn definer(&self, room: usize, name: &str, depth: usize) -> (usize, String) {
        let imports = &self.imports[room];
        if depth > 8 || imports.defines.iter().any(|defined| defined == name) {
            return (room, name.to_string());
        }
        let handed_on = imports.handed_on.iter().find(|(known, _)| known == name);
        match handed_on
            .and_then(|(_, path)| self.lead(room, &[], path))
            .filter(|(to, _)| *to != room)
        {
            Some((to, name)) => self.definer(to, &name, depth + 1),
            None => (room, name.to_string()),
        }
    }
}
