//! A horizontal axis with grid lines, labels that never touch, and a title with the unit.

use super::canvas::{Anchor, Canvas, at, text_width};
use super::scale::Scale;

/// Font size of tick labels.
const LABEL_SIZE: f64 = 11.5;
/// Free space between two labels.
const LABEL_GAP: f64 = 8.0;

/// A horizontal axis below a plot.
pub(crate) struct Axis<'a> {
    pub(crate) scale: Scale,
    /// Where the plot begins and ends, from above.
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    /// The drawing's width: labels stay inside.
    pub(crate) width: f64,
    pub(crate) title: &'a str,
    pub(crate) label: &'a dyn Fn(f64) -> String,
}

impl Axis<'_> {
    /// Height that labels and title take below the plot.
    pub(crate) const HEIGHT: f64 = 38.0;

    /// Draws grid, labels and title.
    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let (left, right) = self.scale.range();
        canvas.line(at(left, self.bottom), at(right, self.bottom), "axis");
        let mut free_from = 0.0;
        for tick in self.scale.ticks(5) {
            let x = self.scale.place(tick);
            canvas.line(at(x, self.top), at(x, self.bottom), "grid");
            let label = (self.label)(tick);
            let half = text_width(&label, LABEL_SIZE) / 2.0;
            let middle = x.clamp(half, (self.width - half).max(half));
            if middle - half >= free_from {
                canvas.text(at(middle, self.bottom + 15.0), Anchor::Middle, "tick", &label);
                free_from = middle + half + LABEL_GAP;
            }
        }
        let middle = f64::midpoint(left, right);
        canvas.text(at(middle, self.bottom + 32.0), Anchor::Middle, "axis-title", self.title);
    }
}
