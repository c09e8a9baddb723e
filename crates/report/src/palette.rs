//! Colours and markers: one of each per variant, the same everywhere, and distinguishable without colour.
//!
//! The shape is the version of HTTP (circle 1.1, square 2, diamond 3); hollow is cleartext, solid is
//! encrypted. Levels that are not variants take turns with six other colours, and each turn has another shape
//! or filling, so that 48 levels look different. The hues follow the palette of Okabe and Ito for
//! colour-blind readers. Each has a contrast of at least 3 : 1 with its background (WCAG 2.2, 1.4.11), text
//! at least 4.5 : 1 (1.4.3).

use std::fmt;

use model::Variant;

/// One colour: its name as a CSS custom property, and its values on a light and on a dark background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colour {
    pub(crate) name: &'static str,
    pub(crate) light: &'static str,
    pub(crate) dark: &'static str,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

/// Every colour of the report.
pub(crate) const COLOURS: &[Colour] = &[
    colour("paper", "#fdfdfb", "#14171a"),
    colour("panel", "#f5f5f1", "#1c2024"),
    colour("ink", "#1b1e21", "#e9e9e5"),
    colour("muted", "#565c63", "#a6acb3"),
    colour("hair", "#d6d7d1", "#3a4047"),
    colour("grid", "#e8e8e3", "#272c31"),
    colour("band", "#e6e4d3", "#33342b"),
    colour("better-ground", "#d8eee3", "#123a2c"),
    colour("better-ink", "#0a573e", "#93e2c2"),
    colour("worse-ground", "#fbe1d3", "#4a2413"),
    colour("worse-ink", "#873507", "#ffc0a0"),
    colour("plain-ground", "#e6e8ea", "#30363c"),
    colour("plain-ink", "#363c42", "#d3d8dd"),
    colour("alarm", "#a31f34", "#ff9aa6"),
    colour("h1", "#a66f00", "#e6a52e"),
    colour("h1s", "#c24400", "#f5833f"),
    colour("h2c", "#2a86c4", "#7cc4f0"),
    colour("h2", "#0b4f9e", "#4f9fe6"),
    colour("h3", "#00795a", "#2fc79a"),
    colour("o1", "#7a4fa3", "#bb93e0"),
    colour("o2", "#b0338b", "#ee86cc"),
    colour("o3", "#5b6b1f", "#b3c566"),
    colour("o4", "#8a5a44", "#d2a48c"),
    colour("o5", "#13808a", "#54c6d0"),
    colour("o6", "#444b52", "#b4bcc4"),
];

/// The shape of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Diamond,
    Triangle,
}

/// The name of a series in style sheets and legends, unique in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Variant(Variant),
    /// A level that is not a variant, by its index.
    Other(usize),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Variant(variant) => f.write_str(variant.name()),
            Class::Other(index) => write!(f, "o{}", index + 1),
        }
    }
}

/// How one series looks in every figure and table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// The CSS class is `s-` and this.
    pub(crate) class: Class,
    /// The colour's name.
    pub(crate) colour: &'static str,
    pub(crate) shape: Shape,
    pub(crate) solid: bool,
}

impl Style {
    /// The class of its line: continuous where its markers are solid, dashed where they are hollow.
    pub(crate) const fn line_class(self) -> &'static str {
        if self.solid { "curve" } else { "curve dashed" }
    }

    /// The class of a group that belongs to it.
    pub(crate) fn row_class(self, is_believable: bool) -> String {
        format!("series s-{}{}", self.class, if is_believable { "" } else { " bad" })
    }
}

/// The colours of series that are not variants (servers, networks, clients).
const OTHERS: [&str; 6] = ["o1", "o2", "o3", "o4", "o5", "o6"];

/// Their shapes and whether they are solid, ordered so that the first series differ most.
const LOOKS: [(Shape, bool); 8] = [
    (Shape::Circle, true),
    (Shape::Triangle, true),
    (Shape::Square, true),
    (Shape::Diamond, true),
    (Shape::Triangle, false),
    (Shape::Circle, false),
    (Shape::Diamond, false),
    (Shape::Square, false),
];

/// The style of the series called `name` with this index in its page.
pub(crate) fn style_of(name: &str, index: usize) -> Style {
    name.parse::<Variant>().map_or_else(|_| of_other(index), of_variant)
}

/// Each turn through the colours begins with the next look, so that no colour has a look twice.
const fn of_other(index: usize) -> Style {
    let (place, turn) = (index % OTHERS.len(), index / OTHERS.len());
    let (shape, solid) = LOOKS[(place + turn) % LOOKS.len()];
    Style { class: Class::Other(index), colour: OTHERS[place], shape, solid }
}

const fn of_variant(variant: Variant) -> Style {
    let shape = match variant {
        Variant::H1 | Variant::H1s => Shape::Circle,
        Variant::H2c | Variant::H2 => Shape::Square,
        Variant::H3 => Shape::Diamond,
    };
    let class = Class::Variant(variant);
    Style { class, colour: variant.name(), shape, solid: variant.is_encrypted() }
}

/// The custom properties of the page: light, dark if the reader prefers it, light on paper.
pub(crate) fn css_properties(styles: &[Style]) -> String {
    let block = |pick: fn(&Colour) -> &'static str| {
        let lines: String = COLOURS.iter().map(|c| format!("--{}:{};", c.name, pick(c))).collect();
        format!(":root{{{lines}}}")
    };
    let (light, dark) = (block(|c| c.light), block(|c| c.dark));
    format!("{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}\n{}", series_css(styles))
}

/// A style sheet without custom properties, for SVG files: not every viewer supports them.
pub(crate) fn resolved_css(css: &str, styles: &[Style]) -> String {
    let resolve = |pick: fn(&Colour) -> &'static str| {
        let sheet = format!("{css}\n{}", series_css(styles));
        COLOURS.iter().fold(sheet, |sheet, c| sheet.replace(&format!("var(--{})", c.name), pick(c)))
    };
    let (light, dark) = (resolve(|c| c.light), resolve(|c| c.dark));
    format!("{light}\n@media screen and (prefers-color-scheme:dark){{{dark}}}")
}

fn series_css(styles: &[Style]) -> String {
    styles.iter().map(|style| format!(".s-{}{{color:var(--{})}}", style.class, style.colour)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn find(name: &str) -> Colour {
        *COLOURS.iter().find(|c| c.name == name).unwrap()
    }

    fn all_styles() -> impl Iterator<Item = Style> {
        Variant::ALL.into_iter().map(of_variant).chain((0..OTHERS.len()).map(of_other))
    }

    #[test]
    fn text_and_marks_have_enough_contrast() {
        let texts = [
            ("ink", "paper"),
            ("muted", "paper"),
            ("ink", "panel"),
            ("muted", "panel"),
            ("ink", "band"),
            ("better-ink", "better-ground"),
            ("worse-ink", "worse-ground"),
            ("plain-ink", "plain-ground"),
            ("alarm", "paper"),
            ("alarm", "panel"),
        ];
        for (ink, ground) in texts {
            let (ink, ground) = (find(ink), find(ground));
            assert!(contrast(ink.light, ground.light) >= 4.5, "{} on {}, light", ink.name, ground.name);
            assert!(contrast(ink.dark, ground.dark) >= 4.5, "{} on {}, dark", ink.name, ground.name);
        }
        for style in all_styles() {
            for ground in ["paper", "panel", "band"] {
                let (mark, ground) = (find(style.colour), find(ground));
                assert!(contrast(mark.light, ground.light) >= 3.0, "{} on {}, light", mark.name, ground.name);
                assert!(contrast(mark.dark, ground.dark) >= 3.0, "{} on {}, dark", mark.name, ground.name);
            }
        }
    }

    #[test]
    fn styles_differ_without_colour_among_variants() {
        let styles: Vec<Style> = Variant::ALL.into_iter().map(of_variant).collect();
        for (index, a) in styles.iter().enumerate() {
            for b in &styles[index + 1..] {
                assert!((a.shape, a.solid) != (b.shape, b.solid));
            }
        }
        assert!(!resolved_css(".a{fill:var(--h1)}", &styles).contains("var("));
    }

    #[test]
    fn series_of_a_page_differ_in_look_and_class() {
        let names = ["h1", "h1s", "h2c", "h2", "h3"].map(str::to_owned).into_iter();
        let names: Vec<String> = names.chain((0..48).map(|index| format!("network-{index}"))).collect();
        let styles =
            |first: usize| names.iter().enumerate().map(move |(at, name)| style_of(name, first + at));
        let look = |style: Style| (style.colour, style.shape, style.solid);
        // Variants among other levels, and other levels from the first on.
        for styles in [styles(0).collect::<Vec<Style>>(), styles(0).skip(5).collect()] {
            for (index, one) in styles.iter().enumerate() {
                for other in &styles[index + 1..] {
                    assert_ne!(look(*one), look(*other));
                    assert_ne!(one.class.to_string(), other.class.to_string());
                }
            }
        }
        assert_eq!([5, 6, 100].map(|index| style_of("lan", index).class.to_string()), ["o6", "o7", "o101"]);
    }
}
