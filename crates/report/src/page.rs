//! The HTML page: one file, no script, nothing fetched. What the templates read is built here.

use std::cmp::Reverse;

use analysis::summary::{CellSummary, Comparison, MetricSummary};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use model::plan::PlannedTopology;
use serde::Serialize;

use crate::answer::{self, Card, InShort};
use crate::caveats::{self, Caveats, outcome_name};
use crate::encode::{self, data_uri};
use crate::figures::{Drawings, DrawnFigure, FIGURE_CSS, swatch_html};
use crate::limits::{self, Limits, MOST_NETWORKS};
use crate::load::{self, LoadTable};
use crate::method::{self, Block, Described, Settings};
use crate::palette::{self, Style};
use crate::server_time::{self, ServerTimeRow};
use crate::text::{self, clean, clean_line};
use crate::topology;
use crate::view::{Context, Row, View, status_name};
use crate::{ReportError, Table};

const TEMPLATES: &[(&str, &str)] = &[
    ("report.html", include_str!("../templates/report.html")),
    ("across.html", include_str!("../templates/across.html")),
    ("head.html", include_str!("../templates/head.html")),
    ("answer.html", include_str!("../templates/answer.html")),
    ("caveats.html", include_str!("../templates/caveats.html")),
    ("figures.html", include_str!("../templates/figures.html")),
    ("tables.html", include_str!("../templates/tables.html")),
    ("method.html", include_str!("../templates/method.html")),
];
const PAGE_CSS: &str = include_str!("../templates/report.css");

/// Said where there is nothing to draw.
pub(crate) const NOTHING_DRAWN: &str = "There are no numbers to draw.";

/// Everything on the page.
#[derive(Serialize)]
struct Page {
    title: String,
    css: String,
    study: String,
    question: String,
    facts: Vec<String>,
    lead: String,
    variants: Vec<String>,
    in_short: Vec<InShort>,
    cards: Vec<Card>,
    /// What of the contexts does not stand in answer and tables.
    contexts_rest: Option<String>,
    margin: String,
    caveats: Caveats,
    checks: Checks,
    figures: Vec<FigurePart>,
    /// Name and need of those that the study chose and has nothing for.
    missing_figures: Vec<(&'static str, &'static str)>,
    /// What stands in the place of figures where there are none.
    nothing_drawn: &'static str,
    contexts: Vec<ContextTables>,
    explored_rest: Option<String>,
    files: Vec<FilePart>,
    method: Method,
    command: String,
    study_text: String,
}

/// Every check of every cell.
#[derive(Serialize)]
struct Checks {
    names: Vec<String>,
    rows: Vec<CheckRow>,
    rest: Option<String>,
}

#[derive(Serialize)]
struct CheckRow {
    cell: String,
    results: Vec<Option<CheckCell>>,
}

#[derive(Serialize)]
struct CheckCell {
    class: &'static str,
    measured: String,
}

/// A figure as the template shows it.
#[derive(Serialize)]
pub(crate) struct FigurePart {
    name: &'static str,
    title: String,
    caption: String,
    keys: Vec<(String, String)>,
    series: Vec<SeriesPart>,
    panels: Vec<String>,
    svg_link: String,
    csv_link: String,
}

#[derive(Serialize)]
struct SeriesPart {
    class: String,
    marker: String,
    name: String,
}

/// The tables of one context.
#[derive(Serialize)]
struct ContextTables {
    name: String,
    note: String,
    primary: MetricTable,
    server_times: Vec<ServerTimeRow>,
    server_headings: Vec<String>,
    /// What the load did to the server, where that was watched.
    load: Option<LoadTable>,
    others: Vec<MetricTable>,
}

#[derive(Serialize)]
struct MetricTable {
    title: String,
    rows: Vec<MetricRow>,
}

#[derive(Serialize)]
struct MetricRow {
    marker: String,
    level: String,
    baseline: bool,
    /// Median, interquartile range, 95th and 99th percentile: value and interval.
    statistics: Vec<(String, Option<String>)>,
    ratio: Option<String>,
    interval: Option<String>,
    verdict: Option<(&'static str, &'static str)>,
    runs: u32,
    status: &'static str,
    struck: bool,
    reasons: String,
}

#[derive(Serialize)]
struct FilePart {
    name: &'static str,
    title: &'static str,
    link: String,
}

#[derive(Serialize)]
struct Method {
    topology_words: String,
    topology: Vec<String>,
    links: Vec<Settings>,
    networks: Vec<Described>,
    networks_rest: Option<String>,
    workloads: Vec<Described>,
    pins: Settings,
    servers: Option<Settings>,
    order_words: String,
    order: Vec<Block>,
    environment: Vec<Settings>,
}

/// Renders the page.
pub(crate) fn render(view: &View<'_>, drawings: &Drawings, tables: &[Table]) -> Result<String, ReportError> {
    render_template("report.html", &page(view, drawings, tables))
}

/// A page of one of the templates; whatever is text in it is escaped.
pub(crate) fn render_template(name: &str, page: &impl Serialize) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.add_filter("code", |text: String| Value::from_safe_string(encode::with_code(&text)));
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment.get_template(name)?.render(Serde(page))?)
}

/// The style sheet of every page.
pub(crate) fn css(styles: &[Style]) -> String {
    format!("{}\n{PAGE_CSS}\n{FIGURE_CSS}\n{}", palette::css_properties(styles), toggle_css(styles))
}

fn page(view: &View<'_>, drawings: &Drawings, tables: &[Table]) -> Page {
    let (plan, summary) = (view.plan(), view.summary());
    let mut figures: Vec<FigurePart> = drawings.figures.iter().map(figure_part).collect();
    let figure_bytes = figures.iter().flat_map(|figure| &figure.panels).map(String::len).sum();
    let limits = Limits::beside(figure_bytes);
    let shown = limits::contexts(view, limits.rows);
    let (contexts, explored_rest) = all_tables(view, &shown, limits.explored);
    let checks = checks(view, limits.checks);
    let rows_of =
        |context: &ContextTables| context.others.iter().map(|table| table.rows.len()).sum::<usize>();
    let used = Limits {
        rows: shown.iter().map(|context| context.rows.len()).sum(),
        explored: contexts.iter().map(rows_of).sum(),
        checks: checks.rows.len() * checks.names.len(),
    };
    let mut files: Vec<FilePart> = tables.iter().map(file_part).collect();
    lighten(&mut figures, &mut files, Limits::file_bytes(figure_bytes, used));
    let contexts_rest = limits::rest(
        shown.len(),
        view.contexts.len(),
        &format!("panels, cells alike in all but the {},", clean_line(&summary.baseline.factor)),
        "those with cells that may not be believed first, then those with the largest differences",
        "tables/cells.csv",
    );
    Page {
        title: clean_line(&format!("{}: {}", summary.study, summary.question)),
        css: css(&view.series.iter().map(|series| series.style).collect::<Vec<Style>>()),
        study: clean_line(&summary.study),
        question: clean_line(&summary.question),
        facts: facts(view),
        lead: answer::lead(view),
        variants: answer::variants(view),
        in_short: answer::in_short(view),
        cards: answer::cards(view, &shown),
        contexts_rest,
        margin: text::percent(summary.margin_share),
        caveats: caveats::collect(view),
        checks,
        figures,
        missing_figures: drawings.missing.clone(),
        nothing_drawn: match &plan.figures {
            Some(figures) if figures.is_empty() => "The study asks for no figures.",
            _ => NOTHING_DRAWN,
        },
        contexts,
        explored_rest,
        files,
        method: method(view),
        command: clean(view.input.command),
        study_text: clean(&plan.study_text),
    }
}

fn method(view: &View<'_>) -> Method {
    let (plan, summary) = (view.plan(), view.summary());
    let mut networks = method::networks(plan, &summary.networks);
    let mut drawn = topology::panels(view);
    let all = networks.len();
    networks.truncate(MOST_NETWORKS);
    drawn.truncate(MOST_NETWORKS);
    Method {
        topology_words: topology::words(plan),
        topology: number_panels("topology", &drawn),
        links: topology::links(plan),
        networks_rest: limits::rest(networks.len(), all, "networks", "the first of the study", "plan.json"),
        networks,
        workloads: method::workloads(plan),
        pins: method::pins(plan),
        servers: method::servers(plan),
        order_words: method::order_words(view),
        order: method::order(view),
        environment: method::environment(view.input.environment),
    }
}

fn file_part(table: &Table) -> FilePart {
    FilePart { name: table.name, title: table.title, link: data_uri("text/csv", &table.csv) }
}

/// A few numbers under the question.
fn facts(view: &View<'_>) -> Vec<String> {
    let (plan, summary) = (view.plan(), view.summary());
    let factor = clean_line(&summary.baseline.factor);
    let mut facts = vec![
        text::count(view.series.len(), &factor, &format!("{factor}s")),
        text::count(plan.networks.len(), "network", "networks"),
        text::count(plan.workloads.len(), "workload", "workloads"),
        text::count(summary.cells.len(), "cell", "cells"),
        text::count(summary.runs_stored as usize, "run", "runs"),
    ];
    let servers: Vec<String> = plan.servers.iter().map(|server| clean_line(server)).collect();
    facts.push(format!("server: {}", text::list(&servers)));
    facts.extend(summary.measured.map(|measured| format!("measured {}", text::dates(&measured))));
    if plan.topology != PlannedTopology::default() {
        facts.push(format!("topology: {}", clean_line(&plan.topology.name)));
    }
    facts
}

/// A legend's box hides its series without any script.
fn toggle_css(styles: &[Style]) -> String {
    styles
        .iter()
        .map(|style| format!(".fig:has(.t-{0}:not(:checked)) .series.s-{0}{{display:none}}", style.class))
        .collect()
}

/// So many results of checks, those of the worst cells first where not all fit.
fn checks(view: &View<'_>, most: usize) -> Checks {
    let cells = &view.summary().cells;
    let mut names: Vec<&str> = Vec::new();
    for result in cells.iter().flat_map(|cell| &cell.validity) {
        if !names.contains(&result.check.as_str()) {
            names.push(&result.check);
        }
    }
    let mut shown: Vec<&CellSummary> = cells.iter().collect();
    let rows = (most / names.len().max(1)).max(1);
    if shown.len() > rows {
        shown.sort_by_key(|cell| Reverse(cell.validity.iter().map(|check| check.result).max()));
        shown.truncate(rows);
    }
    let row = |cell: &&CellSummary| {
        let result = |name: &&str| {
            let result = cell.validity.iter().find(|result| result.check == *name)?;
            Some(CheckCell { class: outcome_name(result.result), measured: clean_line(&result.measured) })
        };
        CheckRow { cell: view.cell_name(cell.cell), results: names.iter().map(result).collect() }
    };
    let order = "those that may not be believed first";
    Checks {
        rows: shown.iter().map(row).collect(),
        rest: limits::rest(shown.len(), cells.len(), "cells", order, "tables/validity.csv"),
        names: names.into_iter().map(caveats::check_title).collect(),
    }
}

fn number_panels(name: &str, panels: &[crate::figures::Panel]) -> Vec<String> {
    panels.iter().enumerate().map(|(index, panel)| panel.to_html(&format!("{name}-{index}"))).collect()
}

/// Keeps files inside the page as far as they are light enough together, the lightest first; all of them stand beside it.
fn lighten(figures: &mut [FigurePart], files: &mut [FilePart], most_bytes: usize) {
    let of_figures = figures.iter_mut().flat_map(|part| [&mut part.svg_link, &mut part.csv_link]);
    let mut links: Vec<&mut String> = of_figures.chain(files.iter_mut().map(|file| &mut file.link)).collect();
    links.sort_by_key(|link| link.len());
    let mut bytes = 0;
    for link in links {
        bytes += link.len();
        if bytes > most_bytes {
            link.clear();
        }
    }
}

pub(crate) fn figure_part(figure: &DrawnFigure) -> FigurePart {
    let drawing = &figure.drawing;
    let series = figure.series.iter().map(|(name, style)| SeriesPart {
        class: style.class.to_string(),
        marker: answer::style_marker(*style),
        name: name.clone(),
    });
    FigurePart {
        name: figure.name,
        title: drawing.title.clone(),
        caption: drawing.caption.clone(),
        keys: drawing.keys.iter().map(|key| (swatch_html(key, &figure.series), key.label.clone())).collect(),
        series: series.collect(),
        panels: number_panels(figure.name, &drawing.panels),
        svg_link: data_uri("image/svg+xml", &figure.standalone()),
        csv_link: data_uri("text/csv", &drawing.csv),
    }
}

/// The tables of these contexts, with so many rows of further metrics in all; and what of these is not there.
fn all_tables(
    view: &View<'_>,
    contexts: &[&Context<'_>],
    most_explored: usize,
) -> (Vec<ContextTables>, Option<String>) {
    let (mut rows, mut without) = (0, 0);
    let tables: Vec<ContextTables> = contexts
        .iter()
        .map(|context| {
            let names = explored(view, context);
            let own = names.len() * context.rows.len();
            let fits = rows + own <= most_explored;
            rows += if fits { own } else { 0 };
            without += usize::from(!fits);
            context_tables(view, context, if fits { &names } else { &[] })
        })
        .collect();
    let rest = (without > 0).then(|| {
        let panels = text::count(without, "panel", "panels");
        format!("Further metrics of {panels} are not in this page; tables/cells.csv has those of all.")
    });
    (tables, rest)
}

/// The metrics of a context besides the primary one, in the order of analysis.
fn explored<'a>(view: &View<'a>, context: &Context<'a>) -> Vec<&'a str> {
    let primary = view.summary().metric.as_str();
    let mut names: Vec<&str> = Vec::new();
    for name in context.rows.iter().flat_map(|row| row.cell.metrics.keys()) {
        if name != primary && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let place = |name: &str| analysis::METRICS.iter().position(|metric| metric.name == name);
    names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    names
}

fn context_tables(view: &View<'_>, context: &Context<'_>, explored: &[&str]) -> ContextTables {
    ContextTables {
        name: context.name.clone(),
        note: context.note.clone(),
        primary: metric_table(view, context, &view.summary().metric),
        server_times: server_time::rows(view, context),
        server_headings: server_time::headings(),
        load: load::table(view, context),
        others: explored.iter().map(|name| metric_table(view, context, name)).collect(),
    }
}

fn metric_table(view: &View<'_>, context: &Context<'_>, name: &str) -> MetricTable {
    MetricTable {
        title: text::metric_title(name),
        rows: context.rows.iter().map(|row| metric_row(view, row, name)).collect(),
    }
}

fn metric_row(view: &View<'_>, row: &Row<'_>, name: &str) -> MetricRow {
    let series = view.series_of(row);
    let metric = row.metric(name);
    let is_same = |c: &&Comparison| c.cell == row.cell.cell && c.metric == name;
    let comparison = view.summary().comparisons.iter().find(is_same);
    let ratio = comparison.and_then(|comparison| comparison.ratio);
    let reasons: Vec<String> = row.cell.reasons.iter().map(|reason| clean_line(reason)).collect();
    MetricRow {
        marker: answer::marker(view, row.series),
        level: clean_line(&series.name),
        baseline: series.is_baseline,
        statistics: metric.map(statistics).unwrap_or_default(),
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        verdict: comparison.map(|comparison| row.verdict(comparison)),
        runs: metric.map_or(row.cell.runs_ok, |metric| metric.runs),
        status: status_name(row.cell.status),
        struck: !row.is_believable(),
        reasons: text::shorten(&reasons.join("; "), 300),
    }
}

fn statistics(metric: &MetricSummary) -> Vec<(String, Option<String>)> {
    [metric.median, metric.iqr, metric.p95, metric.p99]
        .iter()
        .map(|estimate| {
            let scale = text::Scale::fitting(&metric.unit, estimate.value);
            (scale.value(estimate.value), text::interval(&scale, estimate))
        })
        .collect()
}
