//! The rows of a figure: where the names of series are, how high rows are, and where their plot begins and
//! ends.

use super::panel::{self, Panel, TOP};
use super::{Context, Row, Style, View};
use crate::svg::{Anchor, Axis, BOLD, Canvas, LABEL_SIZE, Rect, Scale, WIDTH, at, count, fit, text_width};

/// Where a name begins, right of its marker.
const NAME: f64 = 18.0;
/// The space between a name and the plot, for the cross of an invalid cell.
const CROSS: f64 = 18.0;
/// The least space for names: plots of figures with short names begin at the same place.
const MIN_LEFT: f64 = 66.0;
/// A wider name is above its row: next to it, the plot would be too small.
const MAX_BESIDE: f64 = 92.0;
/// Height of a name above its row.
const LINE: f64 = 17.0;
/// Where a plot ends, if the values next to it are short.
const MAX_RIGHT: f64 = 322.0;
/// Between the plot and the values.
const GAP: f64 = 8.0;
/// The least width of the plot, for any width of values.
const MIN_PLOT: f64 = 80.0;

/// How the rows of all panels of a figure are laid out.
pub(crate) struct Rows {
    /// Each name, and the part of it that is shown.
    names: Vec<(String, String)>,
    /// Whether names are above their rows.
    is_above: bool,
    left: f64,
    right: f64,
    /// Height of a row without its name's line.
    marks: f64,
}

impl Rows {
    /// Rows of a height for series of these names; long names make them higher.
    pub(crate) fn new(names: &[String], height: f64) -> Rows {
        let widest = names.iter().map(|name| width(name)).fold(0.0, f64::max);
        let is_above = widest > MAX_BESIDE;
        Rows {
            names: distinct(names, if is_above { WIDTH - NAME - CROSS } else { MAX_BESIDE }),
            is_above,
            left: if is_above { NAME } else { (NAME + widest + CROSS).max(MIN_LEFT) },
            right: MAX_RIGHT,
            marks: height,
        }
    }

    /// The same for the series of a view.
    pub(crate) fn of(view: &View<'_>, height: f64) -> Rows {
        let names: Vec<String> = view.series.iter().map(|series| series.name.clone()).collect();
        Rows::new(&names, height)
    }

    /// The same with room for uncut values at the right edge.
    pub(crate) fn with_values(self, values: impl Iterator<Item = String>) -> Rows {
        let widest = values.map(|value| text_width(&value, LABEL_SIZE)).fold(0.0, f64::max);
        let right = (WIDTH - GAP - widest).min(self.right).max(self.left + MIN_PLOT);
        Rows { right, ..self }
    }

    /// Where the plot begins and ends.
    pub(crate) fn plot(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// Height of a row with its name.
    pub(crate) fn height(&self) -> f64 {
        self.marks + self.line()
    }

    /// The middle of a row's marks.
    pub(crate) fn middle(&self, index: usize) -> f64 {
        TOP + count(index) * self.height() + self.line() + self.marks / 2.0
    }

    /// Where this number of rows ends.
    pub(crate) fn bottom(&self, number: usize) -> f64 {
        TOP + count(number) * self.height()
    }

    fn line(&self) -> f64 {
        if self.is_above { LINE } else { 0.0 }
    }

    /// The area of the row around `y` that shows its hover text.
    pub(crate) fn draw_hit(&self, canvas: &mut Canvas, y: f64) {
        let top = y - self.marks / 2.0 - self.line();
        canvas.rect(Rect { x: 0.0, y: top, width: WIDTH, height: self.height() }, "hit");
    }

    /// The marker and name of the row around `y`; an invalid one is struck out and crossed.
    pub(crate) fn draw_name(&self, canvas: &mut Canvas, name: &str, style: Style, is_struck: bool, y: f64) {
        let shown = self.names.iter().find(|(known, _)| known == name).map_or(name, |(_, shown)| shown);
        let y = if self.is_above { y - self.marks / 2.0 - LINE / 2.0 + 2.0 } else { y };
        let class = match (self.is_above, is_struck) {
            (false, false) => "label",
            (true, false) => "label halo",
            // A halo would hide the line through the name.
            (_, true) => "label struck",
        };
        canvas.marker(at(7.0, y), style, 5.0);
        canvas.text(at(NAME, y + 4.5), Anchor::Start, class, shown);
        if is_struck {
            let x = if self.is_above { NAME + width(shown) + 8.0 } else { self.left - 9.0 };
            canvas.cross(at(x, y), 4.0);
        }
    }

    /// The marker and name of a cell's row.
    pub(crate) fn draw_label(&self, canvas: &mut Canvas, row: &Row<'_>, y: f64) {
        self.draw_name(canvas, &row.series.name, row.series.style, row.is_struck(), y);
    }

    /// A row without values, with the reason; returns its description.
    pub(crate) fn draw_empty(&self, canvas: &mut Canvas, row: &Row<'_>, reason: &str, y: f64) -> String {
        canvas.group(&row.class(), None, |c| {
            self.draw_label(c, row, y);
            c.text(at(self.left + 6.0, y + 4.5), Anchor::Start, "note", reason);
        });
        format!("{}: {reason}", row.series.name)
    }

    /// A panel with a row for each cell of a context. `draw_axis` gets the lower end of the rows. `draw_row`
    /// gets the middle of a row and returns its description; where it returns `None`, the row shows the
    /// cell's status.
    pub(crate) fn panel<'v, 'a>(
        &self,
        context: &'v Context<'a>,
        title: &str,
        draw_axis: impl FnOnce(&mut Canvas, f64),
        mut draw_row: impl FnMut(&mut Canvas, &'v Row<'a>, f64) -> Option<String>,
    ) -> Panel {
        let bottom = self.bottom(context.rows.len());
        let mut canvas = panel::headed(&context.name);
        draw_axis(&mut canvas, bottom);
        let mut description = Vec::new();
        for (index, row) in context.rows.iter().enumerate() {
            let y = self.middle(index);
            let drawn = draw_row(&mut canvas, row, y);
            description.push(drawn.unwrap_or_else(|| self.draw_empty(&mut canvas, row, row.status(), y)));
        }
        Panel::new(format!("{}: {title}", context.name), &description, bottom + Axis::HEIGHT, canvas)
    }

    /// A value at the right edge of the row.
    pub(crate) fn draw_value(&self, canvas: &mut Canvas, row: &Row<'_>, value: &str, y: f64) {
        let class = if row.is_believable() { "value" } else { "value struck" };
        canvas.text(at(WIDTH, y + 4.5), Anchor::End, class, value);
    }
}

/// The largest width of a name.
fn width(name: &str) -> f64 {
    text_width(name, LABEL_SIZE * BOLD)
}

/// Each name with as much of it as fits; equal beginnings are numbered.
fn distinct(names: &[String], room: f64) -> Vec<(String, String)> {
    let mut shown: Vec<(String, String)> = Vec::new();
    for name in names {
        let mut short = fit(name, LABEL_SIZE * BOLD, room);
        let mut number = 2;
        while shown.iter().any(|(_, known)| *known == short) {
            let end = format!(" ({number})");
            short = format!("{}{end}", fit(name, LABEL_SIZE * BOLD, room - width(&end)));
            number += 1;
        }
        shown.push((name.clone(), short));
    }
    shown
}

/// Arrows at the edge for the ends of an interval that the axis does not hold.
pub(crate) fn draw_ends(canvas: &mut Canvas, (low, high): (f64, f64), scale: Scale, y: f64, class: &str) {
    for (value, outwards) in [(low, -1.0), (high, 1.0)] {
        if !scale.contains(value) {
            let x = scale.place(value);
            let inner = x - 5.0 * outwards;
            canvas.path(&[at(inner, y - 5.0), at(x, y), at(inner, y + 5.0)], class);
        }
    }
}

/// The series' marker, or a mark at the edge for a value that the axis does not hold.
pub(crate) fn draw_mark(canvas: &mut Canvas, value: f64, style: Style, scale: Scale, y: f64, radius: f64) {
    let x = scale.place(value);
    if scale.contains(value) {
        canvas.marker(at(x, y), style, radius);
        return;
    }
    let (left, right) = scale.range();
    let outwards = if x - left < right - x { -1.0 } else { 1.0 };
    let (tip, inner) = (x + 4.0 * outwards, x - 7.0 * outwards);
    let class = if style.solid { "solid" } else { "hollow" };
    canvas.area(&[at(tip, y), at(inner, y - 7.0), at(inner, y + 7.0)], class);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str]) -> Rows {
        Rows::new(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), 34.0)
    }

    #[test]
    fn names_are_whole_and_leave_a_plot() {
        for names in [&["h1s", "h3"][..], &["nginx", "nghttpd"], &["haproxy-with-http-3-only", "x"]] {
            let rows = shown(names);
            assert!(rows.names.iter().all(|(name, shown)| name == shown), "{names:?}");
            let (left, right) = rows.plot();
            assert!(right - left >= 190.0, "{left} to {right}");
        }
        assert_eq!(shown(&["h1s"]).left(), MIN_LEFT);
        assert!(shown(&["haproxy-with-http-3-only"]).is_above && !shown(&["nghttpd"]).is_above);
    }

    #[test]
    fn names_that_are_cut_differ() {
        let long = "w".repeat(60);
        let rows = shown(&[&format!("{long}a"), &format!("{long}b"), &format!("{long}c")]);
        let shown: Vec<&str> = rows.names.iter().map(|(_, shown)| shown.as_str()).collect();
        assert!(shown[1].ends_with("… (2)") && shown[2].ends_with("… (3)"), "{shown:?}");
        assert!(shown.iter().all(|name| width(name) <= WIDTH - NAME), "{shown:?}");
    }
}
