//! Every figure: one file each, which declares a [`FigureKind`], and one entry in [`FIGURES`].

mod boxes;
pub(crate) mod comparison;
mod difference;
mod ecdf;
mod histograms;
mod legend;
mod lines;
mod map;
pub(crate) mod panel;
mod phases;
mod player;
mod published;
pub(crate) mod rows;
mod runs;
mod spread;
mod swept;
mod timeline;
mod waterfall;

use crate::context::{Context, Row};
use crate::encode::{self, Csv};
use crate::palette::{self, Style};
use crate::svg::{Anchor, Canvas, WIDTH, at, count, number, text_width};
use crate::text;
use crate::view::View;

pub(crate) use panel::{Panel, swatch_html};

/// One kind of figure.
pub(crate) struct FigureKind {
    /// The name of its files, and in a study.
    pub(crate) name: &'static str,
    /// What it shows, for the table in docs/figures.md.
    pub(crate) shows: &'static str,
    /// When it is drawn by default, for the same table.
    pub(crate) by_default: &'static str,
    /// What it needs, for studies that chose it but have nothing for it.
    needs: &'static str,
    /// Whether it suits a study that does not choose its figures.
    suits: fn(&View<'_>) -> bool,
    /// Draws it; `None`, or a drawing without panels, where the study has nothing for it.
    draw: fn(&View<'_>) -> Option<Drawing>,
}

/// All figures, in the order in which the report shows them.
pub(crate) const FIGURES: &[FigureKind] = &[
    comparison::KIND,
    runs::KIND,
    map::KIND,
    lines::KIND,
    difference::KIND,
    ecdf::KIND,
    boxes::KIND,
    histograms::KIND,
    waterfall::KIND,
    phases::KIND,
    player::KIND,
    timeline::KIND,
    published::KIND,
];

/// A figure has at most this many panels; those of a larger matrix are in the CSV.
const MAX_PANELS: usize = 24;

/// A figure as drawn: panels that the page arranges.
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) caption: String,
    /// Marks that need an explanation.
    pub(crate) keys: Vec<Key>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) csv: String,
}

/// An entry that explains a mark.
pub(crate) struct Key {
    /// The class of a small box drawn with it.
    pub(crate) class: &'static str,
    pub(crate) label: String,
}

impl Key {
    pub(crate) fn new(class: &'static str, label: &str) -> Self {
        Key { class, label: label.to_owned() }
    }
}

/// A drawing with the name of its kind and the series that it shows.
pub(crate) struct DrawnFigure {
    pub(crate) name: &'static str,
    pub(crate) drawing: Drawing,
    pub(crate) series: Vec<(String, Style)>,
}

/// The style sheet of all drawings, with custom properties.
pub(crate) const FIGURE_CSS: &str = include_str!("../../templates/figure.css");

const GUTTER: f64 = 32.0;
const MARGIN: f64 = 20.0;
const COLUMNS: usize = 2;
/// Font size of a figure's title in its own file; bold letters are wider.
const TITLE_SIZE: f64 = 17.0 * 1.12;

/// Everything that is drawn.
pub(crate) struct Drawings {
    pub(crate) figures: Vec<DrawnFigure>,
    /// The figures that the study chose but has nothing for, with what they need.
    pub(crate) missing: Vec<(&'static str, &'static str)>,
}

/// Draws the figures that the study chooses or, if it chooses none, those that suit it.
pub(crate) fn draw_all(view: &View<'_>) -> Drawings {
    let chosen = view.plan().figures.as_ref();
    let wanted: Vec<&FigureKind> = match chosen {
        Some(names) => {
            names.iter().filter_map(|name| FIGURES.iter().find(|kind| kind.name == name)).collect()
        }
        None => FIGURES.iter().filter(|kind| (kind.suits)(view)).collect(),
    };
    let series: Vec<(String, Style)> =
        view.series.iter().map(|series| (series.name.clone(), series.style)).collect();
    let draw = |kind: &&FigureKind| DrawnFigure::new(kind.name, (kind.draw)(view)?, &series);
    let figures: Vec<DrawnFigure> = wanted.iter().filter_map(draw).collect();
    let is_missing = |kind: &&&FigureKind| figures.iter().all(|figure| figure.name != kind.name);
    let missing = wanted.iter().filter(|_| chosen.is_some()).filter(is_missing);
    let missing = missing.map(|kind| (kind.name, kind.needs)).collect();
    Drawings { figures, missing }
}

impl DrawnFigure {
    /// A drawing with those of its series that it shows, and no more panels than a figure may have; `None`
    /// without panels.
    pub(crate) fn new(
        name: &'static str,
        mut drawing: Drawing,
        series: &[(String, Style)],
    ) -> Option<DrawnFigure> {
        let all = drawing.panels.len();
        if all > MAX_PANELS {
            drawing.panels.truncate(MAX_PANELS);
            drawing
                .caption
                .push_str(&format!(" The first {MAX_PANELS} of {all} panels are drawn; the CSV has all."));
        }
        let is_drawn = |(_, style): &&(String, Style)| drawing.panels.iter().any(|panel| panel.shows(*style));
        let series = series.iter().filter(is_drawn).cloned().collect();
        (all > 0).then_some(DrawnFigure { name, drawing, series })
    }

    /// The figure as files.
    pub(crate) fn to_file(&self) -> crate::Figure {
        crate::Figure {
            name: self.name,
            title: self.drawing.title.clone(),
            caption: self.drawing.caption.clone(),
            svg: self.standalone(),
            csv: self.drawing.csv.clone(),
        }
    }

    /// A complete SVG document: title, keys, panels in two columns.
    pub(crate) fn standalone(&self) -> String {
        let drawing = &self.drawing;
        let columns = drawing.panels.len().clamp(1, COLUMNS);
        let mut canvas = Canvas::default();
        canvas.text(at(MARGIN, MARGIN + 16.0), Anchor::Start, "figure-title", &drawing.title);
        let inner = count(columns) * WIDTH + count(columns - 1) * GUTTER;
        let inner = inner.max(text_width(&drawing.title, TITLE_SIZE));
        let mut top = legend::draw(&mut canvas, self, MARGIN, MARGIN + 34.0, inner);
        let mut body = canvas.finish();
        for row in drawing.panels.chunks(columns) {
            top += row.iter().map(Panel::above).fold(0.0, f64::max);
            for (column, panel) in row.iter().enumerate() {
                body.push_str(&format!(
                    "<g transform=\"translate({} {})\">{}</g>",
                    number(MARGIN + count(column) * (WIDTH + GUTTER)),
                    number(top + 8.0),
                    panel.body
                ));
            }
            top += row.iter().map(|panel| panel.height).fold(0.0, f64::max) + GUTTER / 2.0;
        }
        let (width, height) = (number(MARGIN * 2.0 + inner), number(top + MARGIN));
        let styles: Vec<Style> = self.series.iter().map(|(_, style)| *style).collect();
        let css = palette::resolved_css(FIGURE_CSS, &styles);
        let (title, caption) = (encode::xml(&drawing.title), encode::xml(&drawing.caption));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\"><title>{title}</title><desc>{caption}</desc>\
             <style>{}</style><rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>{body}</svg>\n",
            encode::xml(&css).replace("&gt;", ">")
        )
    }
}
