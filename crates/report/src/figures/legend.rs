//! The legend in a figure's own file: every series with its marker, and the meaning of other marks. On a page
//! the legend is HTML.

use super::DrawnFigure;
use super::panel::{SWATCH, draw_swatch};
use crate::svg::{Anchor, Canvas, LABEL_SIZE, at, text_width};

const LINE: f64 = 20.0;
/// Between two entries.
const GAP: f64 = 18.0;
/// A marker, and the space behind it.
const MARKER: f64 = 18.0;

/// Draws it from `left` and `top` on, within `width`; returns where it ends.
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
        draw_swatch(canvas, left, y + 1.0, key, &figure.series);
        canvas.text(at(left + SWATCH + 8.0, y + 10.0), Anchor::Start, "tick", &key.label);
        y += LINE - 2.0;
    }
    y
}
