//! The figures of a paper: a place for each, and those that are orders of levels written out.

use super::tables::escape;
use crate::paper::figure::{Drawing, Order};
use std::fmt::Write;

/// The section with all of them; `figures.js` draws the curves in their places.
pub fn section(figures: &[Drawing]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section id=figures><h2>Figures</h2>\n<p class=note>Lines: ours, in instructions per operation, with the 95 % interval over assignments of \
         levels shaded (left axis). Circles of the same colour: the printed numbers, in instructions of the paper's machine (right axis). Both axes \
         begin at 0.</p>\n<div class=figures>\n",
    );
    for figure in figures {
        let _ = write!(html, "<figure id={0}><figcaption>{0}: {1}</figcaption>", escape(&figure.id), escape(&figure.title));
        html += if figure.curves.is_empty() { "" } else { "<div class=plot></div>" };
        figure.orders.iter().for_each(|order| html += &diagram(order));
        html += "</figure>\n";
    }
    html + "</div></section>\n"
}

/// A row per level: its letter wherever it runs.
fn diagram(order: &Order) -> String {
    let mut levels: Vec<&String> = order.levels.iter().collect();
    levels.sort();
    levels.dedup();
    let row = |level: &String| order.levels.iter().map(|one| if one == level { level } else { "·" }).collect::<String>() + "\n";
    let rows: String = levels.into_iter().map(row).collect();
    format!("<p>{}, slice by slice</p><pre>{}</pre>", escape(&order.queue), escape(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_row_per_level() {
        let levels = ["A", "A", "B", "A"].map(String::from).to_vec();
        let html = diagram(&Order { queue: "ruler".to_string(), levels });
        assert_eq!(html, "<p>ruler, slice by slice</p><pre>AA·A\n··B·\n</pre>");
    }
}
