//! What all panels share: their heading, the keys of their marks, and how they are embedded.

use super::{Key, Style};
use crate::encode;
use crate::svg::{
    Anchor, BOLD, Canvas, HEADING_SIZE, LABEL_SIZE, Rect, WIDTH, at, count, fit, number, wrapped,
};

/// Where the first row begins, below the heading.
pub(crate) const TOP: f64 = 34.0;
/// The class of all lines of a heading but the last, and the distance of its lines.
const ABOVE: &str = "heading above";
const HEADING_LINE: f64 = 18.0;
const MAX_LINES: usize = 4;

/// One drawing with its own axes.
pub(crate) struct Panel {
    /// Its name, for readers who do not see it.
    pub(crate) title: String,
    /// Its values, for readers who do not see it.
    description: String,
    /// The class of the only series that it shows; empty where there are several.
    class: String,
    pub(crate) height: f64,
    pub(crate) body: String,
}

impl Panel {
    /// A finished drawing; `description` has a part for each row or series.
    pub(crate) fn new(title: String, description: &[String], height: f64, canvas: Canvas) -> Panel {
        let body = canvas.finish();
        Panel { title, description: description.join("; "), class: String::new(), height, body }
    }

    /// The same, of one series.
    pub(crate) fn of_series(self, style: Style) -> Panel {
        Panel { class: format!("series s-{}", style.class), ..self }
    }

    /// Whether it shows a series of this style.
    pub(crate) fn shows(&self, style: Style) -> bool {
        // The name of one style may begin that of another: h2, h2c.
        ["\"", " "].iter().any(|end| self.body.contains(&format!("series s-{}{end}", style.class)))
    }

    /// The height of the heading's lines above the upper edge.
    pub(crate) fn above(&self) -> f64 {
        count(self.body.matches(&format!("class=\"{ABOVE}\"")).count()) * HEADING_LINE
    }

    /// The panel as an element of an HTML page; `id` is unique there.
    pub(crate) fn to_html(&self, id: &str) -> String {
        let above = self.above();
        let (top, width, height) = (number(-above), number(WIDTH), number(self.height + above));
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

/// A canvas with the heading of a panel. A long heading has several lines, the last at the usual place.
pub(crate) fn headed(text: &str) -> Canvas {
    let mut canvas = Canvas::default();
    for (index, line) in heading_lines(text).iter().rev().enumerate() {
        let y = 15.0 - count(index) * HEADING_LINE;
        canvas.text(at(0.0, y), Anchor::Start, if index == 0 { "heading" } else { ABOVE }, line);
    }
    canvas
}

fn heading_lines(text: &str) -> Vec<String> {
    let mut lines = wrapped(text, HEADING_SIZE * BOLD, WIDTH);
    if lines.len() > MAX_LINES {
        let rest = lines.split_off(MAX_LINES - 1).join(" ");
        lines.push(fit(&rest, HEADING_SIZE * BOLD, WIDTH));
    }
    lines
}

/// Height of a line of [`draw_notes`].
const NOTE: f64 = 17.0;

/// Lines below a plot about cells that are not drawn; returns where they end.
pub(crate) fn draw_notes(canvas: &mut Canvas, notes: &[String], (left, right): (f64, f64), top: f64) -> f64 {
    let mut y = top;
    for note in notes {
        canvas.text(at(left, y + 10.0), Anchor::Start, "note", &fit(note, LABEL_SIZE, right - left));
        y += NOTE;
    }
    y
}

/// Width of a key's box.
pub(crate) const SWATCH: f64 = 30.0;

/// A key's box. A mark that has the colour of its series is shown in all of them, side by side.
pub(crate) fn draw_swatch(canvas: &mut Canvas, x: f64, y: f64, key: &Key, series: &[(String, Style)]) {
    let whole = Rect { x, y, width: SWATCH, height: 10.0 };
    match key.class {
        class if class.starts_with("key-line") => {
            canvas.line(at(x, y + 5.0), at(x + SWATCH, y + 5.0), class);
        }
        "published" => {
            canvas.line(at(x + SWATCH / 2.0, y - 1.0), at(x + SWATCH / 2.0, y + 11.0), key.class);
        }
        "hatch" => canvas.hatch(whole, 5.0),
        // The only marks in the colour of their series.
        "k-wait" | "k-transfer" if !series.is_empty() => {
            let width = SWATCH / count(series.len());
            for (index, (_, style)) in series.iter().enumerate() {
                let part = Rect { x: x + count(index) * width, width, ..whole };
                canvas.group(&format!("s-{}", style.class), None, |c| c.rect(part, key.class));
            }
        }
        class => canvas.rect(whole, class),
    }
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
        assert!(endless.len() == MAX_LINES && endless[3].ends_with('…'), "{endless:?}");
    }
}
