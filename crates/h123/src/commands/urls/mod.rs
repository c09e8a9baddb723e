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
    /// The place of its track among all tracks.
    #[serde(skip)]
    of_track: Option<usize>,
}

/// What a URL is in a presentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// What a decoder needs before segments.
    Initialization,
    /// A segment.
    Segment,
    /// Subtitles and thumbnails.
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
        print_json(&found, found.url.to_string(), urls, None)?;
    } else {
        print_urls(&urls)?;
        note(false, &summary(&found.manifest, &urls));
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
    let missing = once(urls.iter().filter(|own| is_missing(own)).map(|own| own.url.clone()));
    if args.json {
        // Without a base, nobody wrote a URL.
        let name = args.base.as_ref().map_or_else(|| args.manifest.clone(), |_| found.url.to_string());
        print_json(&found, name, urls, Some(present_only))?;
    } else {
        urls.retain(|own| own.state != Some(Presence::ListedOnly));
        print_urls(&urls)?;
        note(false, &summary(&found.manifest, &urls));
        note_names("listed only", &missing);
        note_names("present only", &present_only);
    }
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Invalid })
}

/// Each item once, in this order.
fn once<T: Ord + Clone>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.filter(|own| seen.insert(own.clone())).collect()
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
        of_track: None,
    };
    let is_wanted = |(_, track): &(usize, &Track)| {
        args.track.is_empty() || args.track.iter().any(|own| own == track.kind.name())
    };
    let tracks = manifest.presentation.tracks.iter().chain(&manifest.alternatives);
    for (place, track) in tracks.enumerate().filter(is_wanted) {
        for own in &track.representations {
            let (kind, name) = (Some(track.kind), Some(own.name.as_str()));
            let of_track =
                |url| ListedUrl { track: kind, representation: name, of_track: Some(place), ..url };
            let initializations = own.initializations().filter(|_| !args.segments);
            urls.extend(initializations.map(|(_, own)| of_track(one(own, Role::Initialization))));
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
    let once = once(urls.iter().map(|own| own.url.as_str()));
    if once.is_empty() { Ok(()) } else { print(&once.join("\n")) }
}

fn print_json(
    found: &FoundManifest,
    manifest: String,
    urls: Vec<ListedUrl<'_>>,
    present_only: Option<Vec<String>>,
) -> Result<()> {
    let live = found.manifest.live.map(|live| {
        let Live { epoch_unix_ns, window_ns, reload_ns, delay_ns } = live;
        LiveFacts { epoch_unix_ns, window_ns, reload_ns, delay_ns }
    });
    let format = found.manifest.format;
    print(&serde_json::to_string_pretty(&Listing { manifest, format, live, urls, present_only })?)
}

/// `DASH, on demand: 12 resources of 2 tracks`: URLs or ranges, each once, and the tracks that have them.
fn summary(manifest: &Manifest, urls: &[ListedUrl<'_>]) -> String {
    let kind = if manifest.live.is_some() { "live" } else { "on demand" };
    let format = manifest.format.name().to_uppercase();
    let count = once(urls.iter().map(|own| (&own.url, &own.range))).len();
    let tracks = once(urls.iter().filter_map(|own| own.of_track)).len();
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use model::media::{Presentation, Representation};

    use super::*;

    /// A track with the first two segments of each of two representations in the same files.
    fn track(kind: TrackKind) -> Track {
        let segment =
            |number: u32| Segment { url: format!("/{kind}/{number}.m4s"), range: None, bytes: None };
        let representation = |name: &str| Representation {
            name: name.to_owned(),
            bits_per_s: 1,
            initialization: None,
            later_initializations: Vec::new(),
            segments: vec![segment(1), segment(2)],
        };
        let representations = vec![representation("a"), representation("b")];
        Track { kind, durations_ns: vec![1; 2], representations }
    }

    #[test]
    fn resources_and_tracks_count_once_and_only_if_they_are_selected() {
        let tracks = vec![track(TrackKind::Audio), track(TrackKind::Video)];
        let manifest = Manifest {
            format: ManifestFormat::Dash,
            presentation: Presentation { tracks },
            places: Vec::new(),
            alternatives: Vec::new(),
            others: Vec::new(),
            references: Vec::new(),
            live: None,
        };
        let summary_of = |words: &[&str]| {
            let command = UrlsArgs::augment_args(clap::Command::new("urls"));
            let matches = command.try_get_matches_from([&["urls", "x.mpd"], words].concat()).unwrap();
            let args = UrlsArgs::from_arg_matches(&matches).unwrap();
            summary(&manifest, &listed(&manifest, &args, str::to_owned))
        };
        assert_eq!(summary_of(&[]), "DASH, on demand: 4 resources of 2 tracks");
        assert_eq!(
            summary_of(&["--track", "audio", "--segments"]),
            "DASH, on demand: 2 resources of 1 track"
        );
    }
}
