//! What all panels share: their size, their heading, the labels of their rows.

use super::Key;
use crate::encode;
use crate::palette::Style;
use crate::svg::{Anchor, Canvas, Rect, at, fit, number, wrapped};

/// A panel's width: readable on a phone of 390 pixels, two abreast on a desk.
pub(crate) const WIDTH: f64 = 400.0;
/// Where the first row may begin, below the heading.
pub(crate) const TOP: f64 = 34.0;
/// Font size of headings.
const HEADING_SIZE: f64 = 14.5;
/// The class of their lines above the last, the lines' height, and lines at most.
const ABOVE: &str = "heading above";
const HEADING_LINE: f64 = 18.0;
const MOST_LINES: usize = 4;
/// How much wider bold letters are.
const BOLD: f64 = 1.12;
/// Font size of labels.
pub(crate) const LABEL_SIZE: f64 = 12.5;

/// One drawing with its own axes.
pub(crate) struct Panel {
    /// Its name for those who do not see it.
    pub(crate) title: String,
    /// Its values for those who do not see it.
    pub(crate) description: String,
    /// The series that it belongs to alone, as a class.
    pub(crate) class: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) body: String,
}

impl Panel {
    /// Whether a series of this style is drawn in it.
    pub(crate) fn shows(&self, style: Style) -> bool {
        // The name of one style begins another's: h2, h2c.
        ["\"", " "].iter().any(|end| self.body.contains(&format!("series s-{}{end}", style.class)))
    }

    /// How much further lines of its heading stand above its upper edge.
    #[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
    pub(crate) fn above(&self) -> f64 {
        self.body.matches(&format!("class=\"{ABOVE}\"")).count() as f64 * HEADING_LINE
    }

    /// The panel as an element of an HTML page; `id` is unique there.
    pub(crate) fn to_html(&self, id: &str) -> String {
        let above = self.above();
        let (top, width, height) = (number(-above), number(self.width), number(self.height + above));
        let (title, description) = (encode::xml(&self.title), encode::xml(&self.description));
        format!(
            "<svg class=\"figure {}\" viewBox=\"0 {top} {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title>\
             <desc id=\"{id}-d\">{description}</desc>{}</svg>",
            encode::xml(&self.class),
            self.body
        )
    }
}

/// The heading of a panel. A long one has several lines, the last at the usual place and the others above it.
#[expect(clippy::cast_precision_loss, reason = "a handful of lines")]
pub(crate) fn heading(canvas: &mut Canvas, text: &str) {
    let lines = heading_lines(text);
    for (index, line) in lines.iter().rev().enumerate() {
        let y = 15.0 - index as f64 * HEADING_LINE;
        canvas.text(at(0.0, y), Anchor::Start, if index == 0 { "heading" } else { ABOVE }, line);
    }
}

fn heading_lines(text: &str) -> Vec<String> {
    let mut lines = wrapped(text, HEADING_SIZE * BOLD, WIDTH);
    if lines.len() > MOST_LINES {
        let rest = lines.split_off(MOST_LINES - 1).join(" ");
        lines.push(fit(&rest, HEADING_SIZE * BOLD, WIDTH));
    }
    lines
}

/// The class of a row's group: its series, and whether it may not be believed.
pub(crate) fn row_class(style: Style, believable: bool) -> String {
    format!("series s-{}{}", style.class, if believable { "" } else { " bad" })
}

/// Width of a key's box.
pub(crate) const SWATCH: f64 = 30.0;

/// A key's box. What is drawn in the colours of the series shows all of them, side by side.
pub(crate) fn draw_swatch(canvas: &mut Canvas, x: f64, y: f64, key: &Key, series: &[(String, Style)]) {
    if key.class.starts_with("key-line") {
        canvas.line(at(x, y + 5.0), at(x + SWATCH, y + 5.0), key.class);
        return;
    }
    if key.class == "published" {
        canvas.line(at(x + SWATCH / 2.0, y - 1.0), at(x + SWATCH / 2.0, y + 11.0), key.class);
        return;
    }
    if key.class == "hatch" {
        canvas.hatch(Rect { x, y, width: SWATCH, height: 10.0 }, 5.0);
        return;
    }
    if !key.coloured || series.is_empty() {
        canvas.rect(Rect { x, y, width: SWATCH, height: 10.0 }, key.class);
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of series")]
    let width = SWATCH / series.len() as f64;
    for (index, (_, style)) in series.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of series")]
        let x = x + index as f64 * width;
        canvas.group(&format!("s-{}", style.class), None, |c| {
            c.rect(Rect { x, y, width, height: 10.0 }, key.class);
        });
    }
}

/// A box with what it means.
pub(crate) fn draw_key(canvas: &mut Canvas, x: f64, y: f64, key: &Key, series: &[(String, Style)]) {
    draw_swatch(canvas, x, y + 1.0, key, series);
    canvas.text(at(x + SWATCH + 8.0, y + 10.0), Anchor::Start, "tick", &key.label);
}

/// A key's box as an element of an HTML page.
pub(crate) fn swatch_html(key: &Key, series: &[(String, Style)]) -> String {
    let mut canvas = Canvas::default();
    draw_swatch(&mut canvas, 0.0, 0.0, key, series);
    let width = number(SWATCH);
    format!(
        "<svg class=\"figure\" viewBox=\"0 0 {width} 10\" width=\"{width}\" height=\"10\" aria-hidden=\"true\">{}</svg>",
        canvas.finish()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_headings_have_lines() {
        assert_eq!(heading_lines("lan · small"), ["lan · small"]);
        let long = "nginx-with-sendfile-off · north-carolina-in-winter · fifty-resources-of-a-shop";
        assert!(heading_lines(long).len() > 1 && heading_lines(long).join(" ") == long);
        let endless = heading_lines(&"word ".repeat(200));
        assert!(endless.len() == MOST_LINES && endless[3].ends_with('…'), "{endless:?}");
    }
}
