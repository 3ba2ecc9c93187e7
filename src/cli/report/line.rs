//! A line of source as a terminal can show it: tabs expanded, control characters made visible, long
//! lines cut to a window around the finding, and the caret's place counted in terminal cells.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use crate::prompt::visible::shown;

/// The most cells of one source line that are shown.
const WINDOW: usize = 120;
/// How many cells stay visible to the left of the caret when a line is cut there.
const BEFORE: usize = 40;
/// Tab stops are this many cells apart.
const TAB: usize = 4;

/// A source line ready to print, and where its underline goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The line, or the part of it around the finding.
    pub text: String,
    /// Cells before the first caret.
    pub indent: usize,
    /// How many carets, at least one.
    pub carets: usize,
}

impl Shown {
    /// Lays out `line` with `width` characters underlined from `column` (both count characters, from 1).
    ///
    /// Column 0 underlines the whole line without the blanks around it. A column past the end of the
    /// line puts one caret just behind it.
    pub(super) fn of(line: &str, column: u32, width: u32) -> Self {
        let cells = cells(line.trim_end_matches(['\n', '\r']));
        let (from, to) = underlined(&cells, column, width);
        let place = |index: usize| cells.get(index).map_or(end(&cells), |cell| cell.at);
        let (start, stop) = (place(from), place(to));

        let (left, right) = if end(&cells) <= WINDOW {
            (0, cells.len())
        } else {
            let left = cells.partition_point(|cell| cell.at < start.saturating_sub(BEFORE));
            let limit = place(left) + WINDOW;
            (left, cells.partition_point(|cell| cell.end() <= limit))
        };
        let mut text = String::new();
        if left > 0 {
            text.push('…');
        }
        let cut = text.width();
        for cell in &cells[left..right] {
            text.push_str(&cell.shown);
        }
        if right < cells.len() {
            text.push('…');
        }
        let last = place(right).max(place(left));
        Self {
            text: text.trim_end().to_owned(),
            indent: start.saturating_sub(place(left)) + cut,
            carets: stop.min(last).saturating_sub(start).max(1),
        }
    }
}

/// One character of the source as it is shown, with the cell it starts at.
struct Cell {
    shown: Cow<'static, str>,
    at: usize,
    width: usize,
    blank: bool,
}

impl Cell {
    fn end(&self) -> usize {
        self.at + self.width
    }
}

fn end(cells: &[Cell]) -> usize {
    cells.last().map_or(0, Cell::end)
}

fn cells(line: &str) -> Vec<Cell> {
    let mut at = 0;
    let mut cells = Vec::new();
    for character in line.chars() {
        let shown: Cow<'static, str> = if character == '\t' {
            " ".repeat(TAB - at % TAB).into()
        } else {
            shown(character)
        };
        let width = shown.width();
        cells.push(Cell {
            shown,
            at,
            width,
            blank: character.is_whitespace(),
        });
        at += width;
    }
    cells
}

/// The first and the one-past-last character to underline, as indices.
fn underlined(cells: &[Cell], column: u32, width: u32) -> (usize, usize) {
    if column == 0 {
        let first = cells.iter().position(|cell| !cell.blank).unwrap_or(0);
        let last = cells
            .iter()
            .rposition(|cell| !cell.blank)
            .map_or(first, |index| index + 1);
        return (first, last);
    }
    let from = (column as usize - 1).min(cells.len());
    (
        from,
        from.saturating_add(width.max(1) as usize).min(cells.len()),
    )
}
