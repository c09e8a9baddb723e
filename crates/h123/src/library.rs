//! The data files: those in the current directory first, then those in the binary.

use std::fs;
use std::path::Path;

use anyhow::Result;
use include_dir::{Dir, include_dir};
use model::error::{DataFile, Source};
use model::named::unknown;
use model::plan::DIRECT;
use model::study::{Library, MetricFacts, Override, Study};
use model::{Network, Plan, ServerFacts, Topology, Variant};

use crate::exit::UsageError;
use model::workload::Workload;

static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../studies");
static NETWORKS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../networks");
static TOPOLOGIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../topologies");
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../pages");

/// All data files.
pub(crate) struct DataFiles;

impl Library for DataFiles {
    fn networks(&self) -> Vec<String> {
        names("networks", &NETWORKS)
    }

    fn topologies(&self) -> Vec<String> {
        names("topologies", &TOPOLOGIES)
    }

    fn topology(&self, name: &str) -> Result<DataFile, String> {
        read("topologies", &TOPOLOGIES, name)
    }

    fn pages(&self) -> Vec<String> {
        names("pages", &PAGES)
    }

    fn servers(&self) -> Vec<String> {
        drive::Servers::names()
    }

    fn server(&self, name: &str) -> Result<ServerFacts, String> {
        drive::Servers::find(name).map(|adapter| adapter.facts()).map_err(|error| error.to_string())
    }

    fn clients(&self) -> Vec<String> {
        drive::Clients::names()
    }

    fn check_client(
        &self,
        client: &str,
        variant: Variant,
        workload: &Workload,
    ) -> Result<Option<String>, String> {
        let client =
            drive::Clients::find(client).map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        Ok(client.refuses(variant, workload))
    }

    fn checks(&self) -> Vec<String> {
        analysis::checks::CHECKS.iter().map(|check| check.name.to_owned()).collect()
    }

    fn figures(&self) -> Vec<String> {
        report::figure_kinds().map(|kind| kind.name.to_owned()).collect()
    }

    fn metrics(&self) -> Vec<MetricFacts> {
        analysis::METRICS.iter().map(analysis::metrics::Metric::facts).collect()
    }

    fn network(&self, name: &str) -> Result<DataFile, String> {
        read("networks", &NETWORKS, name)
    }

    fn trace(&self, file: &str) -> Result<DataFile, String> {
        let file = format!("networks/{file}");
        match fs::read_to_string(&file) {
            Ok(text) => Ok(DataFile { file, text }),
            Err(error) => Err(format!("cannot read the trace {file}: {error}")),
        }
    }

    fn page(&self, name: &str) -> Result<DataFile, String> {
        read("pages", &PAGES, name)
    }
}

/// Finds a study (a name from `studies/`, or the path of a `.toml` file) and resolves it.
///
/// # Errors
/// A [`UsageError`] if there is no such study; a [`model::InputError`] with file, line and column if it is
/// invalid.
pub(crate) fn plan_of(study: &str, overrides: &[Override]) -> Result<Plan> {
    let file = find_study(study)?;
    let name = Path::new(&file.file)
        .file_stem()
        .map_or(study.to_owned(), |stem| stem.to_string_lossy().into_owned());
    Ok(Study::parse(&name, source(&file), overrides, &DataFiles)?)
}

/// Finds a network by its name and resolves it.
///
/// # Errors
/// A [`UsageError`] with the nearest name if there is no such network; a [`model::InputError`] if it is
/// invalid.
pub(crate) fn network_of(name: &str) -> Result<Network> {
    let known = DataFiles.networks();
    if !known.iter().any(|network| network == name) {
        return Err(UsageError(unknown(name, "a network", &known)).into());
    }
    let file = DataFiles.network(name).map_err(UsageError)?;
    Ok(Network::parse_with(name, source(&file), &|trace| DataFiles.trace(trace))?)
}

/// Finds a topology: by its name, by the path of its `.toml` file, or as a pair with the network of this
/// name.
///
/// # Errors
/// A [`UsageError`] with the nearest name if there is none; a [`model::InputError`] if its file is invalid.
pub(crate) fn topology_of(name: &str) -> Result<Topology> {
    let (known, networks) = (names("topologies", &TOPOLOGIES), DataFiles.networks());
    let file = if name.ends_with(".toml") || name.contains('/') {
        let text = fs::read_to_string(name).map_err(|error| {
            UsageError(format!("cannot read the topology `{name}`: {error}; name a .toml file"))
        })?;
        DataFile { file: name.to_owned(), text }
    } else if known.iter().any(|topology| topology == name) {
        read("topologies", &TOPOLOGIES, name).map_err(UsageError)?
    } else if networks.iter().any(|network| network == name) {
        return Ok(Topology::pair(&network_of(name)?));
    } else {
        let all: Vec<String> = known.into_iter().chain([DIRECT.to_owned()]).chain(networks).collect();
        return Err(UsageError(unknown(name, "a topology or a network", &all)).into());
    };
    let name = stem(Path::new(&file.file)).unwrap_or_else(|| name.to_owned());
    // The error of an invalid network names its own file; other problems come from the command line.
    let network = |network: &str| {
        let file = DataFiles
            .network(network)
            .map_err(|problem| model::InputError { place: model::error::Place::command_line(), problem })?;
        Network::parse_with(network, source(&file), &|trace| DataFiles.trace(trace))
    };
    Ok(Topology::parse(&name, source(&file), &networks, &network)?)
}

fn find_study(study: &str) -> Result<DataFile> {
    if study.ends_with(".toml") || study.contains('/') {
        if Path::new(study).exists() && !Path::new(study).is_file() {
            return Err(UsageError(format!("{study} is not a file; name a .toml file")).into());
        }
        let text = fs::read_to_string(study).map_err(|error| {
            UsageError(format!(
                "cannot read the study `{study}`: {error}; name a .toml file, or one of {}",
                names("studies", &STUDIES).join(", ")
            ))
        })?;
        return Ok(DataFile { file: study.to_owned(), text });
    }
    read("studies", &STUDIES, study).map_err(|_| {
        let known = names("studies", &STUDIES).join(", ");
        UsageError(format!("there is no study `{study}`; name a .toml file, or one of {known}")).into()
    })
}

/// A data file as its readers take it.
pub(crate) fn source(file: &DataFile) -> Source<'_> {
    Source { file: &file.file, text: &file.text }
}

/// The names of a kind of data file, without extension.
fn names(kind: &str, embedded: &Dir<'_>) -> Vec<String> {
    let mut names: Vec<String> = embedded.files().filter_map(|file| stem(file.path())).collect();
    if let Ok(entries) = fs::read_dir(kind) {
        names.extend(entries.flatten().filter_map(|entry| stem(&entry.path())));
    }
    names.sort();
    names.dedup();
    names
}

fn stem(path: &Path) -> Option<String> {
    (path.extension()? == "toml").then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
}

fn read(kind: &str, embedded: &Dir<'_>, name: &str) -> Result<DataFile, String> {
    let file = format!("{kind}/{name}.toml");
    match fs::read_to_string(&file) {
        Ok(text) => return Ok(DataFile { file, text }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("cannot read {file}: {error}")),
    }
    let text = embedded.get_file(format!("{name}.toml")).and_then(include_dir::File::contents_utf8);
    let text = text.ok_or_else(|| format!("{file} does not exist"))?.to_owned();
    Ok(DataFile { file, text })
}
