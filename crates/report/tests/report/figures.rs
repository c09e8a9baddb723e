//! Each kind of figure from fabricated data: its drawing, its CSV, and when it is omitted.

use analysis::summary::CheckOutcome;
use report::{Figure, Report, render};

use crate::fabricated::{self, Fabricated};
use crate::structure::{assert_self_contained, assert_well_formed};

/// `quick` with failures, and `count` requests in each cell.
pub(crate) fn spread(count: u32) -> Fabricated {
    fabricated::of_requests(fabricated::troubled(), count)
}

fn choosing(mut fabricated: Fabricated, figures: &[&str]) -> Report {
    fabricated.plan.figures = Some(figures.iter().map(|name| (*name).to_owned()).collect());
    let report = render(&fabricated.input()).unwrap();
    assert_self_contained(&report.html);
    assert_well_formed(&report);
    report
}

fn names(report: &Report) -> Vec<&str> {
    report.figures.iter().map(|figure| figure.name).collect()
}

fn figure<'a>(report: &'a Report, name: &str) -> &'a Figure {
    report.figures.iter().find(|figure| figure.name == name).unwrap()
}

/// The drawing without its style sheet, an element in each line.
fn body(figure: &Figure) -> String {
    figure.svg.split_once("</style>").unwrap().1.replace("><", ">\n<")
}

#[test]
fn a_study_chooses_its_figures_and_their_order() {
    let report = choosing(fabricated::all_well(), &["phases", "ecdf", "comparison"]);
    assert_eq!(names(&report), ["phases", "ecdf", "comparison"]);
    assert!(names(&choosing(fabricated::all_well(), &[])).is_empty());
}

#[test]
fn a_chosen_figure_without_data_is_named_with_its_needs() {
    let mut fabricated = fabricated::all_well();
    fabricated.traces.clear();
    let report = choosing(fabricated, &["waterfall", "runs"]);
    assert_eq!(names(&report), ["runs"]);
    assert!(report.html.contains("Not drawn: <code>waterfall</code>, which needs a page load"));
}

#[test]
fn distributions_are_drawn_if_there_are_enough_values() {
    for (count, expected) in [(5, &[][..]), (30, &["ecdf", "boxes"]), (500, &["ecdf", "boxes", "histograms"])]
    {
        let report = render(&spread(count).input()).unwrap();
        let found: Vec<&str> = names(&report)
            .into_iter()
            .filter(|name| ["ecdf", "boxes", "histograms"].contains(name))
            .collect();
        assert_eq!(found, expected, "{count} values");
    }
    let mut nothing = spread(500);
    nothing.pooled.clear();
    assert!(names(&choosing(nothing, &["ecdf", "boxes", "histograms"])).is_empty());
}

#[test]
fn distributions_as_drawn() {
    let fabricated = fabricated::of_requests(fabricated::small(), 40);
    let report = choosing(fabricated, &["ecdf", "boxes", "histograms"]);
    for name in ["ecdf", "boxes", "histograms"] {
        insta::assert_snapshot!(format!("{name}_svg"), body(figure(&report, name)));
        insta::assert_snapshot!(format!("{name}_csv"), figure(&report, name).csv);
    }
}

#[test]
fn many_values_make_a_small_page() {
    let report = choosing(spread(50_000), &["ecdf", "boxes", "histograms"]);
    assert!(report.html.len() < 1_500_000, "{} bytes", report.html.len());
    for figure in &report.figures {
        assert!(figure.csv.len() < 400_000, "{}: {} bytes", figure.name, figure.csv.len());
    }
}

#[test]
fn levels_that_differ_in_one_number_are_a_sweep() {
    let swept = ["map", "lines", "difference"];
    let shown = |fabricated: Fabricated| {
        let report = render(&fabricated.input()).unwrap();
        swept.into_iter().filter(|name| names(&report).contains(name)).collect::<Vec<_>>()
    };
    assert!(shown(fabricated::all_well()).is_empty(), "two networks that differ in more than their distance");
    assert_eq!(shown(fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"])), swept);
    assert_eq!(shown(fabricated::over_networks(&["5", "20", "80"], &["0"])), ["lines", "difference"]);
    assert_eq!(shown(fabricated::over_networks(&["5", "80"], &["0", "2"])), ["map"], "no sweep of three");
    assert!(shown(fabricated::over_networks(&["5", "80"], &["0"])).is_empty());
    assert_eq!(shown(fabricated::over_connections(&[1, 4, 16])), ["lines", "difference"]);

    let mut other = fabricated::over_connections(&[1, 4, 16]);
    other.plan.baseline.factor = "workload".to_owned();
    other.summary.baseline.factor = "workload".to_owned();
    assert!(shown(other).is_empty(), "the compared factor is no sweep");
}

#[test]
fn swept_factors_are_drawn_with_their_units() {
    // Neither order nor digits are those of texts.
    let fabricated = fabricated::over_network_keys(&["80", "5", "120"], &["2", "0", "0.5"]);
    let report = choosing(fabricated, &["map", "lines", "difference"]);
    assert_eq!(names(&report), ["map", "lines", "difference"]);
    let lines = figure(&report, "lines");
    assert_eq!(lines.title, "Over round-trip time and loss");
    assert!(lines.svg.contains(">round-trip time (ms), logarithmic<"), "{}", lines.svg);
    assert!(lines.svg.contains(">loss (%)<"), "{}", lines.svg);
    let values = |parameter: &str| -> Vec<f64> {
        let rows = lines.csv.lines().filter(|line| line.contains(parameter) && line.contains(",h2,"));
        let column = lines.csv.lines().next().unwrap().split(',').position(|name| name == "parameter_value");
        rows.map(|line| line.split(',').nth(column.unwrap()).unwrap().parse().unwrap()).take(3).collect()
    };
    assert_eq!(values("round-trip time,ns"), [5e6, 80e6, 120e6]);
    assert_eq!(values(",loss,"), [0.0, 0.5, 2.0], "{}", lines.csv);
}

#[test]
fn swept_settings_are_stated() {
    let mut fabricated = fabricated::over_network_keys(&["5", "20", "80"], &["0"]);
    let settings = |fabricated: &Fabricated| {
        let html = render(&fabricated.input()).unwrap().html;
        html.contains("in other cells").then_some(html)
    };
    assert_eq!(settings(&fabricated), None);
    let held = model::Pins { http1_connections: 2, ..model::Pins::default() };
    fabricated.plan.cells[1].pins = Some(held);
    assert!(settings(&fabricated).unwrap().contains("http1_connections = 2"));
}

#[test]
fn a_context_without_the_baseline_is_drawn() {
    let mut fabricated = fabricated::over_network_keys(&["5", "20", "80"], &["0"]);
    let summary = &mut fabricated.summary;
    let is_left_out = |levels: &[model::plan::Level]| {
        ["h1s", "20ms"].iter().all(|value| levels.iter().any(|level| level.value == *value))
    };
    summary.cells.retain(|cell| !is_left_out(&cell.levels));
    let alone: Vec<u32> = summary
        .cells
        .iter()
        .filter(|cell| cell.levels.iter().any(|level| level.value == "20ms"))
        .map(|cell| cell.cell)
        .collect();
    assert_eq!(alone.len(), 2);
    summary.comparisons.retain(|comparison| !alone.contains(&comparison.cell));
    let report = choosing(fabricated, &["comparison", "lines", "difference", "map", "runs"]);
    let of = |name: &str, series: &str| {
        let series = format!(",{series},");
        figure(&report, name)
            .csv
            .lines()
            .filter(|line| line.contains(&series) && line.contains("page_load_time"))
            .count()
    };
    assert_eq!((of("lines", "h1s"), of("lines", "h2")), (2, 3));
    assert_eq!(of("difference", "h2"), 2, "no difference from a baseline that was left out");
}

#[test]
fn a_short_sweep_is_drawn_if_requested() {
    let report = choosing(fabricated::over_networks(&["5", "80"], &["0"]), &["lines", "difference", "map"]);
    assert_eq!(names(&report), ["lines", "difference"]);
    assert!(
        report.html.contains("Not drawn: <code>map</code>, which needs levels that differ in two numbers")
    );
}

#[test]
fn networks_that_differ_in_more_are_a_sweep_with_a_caveat() {
    let mut fabricated = fabricated::over_networks(&["5", "20", "80"], &["0"]);
    let extra = "title = \"x\"\nsource = \"y\"\nrtt = \"20ms\"\nrate = \"3Mbit/s\"\n";
    fabricated.plan.networks[1] = fabricated::network("r20-l0", extra);
    let report = choosing(fabricated, &["lines"]);
    let lines = figure(&report, "lines");
    assert!(lines.caption.contains("These networks differ in more"), "{}", lines.caption);
    assert_eq!(lines.csv.lines().filter(|line| line.contains(",page_load_time,")).count(), 9);
}

#[test]
fn lines_and_differences_as_drawn() {
    let mut fabricated = fabricated::over_connections(&[1, 4, 16]);
    fabricated.summary.cells[8].status = analysis::summary::CellStatus::Invalid;
    let report = choosing(fabricated, &["lines", "difference"]);
    for name in ["lines", "difference"] {
        insta::assert_snapshot!(format!("{name}_svg"), body(figure(&report, name)));
        insta::assert_snapshot!(format!("{name}_csv"), figure(&report, name).csv);
        assert!(figure(&report, name).svg.contains("\"cross\""), "the invalid cell is crossed");
    }
}

#[test]
fn a_positive_difference_is_always_a_gain() {
    let mut fabricated = fabricated::over_connections(&[1, 4, 16]);
    let gains = |fabricated: Fabricated| -> Vec<f64> {
        let report = choosing(fabricated, &["difference"]);
        let csv = &figure(&report, "difference").csv;
        csv.lines().skip(1).map(|line| line.split(',').nth(8).unwrap().parse().unwrap()).collect()
    };
    let times = gains(fabricated::over_connections(&[1, 4, 16]));
    assert!(times.iter().all(|gain| *gain > 0.0), "h2 and h3 take less time: {times:?}");
    for cell in &mut fabricated.summary.cells {
        let metric = cell.metrics["page_load_time"].clone();
        cell.metrics.insert("requests_per_second".to_owned(), metric);
    }
    fabricated.summary.metric = "requests_per_second".to_owned();
    for comparison in fabricated.summary.comparisons.iter_mut().filter(|comparison| comparison.primary) {
        comparison.metric = "requests_per_second".to_owned();
    }
    let rates = gains(fabricated);
    assert!(rates[..12].iter().all(|gain| *gain < 0.0), "less of what should be more: {rates:?}");
}

/// A figure's own file is used in papers, without the page.
#[test]
fn files_of_figures_name_what_they_show() {
    for fabricated in [
        publishing(watched(spread(500))),
        fabricated::over_networks(&["5", "20", "80"], &["0", "0.5", "2"]),
        fabricated::over_connections(&[1, 2, 4]),
        videos(),
    ] {
        let report = render(&fabricated.input()).unwrap();
        for figure in &report.figures {
            let legend = report.html.split_once(&format!("id=\"figure-{}\"", figure.name)).unwrap().1;
            let legend = legend.split_once("<div class=\"panels\"").unwrap().0;
            let series: Vec<&str> =
                legend.split("class=\"t-").skip(1).map(|s| s.split_once('"').unwrap().0).collect();
            assert!(!series.is_empty(), "{} has no series", figure.name);
            let before = figure.svg.split_once("<g transform=").unwrap().0;
            for name in series {
                let entry = before.split_once(&format!("<g class=\"s-{name}\">")).map(|(_, rest)| rest);
                let entry = entry.unwrap_or_else(|| panic!("{}: no marker of {name}", figure.name));
                let entry = entry.split_once("</g>").unwrap().0;
                assert!(entry.contains(&format!(">{name}</text>")), "{}: {entry}", figure.name);
                assert!(entry.contains("solid") || entry.contains("hollow"), "{}: {entry}", figure.name);
            }
            assert!(before.contains("figure-title"), "{}", figure.name);
        }
    }
}

#[test]
fn a_map_as_drawn() {
    let mut fabricated = fabricated::over_networks(&["5", "20", "80"], &["0", "2"]);
    let of = |comparisons: &mut [analysis::summary::Comparison],
              cell: u32,
              verdict: analysis::summary::Verdict| {
        for comparison in comparisons.iter_mut().filter(|comparison| comparison.cell == cell) {
            comparison.verdict = verdict.clone();
        }
    };
    // The cells of h3 are the last six, in the order of the networks.
    let comparisons = &mut fabricated.summary.comparisons;
    of(comparisons, 12, analysis::summary::Verdict::NoDifferenceShown);
    of(comparisons, 14, analysis::summary::Verdict::Equivalent);
    of(comparisons, 16, analysis::summary::Verdict::Invalid { because: vec!["late".to_owned()] });
    // All cells of the last place are invalid.
    for cell in [5, 11, 17] {
        fabricated.summary.cells[cell].status = analysis::summary::CellStatus::Invalid;
    }
    let report = choosing(fabricated, &["map"]);
    let map = figure(&report, "map");
    assert_eq!(map.svg.matches("class=\"even\"").count(), 2, "a key and a tile");
    assert_eq!(map.svg.matches("class=\"hatch\"").count(), 4, "a key and three tiles");
    insta::assert_snapshot!("map_svg", body(map));
    insta::assert_snapshot!("map_csv", map.csv);
}

/// What the monitor might have seen of a load of two seconds after one of warm-up.
pub(crate) fn watched(mut fabricated: Fabricated) -> Fabricated {
    use model::monitor::Quantity;
    use report::{RunTimeline, Track};
    let rounds = 0..16_i32;
    let values =
        |of: fn(f64) -> f64| rounds.clone().map(|round| Some(of(f64::from(round)))).collect::<Vec<_>>();
    fabricated.timelines = fabricated
        .summary
        .cells
        .iter()
        .filter(|cell| !cell.metrics.is_empty())
        .map(|cell| {
            let mut cpu = values(|round| 40.0 + 10.0 * (round % 3.0));
            cpu[0] = None;
            let number = f64::from(cell.cell);
            cpu.iter_mut().flatten().for_each(|value| *value += number);
            RunTimeline {
                cell: cell.cell,
                run: cell.cell,
                at_ns: rounds.clone().map(|round| i64::from(round - 1) * 200_000_000).collect(),
                warmup_ended_ns: Some(1_000_000_000),
                finished_ns: 2_950_000_000,
                tracks: [
                    (Track::ServerCpu, cpu),
                    (Track::ServerMemory, values(|round| 12e6 + 1e5 * round)),
                    (Track::Down, values(|round| 5e6 * round)),
                    (Track::ServerSockets(Quantity::Established), values(|round| round.min(6.0))),
                    (Track::ClientSockets(Quantity::TimeWait), values(|round| (round - 8.0).max(0.0))),
                ]
                .into(),
            }
        })
        .collect();
    fabricated
}

#[test]
fn a_timeline_as_drawn() {
    let report = choosing(watched(fabricated::small()), &["timeline"]);
    let timeline = figure(&report, "timeline");
    insta::assert_snapshot!("timeline_svg", body(timeline));
    insta::assert_snapshot!("timeline_csv", timeline.csv);
    let periods: Vec<&str> =
        timeline.csv.lines().skip(1).take(16).map(|line| line.split(',').nth(3).unwrap()).collect();
    let count = |wanted: &str| periods.iter().filter(|period| **period == wanted).count();
    assert_eq!((count("before"), count("warm-up"), count("measured")), (1, 5, 10));
}

#[test]
fn a_timeline_needs_enough_monitor_readings() {
    let names_of = |fabricated: &Fabricated| -> Vec<String> {
        let report = render(&fabricated.input()).unwrap();
        names(&report).into_iter().map(ToOwned::to_owned).collect()
    };
    let mut fabricated = watched(fabricated::troubled());
    assert_eq!(names_of(&fabricated).last().unwrap(), "timeline");
    for timeline in &mut fabricated.timelines {
        timeline.at_ns.truncate(3);
    }
    assert!(!names_of(&fabricated).contains(&"timeline".to_owned()));
    let report = choosing(fabricated, &["timeline"]);
    assert_eq!(names(&report), ["timeline"], "but a study can request it");
    assert!(figure(&report, "timeline").svg.contains("s-h2c bad"));
}

/// Videos over two networks, played by three variants: one without a stall, one with two, one whose player
/// gives up.
pub(crate) fn videos() -> Fabricated {
    let mut fabricated = fabricated::of_videos();
    fabricated.playbacks =
        (0..).zip(&fabricated.plan.cells).map(|(number, cell)| playback(number, cell.cell)).collect();
    fabricated
}

/// The events of a cell's player: segments of 500 ms arrive at a constant interval, from the third on at
/// another representation.
fn playback(number: usize, cell: u32) -> report::RunPlayback {
    use model::player::PlayerEventKind::{Arrived, Ended, Failed, Playing, Requested, Stalled};
    let took_ms = [300, 650, 650][number / 2];
    let gives_up = number / 2 == 2;
    let mut events = Vec::new();
    let mut add = |at_ms: u64, what, segment: u32, buffered_ms: u64| {
        let bits_per_s = if segment < 2 { 1_000_000 } else { 2_500_000 };
        events.push(model::player::PlayerEvent {
            at_ns: (at_ms + 40) * 1_000_000,
            what,
            segment,
            bits_per_s,
            buffered_ns: buffered_ms * 1_000_000,
            ..model::player::PlayerEvent::default()
        });
    };
    // Playing begins with the first segment; `empty` is when the buffer will be.
    let mut empty = took_ms;
    for segment in 0..8_u32 {
        let (wanted, arrived) = (u64::from(segment) * took_ms, u64::from(segment + 1) * took_ms);
        add(wanted, Requested, segment, empty.saturating_sub(wanted) * u64::from(segment > 0));
        if segment > 0 && empty < arrived {
            add(empty, Stalled, segment, 0);
        }
        if gives_up && segment == 6 {
            add(arrived, Failed, segment, 0);
            break;
        }
        let is_stalled = segment == 0 || empty < arrived;
        empty = empty.max(arrived) + 500;
        add(arrived, Arrived, segment, empty - arrived);
        if is_stalled {
            add(arrived, Playing, segment, empty - arrived);
        }
    }
    if !gives_up {
        add(empty, Ended, 7, 0);
    }
    let record = model::RunRecord { player: events, ..record(cell) };
    report::RunPlayback::from_record(&record, 0).unwrap()
}

/// A run of a cell that left nothing behind.
fn record(cell: u32) -> model::RunRecord {
    model::RunRecord {
        run: cell,
        cell,
        block: 0,
        began_unix_ns: 0,
        took_ns: 1,
        content: None,
        outcome: model::Outcome::Ok,
        samples: Vec::new(),
        connections: Vec::new(),
        player: Vec::new(),
        page_events: Vec::new(),
        clients: Vec::new(),
        servers: Vec::new(),
        server_requests: Vec::new(),
        links: Vec::new(),
        readings: Vec::new(),
        round_trips: Vec::new(),
    }
}

#[test]
fn a_playback_as_drawn() {
    let mut fabricated = videos();
    fabricated.summary.cells[1].status = analysis::summary::CellStatus::Invalid;
    let player = &fabricated.playbacks[0];
    assert_eq!((player.stalls, player.stalled_ns, player.startup_ns), (0, 0, Some(300_000_000)));
    let report = render(&fabricated.input()).unwrap();
    assert!(names(&report).contains(&"player"), "drawn by default: {:?}", names(&report));
    assert!(!names(&report).contains(&"phases"));
    let report = choosing(fabricated, &["player"]);
    let player = figure(&report, "player");
    insta::assert_snapshot!("player_svg", body(player));
    insta::assert_snapshot!("player_csv", player.csv);
}

#[test]
fn a_playback_needs_a_video() {
    assert!(!names(&render(&fabricated::all_well().input()).unwrap()).contains(&"player"));
    let report = choosing(fabricated::all_well(), &["player", "runs"]);
    assert_eq!(names(&report), ["runs"]);
    assert!(report.html.contains("Not drawn: <code>player</code>, which needs a run that plays a video"));
    let mut lost = videos();
    lost.playbacks.remove(1);
    let report = choosing(lost, &["player"]);
    assert!(figure(&report, "player").svg.contains("no run to show"));
}

#[test]
fn a_long_video_is_condensed_and_keeps_its_extremes() {
    use model::player::PlayerEventKind::{Arrived, Playing, Requested, Stalled};
    let mut events = Vec::new();
    for segment in 0..10_000_u32 {
        let at = u64::from(segment) * 1_000;
        let bits_per_s = if segment == 5_000 { 9 } else { 5 };
        for (after, what, buffered_ns) in
            [(0, Requested, 0), (600, Arrived, 400), (600, Playing, 400), (1_000, Stalled, 0)]
        {
            let buffered_ns = if segment == 5_000 { buffered_ns * 2 } else { buffered_ns };
            let event = model::player::PlayerEvent {
                at_ns: at + after,
                what,
                segment,
                bits_per_s,
                buffered_ns,
                ..model::player::PlayerEvent::default()
            };
            events.push(event);
        }
    }
    let playback =
        report::RunPlayback::from_record(&model::RunRecord { player: events, ..record(0) }, 0).unwrap();
    assert_eq!((playback.stalls, playback.stalled_ns), (10_000, 9_999 * 600));
    assert!(
        playback.segments.len() <= 240 && playback.stall_spans.len() <= 60,
        "{}",
        playback.segments.len()
    );
    assert!(playback.buffer.len() <= 4 * 241, "{}", playback.buffer.len());
    assert_eq!(playback.buffer.iter().map(|(_, buffered)| *buffered).max(), Some(800));
    assert_eq!(playback.segments.iter().map(|span| span.highest_bits_per_s).max(), Some(9));
    assert_eq!(playback.segments.last().map(|span| span.last), Some(9_999));
    assert_eq!(playback.stall_spans.iter().map(|span| span.stalls).sum::<u32>(), 10_000);
    let mut many = videos();
    for own in &mut many.playbacks {
        *own = report::RunPlayback { cell: own.cell, ..playback.clone() };
    }
    let report = choosing(many, &["player"]);
    assert!(report.html.len() < 1_500_000, "{} bytes", report.html.len());
}

const SHORT: [&str; 5] = ["nginx", "nghttpd", "h2o", "lighttpd", "haproxy"];
const LONG: [&str; 5] =
    ["nginx", "nginx-with-sendfile-off", "nginx-with-sendfile-on", "envoy", "haproxy-of-distribution"];

/// Every kind of figure of servers: what none of them may cut.
pub(crate) fn servers() -> Fabricated {
    of_servers(SHORT)
}

/// The same with names that do not fit next to their rows.
pub(crate) fn long_names() -> Fabricated {
    of_servers(LONG)
}

/// Videos of servers with such names.
pub(crate) fn videos_of_servers() -> Fabricated {
    fabricated::of_servers(videos(), LONG)
}

fn of_servers(names: [&str; 5]) -> Fabricated {
    let mut fabricated = fabricated::of_requests(fabricated::servers(names), 120);
    let published = |source: &str, name: &str, metric: &str, ratio| {
        let level = model::plan::Level { factor: "server".into(), value: name.into() };
        model::plan::Published::ratio(source, vec![level], metric, ratio)
    };
    let (doe, roe) = ("Doe, Protocols compared, 2024, table 3", "Roe, 2023, section 5.2");
    fabricated.plan.published = vec![
        published(doe, names[4], "request_time", 0.7),
        published(doe, names[4], "time_to_first_byte", 5.5),
        published(roe, names[4], "request_time", 0.9),
        published(doe, names[2], "request_time", 1.02),
    ];
    fabricated
}

/// Somebody published ratios of two variants, of one of them on one network alone.
pub(crate) fn publishing(mut fabricated: Fabricated) -> Fabricated {
    let level = |factor: &str, value: &str| model::plan::Level { factor: factor.into(), value: value.into() };
    let published = |source: &str, levels, ratio| {
        model::plan::Published::ratio(source, levels, "time_to_first_byte", ratio)
    };
    fabricated.plan.published = vec![
        published("Doe, Protocols compared, 2024, table 3", vec![level("variant", "h3")], 0.7),
        published("Roe, 2023", vec![level("variant", "h2c"), level("network", "north-carolina")], 0.666),
        published("nobody measures this here", vec![level("variant", "h2"), level("network", "moon")], 3.0),
    ];
    fabricated
}

#[test]
fn published_ratios_are_next_to_measured_ones() {
    let mut small = publishing(fabricated::small());
    small.summary.comparisons.retain(|comparison| comparison.metric == "time_to_first_byte");
    let report = choosing(small, &["published"]);
    let published = figure(&report, "published");
    insta::assert_snapshot!("published_svg", body(published));
    insta::assert_snapshot!("published_csv", published.csv);

    let report = choosing(publishing(fabricated::troubled()), &["published"]);
    let published = figure(&report, "published");
    let rows =
        |level: &str| published.csv.lines().filter(|line| line.contains(&format!(",{level},"))).count();
    assert_eq!((rows("h3"), rows("h2c"), rows("h2")), (3 + 1, 2, 0), "{}", published.csv);
    assert!(published.svg.contains("s-h2c bad") && published.svg.contains("\"cross\""));
    assert!(
        published.caption.contains("Published: [1] Doe, Protocols compared, 2024, table 3; [2] Roe, 2023")
    );
}

#[test]
fn without_published_figures_there_is_none() {
    let report = render(&fabricated::all_well().input()).unwrap();
    assert!(!names(&report).contains(&"published"));
    let report = choosing(fabricated::all_well(), &["published"]);
    assert!(report.html.contains("which needs [[published]] in the study"));
}

#[test]
fn a_timeline_has_the_monitor_readings_of_both_ends() {
    use model::assignment::{ClientReport, WarmupCost};
    use model::monitor::{Quantity, Reading, Subject, SubjectKind};
    use report::{RunTimeline, Track};
    let mut plan = fabricated::small().plan;
    let reading = |at_ns: u64, node: Option<&str>, kind, name: &str, quantity, value| Reading {
        at_ns,
        subject: Subject { node: node.map(Into::into), kind, name: name.into(), id: 0 },
        quantity,
        value,
    };
    let (process, interface, sockets) = (SubjectKind::Process, SubjectKind::Interface, SubjectKind::Sockets);
    let (server, client) = (Some("server"), Some("client"));
    let mut readings = Vec::new();
    for round in 0..=4_u64 {
        let at = round * 100_000_000;
        readings.extend([
            reading(at, server, process, "origin", Quantity::CpuUser, round * 20_000_000),
            reading(at, server, process, "origin", Quantity::CpuSystem, round * 10_000_000),
            reading(at, server, SubjectKind::Thread, "worker", Quantity::CpuUser, round * 20_000_000),
            reading(at, client, process, "h123 load", Quantity::CpuUser, round * 50_000_000),
            reading(at, None, process, "h123", Quantity::CpuUser, round * 90_000_000),
            reading(at, server, process, "origin", Quantity::Resident, 1_000_000 + round),
            reading(at, server, interface, "eth0", Quantity::SentBytes, round * 125_000),
            reading(at, server, interface, "lo", Quantity::SentBytes, round * 999_000),
            reading(at, server, sockets, "", Quantity::Established, 6),
            reading(at, client, sockets, "", Quantity::TimeWait, 0),
        ]);
    }
    let clients = vec![ClientReport {
        started_ns: 50_000_000,
        finished_ns: 350_000_000,
        warmup: Some(WarmupCost { ended_ns: 150_000_000, ..WarmupCost::default() }),
        ..ClientReport::default()
    }];
    let record = model::RunRecord {
        run: 7,
        cell: 3,
        block: 0,
        began_unix_ns: 0,
        took_ns: 1,
        content: None,
        outcome: model::Outcome::Ok,
        samples: Vec::new(),
        connections: Vec::new(),
        clients,
        player: Vec::new(),
        page_events: Vec::new(),
        servers: Vec::new(),
        server_requests: Vec::new(),
        links: Vec::new(),
        readings,
        round_trips: Vec::new(),
    };
    let timeline = RunTimeline::from_record(&plan, &record, 0).unwrap();
    assert_eq!((timeline.run, timeline.cell), (7, 3));
    let ms: Vec<i64> = timeline.at_ns.iter().map(|at| at / 1_000_000).collect();
    assert_eq!((ms, timeline.warmup_ended_ns), (vec![-50, 50, 150, 250, 350], Some(100_000_000)));
    let tracks: Vec<Track> = timeline.tracks.keys().copied().collect();
    let established = Track::ServerSockets(Quantity::Established);
    assert_eq!(tracks, [Track::ServerCpu, Track::ClientCpu, Track::ServerMemory, Track::Down, established]);
    let last = |track: Track| timeline.tracks[&track].last().unwrap().unwrap();
    assert!((last(Track::ServerCpu) - 30.0).abs() < 1e-9 && (last(Track::ClientCpu) - 50.0).abs() < 1e-9);
    assert!((last(Track::Down) - 10e6).abs() < 1.0, "10 Mbit/s, without the loopback interface");
    assert_eq!((last(Track::ServerMemory), last(established)), (1_000_004.0, 6.0));
    assert_eq!(timeline.tracks[&Track::ServerCpu][0], None, "a rate begins with the second round");

    plan.topology.name = model::plan::DIRECT.to_owned();
    let direct = RunTimeline::from_record(&plan, &record, 0).unwrap();
    assert!(direct.tracks.keys().all(|track| !matches!(track, Track::Down | Track::ServerSockets(_))));
    let unwatched = model::RunRecord { readings: Vec::new(), ..record };
    assert_eq!(RunTimeline::from_record(&plan, &unwatched, 0), None);
}

#[test]
fn a_large_matrix_has_a_page_that_can_be_mailed() {
    let round_trips: Vec<String> = (1..=12).map(|n| (n * 15).to_string()).collect();
    let round_trips: Vec<&str> = round_trips.iter().map(String::as_str).collect();
    let large = fabricated::over_networks(&round_trips, &["0", "0.5", "2"]);
    let large = watched(fabricated::of_requests(large, 5_000));
    assert_eq!(large.summary.cells.len(), 108);
    let every: Vec<&str> = report::figure_kinds().map(|kind| kind.name).collect();
    let report = choosing(large, &every);
    let sizes: Vec<_> = report.figures.iter().map(|f| (f.name, f.svg.len(), f.csv.len())).collect();
    let caption = &figure(&report, "ecdf").caption;
    assert!(caption.ends_with("The first 24 of 36 panels are drawn; the CSV has all."), "{caption}");
    // Files that are too large for the page are in the result folder.
    assert!(report.html.contains("Figure: <code>figures/timeline.svg</code>"));
    assert!(report.html.contains("download=\"map.svg\"") && report.html.contains("download=\"map.csv\""));
    assert!(report.html.len() < 3_000_000, "{} bytes: {sizes:?}", report.html.len());
}

/// 1020 cells with every metric and fifty checks each, a few of which are invalid, late in the order of the
/// plan.
fn thousand() -> Fabricated {
    let round_trips: Vec<String> = (1..=17).map(|n| (n * 15).to_string()).collect();
    let losses: Vec<String> = (0..20).map(|n| format!("{}", f64::from(n) / 10.0)).collect();
    let round_trips: Vec<&str> = round_trips.iter().map(String::as_str).collect();
    let losses: Vec<&str> = losses.iter().map(String::as_str).collect();
    let mut large = watched(fabricated::of_requests(fabricated::over_networks(&round_trips, &losses), 300));
    for cell in &mut large.summary.cells {
        let own = cell.metrics[&large.summary.metric].clone();
        for metric in analysis::METRICS.iter() {
            cell.metrics.entry(metric.name.to_owned()).or_insert_with(|| own.clone());
        }
        for number in 0..50 {
            let mut check = cell.validity[0].clone();
            check.check = format!("check_number_{number}");
            check.measured = format!("{number}.{}% of the client's time was spent on something", cell.cell);
            cell.validity.push(check);
        }
    }
    for cell in [700, 1000] {
        fabricated::invalidate(&mut large.summary, cell, CheckOutcome::Invalid);
    }
    large
}

#[test]
fn a_page_of_a_thousand_cells_can_be_mailed_and_names_its_omissions() {
    let mut large = thousand();
    assert_eq!(large.summary.cells.len(), 1020);
    let invalid =
        large.summary.cells[700].levels.iter().find(|level| level.factor == "network").unwrap().value.clone();
    large.plan.figures = Some(report::figure_kinds().map(|kind| kind.name.to_owned()).collect());
    let report = render(&large.input()).unwrap();
    assert_self_contained(&report.html);
    let sizes: Vec<_> = report.figures.iter().map(|f| (f.name, f.svg.len(), f.csv.len())).collect();
    assert!(report.html.len() <= 3_000_000, "{} bytes: {sizes:?}", report.html.len());
    // The page names the files with the omitted parts, and shows invalid cells first.
    let html = report.html.replace("&#x2f;", "/");
    let (answer, tables) = (section(&html, "summary"), section(&html, "tables"));
    for part in [answer, tables] {
        assert!(part.contains(
            " of 340 panels (cells that differ in the variant only) are shown, those with invalid cells"
        ));
        assert!(part.contains("tables/cells.csv has all."));
        let first = part.find(&format!(">{invalid}<")).unwrap();
        let plain = part.find(">r15-l0<").unwrap_or(usize::MAX);
        assert!(first < plain, "the invalid {invalid} is at {first}, the first of the plan at {plain}");
    }
    assert!(tables.contains("Further metrics of") && tables.contains("<code>tables/cells.csv</code>"));
    let checks = section(&html, "caveats");
    assert!(checks.contains(" of 1020 cells are shown") && checks.contains("tables/validity.csv has all."));
    assert!(
        section(&html, "method")
            .contains("24 of 340 networks are shown, in the order of the study; plan.json has all.")
    );
    // A small page has its files inside, as a mail needs them.
    let small = render(&fabricated::all_well().input()).unwrap().html;
    assert!(small.contains("download=\"cells.csv\"") && !small.contains(" are shown, "));
    // The files have all.
    let rows =
        |name: &str| report.tables.iter().find(|table| table.name == name).unwrap().csv.lines().count();
    assert!(rows("cells") > 1020 * analysis::METRICS.len() && rows("validity") > 1020 * 50);
}

fn section<'h>(html: &'h str, id: &str) -> &'h str {
    let from = html.split_once(&format!("<section id=\"{id}\"")).unwrap().1;
    from.split_once("</section>").unwrap().0
}

#[test]
fn every_figure_is_documented() {
    let documentation = include_str!("../../../../docs/figures.md");
    for report::FigureKind { name, .. } in report::figure_kinds() {
        assert!(documentation.contains(&format!("\n### `{name}`\n")), "{name} in a section");
    }
}

#[test]
fn intervals_of_few_runs_leave_room_for_the_rest() {
    let mut fabricated = fabricated::over_networks(&["5", "20", "80"], &["0"]);
    for cell in &mut fabricated.summary.cells {
        let median = &mut cell.metrics.get_mut("page_load_time").unwrap().median;
        (median.low, median.high) = (Some(median.value / 1e5), Some(median.value * 1e5));
    }
    for comparison in &mut fabricated.summary.comparisons {
        let difference = comparison.difference.as_mut().unwrap();
        (difference.low, difference.high) = (Some(-1e15), Some(1e15));
    }
    let report = choosing(fabricated, &["lines", "difference"]);
    for (name, label) in [("lines", ">100<"), ("difference", ">50<")] {
        assert!(figure(&report, name).svg.contains(label), "{name}: an axis of milliseconds");
    }
    // Gains of up to 81 ms are not pressed onto the line of zero.
    assert!(!figure(&report, "difference").svg.contains(">200<"));
}

#[test]
fn more_contexts_than_weights_have_panels_of_their_own() {
    let losses = ["0", "0.1", "0.2", "0.5", "1", "2", "5"];
    let report = choosing(fabricated::over_networks(&["5", "20", "80", "160"], &losses), &["difference"]);
    let svg = &figure(&report, "difference").svg;
    for words in [" (2)<", "loss 0.1\u{a0}%<", "loss 5\u{a0}%<", "RTT 160 ms<"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn phases_name_their_omissions() {
    let all = choosing(fabricated::all_well(), &["phases"]);
    assert!(!figure(&all, "phases").caption.contains("at most 500 requests"));
    let mut fabricated = fabricated::all_well();
    let is_large = |cell: &model::plan::Cell| cell.level("workload") == Some("large");
    let large: Vec<u32> =
        fabricated.plan.cells.iter().filter(|c| is_large(c)).map(|cell| cell.cell).collect();
    fabricated.traces.retain(|trace| !large.contains(&trace.cell));
    let caption = &figure(&choosing(fabricated, &["phases"]), "phases").caption.clone();
    let said = "Only runs with at most 500 requests are drawn. Not drawn, without such a run: lan · large and north-carolina · large.";
    assert!(caption.ends_with(said), "{caption}");
}

#[test]
fn a_dns_lookup_is_a_phase() {
    let known = choosing(fabricated::all_well(), &["phases", "waterfall"]);
    for name in ["phases", "waterfall"] {
        assert!(!body(figure(&known, name)).contains("DNS"), "{name}: the address was known");
    }
    let mut asked = fabricated::all_well();
    for trace in &mut asked.traces {
        trace.dns_lookup_ns = Some((0, 20_000_000));
    }
    let asked = choosing(asked, &["phases", "waterfall"]);
    let phases = figure(&asked, "phases");
    assert!(phases.csv.contains(",DNS lookup,ns,20000000,"), "{}", phases.csv);
    for name in ["phases", "waterfall"] {
        assert!(body(figure(&asked, name)).contains("k-dns"), "{name}: it is drawn");
    }
    let waterfall = figure(&asked, "waterfall");
    let told = waterfall.svg.replace('\u{a0}', " ");
    let first = told.split("<title>").find(|title| title.contains("connection 0")).unwrap_or_default();
    let first = first.split('<').next().unwrap_or_default();
    assert!(first.contains("DNS lookup 0 ns to 20 ms · connection 0 · set up "), "{first}");
    assert!(waterfall.csv.lines().next().unwrap().contains(",dns_lookup_began_ns,dns_lookup_ended_ns,"));
    assert!(waterfall.csv.lines().skip(1).all(|line| line.contains(",0,20000000,")), "{}", waterfall.csv);
}

#[test]
fn names_and_numbers_are_whole() {
    for (fabricated, names) in [(servers(), SHORT), (long_names(), LONG)] {
        let report = render(&fabricated.input()).unwrap();
        for name in ["comparison", "runs", "boxes", "histograms", "phases", "published"] {
            let svg = &figure(&report, name).svg;
            assert!(!svg.contains('…'), "{name}");
            let labels = |level: &str| svg.matches(&format!(">{level}</text>")).count();
            assert!(labels(names[4]) >= 4 && labels(names[2]) >= 4, "{name}: {names:?}");
        }
        let comparison = &figure(&report, "comparison").svg;
        for words in [">[0.0138–24.7]<", "164× [41.0–8230], beyond the axis", ">unsupported<"] {
            assert!(comparison.contains(words), "{words}");
        }
        assert!(!comparison.contains(">invalid<"), "unsupported is not invalid");
        let keys = comparison.matches(&format!(">{}</text>", names[1])).count();
        assert_eq!(keys, 0, "the baseline has no row, and no key");
        assert!(report.terminal.contains('▶') && !report.terminal.contains('…'), "{}", report.terminal);
    }
}

#[test]
fn runs_have_the_axis_of_their_dots() {
    let mut fabricated = fabricated::small();
    for cell in &mut fabricated.summary.cells {
        let median = &mut cell.metrics.get_mut("page_load_time").unwrap().median;
        (median.low, median.high) = (Some(median.value / 400.0), Some(median.value * 400.0));
    }
    let report = choosing(fabricated, &["runs"]);
    let runs = &figure(&report, "runs").svg;
    assert!(
        runs.contains(">500<") && runs.contains(">600<") && !runs.contains(">0<"),
        "the axis is of the dots"
    );
    assert!(runs.contains("[1.14\u{a0}ms–183\u{a0}s]"), "ends with their units");
}
