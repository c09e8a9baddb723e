//! The data files: those in the current directory first, then those in the binary.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Result;
use drive::input::read_text;
use include_dir::{Dir, include_dir};
use model::error::{DataFile, Source};
use model::media::Media;
use model::named::unknown;
use model::plan::{DIRECT, NamedWorkload, RemoteTrust};
use model::study::{Library, MetricFacts, Override, Study};
use model::url::Url;
use model::{Network, Plan, ServerFacts, Topology, Variant};

use crate::connect::advice;
use crate::exit::UsageError;

static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../studies");
static NETWORKS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../networks");
static TOPOLOGIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../topologies");
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../pages");
static MEDIA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../media");
static REPLAYS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../replays");

/// The extension of data files other than timing scripts.
const TOML: &str = "toml";

/// All data files.
#[derive(Default)]
pub(crate) struct DataFiles {
    /// The folder of the study that names files; empty for the current one.
    study_folder: PathBuf,
    /// The name of a page that is no file, and what its file would be.
    further_page: Option<(&'static str, DataFile)>,
    /// Media of folders that was read: every point of a study asks again.
    folders: RefCell<BTreeMap<FolderKeys, Media>>,
    /// Media of sites that was read, by its name and manifest.
    sites: RefCell<BTreeMap<(String, String), Media>>,
}

/// Name, folder and manifest of media.
type FolderKeys = (String, String, Option<String>);

impl Library for DataFiles {
    fn networks(&self) -> Vec<String> {
        names("networks", TOML, &NETWORKS)
    }

    fn topologies(&self) -> Vec<String> {
        names("topologies", TOML, &TOPOLOGIES)
    }

    fn topology(&self, name: &str) -> Result<DataFile, String> {
        read("topologies", TOML, &TOPOLOGIES, name)
    }

    fn pages(&self) -> Vec<String> {
        let mut pages = names("pages", TOML, &PAGES);
        pages.extend(self.further_page.iter().map(|(name, _)| (*name).to_owned()));
        pages
    }

    fn media(&self) -> Vec<String> {
        names("media", TOML, &MEDIA)
    }

    fn media_file(&self, name: &str) -> Result<DataFile, String> {
        read("media", TOML, &MEDIA, name)
    }

    fn media_folder(&self, name: &str, folder: &str, manifest: Option<&str>) -> Result<Media, String> {
        let key = (name.to_owned(), folder.to_owned(), manifest.map(str::to_owned));
        if let Some(known) = self.folders.borrow().get(&key) {
            return Ok(known.clone());
        }
        let places = [Path::new(folder).to_path_buf(), self.study_folder.join(folder)];
        let place = places.iter().find(|place| place.is_dir()).ok_or_else(|| {
            format!(
                "{folder} is not a folder; name one relative to the current folder or to the study's, such as one \
                 that `h123 content make` wrote"
            )
        })?;
        let media = drive::media::read_folder(name, place, manifest).map_err(|error| format!("{error:#}"))?;
        self.folders.borrow_mut().insert(key, media.clone());
        Ok(media)
    }

    fn media_site(&self, name: &str, manifest: &Url, trust: &RemoteTrust) -> Result<Media, String> {
        let key = (name.to_owned(), manifest.to_string());
        if let Some(known) = self.sites.borrow().get(&key) {
            return Ok(known.clone());
        }
        let media = drive::media::read_site(name, manifest, trust).map_err(|error| {
            let reason = format!("{error:#}");
            let keys = ("`cacert` in the server's table", "`insecure` in the server's table");
            match advice::on_site(&reason, keys.0, keys.1) {
                Some(advice) => format!("{reason}; {advice}"),
                None if reason.contains("; ") => reason,
                None => format!("{reason}; check it from this machine with `h123 urls {manifest}`"),
            }
        })?;
        self.sites.borrow_mut().insert(key, media.clone());
        Ok(media)
    }

    fn servers(&self) -> Vec<String> {
        drive::Servers::names()
    }

    fn server(&self, name: &str) -> Result<ServerFacts, String> {
        drive::Servers::find(name).map(|adapter| adapter.facts()).map_err(|error| error.to_string())
    }

    fn clients(&self) -> Vec<String> {
        drive::ExternalClient::names()
    }

    fn check_client(
        &self,
        client: &str,
        variant: Variant,
        named: &NamedWorkload,
    ) -> Result<Option<String>, String> {
        let client = drive::ExternalClient::find(client)
            .map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
        Ok(client.refuses(variant, &named.workload, &named.options))
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
        read("networks", TOML, &NETWORKS, name)
    }

    fn trace(&self, file: &str) -> Result<DataFile, String> {
        let file = format!("networks/{file}");
        match read_text(Path::new(&file)) {
            Ok(text) => Ok(DataFile { file, text }),
            Err(error) => Err(format!("cannot read the trace {file}: {error}")),
        }
    }

    fn page(&self, name: &str) -> Result<DataFile, String> {
        match &self.further_page {
            Some((further, file)) if *further == name => Ok(file.clone()),
            _ => read("pages", TOML, &PAGES, name),
        }
    }

    fn request_file(&self, file: &str) -> Result<DataFile, String> {
        if let Some(found) = self.file_near_study(file)? {
            return Ok(found);
        }
        let built_in = STUDIES.get_file(file).and_then(include_dir::File::contents_utf8);
        built_in.map(|text| DataFile { file: file.to_owned(), text: text.to_owned() }).ok_or_else(|| {
            format!("{file} does not exist; name a file relative to the current folder or to the study's")
        })
    }

    fn replay(&self, name: &str) -> Result<DataFile, String> {
        if let Some(found) = self.file_near_study(name)? {
            return Ok(found);
        }
        let (in_folder, own) = (format!("replays/{name}.jsonl"), format!("{name}.jsonl"));
        if let Some(found) = self.file_near_study(&in_folder)? {
            return Ok(found);
        }
        let built_in = REPLAYS.get_file(own).and_then(include_dir::File::contents_utf8);
        built_in.map(|text| DataFile { file: in_folder, text: text.to_owned() }).ok_or_else(|| {
            format!(
                "{name} does not exist; name a file relative to the current folder or to the study's, or a script in \
                 `replays/`: {}",
                Kind::Replay.names().join(", ")
            )
        })
    }
}

impl DataFiles {
    /// A file relative to the current folder, or to the study's.
    fn file_near_study(&self, file: &str) -> Result<Option<DataFile>, String> {
        for path in [Path::new(file).to_path_buf(), self.study_folder.join(file)] {
            match read_text(&path) {
                Ok(text) => return Ok(Some(DataFile { file: path.display().to_string(), text })),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
            }
        }
        Ok(None)
    }
}

/// Finds a study (a name from `studies/`, or the path of a `.toml` file) and resolves it.
///
/// # Errors
/// A [`UsageError`] if there is no such study; a [`model::InputError`] with file, line and column if it is
/// invalid.
pub(crate) fn plan_of(study: &str, overrides: &[Override]) -> Result<Plan> {
    plan_with(study, overrides, Further::default())
}

/// What a plan uses beside data files.
#[derive(Default)]
pub(crate) struct Further {
    /// A page: its name, and what its file would be.
    pub(crate) page: Option<(&'static str, DataFile)>,
    /// Media of a site that was read already, as the study names it.
    pub(crate) media: Option<Media>,
}

/// The same with a page or media that is no file.
///
/// # Errors
/// As [`plan_of`].
pub(crate) fn plan_with(study: &str, overrides: &[Override], further: Further) -> Result<Plan> {
    let file = find_study(study)?;
    let name = Path::new(&file.file)
        .file_stem()
        .map_or(study.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let sites = further.media.into_iter().filter_map(|media| {
        let manifest = media.site()?.manifest.to_string();
        Some(((media.name.clone(), manifest), media))
    });
    let sites = RefCell::new(sites.collect());
    let study_folder = Path::new(&file.file).parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(Study::parse(
        &name,
        source(&file),
        overrides,
        &DataFiles { study_folder, further_page: further.page, sites, ..DataFiles::default() },
    )?)
}

/// Finds a network by its name and resolves it.
///
/// # Errors
/// A [`UsageError`] with the nearest name if there is no such network; a [`model::InputError`] if it is
/// invalid.
pub(crate) fn network_of(name: &str) -> Result<Network> {
    let known = DataFiles::default().networks();
    if !known.iter().any(|network| network == name) {
        return Err(UsageError(unknown(name, "a network", &known)).into());
    }
    let file = DataFiles::default().network(name).map_err(UsageError)?;
    Ok(Network::parse_with(name, source(&file), &|trace| DataFiles::default().trace(trace))?)
}

/// Finds modelled media by its name and resolves it.
///
/// # Errors
/// A [`UsageError`] with the nearest name if there is none; a [`model::InputError`] if its file is invalid.
pub(crate) fn media_of(name: &str) -> Result<Media> {
    let known = DataFiles::default().media();
    if !known.iter().any(|media| media == name) {
        return Err(UsageError(unknown(name, "media", &known)).into());
    }
    let file = DataFiles::default().media_file(name).map_err(UsageError)?;
    Ok(Media::parse(name, source(&file))?)
}

/// Finds a topology: by its name, by the path of its `.toml` file, or as a pair with the network of this
/// name.
///
/// # Errors
/// A [`UsageError`] with the nearest name if there is none; a [`model::InputError`] if its file is invalid.
pub(crate) fn topology_of(name: &str) -> Result<Topology> {
    let (known, networks) = (names("topologies", TOML, &TOPOLOGIES), DataFiles::default().networks());
    let file = if name.ends_with(".toml") || name.contains('/') {
        let text = read_text(Path::new(name)).map_err(|error| {
            UsageError(format!("cannot read the topology `{name}`: {error}; name a .toml file"))
        })?;
        DataFile { file: name.to_owned(), text }
    } else if known.iter().any(|topology| topology == name) {
        read("topologies", TOML, &TOPOLOGIES, name).map_err(UsageError)?
    } else if networks.iter().any(|network| network == name) {
        return Ok(Topology::pair(&network_of(name)?));
    } else {
        let all: Vec<String> = known.into_iter().chain([DIRECT.to_owned()]).chain(networks).collect();
        return Err(UsageError(unknown(name, "a topology or a network", &all)).into());
    };
    let name = stem(Path::new(&file.file), TOML).unwrap_or_else(|| name.to_owned());
    // The error of an invalid network names its own file; other problems come from the command line.
    let network = |network: &str| {
        let file = DataFiles::default()
            .network(network)
            .map_err(|problem| model::InputError { place: model::error::Place::command_line(), problem })?;
        Network::parse_with(network, source(&file), &|trace| DataFiles::default().trace(trace))
    };
    Ok(Topology::parse(&name, source(&file), &networks, &network)?)
}

/// A kind of data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    Study,
    Network,
    Page,
    Media,
    Replay,
    Topology,
    Server,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] =
        [Kind::Study, Kind::Network, Kind::Page, Kind::Media, Kind::Replay, Kind::Topology, Kind::Server];

    /// The folder of its files, in the current folder and in the binary.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Kind::Study => "studies",
            Kind::Network => "networks",
            Kind::Page => "pages",
            Kind::Media => "media",
            Kind::Replay => "replays",
            Kind::Topology => "topologies",
            Kind::Server => "servers",
        }
    }

    /// The extension of its files, without a dot.
    pub(crate) const fn extension(self) -> &'static str {
        if let Kind::Replay = self { "jsonl" } else { TOML }
    }

    fn embedded(self) -> Option<&'static Dir<'static>> {
        match self {
            Kind::Study => Some(&STUDIES),
            Kind::Network => Some(&NETWORKS),
            Kind::Page => Some(&PAGES),
            Kind::Media => Some(&MEDIA),
            Kind::Replay => Some(&REPLAYS),
            Kind::Topology => Some(&TOPOLOGIES),
            Kind::Server => None,
        }
    }

    pub(crate) fn names(self) -> Vec<String> {
        let names = |embedded| names(self.folder(), self.extension(), embedded);
        self.embedded().map_or_else(drive::Servers::names, names)
    }

    /// The files of a name, the main one first.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    pub(crate) fn files(self, name: &str) -> Result<Vec<DataFile>, String> {
        if let Some(embedded) = self.embedded() {
            return Ok(vec![read(self.folder(), self.extension(), embedded, name)?]);
        }
        let (folder, texts) = drive::Servers::texts(name).map_err(|error| error.to_string())?;
        let mut files: Vec<DataFile> = texts
            .into_iter()
            .map(|(file, text)| DataFile { file: format!("{folder}/{file}"), text })
            .collect();
        files.sort_by_key(|file| !file.file.ends_with("/server.toml"));
        Ok(files)
    }
}

/// The line of an invalid file with a caret under the fault, if the error is about a file that can be read.
pub(crate) fn excerpt(error: &anyhow::Error) -> Option<String> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<model::InputError>())?;
    let path = Path::new(&error.place.file);
    let is_small = path.metadata().is_ok_and(|file| file.is_file() && file.len() < 1 << 20);
    let text = is_small.then(|| fs::read_to_string(path).ok()).flatten()?;
    error.excerpt(&text)
}

fn find_study(study: &str) -> Result<DataFile> {
    let known = names("studies", TOML, &STUDIES);
    if study.ends_with(".toml") || study.contains('/') {
        if Path::new(study).exists() && !Path::new(study).is_file() {
            return Err(UsageError(format!("{study} is not a file; name a .toml file")).into());
        }
        let text = read_text(Path::new(study)).map_err(|error| {
            let stem = Path::new(study).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let meant = stem.filter(|stem| known.contains(stem));
            let meant = meant.map_or(String::new(), |name| format!("did you mean `{name}`? "));
            let known = known.join(", ");
            UsageError(format!(
                "cannot read the study `{study}`: {error}; {meant}name a .toml file, or one of {known}"
            ))
        })?;
        return Ok(DataFile { file: study.to_owned(), text });
    }
    read("studies", TOML, &STUDIES, study).map_err(|problem| {
        if known.iter().any(|name| name == study) {
            return UsageError(problem).into();
        }
        let file = format!("{study}.toml");
        let problem = if Path::new(&file).is_file() {
            format!("`{study}` is not a study; did you mean `{file}`?")
        } else {
            format!("{}, or a .toml file", unknown(study, "a study", &known))
        };
        UsageError(problem).into()
    })
}

/// A data file as its readers take it.
pub(crate) fn source(file: &DataFile) -> Source<'_> {
    Source { file: &file.file, text: &file.text }
}

/// The names of a kind of data file, without extension.
fn names(folder: &str, extension: &str, embedded: &Dir<'_>) -> Vec<String> {
    let mut names: Vec<String> = embedded.files().filter_map(|file| stem(file.path(), extension)).collect();
    if let Ok(entries) = fs::read_dir(folder) {
        names.extend(entries.flatten().filter_map(|entry| stem(&entry.path(), extension)));
    }
    names.sort();
    names.dedup();
    names
}

fn stem(path: &Path, extension: &str) -> Option<String> {
    (path.extension()? == extension)
        .then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
}

fn read(folder: &str, extension: &str, embedded: &Dir<'_>, name: &str) -> Result<DataFile, String> {
    let file = format!("{folder}/{name}.{extension}");
    match read_text(Path::new(&file)) {
        Ok(text) => return Ok(DataFile { file, text }),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(format!("cannot read {file}: {error}")),
    }
    let text = embedded.get_file(format!("{name}.{extension}")).and_then(include_dir::File::contents_utf8);
    let text = text.ok_or_else(|| format!("{file} does not exist"))?.to_owned();
    Ok(DataFile { file, text })
}
