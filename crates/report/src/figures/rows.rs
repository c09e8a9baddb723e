//! The rows of a figure: where the names of series stand, how high rows are, and where their plot begins and ends.

use super::panel::{LABEL_SIZE, TOP, WIDTH, row_class};
use crate::palette::Style;
use crate::svg::{Anchor, Canvas, Rect, Scale, at, fit, text_width};
use crate::text::clean_line;
use crate::view::{Row, View, status_name};

/// How much wider bold letters are.
const BOLD: f64 = 1.12;
/// Where a name begins, right of its marker.
const NAME: f64 = 18.0;
/// What stands between a name and the plot: the cross of what may not be believed.
const CROSS: f64 = 18.0;
/// No plot beside names begins farther left, so that figures of short names are alike.
const LEAST_LEFT: f64 = 66.0;
/// A name that is wider stands above its row: beside it, it would leave too little of the plot.
const MOST_BESIDE: f64 = 92.0;
/// Height of a name's own line.
const LINE: f64 = 17.0;
/// Where a plot ends, if the values beside it are short.
const MOST_RIGHT: f64 = 322.0;
/// Between the plot and the values.
const GAP: f64 = 8.0;
/// However wide values are, so much remains of the plot.
const LEAST_PLOT: f64 = 80.0;

/// How the rows of all panels of a figure are laid out.
pub(crate) struct Rows {
    /// Each name with what is shown of it.
    names: Vec<(String, String)>,
    /// Whether names stand above their rows.
    is_above: bool,
    left: f64,
    right: f64,
    /// Height of a row without its name's line.
    marks: f64,
}

impl Rows {
    /// Rows of a height for series of these names; names that are long make them higher.
    pub(crate) fn new(names: &[String], height: f64) -> Rows {
        let widest = names.iter().map(|name| width(name)).fold(0.0, f64::max);
        let is_above = widest > MOST_BESIDE;
        Rows {
            names: distinct(names, if is_above { WIDTH - NAME - CROSS } else { MOST_BESIDE }),
            is_above,
            left: if is_above { NAME } else { (NAME + widest + CROSS).max(LEAST_LEFT) },
            right: MOST_RIGHT,
            marks: height,
        }
    }

    /// The same for the series of a view.
    pub(crate) fn of(view: &View<'_>, height: f64) -> Rows {
        let names: Vec<String> = view.series.iter().map(|series| clean_line(&series.name)).collect();
        Rows::new(&names, height)
    }

    /// With room for values at the right edge, none of which may be cut.
    pub(crate) fn with_values(self, values: impl Iterator<Item = String>) -> Rows {
        let widest = values.map(|value| text_width(&value, LABEL_SIZE)).fold(0.0, f64::max);
        let right = (WIDTH - GAP - widest).min(self.right).max(self.left + LEAST_PLOT);
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
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    pub(crate) fn middle(&self, index: usize) -> f64 {
        TOP + index as f64 * self.height() + self.line() + self.marks / 2.0
    }

    /// Where a row with its name begins.
    pub(crate) fn top(&self, index: usize) -> f64 {
        self.bottom(index)
    }

    /// Where so many rows end.
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    pub(crate) fn bottom(&self, count: usize) -> f64 {
        TOP + count as f64 * self.height()
    }

    fn line(&self) -> f64 {
        if self.is_above { LINE } else { 0.0 }
    }

    /// What a pointer finds of the row whose marks are about `y`.
    pub(crate) fn draw_hit(&self, canvas: &mut Canvas, y: f64) {
        let top = y - self.marks / 2.0 - self.line();
        canvas.rect(Rect { x: 0.0, y: top, width: WIDTH, height: self.height() }, "hit");
    }

    /// The marker and name of the row whose marks are about `y`; what may not be believed is struck out and crossed.
    pub(crate) fn draw_name(&self, canvas: &mut Canvas, name: &str, style: Style, is_struck: bool, y: f64) {
        let shown = self.names.iter().find(|(known, _)| known == name).map_or(name, |(_, shown)| shown);
        let y = if self.is_above { y - self.marks / 2.0 - LINE / 2.0 + 2.0 } else { y };
        let class = match (self.is_above, is_struck) {
            (false, false) => "label",
            (true, false) => "label halo",
            // A halo would hide the line that strikes the name out.
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
    pub(crate) fn draw_label(&self, canvas: &mut Canvas, view: &View<'_>, row: &Row<'_>, y: f64) {
        let series = view.series_of(row);
        self.draw_name(canvas, &clean_line(&series.name), series.style, row.is_struck(), y);
    }

    /// A row of which there are no numbers says why; returns the same in words.
    pub(crate) fn draw_empty(
        &self,
        canvas: &mut Canvas,
        view: &View<'_>,
        row: &Row<'_>,
        words: &str,
        y: f64,
    ) -> String {
        let series = view.series_of(row);
        canvas.group(&row_class(series.style, row.is_believable()), None, |c| {
            self.draw_label(c, view, row, y);
            c.text(at(self.left + 6.0, y + 4.5), Anchor::Start, "note", words);
        });
        format!("{}: {words}", clean_line(&series.name))
    }

    /// A row without numbers, whose cell's status is why.
    pub(crate) fn draw_status(&self, canvas: &mut Canvas, view: &View<'_>, row: &Row<'_>, y: f64) -> String {
        self.draw_empty(canvas, view, row, status_name(row.cell.status), y)
    }

    /// A value at the right edge of the row.
    pub(crate) fn draw_value(&self, canvas: &mut Canvas, row: &Row<'_>, value: &str, y: f64) {
        let class = if row.is_believable() { "value" } else { "value struck" };
        canvas.text(at(WIDTH, y + 4.5), Anchor::End, class, value);
    }
}

/// How wide a name is at most.
fn width(name: &str) -> f64 {
    text_width(name, LABEL_SIZE * BOLD)
}

/// Each name with as much of it as fits; those that are cut alike are numbered.
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

/// An interval's ends that the axis does not hold are arrows at its edge.
pub(crate) fn draw_ends(canvas: &mut Canvas, (low, high): (f64, f64), scale: Scale, y: f64, class: &str) {
    for (value, outwards) in [(low, -1.0), (high, 1.0)] {
        if !scale.contains(value) {
            let x = scale.place(value);
            let inner = x - 5.0 * outwards;
            canvas.path(&[at(inner, y - 5.0), at(x, y), at(inner, y + 5.0)], class);
        }
    }
}

/// A mark at the edge for a value that the axis does not hold; otherwise the series' marker at its place.
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
        assert_eq!(shown(&["h1s"]).left(), LEAST_LEFT);
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
