//! Every data file of the repository can be read, and those that `quick` rests on say what they should.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly, in its helpers too")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use model::class::split_metric;
use model::error::{DataFile, Source};
use model::keys;
use model::media::{Media, MediaFolder, MediaSource};
use model::plan::{NamedWorkload, RemoteTrust};
use model::reader::{Key, Table, parse};
use model::study::{Library, MetricFacts, Override, OverrideValue, Study};
use model::url::Url;
use model::{Network, Page, Plan, ServerFacts, Topology, Tunable, Variant, WorkloadKind};

const TUNABLES: &[Key] = keys! { "tunable", "tables `[[tunable]]`", "none", "", "The tunables."; };

/// The repository's own folders. The metrics and figures that the study names are known: the names belong to
/// the analysis and the report.
struct Folders {
    metrics: Vec<String>,
    figures: Vec<String>,
}

impl Folders {
    fn of(study: &toml::Table) -> Folders {
        let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
        let figures = study.get("figures").and_then(toml::Value::as_array).into_iter().flatten();
        let tables = study.get("csv").and_then(toml::Value::as_table).into_iter().flatten();
        let columns = tables.flat_map(|(_, table)| table.as_table().unwrap().values());
        // `STATISTIC of METRIC in UNIT`; of a factor, its name is a metric, too.
        let metric = |column: &toml::Value| {
            let text = text(column);
            let rest = text.split_once(" of ").map_or(text.as_str(), |(_, rest)| rest);
            rest.split(" in ").next().unwrap().to_owned()
        };
        let metrics = metrics_in(study).into_iter().chain(columns.map(metric));
        // A class is the study's, and the metric that it divides is the analysis's.
        let metrics = metrics.map(|name| split_metric(&name).0.to_owned());
        Folders { metrics: metrics.collect(), figures: figures.map(text).collect() }
    }
}

/// What keys `metric` name, of the study and of its tables.
fn metrics_in(table: &toml::Table) -> Vec<String> {
    let of = |(key, value): (&String, &toml::Value)| match value {
        toml::Value::String(name) if key == "metric" => vec![name.clone()],
        toml::Value::Table(table) => metrics_in(table),
        toml::Value::Array(items) => {
            items.iter().filter_map(toml::Value::as_table).flat_map(metrics_in).collect()
        }
        _ => Vec::new(),
    };
    table.iter().flat_map(of).collect()
}

impl Library for Folders {
    fn networks(&self) -> Vec<String> {
        names("networks")
    }

    fn topologies(&self) -> Vec<String> {
        names("topologies")
    }

    fn topology(&self, name: &str) -> Result<DataFile, String> {
        Ok(DataFile { file: format!("topologies/{name}.toml"), text: text("topologies", name) })
    }

    fn pages(&self) -> Vec<String> {
        names("pages")
    }

    fn media(&self) -> Vec<String> {
        names("media")
    }

    fn media_file(&self, name: &str) -> Result<DataFile, String> {
        Ok(DataFile { file: format!("media/{name}.toml"), text: text("media", name) })
    }

    /// A folder that its study's comment says how to make: with the segments of modelled media.
    fn media_folder(&self, name: &str, folder: &str, _: Option<&str>) -> Result<Media, String> {
        let DataFile { file, text } = self.media_file("clip")?;
        let media =
            Media::parse(name, Source { file: &file, text: &text }).map_err(|error| error.to_string())?;
        let manifest = "manifest.mpd".to_owned();
        let source = MediaFolder { folder: folder.into(), manifest, files: BTreeMap::new() };
        Ok(Media { source: MediaSource::Folder(source), ..media })
    }

    fn media_site(&self, _: &str, manifest: &Url, _: &RemoteTrust) -> Result<Media, String> {
        Err(format!("{manifest} is on a network"))
    }

    fn servers(&self) -> Vec<String> {
        names("servers")
    }

    fn server(&self, name: &str) -> Result<ServerFacts, String> {
        let text = text(&format!("servers/{name}"), "server");
        let source = Source { file: name, text: &text };
        // The adapters know the other keys, and the variants.
        let entries = parse(source).unwrap().into_iter().filter(|(key, _)| key.get_ref() == "tunable");
        let entries = entries.collect();
        let root = Table::root(source, &entries, "the server", TUNABLES);
        let tunables = root.and_then(|root| Tunable::read_all(&root));
        Ok(ServerFacts {
            variants: Variant::ALL.to_vec(),
            back_variants: Variant::ALL.to_vec(),
            needs_back: false,
            contents: model::tunable::Contents::Unknown,
            takes_feeds: name == "nginx",
            tunables: tunables.map_err(|error| error.to_string())?,
        })
    }

    fn clients(&self) -> Vec<String> {
        [names("clients"), names("browsers")].concat()
    }

    fn check_client(&self, _: &str, _: Variant, _: &NamedWorkload) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn checks(&self) -> Vec<String> {
        Vec::new()
    }

    fn figures(&self) -> Vec<String> {
        self.figures.clone()
    }

    fn metrics(&self) -> Vec<MetricFacts> {
        let facts = |name: &String| MetricFacts {
            name: name.clone(),
            unit: if name == "goodput" { "bit/s" } else { "ns" },
            workloads: &WorkloadKind::ALL,
            is_comparable: true,
            requires: None,
            counts_first_visits: false,
            values: match name.as_str() {
                "request_time" | "server_time" => model::study::ValuesPerRun::Requests,
                _ => model::study::ValuesPerRun::One,
            },
        };
        self.metrics.iter().map(facts).collect()
    }

    fn network(&self, name: &str) -> Result<DataFile, String> {
        Ok(DataFile { file: format!("networks/{name}.toml"), text: text("networks", name) })
    }

    fn trace(&self, file: &str) -> Result<DataFile, String> {
        Err(format!("found the trace `{file}`, but none is shipped"))
    }

    fn request_file(&self, file: &str) -> Result<DataFile, String> {
        Err(format!("there is no file {file}"))
    }

    #[expect(clippy::disallowed_methods, reason = "only this test reads files, the crate does not")]
    fn replay(&self, name: &str) -> Result<DataFile, String> {
        let file = format!("replays/{name}.jsonl");
        let text = std::fs::read_to_string(folder("replays").join(format!("{name}.jsonl")));
        text.map(|text| DataFile { file, text }).map_err(|error| format!("{name}: {error}"))
    }

    fn page(&self, name: &str) -> Result<DataFile, String> {
        Ok(DataFile { file: format!("pages/{name}.toml"), text: text("pages", name) })
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// What stands in a folder of data, without the ending `.toml`.
fn names(of: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder(of)).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".toml").unwrap_or(&name).to_owned())
        .collect();
    names.sort();
    names
}

#[expect(clippy::disallowed_methods, reason = "only this test reads files, the crate does not")]
fn text(of: &str, name: &str) -> String {
    std::fs::read_to_string(folder(of).join(format!("{name}.toml"))).unwrap()
}

fn page(name: &str) -> Page {
    let file = format!("pages/{name}.toml");
    Page::parse(name, Source { file: &file, text: &text("pages", name) })
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_network_can_be_read_and_names_its_source() {
    let names = names("networks");
    assert!(names.contains(&"lan".to_owned()) && names.contains(&"north-carolina".to_owned()));
    for name in names {
        let file = format!("networks/{name}.toml");
        let network = Network::parse(&name, Source { file: &file, text: &text("networks", &name) })
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(!network.title.is_empty() && !network.source.is_empty(), "{file}");
    }
}

fn topology(file: &str, text: &str) -> Topology {
    let network = |name: &str| {
        let file = format!("networks/{name}.toml");
        Network::parse(name, Source { file: &file, text: &self::text("networks", name) })
    };
    Topology::parse("t", Source { file, text }, &names("networks"), &network)
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_topology_can_be_read_and_all_its_nodes_are_there() {
    let topologies = names("topologies");
    for (name, expected) in [
        ("campus", "client router switch web-server video-server"),
        ("pair", "client server"),
        ("proxied", "client proxy server"),
        ("shared", "client cross-client near far server cross-server"),
        ("outside", "client gateway"),
        ("sites", "tokyo north-carolina frankfurt amsterdam exchange server"),
        ("wire", "client server"),
    ] {
        assert!(topologies.iter().any(|known| known == name), "{name}");
        let found = topology(&format!("topologies/{name}.toml"), &text("topologies", name));
        let nodes: Vec<&str> = found.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes.join(" "), expected, "{name}");
    }
    assert_eq!(topologies.len(), 7);
}

#[test]
fn every_page_can_be_read_and_stays_under_its_own_folder() {
    for name in names("pages") {
        for resource in &page(&name).resources {
            assert!(resource.path.starts_with(&format!("/{name}/")), "{name}: {}", resource.path);
        }
    }
}

#[test]
fn media_has_the_sizes_that_its_study_states() {
    let media = |name: &str| {
        let file = format!("media/{name}.toml");
        Media::parse(name, Source { file: &file, text: &text("media", name) }).unwrap()
    };
    for name in names("media") {
        media(&name).presentation.check().unwrap();
    }
    let published = media("bbc-dash");
    let medians = published.presentation.tracks.iter().map(|track| {
        let last = track.representations.last().unwrap();
        let mut lengths: Vec<u64> = last.segments.iter().filter_map(|segment| segment.bytes).collect();
        lengths.sort_unstable();
        (last.bits_per_s, lengths[lengths.len() / 2] / 1000)
    });
    let medians: Vec<(u64, u64)> = medians.collect();
    assert!(matches!(medians.as_slice(), [(8_000_000, 3690..=3710), (128_000, 60)]), "{medians:?}");
}

#[test]
fn pages_have_the_sizes_that_their_study_states() {
    let weight = |name| (page(name).resources.len(), page(name).total_bytes());
    assert_eq!(weight("small"), (3, 20_000));
    assert_eq!(weight("medium"), (28, 600_000));
    assert_eq!(weight("large"), (55, 1_600_000));
}

#[test]
fn every_study_becomes_a_plan() {
    for name in names("studies") {
        let file = format!("studies/{name}.toml");
        let text = text("studies", &name);
        let table = text.parse::<toml::Table>().unwrap();
        let source = Source { file: &file, text: &text };
        let full = table.get("full").map(|_| Override { key: "full", value: OverrideValue::Full });
        let plans = [None, full].map(|size| {
            let overrides: Vec<Override> = size.into_iter().collect();
            Study::parse(&name, source, &overrides, &Folders::of(&table))
                .unwrap_or_else(|error| panic!("{error}"))
        });
        assert!(plans.iter().all(|plan| !plan.runs.is_empty()), "{file}");
        // The full size has more runs, or longer ones.
        let size = |plan: &Plan| {
            let all_ns: u128 = plan.cells.iter().map(|cell| u128::from(cell.expected_run_ns)).sum();
            all_ns * plan.runs.len() as u128
        };
        assert_eq!(size(&plans[1]) > size(&plans[0]), table.contains_key("full"), "{file}");
    }
}

/// Every TOML in the documentation of the lab that begins with a title is a topology.
#[test]
fn the_topology_in_the_documentation_can_be_read() {
    #[expect(clippy::disallowed_methods, reason = "only this test reads files, the crate does not")]
    let text = std::fs::read_to_string(folder("docs").join("lab.md")).unwrap();
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let topologies: Vec<&str> = blocks.filter(|block| block.starts_with("title")).collect();
    let nodes = topologies.iter().map(|text| topology("docs/lab.md", text).nodes.len());
    assert_eq!(nodes.collect::<Vec<_>>(), [3, 102]);
}

/// The TOML in the documentation of networks that begins with a title is a network.
#[test]
fn the_networks_in_the_documentation_can_be_read() {
    #[expect(clippy::disallowed_methods, reason = "only this test reads files, the crate does not")]
    let text = std::fs::read_to_string(folder("docs").join("networks.md")).unwrap();
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let networks: Vec<&str> = blocks.filter(|block| block.starts_with("title")).collect();
    assert_eq!(networks.len(), 3);
    for text in networks {
        Network::parse("n", Source { file: "docs/networks.md", text })
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
