//! Parses the files of the product.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::{Attribute, Item, ItemMod, Meta};

/// A package of the workspace.
#[derive(Clone, Debug)]
pub struct Package {
    /// The name by which other packages import it.
    pub name: String,
    /// Its folder, from the root of the project.
    pub folder: String,
    /// The packages of the workspace that its manifest names outside `dev-dependencies`.
    pub needs: BTreeSet<String>,
}

/// A file of the product.
pub struct Room {
    /// Its path, from the root of the project.
    pub path: String,
    /// Its package.
    pub package: String,
    /// Its module, from the root of its crate.
    pub module: Vec<String>,
    /// Its items, without tests.
    pub items: Vec<Item>,
    /// Its number of tokens, without documentation.
    pub tokens: usize,
}

impl Room {
    /// Whether it lies in the folder of `other`: `x/y.rs` in that of `x.rs`. The two count as one
    /// place, so an import between them is no arrow.
    pub fn is_within(&self, other: &Room) -> bool {
        self.package == other.package
            && self.module.len() > other.module.len()
            && self.module.starts_with(&other.module)
    }
}

/// Whether one of these attributes is `cfg(test)`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.tokens.to_string().split([' ', '(', ')', ',']).any(|word| word == "test")
        }
        _ => false,
    })
}

/// The attributes of an item that can be a test.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// These items without tests, and the names of the modules that only tests declare.
fn product(items: Vec<Item>) -> (Vec<Item>, Vec<String>) {
    let (tests, kept): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|item| is_test(attributes(item)));
    let declared = tests.into_iter().filter_map(|item| match item {
        Item::Mod(ItemMod { ident, content: None, .. }) => Some(ident.to_string()),
        _ => None,
    });
    (kept, declared.collect())
}

/// The number of tokens in a stream, nested ones included. An attribute that documents does not
/// count.
fn count(stream: TokenStream) -> usize {
    let mut trees = stream.into_iter().peekable();
    let mut counted = 0;
    while let Some(tree) = trees.next() {
        if matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '#')
            && trees.peek().is_some_and(is_documentation)
        {
            trees.next();
            continue;
        }
        counted += match tree {
            TokenTree::Group(group) => 2 + count(group.stream()),
            _ => 1,
        };
    }
    counted
}

fn is_documentation(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

/// The folders of the packages of the project at `root`, sorted, and their manifests.
///
/// # Errors
/// If a manifest cannot be read.
pub fn manifests(root: &Path) -> Result<Vec<(PathBuf, toml::Table)>, String> {
    let crates = fs::read_dir(root.join("crates"))
        .map_err(|error| format!("{}: {error}", root.join("crates").display()))?;
    let mut folders: Vec<PathBuf> = crates
        .flatten()
        .map(|entry| entry.path())
        .chain(["conformance", "recorder", "scx"].map(|name| root.join(name)))
        .collect();
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    let manifest = |folder: &PathBuf| -> Result<(PathBuf, toml::Table), String> {
        let path = folder.join("Cargo.toml");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((folder.clone(), text.parse().map_err(|error| format!("{}: {error}", path.display()))?))
    };
    folders.iter().map(manifest).collect()
}

/// The packages of the project at `root`.
///
/// # Errors
/// If a manifest cannot be read.
pub fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let manifests = manifests(root)?;
    let imported = |manifest: &toml::Table| {
        let of = |table: &str| manifest.get(table)?.get("name")?.as_str().map(str::to_string);
        of("lib").or_else(|| of("package")).unwrap_or_default().replace('-', "_")
    };
    let names: BTreeSet<String> =
        manifests.iter().map(|(_, manifest)| imported(manifest)).collect();
    let package = |(folder, manifest): &(PathBuf, toml::Table)| {
        let tables = ["dependencies", "build-dependencies"]
            .into_iter()
            .filter_map(|table| manifest.get(table)?.as_table());
        let needs = tables
            .flat_map(|table| table.keys())
            .map(|name| name.replace('-', "_"))
            .filter(|name| names.contains(name));
        let folder = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        Package { name: imported(manifest), folder, needs: needs.collect() }
    };
    Ok(manifests.iter().map(package).collect())
}

/// The rooms of a package.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn rooms(root: &Path, package: &Package) -> Result<Vec<Room>, String> {
    let source = root.join(&package.folder).join("src");
    let mut files = Vec::new();
    list(&source, &mut files);
    files.sort();
    let (mut rooms, mut of_tests) = (Vec::new(), BTreeSet::new());
    for file in files {
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed =
            syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let within = file.strip_prefix(&source).unwrap_or(&file).with_extension("");
        let mut module: Vec<String> = within
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if module.len() == 1 && ["lib", "main"].contains(&module[0].as_str()) {
            module.clear();
        }
        let (items, tests) = product(parsed.items);
        of_tests.extend(tests.into_iter().map(|name| [&module[..], &[name]].concat()));
        let tokens = count(items.iter().map(ToTokens::to_token_stream).collect());
        let path = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        rooms.push(Room { path, package: package.name.clone(), module, items, tokens });
    }
    rooms.retain(|room| {
        !(1..=room.module.len()).any(|length| of_tests.contains(&room.module[..length]))
    });
    Ok(rooms)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
