//! Results for people: numbers with their units, in tables.

mod numbers;
mod table;

pub use numbers::{
    CALLBACKS, counted, headline, is_headline, nanoseconds, open_cell, open_headline, quantity,
    signed_difference,
};
pub use table::{Align, Table};
