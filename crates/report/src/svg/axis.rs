//! A horizontal axis with grid lines, labels that never touch, and a title with the unit.

use super::canvas::{Anchor, Canvas, at, fit, text_width};
use super::scale::Scale;
use super::{TICK_SIZE, WIDTH};

/// Free space between two labels.
const LABEL_GAP: f64 = 8.0;

/// A horizontal axis below a plot.
pub(crate) struct Axis<'a> {
    pub(crate) scale: Scale,
    /// Where the plot begins and ends, from above.
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) title: &'a str,
    pub(crate) label: &'a dyn Fn(f64) -> String,
}

impl Axis<'_> {
    /// Height of labels and title below the plot, with the panel's lower edge.
    pub(crate) const HEIGHT: f64 = 42.0;

    /// Draws grid, labels and title.
    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        self.draw_at(canvas, &self.scale.ticks(5));
    }

    /// The same with these ticks.
    pub(crate) fn draw_at(&self, canvas: &mut Canvas, ticks: &[f64]) {
        let (left, right) = self.scale.range();
        canvas.line(at(left, self.bottom), at(right, self.bottom), "axis");
        for &tick in ticks {
            let x = self.scale.place(tick);
            canvas.line(at(x, self.top), at(x, self.bottom), "grid");
        }
        // If there is no room for all labels, 1 comes first, then whole decades.
        let mut first = ticks.to_vec();
        first.sort_by_key(|tick| (!self.scale.is_decade(*tick), *tick != 1.0));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for tick in first {
            let label = (self.label)(tick);
            let half = text_width(&label, TICK_SIZE) / 2.0;
            let middle = self.scale.place(tick).clamp(half, (WIDTH - half).max(half));
            let (from, to) = (middle - half - LABEL_GAP, middle + half + LABEL_GAP);
            if taken.iter().all(|(left, right)| *right <= from || to <= *left) {
                canvas.text(at(middle, self.bottom + 15.0), Anchor::Middle, "tick", &label);
                taken.push((middle - half, middle + half));
            }
        }
        let title = fit(self.title, TICK_SIZE, WIDTH);
        let half = text_width(&title, TICK_SIZE) / 2.0;
        let middle = f64::midpoint(left, right).min(WIDTH - half).max(half);
        canvas.text(at(middle, self.bottom + 32.0), Anchor::Middle, "axis-title", &title);
    }
}

/// A vertical axis left of a plot; the scale's range runs from the bottom up.
pub(crate) struct SideAxis<'a> {
    pub(crate) scale: Scale,
    /// Where the plot begins and ends, from the left.
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) label: &'a dyn Fn(f64) -> String,
}

impl SideAxis<'_> {
    /// Draws grid and labels; a label that does not fit left of the plot is omitted, never cut.
    pub(crate) fn draw(&self, canvas: &mut Canvas, wanted: usize) {
        self.draw_at(canvas, &self.scale.ticks(wanted));
    }

    /// The same with these ticks.
    pub(crate) fn draw_at(&self, canvas: &mut Canvas, ticks: &[f64]) {
        for &tick in ticks {
            let (y, label) = (self.scale.place(tick), (self.label)(tick));
            canvas.line(at(self.left, y), at(self.right, y), "grid");
            if text_width(&label, TICK_SIZE) <= self.left - LABEL_GAP / 2.0 {
                canvas.text(at(self.left - LABEL_GAP / 2.0, y + 4.0), Anchor::End, "tick", &label);
            }
        }
        let (bottom, top) = self.scale.range();
        canvas.line(at(self.left, bottom), at(self.left, top), "axis");
    }
}
