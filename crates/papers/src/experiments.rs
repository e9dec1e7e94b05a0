//! The experiments of a paper.

use super::commands::CommandData;
use super::figure::FigureData;
use super::grids::Regime;
use super::table::TableData;
use serde::Deserialize;

/// The content of `experiments.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiments {
    /// Tables, in the order of the paper.
    #[serde(default)]
    pub table: Vec<TableData>,
    /// Figures.
    #[serde(default)]
    pub figure: Vec<FigureData>,
    /// Regimes: the length and number of simulations.
    #[serde(default)]
    pub regime: Vec<Regime>,
    /// Commands.
    #[serde(default)]
    pub command: Vec<CommandData>,
}
