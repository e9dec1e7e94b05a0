//! Aligned text tables.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, TableStyle, Width};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Left, for words.
    Left,
    /// Right, for numbers.
    Right,
}

/// A heading and rows of cells.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
    important: Vec<usize>,
}

/// The width of the page; 0 is any.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Tables are printed for a page of this width, in characters. Without a call every column is
/// printed, as in a file.
pub fn set_page_width(width: usize) {
    PAGE.store(width, Ordering::Relaxed);
}

/// The space between two columns.
const GAP: usize = 2;
/// What the line below a table that is cut begins with.
const NOT_SHOWN: &str = "Not shown:";
/// How to see what is not shown.
const MORE: &str = "a wider terminal shows more, `| less -S` all";
/// The narrowest column of prose.
const PROSE: usize = 30;

impl Table {
    /// Creates a table with these columns as its heading.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Table {
        let (heading, columns) =
            columns.into_iter().map(|(name, align)| (name.into(), align)).unzip();
        Table { columns, rows: vec![heading], important: Vec::new() }
    }

    /// Appends a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// These columns are kept on a narrow page, after the first one and before all others.
    pub fn keep(&mut self, columns: impl IntoIterator<Item = usize>) {
        self.important = columns.into_iter().collect();
    }

    /// The table on a page of this width: the first column, and of the others as many as fit. A last
    /// column of words is broken into lines. A line below names the columns that are left out.
    fn on_page(&self, page: usize) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let all: Vec<usize> = (0..widths.len()).collect();
        let total = |of: &[usize]| of.iter().map(|column| widths[*column] + GAP).sum::<usize>();
        if page == 0 || total(&all) <= page + GAP {
            return self.print(&all, None);
        }
        let prose = all.last().copied().filter(|last| {
            *last > 0 && self.columns[*last] == Align::Left && widths[*last] > PROSE
        });
        let needs_prose = !self.columns.contains(&Align::Right);
        let reserved = if needs_prose { prose.map_or(0, |_| PROSE + GAP) } else { 0 };
        let room = page.saturating_sub(reserved);
        let mut kept: Vec<usize> = all.first().copied().into_iter().collect();
        for &column in self.important.iter().chain(&all) {
            let with = [&kept[..], &[column]].concat();
            if Some(column) != prose && !kept.contains(&column) && total(&with) <= room + GAP {
                kept = with;
            }
        }
        kept.sort_unstable();
        let left = page.saturating_sub(total(&kept));
        let last = prose.filter(|_| needs_prose || (left >= PROSE && kept.len() + 1 == all.len()));
        kept.extend(last);
        let missing = all.iter().filter(|column| !kept.contains(column));
        let missing: Vec<&str> =
            missing.filter_map(|column| Some(self.rows[0].get(*column)?.as_str())).collect();
        let named: Vec<&str> = missing.iter().copied().filter(|name| !name.is_empty()).collect();
        let mut text = self.print(&kept, last.map(|_| left.max(PROSE)));
        if !named.is_empty() {
            text += &format!("{} {}; {MORE}\n", NOT_SHOWN, named.join(", "));
        }
        text
    }

    /// Plain text without borders: each column is as wide as its widest cell, the last one at most
    /// `prose` characters wide.
    fn print(&self, columns: &[usize], prose: Option<usize>) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        for row in &self.rows {
            table.add_row(columns.iter().map(|at| row.get(*at).map_or("", String::as_str)));
        }
        for (column, at) in table.column_iter_mut().zip(columns) {
            column.set_padding((0, 2));
            column.set_cell_alignment(match self.columns[*at] {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
        }
        if let Some(last) = columns.len().checked_sub(1).and_then(|at| table.column_mut(at))
            && let Some(width) = prose
        {
            let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
            last.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// Prints the table for the page of [`set_page_width`].
impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.on_page(PAGE.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines()
            .filter(|line| !line.starts_with(NOT_SHOWN))
            .map(|line| line.chars().count())
            .max()
            .unwrap()
    }

    #[test]
    fn a_narrow_page_has_the_first_column_the_important_ones_and_the_names_of_the_others() {
        let titles = [("policy", Align::Left), ("makespan", Align::Right), ("GRR", Align::Right)];
        let mut table = Table::new(titles.into_iter().chain([("wake p99", Align::Right)]));
        table.row(["troff: nice=-10", "256ms ±12% ~", "1.0502 ~", "2.97ms ±8% +65%"]);
        assert_eq!(table.on_page(0), table.on_page(80));
        assert_eq!(table.on_page(0).lines().count(), 2);
        let narrow = table.on_page(40);
        assert!(widest(&narrow) <= 40, "{narrow}");
        assert!(
            narrow.contains("makespan") && narrow.contains("\nNot shown: wake p99; "),
            "{narrow}"
        );
        table.keep([3]);
        let narrow = table.on_page(40);
        assert!(widest(&narrow) <= 40 && narrow.contains("Not shown: makespan, GRR; "), "{narrow}");
        assert!(narrow.contains("+65%"), "{narrow}");
        // What fits exactly is complete.
        let width = widest(&table.on_page(0));
        assert_eq!(table.on_page(width), table.on_page(0));
        assert_ne!(table.on_page(width - 1), table.on_page(0));
    }

    #[test]
    fn prose_is_broken_into_lines_where_it_matters_and_left_out_beside_numbers() {
        let long = "virtual clock in a sorted list, searched from its front; O(n)";
        let mut words = Table::new([("queue", Align::Left), ("description", Align::Left)]);
        words.row(["sorted-list", long]);
        let narrow = words.on_page(45);
        assert!(widest(&narrow) <= 45 && narrow.contains("O(n)"), "{narrow}");
        let mut numbers =
            Table::new([("queue", Align::Left), ("N=10", Align::Right), ("", Align::Left)]);
        numbers.row(["sorted-list", "74.8 ±5.1", long]);
        let narrow = numbers.on_page(60);
        assert!(widest(&narrow) <= 60 && narrow.contains("O(n)"), "{narrow}");
        let narrow = numbers.on_page(45);
        assert!(widest(&narrow) <= 45 && !narrow.contains("virtual"), "{narrow}");
    }
}
