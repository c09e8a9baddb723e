//! `h123 urls`: the URLs that a media manifest lists and that exist.

mod files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use drive::manifests::{self, FoundManifest};
use model::media::{Segment, Track, TrackKind};
use model::units::counted;
use model::url::Url;
use serde::Serialize;
use workload::formats::manifest::{Live, Manifest, ManifestFormat};

use self::files::{Folder, Presence};
use crate::connect::target::TrustOptions;
use crate::exit::{Exit, UsageError};
use crate::terminal::{note, print};

/// The most names that are printed of what is missing or not listed.
const MOST_NAMES: usize = 20;

/// Print the URLs that a media manifest lists and that exist (DASH, HLS, HDS, fragmented MP4)
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 urls https://www.example.test/film/film.mpd > urls.txt
  h123 urls film/film.f4m --base https://www.example.test/film/ --track video
  h123 load https://www.example.test/ --urls urls.txt

Playlists, bootstraps and indexes that the manifest refers to are read, too. Fragments whose numbers are missing in an \
HDS bootstrap are not printed. For a file, only what is also on the disk is printed, and standard error names what the \
manifest lists but is missing, and what is there but not listed.

Exit statuses: 0 done, 2 wrong usage or an invalid manifest, 3 something that the manifest lists is missing on the disk.")]
pub(crate) struct UrlsArgs {
    /// A manifest: a file, or an http or https URL
    ///
    /// Example: film/film.mpd
    manifest: String,
    /// For a file: the URL of its folder, instead of paths from this folder
    ///
    /// Example: --base https://www.example.test/film/
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Print only what belongs to this kind of track (repeatable) [default: everything]
    ///
    /// Example: --track video
    #[arg(long, value_name = "KIND", value_parser = ["audio", "video"])]
    track: Vec<String>,
    /// Print only segments, without initializations, subtitles and thumbnails
    ///
    /// Example: --segments
    #[arg(long)]
    segments: bool,
    /// Print JSON: each URL with its range, duration, track and representation
    ///
    /// Example: --json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustOptions,
}

/// The result as JSON.
#[derive(Serialize)]
struct Listing<'a> {
    manifest: String,
    format: ManifestFormat,
    live: Option<LiveFacts>,
    urls: Vec<ListedUrl<'a>>,
    /// What is in the folder and not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    present_only: Option<Vec<String>>,
}

#[derive(Serialize)]
struct LiveFacts {
    epoch_unix_ns: Option<u64>,
    window_ns: Option<u64>,
    reload_ns: Option<u64>,
    delay_ns: Option<u64>,
}

#[derive(Serialize)]
struct ListedUrl<'a> {
    url: String,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    track: Option<TrackKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    representation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Presence>,
    #[serde(skip)]
    segment: &'a Segment,
}

/// What a URL is in a presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// What a decoder needs before segments.
    Initialization,
    /// A segment.
    Segment,
    /// Subtitles, thumbnails, and initializations of later periods.
    Other,
}

/// Runs the command.
///
/// # Errors
/// A [`UsageError`]: the manifest cannot be read or is none.
pub(crate) fn run(args: &UrlsArgs) -> Result<Exit> {
    let is_url = ["http://", "https://"].iter().any(|scheme| args.manifest.starts_with(scheme));
    match is_url {
        true => of_url(args),
        false => of_file(args, Path::new(&args.manifest)),
    }
}

fn of_url(args: &UrlsArgs) -> Result<Exit> {
    if args.base.is_some() {
        return Err(UsageError("--base requires a file; a URL has a base already".to_owned()).into());
    }
    let url = Url::parse(&args.manifest).map_err(UsageError)?;
    let found = manifests::of_url(&url, &args.trust.resolve()?).map_err(|error| {
        let remedy = match error.0.contains("certificate") {
            true => "; trust its authority with --cacert FILE, or accept any certificate with --insecure",
            false => "",
        };
        UsageError(format!("{error}{remedy}"))
    })?;
    let origin = found.url.origin();
    let absolute = |url: &str| if url.starts_with('/') { format!("{origin}{url}") } else { url.to_owned() };
    let urls = listed(&found.manifest, args, absolute);
    if args.json {
        print_json(&found, urls, None)?;
    } else {
        print_urls(&urls)?;
        note(false, &summary(&found.manifest, urls.len()));
    }
    Ok(Exit::Done)
}

fn of_file(args: &UrlsArgs, path: &Path) -> Result<Exit> {
    let folder = Folder::of_manifest(path, args.base.as_deref())?;
    let locate = |url: &Url| -> Option<PathBuf> { folder.file_of(url) };
    let found = manifests::of_file(path, folder.url(), locate).map_err(|error| UsageError(error.0))?;
    let mut urls = listed(&found.manifest, args, |url| folder.shown(url));
    let mut archives = files::Archives::default();
    for own in &mut urls {
        own.state = Some(folder.presence(own.segment, &mut archives));
    }
    let present_only = folder.present_only(&found.manifest, &mut archives)?;
    let is_missing = |own: &ListedUrl<'_>| own.state == Some(Presence::ListedOnly);
    let missing: Vec<String> = urls.iter().filter(|own| is_missing(own)).map(|own| own.url.clone()).collect();
    if args.json {
        print_json(&found, urls, Some(present_only))?;
    } else {
        urls.retain(|own| own.state != Some(Presence::ListedOnly));
        print_urls(&urls)?;
        note(false, &summary(&found.manifest, urls.len()));
        note_names("listed only", &missing);
        note_names("present only", &present_only);
    }
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Invalid })
}

/// What the manifest lists, as the options select it.
fn listed<'a>(
    manifest: &'a Manifest,
    args: &UrlsArgs,
    url_of: impl Fn(&str) -> String,
) -> Vec<ListedUrl<'a>> {
    let mut urls = Vec::new();
    let one = |segment: &'a Segment, role| ListedUrl {
        url: url_of(&segment.url),
        role,
        track: None,
        representation: None,
        duration_ns: None,
        range: segment.range.map(|range| format!("{}-{}", range.first, range.last)),
        state: None,
        segment,
    };
    let is_wanted =
        |track: &&Track| args.track.is_empty() || args.track.iter().any(|own| own == track.kind.name());
    for track in manifest.presentation.tracks.iter().chain(&manifest.alternatives).filter(is_wanted) {
        for own in &track.representations {
            let (kind, name) = (Some(track.kind), Some(own.name.as_str()));
            let of_track = |url| ListedUrl { track: kind, representation: name, ..url };
            let initialization = own.initialization.iter().filter(|_| !args.segments);
            urls.extend(initialization.map(|own| of_track(one(own, Role::Initialization))));
            for (segment, duration_ns) in own.segments.iter().zip(&track.durations_ns) {
                let url = of_track(one(segment, Role::Segment));
                urls.push(ListedUrl { duration_ns: Some(*duration_ns), ..url });
            }
        }
    }
    if args.track.is_empty() && !args.segments {
        urls.extend(manifest.others.iter().map(|own| one(own, Role::Other)));
    }
    urls
}

/// Each URL once, in the order of the manifest; ranges of one file have one URL.
fn print_urls(urls: &[ListedUrl<'_>]) -> Result<()> {
    let mut seen = BTreeSet::new();
    let once: Vec<&str> = urls.iter().map(|own| own.url.as_str()).filter(|url| seen.insert(*url)).collect();
    if once.is_empty() { Ok(()) } else { print(&once.join("\n")) }
}

fn print_json(
    found: &FoundManifest,
    urls: Vec<ListedUrl<'_>>,
    present_only: Option<Vec<String>>,
) -> Result<()> {
    let live = found.manifest.live.map(|live| {
        let Live { epoch_unix_ns, window_ns, reload_ns, delay_ns } = live;
        LiveFacts { epoch_unix_ns, window_ns, reload_ns, delay_ns }
    });
    let format = found.manifest.format;
    let manifest = found.url.to_string();
    print(&serde_json::to_string_pretty(&Listing { manifest, format, live, urls, present_only })?)
}

/// `DASH, on demand: 12 URLs or ranges of 2 tracks`.
fn summary(manifest: &Manifest, count: usize) -> String {
    let kind = if manifest.live.is_some() { "live" } else { "on demand" };
    let tracks = manifest.presentation.tracks.len() + manifest.alternatives.len();
    let format = manifest.format.name().to_uppercase();
    let (count, tracks) = (counted(count as u64, "resource"), counted(tracks as u64, "track"));
    format!("{format}, {kind}: {count} of {tracks}")
}

/// The first names of a list, with their number.
fn note_names(what: &str, names: &[String]) {
    if names.is_empty() {
        return;
    }
    note(false, &format!("{what}: {}", counted(names.len() as u64, "resource")));
    names.iter().take(MOST_NAMES).for_each(|name| note(false, &format!("  {name}")));
    if names.len() > MOST_NAMES {
        note(false, &format!("  … and {} more (--json prints all)", names.len() - MOST_NAMES));
    }
}
