//! Intervals as text: a line for each ratio on a shared logarithmic axis, with a mark at 1.

use analysis::summary::Estimate;

use crate::svg::{Scale, count};

/// A narrower plot cannot be read.
pub(super) const MIN_COLUMNS: usize = 16;
/// A wider plot is no clearer.
pub(super) const MAX_COLUMNS: usize = 36;

/// This many labels show the range of an axis.
const ENOUGH_LABELS: usize = 3;

/// The axis of a plot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    scale: Scale,
    columns: usize,
    marks: &'static Marks,
}

/// The characters that a plot is made of.
#[derive(Debug)]
struct Marks {
    one: char,
    line: char,
    low: char,
    high: char,
    below: char,
    above: char,
    point: char,
    invalid_point: char,
    /// A point outside the axis, valid and invalid, below and above.
    points_beyond: [[&'static str; 2]; 2],
}

const UNICODE: Marks = Marks {
    one: '┊',
    line: '─',
    low: '├',
    high: '┤',
    below: '◂',
    above: '▸',
    point: '●',
    invalid_point: '○',
    points_beyond: [["◀", "◁"], ["▶", "▷"]],
};
const ASCII: Marks = Marks {
    one: ':',
    line: '-',
    low: '|',
    high: '|',
    below: '<',
    above: '>',
    point: 'o',
    invalid_point: 'x',
    points_beyond: [["<<", "<x"], [">>", "x>"]],
};

impl Plot {
    /// An axis for ratios from `domain.0` to `domain.1` with this many characters.
    pub(super) fn new(domain: (f64, f64), columns: usize, plain: bool) -> Plot {
        let last = count(columns.saturating_sub(1));
        let marks = if plain { &ASCII } else { &UNICODE };
        Plot { scale: Scale::logarithmic(domain, (0.0, last)), columns, marks }
    }

    /// The labels of the axis, each above its place. A label that would touch another is omitted, but never
    /// that of 1. If there are too few labels to show the range, its ends are labelled.
    pub(super) fn axis(&self) -> String {
        let mut line = vec![' '; self.columns];
        let mut ticks = vec![1.0];
        ticks.extend(self.scale.ticks((self.columns / 7).max(2)));
        let (low, high) = self.scale.range();
        let ends = [low, high].map(|place| self.scale.value_at(place));
        let mut labels = 0;
        for (index, tick) in ticks.iter().copied().chain(ends).enumerate() {
            if index == ticks.len() && labels >= ENOUGH_LABELS {
                break;
            }
            let label: Vec<char> = format!("{}×", model::units::three_digits(tick)).chars().collect();
            let place = self.column(tick);
            let start = place.saturating_sub(label.len() / 2).min(self.columns.saturating_sub(label.len()));
            let around = start.saturating_sub(1)..(start + label.len() + 1).min(self.columns);
            if line[around].iter().all(|c| *c == ' ') && label.len() <= self.columns {
                line[start..start + label.len()].copy_from_slice(&label);
                labels += 1;
            }
        }
        line.into_iter().collect()
    }

    /// A ratio with its interval. Ends beyond the axis are arrows; an invalid ratio has another point.
    pub(super) fn bar(&self, ratio: Option<Estimate>, is_believable: bool) -> String {
        let mut line = vec![' '; self.columns];
        line[self.column(1.0)] = self.marks.one;
        if let Some(ratio) = ratio {
            if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
                let (from, to) = (self.column(low), self.column(high));
                line[from..=to].fill(self.marks.line);
                line[from] = if self.scale.contains(low) { self.marks.low } else { self.marks.below };
                line[to] = if self.scale.contains(high) { self.marks.high } else { self.marks.above };
            }
            self.draw_point(&mut line, ratio.value, is_believable);
        }
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn draw_point(&self, line: &mut [char], ratio: f64, is_believable: bool) {
        let place = self.column(ratio);
        if self.scale.contains(ratio) {
            line[place] = if is_believable { self.marks.point } else { self.marks.invalid_point };
            return;
        }
        let mark = self.marks.points_beyond[usize::from(place > 0)][usize::from(!is_believable)];
        let start = place.min(line.len().saturating_sub(mark.chars().count()));
        line[start..].iter_mut().zip(mark.chars()).for_each(|(place, c)| *place = c);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the columns")]
    fn column(&self, ratio: f64) -> usize {
        (self.scale.place(ratio).round().max(0.0) as usize).min(self.columns.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, value: f64, high: f64) -> Option<Estimate> {
        Some(Estimate { value, low: Some(low), high: Some(high) })
    }

    #[test]
    fn bars_match_their_axis() {
        let plot = Plot::new((0.25, 4.0), 33, false);
        assert_eq!(plot.axis(), "      0.5×     1×      2×        ");
        assert_eq!(plot.bar(estimate(0.25, 0.5, 2.0), true), "├───────●───────────────┤");
        assert_eq!(plot.bar(estimate(0.4999, 0.5, 0.5001), true), "        ●       ┊");
        assert_eq!(plot.bar(estimate(0.1, 0.5, 9.0), false), "◂───────○───────────────────────▸");
        assert_eq!(plot.bar(None, true), "                ┊");
        assert_eq!(plot.bar(estimate(5.0, 164.0, 900.0), true), "                ┊               ▶");
        assert_eq!(plot.bar(estimate(0.5, 0.1, 0.9), false), "◁       ├──────┤┊");
        let narrow = Plot::new((0.13, 2.7), 16, false);
        assert_eq!(narrow.axis(), "0.2×     1×  2× ");
        assert_eq!(Plot::new((0.8, 1.9), 20, false).axis(), "    1×          1.9×");
        let plain = Plot::new((0.25, 4.0), 33, true).bar(estimate(0.25, 0.5, 2.0), true);
        assert_eq!(plain, "|-------o---------------|");
    }
}
