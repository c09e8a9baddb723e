//! The page's structure: complete, in order, marked, and self-contained.

use report::{Report, render};

use crate::fabricated;

/// Every inline drawing of the page.
pub(crate) fn drawings(html: &str) -> Vec<&str> {
    html.split("<svg ").skip(1).map(|rest| rest.split_once("</svg>").unwrap().0).collect()
}

/// Every drawing, inline or as a file, must be well-formed XML.
pub(crate) fn assert_well_formed(report: &Report) {
    for figure in &report.figures {
        roxmltree::Document::parse(&figure.svg).unwrap_or_else(|e| panic!("{}: {e}", figure.name));
        assert!(!figure.svg.contains("var("), "{}: only browsers support custom properties", figure.name);
    }
    let drawings = drawings(&report.html);
    assert!(drawings.len() > 8);
    for drawing in drawings {
        let whole = format!("<svg {drawing}</svg>");
        roxmltree::Document::parse(&whole).unwrap_or_else(|e| panic!("{e}: {whole}"));
    }
}

/// Names and attributes of every tag, with values in quotes removed.
fn bare_tags(html: &str) -> impl Iterator<Item = String> + '_ {
    let body = html.split_once("</style>").unwrap().1;
    body.split('<').skip(1).map(|rest| {
        let tag = rest.split('>').next().unwrap();
        tag.split('"').step_by(2).collect::<Vec<_>>().join("\"\"").to_lowercase()
    })
}

/// No attribute fetches, follows or runs anything outside the file.
pub(crate) fn assert_self_contained(html: &str) {
    for tag in bare_tags(html) {
        for name in ["script", "iframe", "object", "embed", "img", "link", "base", "form", "image", "use"] {
            assert!(tag.split_whitespace().next() != Some(name), "found <{tag}>");
        }
        for attribute in ["src", "srcset", "action", "xlink:href", "style", "background", "poster"] {
            assert!(!tag.contains(&format!(" {attribute}=")), "found <{tag}>");
        }
        assert!(!tag.contains(" on") && !tag.contains('\''), "found <{tag}>");
    }
    let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.contains("@import") && !style.contains("url("));
    for target in html.to_lowercase().split(" href=\"").skip(1) {
        let ok = ["#", "data:text/csv;base64,", "data:image/svg+xml;base64,", "data:,\""];
        assert!(ok.iter().any(|start| target.starts_with(start)), "{target:.60}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn drawings_are_well_formed_and_nothing_is_fetched() {
    for fabricated in [fabricated::all_well(), fabricated::troubled(), fabricated::small()] {
        let report = render(&fabricated.input()).unwrap();
        assert_well_formed(&report);
        assert_self_contained(&report.html);
    }
}

#[test]
fn the_method_notes_the_pacing_of_quic_where_it_is_compared_with_tcp() {
    let note = "QUIC paces its packets, TCP on Linux does not";
    let is_noted =
        |fabricated: &fabricated::Fabricated| render(&fabricated.input()).unwrap().html.contains(note);
    assert!(is_noted(&fabricated::all_well()), "h3 against h1s");
    let mut bbr = fabricated::all_well();
    bbr.plan.pins.congestion_control = model::pins::CongestionControl::Bbr;
    assert!(!is_noted(&bbr), "TCP paces with BBR");
    for is_quic in [false, true] {
        let mut one = fabricated::all_well();
        let other = if is_quic { model::Variant::H3 } else { model::Variant::H2 };
        for group in one.plan.cells.iter_mut().map(|cell| &mut cell.group) {
            if group.variant.is_quic() != is_quic {
                group.variant = other;
            }
        }
        assert!(!is_noted(&one), "nothing is compared with another transport: QUIC {is_quic}");
    }
}

#[test]
fn the_effect_of_the_load_has_a_table_if_it_was_monitored() {
    let heading = "Effect of the load on the server";
    let mut fabricated = fabricated::all_well();
    assert!(!render(&fabricated.input()).unwrap().html.contains(heading));
    let like = fabricated.summary.cells[0].metrics["page_load_time"].clone();
    for (name, unit, value) in [("server_memory_peak", "B", 12_300_000.0), ("listen_drops", "1", 41.0)] {
        let mut metric = like.clone();
        metric.unit = unit.to_owned();
        metric.median.value = value;
        fabricated.summary.cells[0].metrics.insert(name.to_owned(), metric);
    }
    let report = render(&fabricated.input()).unwrap();
    assert_well_formed(&report);
    assert_self_contained(&report.html);
    let (_, table) = report.html.split_once(heading).unwrap();
    let table = table.split_once("</table>").unwrap().0;
    for part in ["peak memory", "listen drops", "12.3 MB", "<td>41</td>", "<td>–</td>"] {
        assert!(table.contains(part), "no {part} in {table}");
    }
    assert!(!table.contains("CPU per request"), "a column that no cell has");
    let csv = &report.tables.iter().find(|table| table.name == "load").unwrap().csv;
    assert!(csv.lines().next().unwrap().ends_with("listen_drops,udp_receive_buffer_errors"));
    assert!(csv.lines().nth(1).unwrap().ends_with(",12300000,,,,,,41,"), "{csv}");
}

#[test]
fn sections_come_in_the_order_of_reading() {
    let html = render(&fabricated::all_well().input()).unwrap().html;
    let order = [
        "<h1>",
        "id=\"summary\"",
        "id=\"caveats\"",
        "id=\"figures\"",
        "id=\"tables\"",
        "id=\"method\"",
        "id=\"again\"",
    ];
    let places: Vec<usize> = order.iter().map(|part| html.find(part).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(
        html.contains("h123 run quick --out results&#x2f;quick-again")
            || html.contains("results/quick-again")
    );
    assert!(html.contains("congestion_control = "), "the study file is inside");
}

#[test]
fn every_cell_and_metric_is_in_the_tables() {
    let fabricated = fabricated::troubled();
    let html = render(&fabricated.input()).unwrap().html;
    let tables = html.split_once("id=\"tables\"").unwrap().1.split_once("id=\"method\"").unwrap().0;
    assert_eq!(
        tables.matches("class=\"metrics\"").count(),
        8,
        "a primary and an exploratory table per context"
    );
    let first_rows = |variant: &str| {
        let cell = format!("</svg>{variant}</th>");
        let struck = format!("</svg><s>{variant}</s></th>");
        tables.matches(&cell).count() + tables.matches(&struck).count()
    };
    for variant in ["h1", "h1s", "h2c", "h2", "h3"] {
        assert_eq!(first_rows(variant), 4 * 5, "{variant}: 4 contexts x 5 metrics");
    }
}

#[test]
fn invalid_results_are_struck_out_and_marked() {
    let fabricated = fabricated::troubled();
    let report = render(&fabricated.input()).unwrap();
    let caveats = report.html.split_once("id=\"caveats\"").unwrap().1.split_once("id=\"figures\"").unwrap().0;
    for words in
        ["Emulator late", "h2c · north-carolina · large", "p99 4.1 ms", "this nginx was built without HTTP"]
    {
        assert!(caveats.contains(words), "{words}");
    }
    let tables = report.html.split_once("id=\"tables\"").unwrap().1;
    assert!(tables.contains("<s>h2c</s>") && tables.contains("<s>h3</s>") && tables.contains("<s>h2</s>"));
    let invalid =
        fabricated.summary.cells.iter().find(|cell| cell.status == analysis::summary::CellStatus::Invalid);
    assert_eq!(
        invalid.unwrap().metrics["page_load_time"].runs,
        5,
        "an invalid cell has numbers, which must be struck through"
    );
    for figure in &report.figures {
        assert!(figure.svg.contains("s-h2c bad"), "{}: the invalid cell is faded", figure.name);
        assert!(figure.svg.contains("\"cross\""), "{}: and crossed", figure.name);
    }
    let well = render(&fabricated::all_well().input()).unwrap();
    assert!(!well.html.contains("\"cross\"") && !well.html.contains("<s>"));
    assert!(well.html.contains("None: every run succeeded"));
}

#[test]
fn claims_have_their_results() {
    let html = render(&fabricated::troubled().input()).unwrap().html;
    let from = html.find("Claims of the study").expect("a heading");
    let part = &html[from..from + 600];
    assert!(part.contains("“The runs may be &lt;b&gt;pooled&lt;&#x2f;b&gt;.”"), "{part}");
    assert!(
        part.contains(">refuted</em> medians of runs are 7 % apart; expected a chance of at least 0.001"),
        "{part}"
    );
}

#[test]
fn drawings_have_text_for_screen_readers() {
    let html = render(&fabricated::all_well().input()).unwrap().html;
    for drawing in drawings(&html) {
        let silent = drawing.contains("aria-hidden=\"true\"");
        let speaks = drawing.contains("role=\"img\"")
            && drawing.contains("<title id=")
            && drawing.contains("<desc id=");
        assert!(silent || speaks, "{}", &drawing[..80]);
    }
    let ids: Vec<&str> = html.split(" id=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
    let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), distinct.len(), "ids are unique");
    assert_eq!(
        html.matches("<table").count(),
        html.matches("<caption>").count(),
        "every table has a caption"
    );
}

/// Labels lie inside their drawing, by a generous estimate of their width.
#[test]
fn labels_are_not_cut() {
    let mut wide = fabricated::over_networks(&["5", "10", "20", "40", "80", "160", "300"], &["0", "2"]);
    wide.plan.figures = Some(report::figure_kinds().map(|kind| kind.name.to_owned()).collect());
    let connections = fabricated::over_connections(&[1, 4, 16]);
    for fabricated in [fabricated::troubled(), crate::hostile::fabricated(), wide, connections] {
        let html = render(&fabricated.input()).unwrap().html;
        for drawing in drawings(&html).into_iter().filter(|drawing| drawing.contains("role=\"img\"")) {
            let whole = format!("<svg {drawing}</svg>");
            let document = roxmltree::Document::parse(&whole).unwrap();
            let number = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
                node.attribute(name).unwrap().parse().unwrap()
            };
            let width = number(document.root_element(), "width");
            for text in document.descendants().filter(|node| node.has_tag_name("text")) {
                let words = text.text().unwrap_or_default();
                let estimate = words.chars().count() as f64 * 7.6;
                let x = number(text, "x");
                let (left, right) = match text.attribute("text-anchor") {
                    Some("end") => (x - estimate, x),
                    Some("middle") => (x - estimate / 2.0, x + estimate / 2.0),
                    _ => (x, x + estimate),
                };
                assert!(
                    left >= -24.0 && right <= width + 24.0,
                    "`{words}` from {left} to {right} of {width}"
                );
            }
        }
    }
}

#[test]
fn the_time_of_requests_has_its_own_table() {
    let mut fabricated = fabricated::all_well();
    let plain = render(&fabricated.input()).unwrap();
    assert!(!plain.html.contains("Time of requests") && !plain.terminal.contains("time at the server"));
    for (place, cell) in fabricated.summary.cells.iter_mut().enumerate().filter(|(place, _)| *place != 1) {
        let mut time = cell.metrics["page_load_time"].clone();
        for (name, value) in
            [("request_time", 3.21e6), ("server_time", 123e3), ("outside_server_time", 3.08e6)]
        {
            time.median = analysis::summary::Estimate { value, low: None, high: None };
            cell.metrics.insert(name.to_owned(), time.clone());
        }
        cell.validity[0].check = "server_time_precision".to_owned();
        cell.validity[0].measured = format!("to 1 µs, <log> {place}");
    }
    fabricated.terminal = report::Terminal { width: 100, colour: false, plain: true };
    let report = render(&fabricated.input()).unwrap();
    assert_eq!(report.html.matches("Time of requests ·").count(), 4, "one for each context");
    let row = "<td>3.21 ms</td><td>123 µs</td><td>3.08 ms</td><td class=\"word\">to 1 µs, &lt;log&gt; 0</td>";
    assert!(report.html.replace('\u{202f}', " ").contains(row), "{}", report.html);
    assert!(!report.html.contains("&lt;log&gt; 1<"), "a cell without times has no row");
    assert_self_contained(&report.html);
    let lines: Vec<&str> = report.terminal.lines().filter(|line| line.contains("3.08 ms")).collect();
    assert_eq!(lines.len(), fabricated.summary.cells.len() - 1, "{}", report.terminal);
    let cells: Vec<&str> = lines[0].split('|').map(str::trim).collect();
    assert_eq!(cells, ["h1", "3.21 ms", "123 us", "3.08 ms"]);
}

#[test]
fn missing_numbers_break_nothing() {
    let mut fabricated = fabricated::all_well();
    fabricated.traces.clear();
    fabricated.summary.comparisons.clear();
    fabricated.environment = serde_json::Value::Null;
    for cell in &mut fabricated.summary.cells {
        cell.metrics.clear();
        cell.validity.clear();
        cell.status = analysis::summary::CellStatus::Failed;
    }
    let report = render(&fabricated.input()).unwrap();
    assert!(report.figures.is_empty());
    assert!(report.html.contains("There are no numbers to draw."));
    assert!(report.html.contains("This study compares nothing"));

    fabricated.summary.cells.clear();
    fabricated.plan.cells.clear();
    fabricated.plan.runs.clear();
    fabricated.summary.runs_stored = 0;
    let report = render(&fabricated.input()).unwrap();
    assert!(report.html.contains("0 of 100 planned runs are stored"));
}
