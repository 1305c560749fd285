//! Tables for people: columns as wide as what is in them, in the cells of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::output::printable;

/// A column: its head, and the most cells that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) cells_max: usize,
    pub(super) is_number: bool,
}

/// Columns that remember how wide they were, so that one page stands under the other.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    widths: Vec<usize>,
    has_head: bool,
}

impl Table {
    pub(super) fn new(columns: Vec<Column>) -> Self {
        let widths = columns.iter().map(|column| column.head.width()).collect();
        Self {
            columns,
            widths,
            has_head: false,
        }
    }

    /// Lines for these rows; before the first ones, the heads.
    pub(super) fn lines(&mut self, rows: &[Vec<String>]) -> Vec<String> {
        let fit = |(text, column): (&String, &Column)| fitted(text, column.cells_max);
        let fit_row = |row: &Vec<String>| row.iter().zip(&self.columns).map(fit).collect::<Vec<String>>();
        let rows: Vec<Vec<String>> = rows.iter().map(fit_row).collect();
        for row in &rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        let heads: Vec<String> = self.columns.iter().map(|column| column.head.to_owned()).collect();
        let heads = (!self.has_head).then_some(heads);
        self.has_head = true;
        heads.iter().chain(&rows).map(|row| self.line(row)).collect()
    }

    fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(&self.widths) {
            let padding = " ".repeat(width.saturating_sub(cell.width()));
            let (before, after) = if column.is_number {
                (padding.as_str(), "")
            } else {
                ("", padding.as_str())
            };
            line.push_str(&[before, cell, after, "  "].concat());
        }
        line.trim_end().to_owned()
    }
}

/// One line of text within so many cells.
pub(super) fn fitted(text: &str, cells_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = printable(&line);
    if line.width() <= cells_max {
        return line;
    }
    let mut cells = 1;
    let fits = |c: &char| {
        cells += c.width().unwrap_or_default();
        cells <= cells_max
    };
    let mut cut: String = line.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other_in_any_script() {
        let column = |head, is_number| Column {
            head,
            cells_max: 8,
            is_number,
        };
        let mut table = Table::new(vec![
            column("#", true),
            column("NAME", false),
            column("PRICE", true),
        ]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = table.lines(&[
            row(["1", "東京 tea", "5"]),
            row(["10", "a very long name", "12.50"]),
        ]);
        assert_eq!(
            lines,
            [
                " #  NAME      PRICE",
                " 1  東京 tea      5",
                "10  a very …  12.50"
            ]
        );
        assert_eq!(
            table.lines(&[row(["11", "x", "1"])]),
            ["11  x             1"],
            "without heads, as wide"
        );
    }

    #[test]
    fn a_name_cannot_break_out_of_its_cell() {
        assert_eq!(fitted("a\n\tb\u{1b}[2J", 40), "a b\\u{1b}[2J");
        assert_eq!(fitted("\u{202e}abc", 40), "\\u{202e}abc");
        assert_eq!(fitted("東東東", 5), "東東…");
    }
}
