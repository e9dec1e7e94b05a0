//! The series in claims and figures, by source.

use super::fault::Fault;
use super::queues::binding as queue;
use super::table::part;
use super::{commands, grids};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A series of a claim or of a figure, by source.
#[derive(Clone, Debug)]
pub enum Binding {
    /// From a grid of simulations.
    Grid(grids::Binding),
    /// From a command of schedlab.
    Command(commands::Binding),
    /// From the cost atlas.
    Queue(queue::Binding),
}

/// Series by their names in expressions.
pub type Bindings = BTreeMap<String, Binding>;

impl<'de> Deserialize<'de> for Binding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Binding, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        match value.as_table() {
            Some(table) if table.contains_key("grid") => part(value).map(Binding::Grid),
            Some(table) if table.contains_key("command") => part(value).map(Binding::Command),
            _ => queue::Binding::read(value).map(Binding::Queue),
        }
    }
}

/// An error for a series that nothing uses: a typing error, or a missing check.
pub fn unused(bindings: &Bindings, used: impl Fn(&str) -> bool) -> Option<Fault> {
    let name = bindings.keys().find(|name| !used(name))?;
    Some((
        format!("let.{name}"),
        format!("nothing uses the series `{name}`; take it out, or put it into an expression"),
    ))
}
