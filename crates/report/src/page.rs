//! The HTML page: one file without scripts, which fetches nothing. Builds the values that the templates read.

use std::cmp::Reverse;

use analysis::summary::{CellSummary, MetricSummary};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use model::Statistic;
use model::class::split_metric;
use model::plan::PlannedTopology;
use serde::Serialize;

use crate::answer;
use crate::caveats;
use crate::context::{Context, Row};
use crate::encode::{self, data_uri};
use crate::figures::{Drawings, DrawnFigure, FIGURE_CSS, Panel, swatch_html};
use crate::headline;
use crate::limits::{self, Limits, MAX_NETWORKS};
use crate::load;
use crate::method;
use crate::palette::{self, Style};
use crate::published;
use crate::server_time;
use crate::text::{self, clean, clean_line};
use crate::topology;
use crate::view::View;
use crate::{ReportError, Table};

const TEMPLATES: &[(&str, &str)] = &[
    ("report.html", include_str!("../templates/report.html")),
    ("across.html", include_str!("../templates/across.html")),
    ("head.html", include_str!("../templates/head.html")),
    ("answer.html", include_str!("../templates/answer.html")),
    ("caveats.html", include_str!("../templates/caveats.html")),
    ("figure.html", include_str!("../templates/figure.html")),
    ("figures.html", include_str!("../templates/figures.html")),
    ("published.html", include_str!("../templates/published.html")),
    ("tables.html", include_str!("../templates/tables.html")),
    ("method.html", include_str!("../templates/method.html")),
];
const PAGE_CSS: &str = include_str!("../templates/report.css");

/// 20 values have one beyond their 95th percentile, although 20 × (1 − 0.95) is computed below 1.
const ROUNDING: f64 = 1e-9;

/// In place of figures, if there are none.
pub(crate) const NOTHING_DRAWN: &str = "There are no numbers to draw.";

/// A figure as the template shows it.
#[derive(Serialize)]
pub(crate) struct FigurePart {
    name: &'static str,
    title: String,
    caption: String,
    /// The mark of each key, and its meaning.
    keys: Vec<(String, String)>,
    /// Class, marker and name of each series.
    series: Vec<(String, String, String)>,
    panels: Vec<String>,
    svg_link: String,
    csv_link: String,
}

/// A table for download.
#[derive(Serialize)]
struct FilePart {
    name: String,
    title: &'static str,
    link: String,
}

/// Renders the page.
pub(crate) fn render(view: &View<'_>, drawings: &Drawings, tables: &[Table]) -> Result<String, ReportError> {
    render_template("report.html", page(view, drawings, tables))
}

/// Renders a template. All text of its values is escaped.
pub(crate) fn render_template(name: &str, page: Value) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.add_filter("code", |text: String| Value::from_safe_string(encode::with_code(&text)));
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment.get_template(name)?.render(page)?)
}

/// The style sheet of every page.
pub(crate) fn css(styles: &[Style]) -> String {
    format!("{}\n{PAGE_CSS}\n{FIGURE_CSS}\n{}", palette::css_properties(styles), toggle_css(styles))
}

fn page(view: &View<'_>, drawings: &Drawings, tables: &[Table]) -> Value {
    let (plan, summary) = (view.plan(), view.summary());
    let mut figures: Vec<FigurePart> = drawings.figures.iter().map(figure_part).collect();
    let figure_bytes = figures.iter().flat_map(|figure| &figure.panels).map(String::len).sum();
    let limits = Limits::for_figures(figure_bytes);
    let shown = limits::contexts(view, limits.rows);
    let (contexts, explored, explored_rest) = all_tables(view, &shown, limits.explored);
    let (checks, checked) = checks(view, limits.checks);
    let used =
        Limits { rows: shown.iter().map(|context| context.rows.len()).sum(), explored, checks: checked };
    let file = |table: &Table| FilePart {
        name: table.name.clone(),
        title: table.title,
        link: data_uri("text/csv", &table.csv),
    };
    let mut files: Vec<FilePart> = tables.iter().map(file).collect();
    lighten(&mut figures, &mut files, Limits::file_bytes(figure_bytes, used));
    let leading: Vec<FigurePart> =
        answering(&figures).map(|place| figures.remove(place)).into_iter().collect();
    let contexts_rest = limits::rest(
        shown.len(),
        view.contexts.len(),
        &format!("panels (cells that differ in the {} only)", view.factor()),
        "those with invalid cells first, then those with the largest differences",
        "tables/cells.csv",
    );
    let nothing_drawn = match &plan.figures {
        Some(figures) if figures.is_empty() => "The study disables figures.",
        _ => NOTHING_DRAWN,
    };
    context! {
        title => clean_line(&format!("{}: {}", summary.study, summary.question)),
        css => css(&view.series.iter().map(|series| series.style).collect::<Vec<Style>>()),
        study => clean_line(&summary.study),
        question => clean_line(&summary.question),
        facts => facts(view),
        headline => headline::sentences(view),
        leading => Serde(leading),
        lead => answer::lead(view),
        variants => answer::variants(view),
        short => Serde(answer::summaries(view)),
        cards => Serde(answer::cards(view, &shown)),
        contexts_rest => contexts_rest,
        margin => text::percent(summary.margin_share),
        caveats => Serde(caveats::collect(view)),
        checks => checks,
        published => Serde(published::section(view)),
        figures => Serde(figures),
        missing_figures => Serde(&drawings.missing),
        nothing_drawn => nothing_drawn,
        contexts => contexts,
        columns => columns(view.statistic()).into_iter().map(Statistic::name).collect::<Vec<_>>(),
        explored_rest => explored_rest,
        files => Serde(files),
        method => method_part(view),
        command => clean(view.input.command),
        study_text => clean(&plan.study_text),
    }
}

fn method_part(view: &View<'_>) -> Value {
    let (plan, summary) = (view.plan(), view.summary());
    let mut networks = method::networks(plan, &summary.networks);
    let mut drawn = topology::panels(view);
    let all = networks.len();
    networks.truncate(MAX_NETWORKS);
    drawn.truncate(MAX_NETWORKS);
    context! {
        topology_words => topology::describe(plan),
        topology => number_panels("topology", &drawn),
        links => Serde(topology::links(plan)),
        networks_rest => limits::rest(networks.len(), all, "networks", "in the order of the study", "plan.json"),
        networks => Serde(networks),
        workloads => Serde(method::workloads(plan)),
        pins => Serde(method::pins(plan)),
        servers => Serde(method::servers(plan)),
        order_words => method::describe_order(view),
        order => Serde(method::order(view)),
        environment => Serde(method::environment(view.input.environment)),
    }
}

/// The figure that answers: the map of a sweep over two parameters, otherwise the ratios.
fn answering(figures: &[FigurePart]) -> Option<usize> {
    let place = |name: &str| figures.iter().position(|figure| figure.name == name);
    ["map", "comparison"].into_iter().find_map(place)
}

/// A few facts under the question.
fn facts(view: &View<'_>) -> Vec<String> {
    let (plan, summary) = (view.plan(), view.summary());
    let factor = view.factor();
    let servers: Vec<String> = plan.servers.iter().map(|server| clean_line(server)).collect();
    let mut facts = vec![
        text::count(view.series.len(), &factor, &format!("{factor}s")),
        text::count(plan.networks.len(), "network", "networks"),
        text::count(plan.workloads.len(), "workload", "workloads"),
        text::count(summary.cells.len(), "cell", "cells"),
        text::count(summary.runs_stored as usize, "run", "runs"),
        format!("server: {}", text::list(&servers)),
    ];
    facts.extend(summary.measured.map(|measured| format!("measured {}", text::dates(&measured))));
    if plan.topology != PlannedTopology::default() {
        facts.push(format!("topology: {}", clean_line(&plan.topology.name)));
    }
    facts
}

/// Lets the checkbox of a legend hide its series without a script.
fn toggle_css(styles: &[Style]) -> String {
    styles
        .iter()
        .map(|style| format!(".fig:has(.t-{0}:not(:checked)) .series.s-{0}{{display:none}}", style.class))
        .collect()
}

/// At most this many results of checks, by cell and check, and their number; those of the worst cells if not
/// all fit.
fn checks(view: &View<'_>, max: usize) -> (Value, usize) {
    let cells = &view.summary().cells;
    let results = cells.iter().flat_map(|cell| &cell.validity);
    let names = text::distinct(results.map(|result| result.check.as_str()));
    let mut shown: Vec<&CellSummary> = cells.iter().collect();
    let rows = (max / names.len().max(1)).max(1);
    if shown.len() > rows {
        shown.sort_by_key(|cell| Reverse(cell.validity.iter().map(|check| check.result).max()));
        shown.truncate(rows);
    }
    let row = |cell: &&CellSummary| {
        let result = |name: &&str| {
            let result = cell.validity.iter().find(|result| result.check == *name)?;
            Some((result.result.name(), clean_line(&result.measured)))
        };
        let results: Vec<Option<(&str, String)>> = names.iter().map(result).collect();
        context! { cell => view.cell_name(cell.cell), results => Serde(results) }
    };
    let order = "the invalid ones first";
    let part = context! {
        names => names.iter().map(|name| caveats::check_title(name)).collect::<Vec<_>>(),
        rows => shown.iter().map(row).collect::<Vec<_>>(),
        rest => limits::rest(shown.len(), cells.len(), "cells", order, "tables/validity.csv"),
    };
    (part, shown.len() * names.len())
}

fn number_panels(name: &str, panels: &[Panel]) -> Vec<String> {
    panels.iter().enumerate().map(|(index, panel)| panel.to_html(&format!("{name}-{index}"))).collect()
}

/// Embeds files while they are light enough together, the lightest first; the result's folder has all of
/// them.
fn lighten(figures: &mut [FigurePart], files: &mut [FilePart], max_bytes: usize) {
    let of_figures = figures.iter_mut().flat_map(|part| [&mut part.svg_link, &mut part.csv_link]);
    let mut links: Vec<&mut String> = of_figures.chain(files.iter_mut().map(|file| &mut file.link)).collect();
    links.sort_by_key(|link| link.len());
    let mut bytes = 0;
    for link in links {
        bytes += link.len();
        if bytes > max_bytes {
            link.clear();
        }
    }
}

pub(crate) fn figure_part(figure: &DrawnFigure) -> FigurePart {
    let drawing = &figure.drawing;
    let series = figure.series.iter();
    FigurePart {
        name: figure.name,
        title: drawing.title.clone(),
        caption: drawing.caption.clone(),
        keys: drawing.keys.iter().map(|key| (swatch_html(key, &figure.series), key.label.clone())).collect(),
        series: series
            .map(|(name, style)| (style.class.to_string(), answer::marker(*style), name.clone()))
            .collect(),
        panels: number_panels(figure.name, &drawing.panels),
        svg_link: data_uri("image/svg+xml", &figure.standalone()),
        csv_link: data_uri("text/csv", &drawing.csv),
    }
}

/// The tables of these contexts with at most this many rows of further metrics, the number of such rows, and
/// a note about those that are omitted.
fn all_tables(
    view: &View<'_>,
    contexts: &[&Context<'_>],
    max_explored: usize,
) -> (Vec<Value>, usize, Option<String>) {
    let (mut rows, mut without) = (0, 0);
    let mut tables = Vec::new();
    for context in contexts {
        let names = explored(view, context);
        let own = names.len() * context.rows.len();
        let fits = rows + own <= max_explored;
        rows += if fits { own } else { 0 };
        without += usize::from(!fits);
        tables.push(context_tables(view, context, if fits { &names } else { &[] }));
    }
    let rest = (without > 0).then(|| {
        let panels = text::count(without, "panel", "panels");
        format!("Further metrics of {panels} are omitted here; tables/cells.csv has all.")
    });
    (tables, rows, rest)
}

/// The metrics of a context besides the primary one, in the order of analysis.
fn explored<'a>(view: &View<'a>, context: &Context<'a>) -> Vec<&'a str> {
    let primary = view.summary().metric.as_str();
    let names = context.rows.iter().flat_map(|row| row.cell.metrics.keys().map(String::as_str));
    let mut names = text::distinct(names.filter(|name| *name != primary));
    let place = |name: &str| analysis::METRICS.iter().position(|metric| metric.name == split_metric(name).0);
    names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    names
}

fn context_tables(view: &View<'_>, context: &Context<'_>, explored: &[&str]) -> Value {
    context! {
        name => &context.name,
        note => &context.note,
        primary => metric_table(view, context, &view.summary().metric),
        server_times => Serde(server_time::rows(context)),
        server_headings => server_time::headings(),
        load => load::table(context),
        others => explored.iter().map(|name| metric_table(view, context, name)).collect::<Vec<_>>(),
    }
}

fn metric_table(view: &View<'_>, context: &Context<'_>, name: &str) -> Value {
    context! {
        title => text::statistic_title(name, view.summary().statistic_of(name)),
        rows => context.rows.iter().map(|row| metric_row(view, row, name)).collect::<Vec<_>>(),
    }
}

fn metric_row(view: &View<'_>, row: &Row<'_>, name: &str) -> Value {
    let metric = row.metric(name);
    let comparison = view.comparison(row.cell.cell, name);
    let ratio = comparison.and_then(|comparison| comparison.ratio);
    let reasons: Vec<String> = row.cell.reasons.iter().map(|reason| clean_line(reason)).collect();
    context! {
        marker => answer::marker(row.series.style),
        level => &row.series.name,
        baseline => row.series.is_baseline,
        statistics => Serde(metric.map(|metric| statistics(metric, view.statistic())).unwrap_or_default()),
        ratio => ratio.map(|ratio| text::ratio(ratio.value)),
        interval => ratio.as_ref().and_then(text::ratio_interval),
        verdict => Serde(comparison.map(|comparison| row.verdict(comparison))),
        runs => metric.map_or(row.cell.runs_ok, |metric| metric.runs),
        status => row.status(),
        struck => !row.is_believable(),
        reasons => text::shorten_middle(&reasons.join("; "), 300),
    }
}

/// The columns of a table: the compared statistic, the interquartile range or the median, p95 and p99.
fn columns(compared: Statistic) -> Vec<Statistic> {
    let second = if compared.is_median() { Statistic::Iqr } else { Statistic::Median };
    text::distinct([compared, second, Statistic::P95, Statistic::P99])
}

/// Value and interval of each column. A percentile with no value beyond it would repeat the maximum.
fn statistics(metric: &MetricSummary, compared: Statistic) -> Vec<(String, Option<String>)> {
    let of_column = |statistic: Statistic| {
        let beyond_share = 1.0 - statistic.tail_quantile().unwrap_or(0.0);
        if model::number::float(metric.samples) * beyond_share < 1.0 - ROUNDING {
            return (text::NONE.to_owned(), None);
        }
        let estimate = metric.estimate(statistic);
        let scale = text::Scale::fitting(&metric.unit, estimate.value);
        (scale.value(estimate.value), text::interval(&scale, &estimate))
    };
    columns(compared).into_iter().map(of_column).collect()
}
