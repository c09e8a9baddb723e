//! Shapes and text, appended to one string. All text is escaped here.

use crate::encode;
use crate::palette::{Shape, Style};

/// Which point of a text is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A place on the canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A box on the canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A drawing under construction.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    out: String,
}

/// Shorthand for a [`Point`].
pub(crate) const fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

impl Canvas {
    /// The elements drawn.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Draws `inside` as a group; `title` is its hover text, also for screen readers.
    pub(crate) fn group(&mut self, class: &str, title: Option<&str>, inside: impl FnOnce(&mut Canvas)) {
        self.out.push_str(&format!("<g class=\"{}\">", encode::xml(class)));
        if let Some(title) = title {
            self.out.push_str(&format!("<title>{}</title>", encode::xml(title)));
        }
        inside(self);
        self.out.push_str("</g>");
    }

    /// Everything drawn on another canvas, moved down.
    pub(crate) fn moved_down(&mut self, by: f64, other: Canvas) {
        match by > 0.0 {
            true => {
                self.out.push_str(&format!("<g transform=\"translate(0 {})\">{}</g>", number(by), other.out))
            }
            false => self.out.push_str(&other.out),
        }
    }

    /// A line of text whose baseline is at `y`.
    pub(crate) fn text(&mut self, place: Point, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (number(place.x), number(place.y), encode::xml(text));
        self.out.push_str(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>"));
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: Point, to: Point, class: &str) {
        self.path(&[from, to], class);
    }

    /// A line through several places.
    pub(crate) fn path(&mut self, points: &[Point], class: &str) {
        self.out.push_str(&format!("<path class=\"{class}\" d=\"M{}\"/>", places(points)));
    }

    /// A line that keeps its height until the next place: a step at every place.
    pub(crate) fn steps(&mut self, points: &[Point], class: &str) {
        let Some((first, rest)) = points.split_first() else { return };
        self.out.push_str(&format!("<path class=\"{class}\" d=\"M{} {}", number(first.x), number(first.y)));
        for point in rest {
            self.out.push_str(&format!("H{}V{}", number(point.x), number(point.y)));
        }
        self.out.push_str("\"/>");
    }

    /// A box.
    pub(crate) fn rect(&mut self, rect: Rect, class: &str) {
        self.draw_box(rect, class, "");
    }

    /// A box with rounded corners.
    pub(crate) fn rounded(&mut self, rect: Rect, radius: f64, class: &str) {
        self.draw_box(rect, class, &format!(" rx=\"{}\"", number(radius)));
    }

    fn draw_box(&mut self, rect: Rect, class: &str, corners: &str) {
        let [x, y, width, height] = [rect.x, rect.y, rect.width.max(0.0), rect.height.max(0.0)].map(number);
        self.out.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{corners}/>"
        ));
    }

    /// A series' marker; `radius` is half its height. The colour comes from the group around it.
    pub(crate) fn marker(&mut self, place: Point, style: Style, radius: f64) {
        let class = if style.solid { "solid" } else { "hollow" };
        let (x, y, r) = (place.x, place.y, radius);
        let points = match style.shape {
            Shape::Circle => {
                let [x, y, r] = [x, y, r].map(number);
                self.out.push_str(&format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>"));
                return;
            }
            Shape::Square => {
                let side = r * 0.9;
                let (left, right, top, bottom) = (x - side, x + side, y - side, y + side);
                vec![at(left, top), at(right, top), at(right, bottom), at(left, bottom)]
            }
            Shape::Diamond => {
                let half = r * 1.25;
                vec![at(x, y - half), at(x + half, y), at(x, y + half), at(x - half, y)]
            }
            Shape::Triangle => {
                let half = r * 1.15;
                vec![at(x, y - half), at(x + half, y + half * 0.8), at(x - half, y + half * 0.8)]
            }
        };
        self.area(&points, class);
    }

    /// Slanted lines over a box: the mark of a difference that was not shown.
    pub(crate) fn hatch(&mut self, rect: Rect, distance: f64) {
        let Rect { x, y, width, height } = rect;
        let mut lines = String::new();
        // x + y is constant along a line.
        let mut sum = distance;
        while sum < width + height && distance > 0.0 {
            let (x1, y1) = if sum < height { (0.0, sum) } else { (sum - height, height) };
            let (x2, y2) = if sum < width { (sum, 0.0) } else { (width, sum - width) };
            let [x1, y1, x2, y2] = [x + x1, y + y1, x + x2, y + y2].map(number);
            lines.push_str(&format!("M{x1} {y1}L{x2} {y2}"));
            sum += distance;
        }
        self.out.push_str(&format!("<path class=\"hatch\" d=\"{lines}\"/>"));
    }

    /// An area between two lines.
    pub(crate) fn area(&mut self, points: &[Point], class: &str) {
        self.out.push_str(&format!("<path class=\"{class}\" d=\"M{}Z\"/>", places(points)));
    }

    /// An empty circle; the colour comes from the group around it.
    pub(crate) fn ring(&mut self, place: Point, radius: f64) {
        let [x, y, r] = [place.x, place.y, radius].map(number);
        self.out.push_str(&format!("<circle class=\"ring\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>"));
    }

    /// The mark of an invalid value.
    pub(crate) fn cross(&mut self, place: Point, half: f64) {
        let (x, y, h) = (place.x, place.y, half);
        self.line(at(x - h, y - h), at(x + h, y + h), "cross");
        self.line(at(x - h, y + h), at(x + h, y - h), "cross");
    }
}

/// The coordinates of a path.
fn places(points: &[Point]) -> String {
    let places: Vec<String> = points.iter().map(|p| format!("{} {}", number(p.x), number(p.y))).collect();
    places.join("L")
}

/// A coordinate with at most two digits after the point.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The largest width of a text at a font size: that of a wide sans-serif font (DejaVu Sans), so that no
/// reader's font cuts it.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '·' => 0.34,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' => 0.98,
        'A'..='Z' | '×' | '−' | '<' | '>' | '=' | '+' | '~' => 0.8,
        c if c.is_ascii() => 0.64,
        c if c < '\u{2e80}' => 0.7,
        _ => 1.1,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The text, or as much of it as fits into `width`.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if text_width(&kept, size) + text_width(&c.to_string(), size) + size > width {
            break;
        }
        kept.push(c);
    }
    format!("{}…", kept.trim_end())
}

/// The text in lines of at most `width`; only a single word that is wider is cut.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(fit(word, size, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!([1.0, 0.126, -0.001, f64::NAN].map(number), ["1", "0.13", "0", "0"]);
    }

    #[test]
    fn text_is_cut_to_fit() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        let cut = fit("a rather long name of a thing", 12.0, 100.0);
        assert!(cut.ends_with('…') && text_width(&cut, 12.0) <= 100.0, "{cut}");
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::default();
        canvas.group("a", Some("</title><script>"), |c| c.text(at(0.0, 0.0), Anchor::Start, "b", "<&]]>"));
        assert!(!canvas.finish().contains("<script"));
    }
}
