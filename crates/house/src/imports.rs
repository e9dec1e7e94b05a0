//! Reads the paths that a file names and those that it re-exports.

use crate::source::Room;
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, Path, UseTree, Visibility};

/// What a file names.
#[derive(Default)]
pub struct Imports {
    /// Paths as written, each with the inline modules around it.
    pub paths: Vec<(Vec<String>, Vec<String>)>,
    /// Names that it re-exports, and the paths behind them; `*` for all of a module.
    pub handed_on: Vec<(String, Vec<String>)>,
    /// Names that it defines.
    pub defines: Vec<String>,
    /// Names that it imports, and the paths behind them.
    pub aliases: BTreeMap<String, Vec<String>>,
    inside: Vec<String>,
}

impl Imports {
    /// The imports of `room`.
    pub fn of(room: &Room) -> Imports {
        let mut imports = Imports::default();
        for item in &room.items {
            imports.defines.extend(defined(item));
            imports.visit_item(item);
        }
        imports
    }
}

/// The name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The leaves of an import tree: each path, and its name in this file.
fn leaves(tree: &UseTree, before: &[String], into: &mut Vec<(String, Vec<String>)>) {
    let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), into),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, into)),
        UseTree::Glob(_) => into.push(("*".to_string(), before.to_vec())),
        UseTree::Name(name) if name.ident == "self" => {
            into.push((before.last().cloned().unwrap_or_default(), before.to_vec()))
        }
        UseTree::Name(name) => into.push((name.ident.to_string(), with(&name.ident))),
        UseTree::Rename(rename) if rename.ident == "self" => {
            into.push((rename.rename.to_string(), before.to_vec()))
        }
        UseTree::Rename(rename) => into.push((rename.rename.to_string(), with(&rename.ident))),
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut found = Vec::new();
        leaves(&item.tree, &[], &mut found);
        for (name, path) in found {
            if matches!(item.vis, Visibility::Inherited) {
                self.paths.push((self.inside.clone(), path.clone()));
                self.aliases.insert(name, path);
            } else {
                self.handed_on.push((name, path));
            }
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.inside.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.inside.pop();
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.paths.push((self.inside.clone(), names));
        }
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) => paths_in(list.tokens.clone(), &mut Vec::new(), &mut |path| {
                self.paths.push((self.inside.clone(), path))
            }),
            _ => visit::visit_attribute(self, attribute),
        }
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        // The arguments of a macro are tokens. A path `a::b` in them counts as any other.
        let mut names: Vec<String> = Vec::new();
        paths_in(mac.tokens.clone(), &mut names, &mut |path| {
            self.paths.push((self.inside.clone(), path))
        });
        visit::visit_macro(self, mac);
    }
}

fn paths_in(
    tokens: proc_macro2::TokenStream,
    names: &mut Vec<String>,
    found: &mut dyn FnMut(Vec<String>),
) {
    use proc_macro2::TokenTree;
    let mut colons = 0;
    let end = |names: &mut Vec<String>, found: &mut dyn FnMut(Vec<String>)| {
        if names.len() > 1 {
            found(std::mem::take(names));
        }
        names.clear();
    };
    for tree in tokens {
        match tree {
            TokenTree::Ident(name) if names.is_empty() || colons == 2 => {
                names.push(name.to_string())
            }
            TokenTree::Ident(name) => {
                end(names, found);
                names.push(name.to_string());
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                colons += 1;
                continue;
            }
            TokenTree::Group(group) => {
                end(names, found);
                paths_in(group.stream(), &mut Vec::new(), found);
            }
            _ => end(names, found),
        }
        colons = 0;
    }
    end(names, found);
}
