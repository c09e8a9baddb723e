//! The names of cells of two results: the level with its style, the other levels that vary and, once, the
//! levels that all share.

use analysis::across::Across;
use model::plan::Level;

use crate::palette::{self, Style};
use crate::text::{self, clean_line};

/// The names of the cells of a comparison.
pub(super) struct Names {
    /// The factor that the studies compare, whose levels have styles.
    factor: String,
    /// Its levels in the order of B.
    series: Vec<String>,
    /// Levels that every compared cell has.
    shared: Vec<Level>,
    /// Whether there is only one cell, whose name has all its levels.
    is_single: bool,
}

impl Names {
    pub(super) fn new(across: &Across, factor: &str) -> Names {
        let contexts: Vec<&Vec<Level>> = across.cells.iter().map(|cell| &cell.comparison.context).collect();
        let first = contexts.first().map(|levels| levels.as_slice()).unwrap_or_default();
        let is_shared = |level: &&Level| contexts.iter().all(|levels| levels.contains(level));
        let series = text::distinct(contexts.iter().map(|levels| level_of(levels, factor).to_owned()));
        let shared: Vec<Level> = first.iter().filter(is_shared).cloned().collect();
        let is_single = shared.len() == first.len();
        Names { factor: factor.to_owned(), series, shared, is_single }
    }

    /// The level of the factor that has a style, and the style.
    pub(super) fn series(&self, levels: &[Level]) -> (String, Style) {
        let name = level_of(levels, &self.factor);
        let index = self.series.iter().position(|known| known == name).unwrap_or_default();
        (clean_line(name), palette::style_of(name, index))
    }

    /// Every level that has a style.
    pub(super) fn all_series(&self) -> Vec<(String, Style)> {
        let styled = |(index, name): (usize, &String)| (clean_line(name), palette::style_of(name, index));
        self.series.iter().enumerate().map(styled).collect()
    }

    /// The other levels that vary between cells, such as `north-carolina · large`; all other levels if none
    /// varies.
    pub(super) fn context(&self, levels: &[Level]) -> String {
        let others = || levels.iter().filter(|level| level.factor != self.factor);
        let varying = joined(others().filter(|level| !self.shared.contains(level)));
        if varying.is_empty() { joined(others()) } else { varying }
    }

    /// The name of a cell: the levels that vary, or all of them if none varies.
    pub(super) fn cell(&self, levels: &[Level]) -> String {
        let varying = joined(levels.iter().filter(|level| !self.shared.contains(level)));
        if varying.is_empty() { full(levels) } else { varying }
    }

    /// Such as `In all cells: server origin and network own.`; `None` if the names of the cells are complete.
    pub(super) fn describe_shared(&self) -> Option<String> {
        let shared: Vec<String> = self
            .shared
            .iter()
            .map(|level| clean_line(&format!("{} {}", level.factor, level.value)))
            .collect();
        let is_known = self.is_single || shared.is_empty();
        (!is_known).then(|| format!("In all cells: {}.", text::list(&shared)))
    }
}

fn level_of<'a>(levels: &'a [Level], factor: &str) -> &'a str {
    levels.iter().find(|level| level.factor == factor).map_or("", |level| &level.value)
}

/// All levels of a cell.
pub(super) fn full(levels: &[Level]) -> String {
    joined(levels.iter())
}

fn joined<'a>(levels: impl Iterator<Item = &'a Level>) -> String {
    clean_line(&levels.map(|level| level.value.as_str()).collect::<Vec<_>>().join(" · "))
}
