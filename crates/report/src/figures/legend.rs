//! The legend inside a figure's own file: every series with its marker, and what other marks mean. On a page these stand in HTML.

use super::DrawnFigure;
use super::panel::{self, LABEL_SIZE};
use crate::svg::{Anchor, Canvas, at, text_width};

const LINE: f64 = 20.0;
/// Between two entries.
const GAP: f64 = 18.0;
/// A marker, and the space behind it.
const MARKER: f64 = 18.0;

/// Draws it from `left` and `top` on, within `width`; where it ends.
pub(super) fn draw(canvas: &mut Canvas, figure: &DrawnFigure, left: f64, top: f64, width: f64) -> f64 {
    let (mut x, mut y) = (left, top);
    for (name, style) in &figure.series {
        let wide = MARKER + text_width(name, LABEL_SIZE);
        if x > left && x + wide > left + width {
            (x, y) = (left, y + LINE);
        }
        canvas.group(&format!("s-{}", style.class), None, |c| {
            c.marker(at(x + 7.0, y + 7.0), *style, 5.0);
            c.text(at(x + MARKER, y + 11.5), Anchor::Start, "value", name);
        });
        x += wide + GAP;
    }
    if !figure.series.is_empty() {
        y += LINE + 2.0;
    }
    for key in &figure.drawing.keys {
        panel::draw_key(canvas, left, y, key, &figure.series);
        y += LINE - 2.0;
    }
    y
}
