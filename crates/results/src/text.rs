//! Results for people: numbers with their units, in tables.

mod numbers;
mod table;

pub use numbers::{
    CALLBACKS, find_metric, headline, is_headline, nanoseconds, open_cell, open_headline, quantity,
    signed_difference,
};
pub use table::{Align, Table, set_page_width};
