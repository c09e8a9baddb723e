//! The page of `h123 compare --html`: one file without scripts, which fetches nothing, in the report's style.

use analysis::across::{Across, CellAcross};
use analysis::metrics::{self, Better};
use minijinja::context;
use minijinja::value::{Serde, Value};
use model::Statistic;

use super::names::Names;
use super::{AcrossInput, Side, alone, caveats, counts, figure, lead, primary, reason, row};
use crate::ReportError;
use crate::answer::{Card, Sentence, marker};
use crate::context::verdict_name;
use crate::page::{self, FigurePart, NOTHING_DRAWN};
use crate::palette::Style;
use crate::text::{self, clean, clean_line};

/// Rows of further metrics in the page.
const MAX_EXPLORED: usize = 400;

/// Renders the page of two results against each other.
///
/// # Errors
/// Only if the template does not fit its data, which is a bug of this crate.
pub fn across_html(input: &AcrossInput<'_>) -> Result<String, ReportError> {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let class_of = |word: &'static str| {
        let mut found = primary(across).map(|cell| verdict_name(&cell.comparison.verdict));
        found.find(|(name, _)| *name == word).map_or("open", |(_, class)| class)
    };
    let counts: Vec<(&str, &str, usize)> =
        counts(across).into_iter().map(|(word, count)| (word, class_of(word), count)).collect();
    let explored = across.cells.iter().filter(|cell| !cell.comparison.primary);
    let mut explored: Vec<Value> = explored.map(|cell| table_row(across, cell, &names)).collect();
    let more = explored.len().saturating_sub(MAX_EXPLORED);
    explored.truncate(MAX_EXPLORED);
    let differences = across.differences.iter().map(|d| [&d.about, &d.a, &d.b].map(|text| clean_line(text)));
    let figures: Vec<FigurePart> = figure::draw(across, &names).iter().map(page::figure_part).collect();
    let styles: Vec<Style> = names.all_series().into_iter().map(|(_, style)| style).collect();
    let page = context! {
        title => clean_line(&format!("{} against {}", input.b.name, input.a.name)),
        css => page::css(&styles),
        question => clean_line(input.question),
        a => side(&input.a),
        b => side(&input.b),
        lead => lead(across, &names),
        statistic => text::statistic_noun(across.statistic),
        margin => text::percent(across.margin_share),
        counts => Serde(counts),
        cards => Serde(cards(primary(across), &names)),
        differences => Serde(differences.collect::<Vec<[String; 3]>>()),
        alone => alone(across),
        caveats => caveats(across),
        figures => Serde(figures),
        // Read by the template of figures; here none are chosen.
        leading => Serde([(); 0]),
        missing_figures => Serde([(); 0]),
        nothing_drawn => NOTHING_DRAWN,
        primary => primary(across).map(|cell| table_row(across, cell, &names)).collect::<Vec<_>>(),
        explored => explored,
        more => more,
        command => clean(input.command),
    };
    page::render_template("across.html", page)
}

/// A result, and its folder if that differs from the name.
fn side(side: &Side<'_>) -> Value {
    context! {
        name => clean_line(side.name),
        path => (side.path != side.name).then(|| clean_line(side.path)),
        extent => side.extent(),
    }
}

/// The sentences of each context, in the order of the cells.
fn cards<'a>(cells: impl Iterator<Item = &'a CellAcross>, names: &Names) -> Vec<Card> {
    let sentences = cells.map(|cell| (names.context(&cell.comparison.context), sentence(cell, names)));
    let card = |(name, sentences)| Card { name, note: String::new(), sentences };
    text::by_key(sentences).into_iter().map(card).collect()
}

fn sentence(cell: &CellAcross, names: &Names) -> Sentence {
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let ratio = cell.comparison.ratio.filter(|_| class != "invalid");
    let (level, style) = names.series(&cell.comparison.context);
    let because = |reason: String| format!("because {}.", text::shorten(&reason, 400));
    Sentence {
        marker: marker(style),
        level,
        link: " ".to_owned(),
        verdict,
        class,
        against: String::new(),
        values: ratio.map(|_| {
            let [_, a, b, ..] = row(cell, names);
            // Without their intervals.
            let [a, b] = [&a, &b].map(|text| text.split(" [").next().unwrap_or_default());
            format!("{b} instead of {a}")
        }),
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        rest: reason(cell).map(because).unwrap_or_default(),
        caveat: false,
    }
}

fn table_row(across: &Across, cell: &CellAcross, names: &Names) -> Value {
    let [cell_name, a, b, ratio, _] = row(cell, names);
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let marker = marker(names.series(&cell.comparison.context).1);
    let metric = describe_metric(&cell.comparison.metric, across.statistic);
    context! { marker, cell => cell_name, metric, a, b, ratio, verdict, class }
}

/// A metric's title, and which direction is better.
fn describe_metric(metric: &str, statistic: Statistic) -> String {
    let title = text::statistic_title(metric, metrics::compared(metric, statistic));
    match metrics::find(metric).map(|known| known.better) {
        Some(Better::Lower) => format!("{title} (less is better)"),
        Some(Better::Higher) => format!("{title} (more is better)"),
        Some(Better::Neither) | None => title,
    }
}
