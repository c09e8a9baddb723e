//! Every figure: one entry in [`FIGURES`], one file each.

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

use crate::encode;
use crate::palette::{self, Style};
use crate::svg::{Anchor, Canvas, at, number, text_width};
use crate::view::View;

pub(crate) use panel::{Panel, swatch_html};

/// One kind of figure.
pub(crate) struct FigureKind {
    /// The files' name.
    pub(crate) name: &'static str,
    /// Draws it; `None` where the study has nothing for it.
    pub(crate) draw: fn(&View<'_>) -> Option<Drawing>,
    /// Whether it suits a study that does not choose its figures itself.
    suits: fn(&View<'_>) -> bool,
    /// What it needs, for those who asked for it in vain.
    needs: &'static str,
}

const fn always(
    name: &'static str,
    draw: fn(&View<'_>) -> Option<Drawing>,
    needs: &'static str,
) -> FigureKind {
    FigureKind { name, draw, suits: |_| true, needs }
}

const SWEEP: &str = "levels of one factor, not the baseline's, that differ in one number alone";
const TWO_SWEEPS: &str = "two numbers that levels differ in, and most pairs of their values";

/// The figure in which the baseline is no row but what the others are compared to.
const COMPARISON: &str = "comparison";

/// All figures, in the order in which the report shows them.
pub(crate) const FIGURES: &[FigureKind] = &[
    always(COMPARISON, comparison::draw, "a comparison of two cells"),
    always("runs", runs::draw, "a run with a number"),
    FigureKind { name: "map", draw: map::draw, suits: map::has_grid, needs: TWO_SWEEPS },
    FigureKind { name: "lines", draw: lines::draw, suits: swept::has_sweep, needs: SWEEP },
    FigureKind { name: "difference", draw: difference::draw, suits: swept::has_sweep, needs: SWEEP },
    FigureKind {
        name: "ecdf",
        draw: ecdf::draw,
        suits: spread::is_worth_showing,
        needs: "values of the metric",
    },
    FigureKind {
        name: "boxes",
        draw: boxes::draw,
        suits: spread::is_worth_showing,
        needs: "values of the metric",
    },
    FigureKind {
        name: "histograms",
        draw: histograms::draw,
        suits: spread::is_worth_binning,
        needs: "values of the metric",
    },
    always("waterfall", waterfall::draw, "a page load with at most 500 requests"),
    FigureKind {
        name: "phases",
        draw: phases::draw,
        // Most of a video's time nothing is asked for.
        suits: player::has_none,
        needs: "a run with at most 500 requests",
    },
    always("player", player::draw, "a run that plays a video"),
    FigureKind {
        name: "timeline",
        draw: timeline::draw,
        suits: timeline::is_worth_showing,
        needs: "a run that the monitor watched",
    },
    FigureKind {
        name: "published",
        draw: published::draw,
        suits: published::has_some,
        needs: "[[published]] in the study, of cells that it measures",
    },
];

/// Panels of one figure at most; a matrix with more has them in the CSV.
pub(crate) const MOST_PANELS: usize = 24;

/// A figure as drawn: panels that the page arranges as it has room.
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) caption: String,
    /// What else than series needs a key.
    pub(crate) keys: Vec<Key>,
    pub(crate) panels: Vec<Panel>,
    pub(crate) csv: String,
}

/// An entry that explains a mark.
pub(crate) struct Key {
    /// The class of a small box drawn with it.
    pub(crate) class: &'static str,
    pub(crate) label: String,
    /// Whether the mark has the colour of its series.
    pub(crate) coloured: bool,
}

impl Key {
    pub(crate) fn new(class: &'static str, label: &str) -> Self {
        Key { class, label: label.to_owned(), coloured: matches!(class, "k-wait" | "k-transfer") }
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

/// Everything that is drawn, and what was asked for in vain.
pub(crate) struct Drawings {
    pub(crate) figures: Vec<DrawnFigure>,
    /// The names of figures that the study chose and has nothing for, with what they need.
    pub(crate) missing: Vec<(&'static str, &'static str)>,
}

/// Draws what the study chooses, or else what suits it, as far as it has something for it.
pub(crate) fn draw_all(view: &View<'_>) -> Drawings {
    let chosen = view.plan().figures.as_ref();
    let wanted: Vec<&FigureKind> = match chosen {
        Some(names) => {
            names.iter().filter_map(|name| FIGURES.iter().find(|kind| kind.name == name)).collect()
        }
        None => FIGURES.iter().filter(|kind| (kind.suits)(view)).collect(),
    };
    let figures = draw(view, &wanted);
    let is_missing = |kind: &&&FigureKind| figures.iter().all(|figure| figure.name != kind.name);
    let missing = wanted.iter().filter(|_| chosen.is_some()).filter(is_missing);
    let missing = missing.map(|kind| (kind.name, kind.needs)).collect();
    Drawings { figures, missing }
}

fn draw(view: &View<'_>, wanted: &[&FigureKind]) -> Vec<DrawnFigure> {
    wanted
        .iter()
        .filter_map(|kind| {
            let mut drawing = (kind.draw)(view)?;
            let all = drawing.panels.len();
            if all > MOST_PANELS {
                drawing.panels.truncate(MOST_PANELS);
                drawing.caption.push_str(&format!(
                    " The first {MOST_PANELS} of {all} panels are drawn; the CSV has all."
                ));
            }
            let is_drawn = |style: Style| drawing.panels.iter().any(|panel| panel.shows(style));
            let series = view
                .series
                .iter()
                .filter(|series| is_drawn(series.style) && !(series.is_baseline && kind.name == COMPARISON))
                .map(|series| (crate::text::clean_line(&series.name), series.style))
                .collect();
            Some(DrawnFigure { name: kind.name, drawing, series })
        })
        .collect()
}

impl DrawnFigure {
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

    /// One whole SVG document: title, keys, panels in two columns.
    pub(crate) fn standalone(&self) -> String {
        let drawing = &self.drawing;
        let columns = drawing.panels.len().clamp(1, COLUMNS);
        let column_width = drawing.panels.iter().map(|panel| panel.width).fold(0.0, f64::max);
        let mut canvas = Canvas::default();
        canvas.text(at(MARGIN, MARGIN + 16.0), Anchor::Start, "figure-title", &drawing.title);
        #[expect(clippy::cast_precision_loss, reason = "a number of columns")]
        let inner = columns as f64 * column_width + (columns - 1) as f64 * GUTTER;
        let inner = inner.max(text_width(&drawing.title, TITLE_SIZE));
        let mut top = legend::draw(&mut canvas, self, MARGIN, MARGIN + 34.0, inner);
        let mut body = canvas.finish();
        for row in drawing.panels.chunks(columns) {
            top += row.iter().map(Panel::above).fold(0.0, f64::max);
            for (column, panel) in row.iter().enumerate() {
                #[expect(clippy::cast_precision_loss, reason = "a column's number")]
                let x = MARGIN + column as f64 * (column_width + GUTTER);
                body.push_str(&format!(
                    "<g transform=\"translate({} {})\">{}</g>",
                    number(x),
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
