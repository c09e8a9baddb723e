//! `[media.NAME]`: media that workloads play or request.

use super::factors::check_name;
use super::ladder::read_ladder;
use super::{Library, Study};
use crate::error::{InputError, Source};
use crate::keys;
use crate::media::{
    HdsModel, Media, MediaModel, RepresentationModel, SceneModel, TrackKind, TrackModel, segment_bytes,
};
use crate::number::float;
use crate::plan::RemoteTrust;
use crate::reader::{Key, Placed, Table, read_file};
use crate::units::{self, format_bytes};
use crate::url::Url;

pub(super) const KEYS: &[Key] = keys! {
    "folder", "text", "none: modelled media", r#""film""#,
        "The folder of existing media, relative to the current folder or to the study's. It excludes all other keys but `manifest`, and for a live stream `live` and `segment`.";
    "manifest", "text", "`manifest.mpd`, `main.m3u8` or `manifest.f4m`", r#""hds/manifest.f4m""#,
        "The manifest in `folder` whose segments players and classes see; or, without `folder`, the URL of one: [media of a site](media.md#media-of-a-site).";
    "segment", "duration", "required without `folder`", r#""3.84s""#,
        "The duration of a segment; above 0. Of a live `folder`: how long a segment is at least, `\"3s\"` without it.";
    "length", "duration", "required without `folder`", r#""34min""#,
        "How long it plays; the last segment has the rest. At most 10 000 segments. Of media of a site: the segments that begin before this time, all without it.";
    "seed", "whole number", "`1`", "42", "The seed of the sizes, 0 to 9 223 372 036 854 775 807.";
    "titles", "whole number", "none", "7000",
        "A library: copies of the media at `/media/NAME/1/` and so on, 1 to 50 000; [below](#libraries).";
    "live", "duration", "none: on demand", r#""60s""#,
        "A live stream that repeats the media: how long segments stay available, at least three segments. Modelled media requires the server `origin`; a `folder` is sent over RTMP to a server that takes [feeds](media.md#feeds), such as `nginx`.";
    "hds", "table `[media.NAME.hds]`", "none: DASH and HLS", r#"{ fragments = 5, gaps = [3] }"#,
        "Package the media for HTTP Dynamic Streaming. Requires one video representation and no audio.";
    "video", "table `[media.NAME.video]`", "required without `audio` and `folder`", "", "The video track.";
    "audio", "table `[media.NAME.audio]`", "required without `video` and `folder`", "", "The audio track.";
};

pub(super) const TRACK_KEYS: &[Key] = keys! {
    "ladder", "list of rates", "required", r#"["1Mbit/s", "8Mbit/s"]"#,
        "The bit rates of the representations: 1 to 16, ascending.";
    "medians", "list of sizes", "bit rate × duration", r#"["460kB", "3.7MB"]"#,
        "The median length of the segments of each representation, in the order of `ladder`; at most 64 MB.";
    "spread", "share", "`\"0%\"`", r#""25%""#,
        "The spread of the lengths, which are log-normal: 84 % of the segments have at most 1 + `spread` times the median of their scene.";
    "scene", "duration", "none: one scene", r#""12s""#,
        "How long scenes are on average; the segments of a scene have similar lengths. Requires `scene_spread`.";
    "scene_spread", "share", "required with `scene`", r#""40%""#,
        "The spread of the scenes: 84 % of them have a median of at most 1 + `scene_spread` times that of the representation.";
};

pub(super) const HDS_KEYS: &[Key] = keys! {
    "fragments", "whole number", "`5`", "5", "The fragment numbers in a segment, which is one archive; 1 to 10 000.";
    "gaps", "list of whole numbers", "none", "[3, 7]", "The fragment numbers that do not exist, ascending.";
};

/// The only keys of a media file that a study does not have.
const FILE_KEYS: &[Key] = keys! {
    "title", "text", "required", r#""A film at three bit rates""#, "One line that describes the media.";
};

/// The segments of one track.
const MOST_SEGMENTS: u64 = 10_000;
/// Servers that serve files have every segment as a file.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;
/// The boxes before the media of a fragment fit into this.
const LEAST_FRAGMENT_BYTES: u64 = 1_000;
const MOST_FRAGMENTS: u32 = 10_000;
const MOST_NUMBER: u32 = 1_000_000;
/// A file has as many hard links; ext4 permits 65 000.
const MOST_TITLES: u32 = 50_000;
/// The keys of a folder; the last two are those of a live stream.
const FEED_KEYS: [&str; 4] = ["folder", "manifest", "live", "segment"];
/// How long the segments of a feed are at least unless the study says so.
const FEED_SEGMENT_NS: u64 = 3 * units::NANOS_PER_S;
const MOST_SEED: u64 = i64::MAX as u64; // TOML's own limit of a whole number

/// `[media.NAME]`.
#[derive(Clone, Debug)]
pub(super) struct MediaEntry {
    name: Placed<String>,
    what: MediaKeys,
}

/// What the keys describe.
#[derive(Clone, Debug)]
enum MediaKeys {
    Modelled(Box<Media>),
    Folder { folder: Placed<String>, manifest: Option<String>, feed: Option<FeedKeys> },
    Site { manifest: Placed<Url>, length_ns: Option<u64> },
}

/// How a folder is sent as a live stream.
#[derive(Clone, Copy, Debug)]
struct FeedKeys {
    segment_ns: u64,
    window_ns: u64,
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<MediaEntry>, InputError> {
    let Some(table) = root.table("media")? else { return Ok(Vec::new()) };
    let entry = |(name, table): (Placed<String>, Table<'_>)| {
        check_media_name(&name.value).map_err(|problem| name.error(problem))?;
        let table = table.with_keys(KEYS)?;
        let what = match read_folder(&table)? {
            Some(folder) => folder,
            None => MediaKeys::Modelled(Box::new(read_media(&name.value, &table)?)),
        };
        Ok(MediaEntry { name, what })
    };
    table.named_tables()?.into_iter().map(entry).collect()
}

/// The name is part of paths.
fn check_media_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!("`{name}` is not the name of media; use letters, digits, `-` and `_`"))
}

/// The media of a table's or file's keys.
fn read_media(name: &str, table: &Table<'_>) -> Result<Media, InputError> {
    let model = read_model(table)?;
    let live = read_window(table, model.segment_ns)?;
    let titles = table.integer("titles", 1..=MOST_TITLES)?;
    if let (Some(live), Some(_)) = (&live, &titles) {
        return Err(live.error("`live` excludes `titles`; remove one of them"));
    }
    Ok(Media {
        titles: titles.map_or(0, |titles| titles.value),
        live_window_ns: live.map(|live| live.value),
        ..Media::modelled(name, model)
    })
}

/// How long the segments of a live stream stay available.
fn read_window(table: &Table<'_>, segment_ns: u64) -> Result<Option<Placed<u64>>, InputError> {
    let Some(live) = table.duration_above_zero("live")? else { return Ok(None) };
    let least_ns = segment_ns.saturating_mul(3);
    if live.value < least_ns {
        let least = units::format_ns(least_ns);
        return Err(live.error(format!("`live` is shorter than three segments; write at least {least}")));
    }
    Ok(Some(live))
}

fn read_folder(table: &Table<'_>) -> Result<Option<MediaKeys>, InputError> {
    let manifest = table.text("manifest")?;
    let Some(folder) = table.text("folder")? else {
        return match manifest {
            None => Ok(None),
            Some(manifest) if is_url(&manifest.value) => read_site(table, &manifest).map(Some),
            Some(manifest) => Err(manifest
                .error("`manifest` requires `folder`; add it, such as `folder = \"film\"`, or write a URL")),
        };
    };
    if let Some(manifest) = manifest.as_ref().filter(|manifest| is_url(&manifest.value)) {
        return Err(manifest.error("`manifest` is a URL, which excludes `folder`; remove one of them"));
    }
    let is_live = table.keys().any(|key| key.value == "live");
    let known: &[&str] = if is_live { &FEED_KEYS } else { &FEED_KEYS[..2] };
    if let Some(other) = table.keys().find(|key| !known.contains(&key.value.as_str())) {
        let problem = format!(
            "`{}` describes modelled media, which excludes `folder`; remove one of them",
            other.value
        );
        return Err(other.error(problem));
    }
    let segment_ns = table.duration_above_zero("segment")?.map_or(FEED_SEGMENT_NS, |segment| segment.value);
    let window = read_window(table, segment_ns)?;
    let feed = window.map(|window| FeedKeys { segment_ns, window_ns: window.value });
    Ok(Some(MediaKeys::Folder { folder, manifest: manifest.map(|manifest| manifest.value), feed }))
}

fn is_url(manifest: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| manifest.starts_with(scheme))
}

fn read_site(table: &Table<'_>, manifest: &Placed<String>) -> Result<MediaKeys, InputError> {
    if let Some(other) = table.keys().find(|key| !["manifest", "length"].contains(&key.value.as_str())) {
        let problem = format!("`{}` excludes a `manifest` with a URL; remove one of them", other.value);
        return Err(other.error(problem));
    }
    let url =
        Url::parse(&manifest.value).map_err(|problem| manifest.error(format!("`manifest`: {problem}")))?;
    Ok(MediaKeys::Site {
        manifest: Placed { value: url, place: manifest.place.clone() },
        length_ns: table.duration_above_zero("length")?.map(|length| length.value),
    })
}

fn read_model(table: &Table<'_>) -> Result<MediaModel, InputError> {
    let segment_ns = table.required("segment", Table::duration_above_zero)?.value;
    let length = table.required("length", Table::duration_above_zero)?;
    let mut model = MediaModel {
        segment_ns,
        length_ns: length.value,
        seed: table.integer("seed", 0..=MOST_SEED)?.map_or(1, |seed| seed.value),
        tracks: Vec::new(),
        hds: table.table("hds")?.map(|hds| read_hds(&hds.with_keys(HDS_KEYS)?)).transpose()?,
    };
    if model.segments() > MOST_SEGMENTS {
        let problem = format!(
            "`length` has {} segments; write at most {MOST_SEGMENTS} segments, or longer ones",
            model.segments()
        );
        return Err(length.error(problem));
    }
    for kind in [TrackKind::Video, TrackKind::Audio] {
        if let Some(track) = table.table(kind.name())? {
            model.tracks.push(read_track(kind, &track.with_keys(TRACK_KEYS)?, segment_ns)?);
        }
    }
    if model.tracks.is_empty() {
        return Err(table.error(format!("{} has no tracks; add `video` or `audio`", table.title())));
    }
    if model.hds.is_some() {
        check_hds(table, &model)?;
    }
    Ok(model)
}

fn read_hds(table: &Table<'_>) -> Result<HdsModel, InputError> {
    let mut gaps: Vec<u32> = Vec::new();
    for gap in table.integers("gaps", &(1..=MOST_NUMBER))? {
        if gaps.last().is_some_and(|last| *last >= gap.value) {
            let problem = format!("`gaps`: {} is not above the number before it", gap.value);
            return Err(gap.error(problem));
        }
        gaps.push(gap.value);
    }
    let fragments_per_segment = table.integer("fragments", 1..=MOST_FRAGMENTS)?.map_or(5, |each| each.value);
    Ok(HdsModel { fragments_per_segment, gaps })
}

/// An archive has one representation, and every fragment begins with boxes that describe it.
fn check_hds(table: &Table<'_>, model: &MediaModel) -> Result<(), InputError> {
    let hds = table.required("hds", Table::table)?;
    match model.tracks.as_slice() {
        [TrackModel { kind: TrackKind::Video, representations, .. }] if representations.len() == 1 => {}
        _ => return Err(hds.error("`hds` requires `video` with one rate, and no `audio`".to_owned())),
    }
    let media = Media::modelled("", model.clone());
    let least = media.presentation.segments().filter_map(|segment| segment.bytes).min().unwrap_or(0);
    if least < LEAST_FRAGMENT_BYTES {
        let problem = format!(
            "a fragment has {}; with `hds`, write lengths of at least {}",
            format_bytes(float(least)),
            format_bytes(float(LEAST_FRAGMENT_BYTES))
        );
        return Err(hds.error(problem));
    }
    Ok(())
}

fn read_track(kind: TrackKind, table: &Table<'_>, segment_ns: u64) -> Result<TrackModel, InputError> {
    let (ladder, places) = read_ladder(table)?;
    let medians = match table.some_strings("medians")? {
        Some(medians) if medians.value.len() != ladder.len() => {
            let problem = format!(
                "`medians` has {} sizes and `ladder` {} rates; write one for each",
                medians.value.len(),
                ladder.len()
            );
            return Err(medians.error(problem));
        }
        Some(medians) => medians
            .value
            .into_iter()
            .map(|size| {
                size.map(|size| {
                    units::parse_size_bytes(&size).map_err(|problem| format!("`medians`: {problem}"))
                })
            })
            .collect::<Result<Vec<_>, _>>()?,
        None => {
            let of = |(rate, place): (&u64, &Placed<String>)| Placed {
                value: segment_bytes(*rate, segment_ns),
                place: place.place.clone(),
            };
            ladder.iter().zip(&places).map(of).collect()
        }
    };
    if let Some(wrong) = medians.iter().find(|bytes| !(1..=MOST_SEGMENT_BYTES).contains(&bytes.value)) {
        let problem = format!(
            "a segment of {} is out of bounds; segments have 1 B to {}",
            format_bytes(float(wrong.value)),
            format_bytes(float(MOST_SEGMENT_BYTES))
        );
        return Err(wrong.error(problem));
    }
    let representations = ladder.iter().zip(medians);
    let representations = representations.map(|(bits_per_s, median)| RepresentationModel {
        bits_per_s: *bits_per_s,
        median_bytes: median.value,
    });
    let spread = table.parsed("spread", units::parse_share)?;
    Ok(TrackModel {
        kind,
        representations: representations.collect(),
        spread_share: spread.map_or(0.0, |spread| spread.value),
        scenes: read_scenes(table)?,
    })
}

fn read_scenes(table: &Table<'_>) -> Result<Option<SceneModel>, InputError> {
    let spread = table.parsed("scene_spread", units::parse_share)?;
    let Some(mean) = table.duration_above_zero("scene")? else {
        return match spread {
            None => Ok(None),
            Some(spread) => {
                Err(spread.error("`scene_spread` requires `scene`; add it, such as `scene = \"12s\"`"))
            }
        };
    };
    let spread = spread.ok_or_else(|| table.missing("scene_spread"))?;
    Ok(Some(SceneModel { mean_ns: mean.value, spread_share: spread.value }))
}

impl Media {
    /// Reads and resolves a media file (`media/NAME.toml`).
    ///
    /// # Errors
    /// File, line and column of an unknown key, a bad unit, or contradicting values.
    pub fn parse(name: &str, source: Source<'_>) -> Result<Media, InputError> {
        let keys = FILE_KEYS.iter().chain(KEYS);
        read_file(source, "the media", keys, |root| {
            root.required("title", Table::text)?;
            check_media_name(name).map_err(|problem| root.error(problem))?;
            read_media(name, root)
        })
    }
}

/// How a site is trusted that has a manifest: like the server of the study that is there, or else like the
/// first that the study does not start.
fn trust_of(study: &Study, manifest: &Url) -> RemoteTrust {
    let remotes = || study.servers.iter().filter_map(|server| server.remote.as_ref());
    let found = remotes().find(|remote| remote.url.has_origin_of(manifest)).or_else(|| remotes().next());
    found.map_or(RemoteTrust::System, |remote| remote.trust.clone())
}

/// The media of a plan: those of the study's tables, and those of files (`media/NAME.toml`) that workloads
/// name.
pub(super) struct MediaSet(Vec<Media>);

impl MediaSet {
    /// The media of the study's tables.
    ///
    /// # Errors
    /// A folder or a manifest cannot be read.
    pub(super) fn of(study: &Study, library: &impl Library) -> Result<MediaSet, InputError> {
        let of = |entry: &MediaEntry| match &entry.what {
            MediaKeys::Modelled(media) => Ok(Media::clone(media)),
            MediaKeys::Folder { folder, manifest, feed } => {
                let media = library.media_folder(&entry.name.value, &folder.value, manifest.as_deref());
                let media = media.map_err(|problem| folder.error(format!("`folder`: {problem}")))?;
                Ok(match feed {
                    Some(feed) => media.fed(feed.segment_ns, feed.window_ns),
                    None => media,
                })
            }
            MediaKeys::Site { manifest, length_ns } => {
                let trust = trust_of(study, &manifest.value);
                let media = library.media_site(&entry.name.value, &manifest.value, &trust);
                let mut media = media.map_err(|problem| manifest.error(format!("`manifest`: {problem}")))?;
                length_ns.iter().for_each(|length_ns| media.presentation.shorten(*length_ns));
                Ok(media)
            }
        };
        Ok(MediaSet(study.media.iter().map(of).collect::<Result<_, _>>()?))
    }

    /// The media of a name: a table of the study, or else a file.
    ///
    /// # Errors
    /// There is none, or its file is invalid.
    pub(super) fn find(
        &mut self,
        name: &Placed<String>,
        library: &impl Library,
    ) -> Result<&Media, InputError> {
        if let Some(known) = self.0.iter().position(|media| media.name == name.value) {
            return Ok(&self.0[known]);
        }
        let mut known = library.media();
        known.extend(self.0.iter().map(|media| media.name.clone()));
        check_name(name, "`media`: ", "media", &known)?;
        let file = library.media_file(&name.value).map_err(|problem| name.error(problem))?;
        self.0.push(Media::parse(&name.value, file.source())?);
        Ok(&self.0[self.0.len() - 1])
    }

    /// Adds the media of files whose segments these paths request.
    ///
    /// # Errors
    /// A file is invalid.
    pub(super) fn add_requested<'a>(
        &mut self,
        paths: impl Iterator<Item = &'a String>,
        place: &Placed<String>,
        library: &impl Library,
    ) -> Result<(), InputError> {
        let known = library.media();
        for name in paths.filter_map(|path| Media::name_in(path)) {
            if known.iter().any(|known| known == name) {
                self.find(&Placed { value: name.to_owned(), place: place.place.clone() }, library)?;
            }
        }
        Ok(())
    }

    /// All media.
    pub(super) fn into_all(self) -> Vec<Media> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::media::{Media, MediaSource};
    use crate::plan::Plan;
    use crate::plan_text::plan_text;
    use crate::study::tests::{SHORT, parse};
    use crate::units;

    const FILM: &str = "[media.film]\nsegment = \"2s\"\nlength = \"1min\"\n[media.film.video]\n\
                        ladder = [\"1Mbit/s\", \"8Mbit/s\"]\nspread = \"20%\"\n";

    /// A loop over a path, with these tables.
    fn with(path: &str, tables: &str) -> Result<Plan, String> {
        let text = SHORT.replace("page_load_time", "request_time").replace(
            "kind = \"page\"\npage = \"small\"",
            &format!("kind = \"closed\"\npaths = [\"{path}\"]\nrequests = 10\n{tables}"),
        );
        parse(&text)
    }

    #[test]
    fn media_of_a_table_is_in_the_plan_with_its_segments() {
        let plan = with("/media/film/video-8000k/30.m4s", FILM).unwrap();
        let [film] = plan.media.as_slice() else { panic!("one medium") };
        assert_eq!((film.name.as_str(), film.presentation.duration_ns()), ("film", 60_000_000_000));
        let MediaSource::Modelled(model) = &film.source else { panic!("modelled media") };
        assert_eq!(model.tracks[0].representations[1].median_bytes, 2_000_000);
        assert_eq!(film.presentation.files().len(), 62, "30 segments and an initialization of each");
        let text = plan_text(&plan);
        let expected = "film: modelled: 30 segments of 2 s; video at 1 Mbit/s or 8 Mbit/s: sizes log-normal";
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(expected), "{text}");
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap().media, plan.media);
        for path in film.manifests() {
            assert!(with(&path, FILM).is_ok(), "{path}");
        }
    }

    #[test]
    fn media_of_a_file_is_in_the_plan_of_a_study_that_requests_it() {
        let plan = with("/media/clip/audio-96k/init.mp4", FILM).unwrap();
        let names: Vec<&str> = plan.media.iter().map(|media| media.name.as_str()).collect();
        assert_eq!(names, ["film", "clip"]);
        assert_eq!(plan.media[1], {
            let text = include_str!("../../../../media/clip.toml");
            Media::parse("clip", crate::error::Source { file: "media/clip.toml", text }).unwrap()
        });
        let fault = with("/media/broken/x", "").unwrap_err();
        assert!(fault.starts_with("media/broken.toml:5:11: `ladder`: `1Mbit` is not a rate"), "{fault}");
        for path in ["/media/clip/audio-96k/31.m4s", "/media/other/audio-96k/1.m4s", "/media/clip"] {
            let fault = with(path, FILM).unwrap_err();
            assert!(fault.contains(&format!("the server `origin` has no `{path}`")), "{fault}");
        }
    }

    const HDS: &str = "[media.film]\nsegment = \"4s\"\nlength = \"20s\"\ntitles = 7000\n\
                       hds = { fragments = 5, gaps = [3] }\n[media.film.video]\nladder = [\"6.4Mbit/s\"]\n";

    #[test]
    fn a_library_of_hds_has_titles_fragments_and_gaps() {
        let plan = with("/media/film/{random:1-7000}/Seg1-Frag{random:1-10}", HDS).unwrap();
        let film = &plan.media[0];
        let files: Vec<&str> = film.presentation.files().into_keys().collect();
        let expected = ["Seg1-Frag1", "Seg1-Frag2", "Seg1-Frag4", "Seg1-Frag5", "Seg2-Frag6"];
        assert_eq!(files, expected.map(|file| format!("/media/film/{file}")));
        assert_eq!(film.titles, 7_000);
        assert_eq!(film.manifests(), ["/media/film/manifest.f4m", "/media/film/index.bootstrap"]);
        assert!(plan_text(&plan).contains("a library of 7000 titles"));
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap().media, plan.media);
        for (path, has) in [
            ("/media/film/7000/Seg1-Frag1", true),
            ("/media/film/7001/Seg1-Frag1", false),
            ("/media/film/0/Seg1-Frag1", false),
            ("/media/film/01/Seg1-Frag1", false),
            ("/media/film/1/manifest.f4m", true),
            ("/media/film/1/other", false),
            ("/media/film/Seg9-Frag99", true),
            ("/media/film/{random:1-7001}/Seg1-Frag1", false),
        ] {
            assert_eq!(with(path, HDS).is_ok(), has, "{path}");
        }
    }

    /// A loop with these keys and tables.
    fn of_media(keys: &str, tables: &str) -> Result<Plan, String> {
        parse(&SHORT.replace("page_load_time", "request_time").replace(
            "kind = \"page\"\npage = \"small\"",
            &format!("kind = \"closed\"\nrequests = 10\n{keys}\n{tables}"),
        ))
    }

    #[test]
    fn loops_request_all_segments_of_media() {
        let plan = of_media("media = 'film'\norder = 'random'", HDS).unwrap();
        let paths = plan.workloads[0].workload.paths();
        assert_eq!(paths.len(), 5);
        assert_eq!(paths[2], "/media/film/{random:1-7000}/Seg1-Frag4");
        assert!(plan.workloads[0].options.requests.random_parts);
        let plan = of_media("media = 'film'", FILM).unwrap();
        assert_eq!(plan.workloads[0].workload.paths().len(), 60, "without initialization segments");
        for (keys, expected) in [
            ("media = 'film'\npaths = ['/bytes/1']", "`media` excludes `paths`; remove one of them"),
            ("media = 'fil'", "`media`: `fil` is not media; did you mean `film`?"),
        ] {
            let fault = of_media(keys, FILM).unwrap_err();
            assert!(fault.contains(expected), "{keys}: {fault}");
        }
    }

    #[test]
    fn segments_of_live_media_have_any_number() {
        let live = FILM.replace("length", "live = \"60s\"\nlength");
        let fault = of_media("media = 'film'", &live).unwrap_err();
        assert!(fault.contains("`film` is live"), "{fault}");
        assert!(with("/media/film/video-8000k/99999.m4s", &live).is_ok());
        assert!(with("/media/film/video-8000k/99999.m4s", FILM).is_err());
    }

    #[test]
    fn a_live_stream_may_be_packaged_for_hds() {
        let live = HDS.replace("titles = 7000", "live = '60s'");
        let plan = with("/media/film/Seg99-Frag491", &live).unwrap();
        assert_eq!(plan.media[0].live_window_ns, Some(60_000_000_000));
        assert!(plan.media[0].hds().is_some());
    }

    #[test]
    fn faults_of_packaging_have_their_place() {
        for (from, to, expected) in [
            ("titles = 7000", "titles = 50001", "`titles` is 50001; write a whole number from 1 to 50000"),
            ("hds = { fragments = 5, gaps = [3] }", "live = '60s'", "`live` excludes `titles`"),
            ("hds = { fragments = 5, gaps = [3] }", "live = '5s'", "`live` is shorter than three segments"),
            ("gaps = [3]", "gaps = [3, 3]", "`gaps`: 3 is not above the number before it"),
            ("gaps = [3]", "gaps = ['3']", "a whole number from 1 to 1000000"),
            ("gaps = [3]", "gap = [3]", "`gap` is not a key of [media.film.hds]; did you mean `gaps`?"),
            ("6.4Mbit/s", "1kbit/s", "a fragment has 500 B; with `hds`, write lengths of at least 1 kB"),
            ("[\"6.4Mbit/s\"]", "[\"1Mbit/s\", \"2Mbit/s\"]", "`hds` requires `video` with one rate"),
        ] {
            assert!(HDS.contains(from), "{from}");
            let fault = with("/bytes/1", &HDS.replace(from, to)).unwrap_err();
            assert!(fault.contains(expected), "{to}: {fault}");
        }
    }

    #[test]
    fn media_of_a_folder_has_the_files_that_servers_serve() {
        let table = "[media.film]\nfolder = \"made\"\n";
        let plan = with("/media/film/video/1.m4s", table).unwrap();
        assert_eq!(plan.media[0].manifests(), ["/media/film/manifest.mpd"]);
        assert!(plan.media[0].describe().contains("made/manifest.mpd, 3 files of 1.55 kB"));
        for path in ["/media/film/manifest.mpd", "/media/film/notes.txt"] {
            assert!(with(path, table).is_ok(), "{path}");
        }
        for (tables, expected) in [
            ("[media.film]\nfolder = \"gone\"\n", "16:10: `folder`: gone does not exist"),
            ("[media.film]\nmanifest = \"a.mpd\"\n", "16:12: `manifest` requires `folder`"),
            (
                "[media.film]\nfolder = \"made\"\nsegment = \"2s\"\n",
                "17:1: `segment` describes modelled media, which excludes `folder`",
            ),
        ] {
            let fault = with("/bytes/1", tables).unwrap_err();
            assert!(fault.contains(expected), "{tables}: {fault}");
        }
    }

    /// A player of media of a site, at a server with this table.
    fn of_site(server: &str, media: &str) -> Result<Plan, String> {
        parse(&SHORT.replace("page_load_time", "request_time").replace("[\"origin\"]", "[\"mine\"]").replace(
            "kind = \"page\"\npage = \"small\"",
            &format!(
                "kind = 'player'\nmedia = 'film'\nbuffer = '12s'\nrule = 'dashjs'\n[server.mine]\n{server}\n\
                 [media.film]\n{media}\n"
            ),
        ))
    }

    #[test]
    fn media_of_a_site_is_played_from_where_its_segments_are() {
        let manifest = "manifest = 'https://site.test/film.mpd?v=1'";
        let plan = of_site("url = 'https://cdn.test:443/'", manifest).unwrap();
        let film = &plan.media[0];
        assert_eq!(film.manifests(), Vec::<String>::new(), "no server of the study has it");
        assert!(film.files().is_empty());
        let expected = "https://site.test/film.mpd?v=1, with its segments at https://cdn.test: 1 segment of video at \
                        8 kbit/s";
        assert_eq!(film.describe(), expected);
        let player = plan.workloads[0].workload.player().unwrap();
        assert_eq!((player.origin.as_deref(), &player.browser), (Some("https://cdn.test"), &None));
        assert_eq!(player.presentation, film.presentation);
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap().media, plan.media);
        for (server, media, expected) in [
            (
                "url = 'https://site.test/'",
                manifest,
                "the segments of its media are at https://cdn.test, and not at the server `mine`; use a server with \
                 `url = \"https://cdn.test/\"`",
            ),
            ("use = 'origin'", manifest, "are at https://cdn.test, and not at the server `origin`"),
            (
                "url = 'https://cdn.test/'",
                "manifest = 'https://gone.test/film.mpd'",
                "19:12: `manifest`: https://gone.test/film.mpd does not answer",
            ),
            ("url = 'https://cdn.test/'", "manifest = 'https:///x'", "`manifest`: `https:///x` is not a URL"),
            (
                "url = 'https://cdn.test/'",
                "folder = 'made'\nmanifest = 'https://site.test/film.mpd'",
                "`manifest` is a URL, which excludes `folder`; remove one of them",
            ),
            (
                "url = 'https://cdn.test/'",
                "manifest = 'https://site.test/film.mpd'\nlive = '60s'",
                "`live` excludes a `manifest` with a URL; remove one of them",
            ),
        ] {
            let fault = of_site(server, media).unwrap_err();
            assert!(fault.contains(expected), "{media}: {fault}");
        }
        let fault = of_media("media = 'film'", &format!("[media.film]\n{manifest}\n")).unwrap_err();
        let expected = "write `urls` with what `h123 urls https://site.test/film.mpd?v=1` prints";
        assert!(fault.contains(expected), "{fault}");
    }

    #[test]
    fn a_length_leaves_out_later_segments() {
        let film = |length: &str| {
            let mut presentation = with("/bytes/1", FILM).unwrap().media[0].presentation.clone();
            presentation.shorten(units::parse_duration_ns(length).unwrap());
            presentation
        };
        for (length, segments) in [("1ns", 1), ("2s", 1), ("2.1s", 2), ("58s", 29), ("59s", 30), ("2h", 30)] {
            let shortened = film(length);
            shortened.check().unwrap();
            assert_eq!(shortened.tracks[0].durations_ns.len(), segments, "{length}");
        }
        assert!(film("1s").tracks[0].representations[1].initialization.is_some());
    }

    #[test]
    fn a_live_folder_is_fed_to_the_server() {
        let table = "[media.film]\nfolder = \"made\"\nlive = \"60s\"\n";
        let nginx = |text: &str| {
            parse(&SHORT.replace("page_load_time", "request_time").replace("[\"origin\"]", "[\"nginx\"]").replace(
                "kind = \"page\"\npage = \"small\"",
                &format!(
                    "kind = \"player\"\nmanifest = \"/media/film/index.m3u8\"\nlatency = \"9s\"\nduration = \"20s\"\n\
                     buffer = \"12s\"\nrule = \"throughput\"\n{text}"
                ),
            ))
        };
        let plan = nginx(table).unwrap();
        let film = &plan.media[0];
        assert_eq!(film.feed().map(|feed| feed.segment_ns), Some(3_000_000_000));
        assert_eq!(film.manifests(), ["/media/film/index.m3u8"]);
        let expected = "made/manifest.mpd, sent over RTMP in real time; segments of at least 3 s; live with a window \
                        of 60 s";
        assert_eq!(film.describe(), expected);
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap().media, plan.media);
        let fault = nginx(&table.replace("60s", "8s")).unwrap_err();
        assert!(fault.contains("`live` is shorter than three segments; write at least 9 s"), "{fault}");
        let fault = with("/media/film/7.ts", table).unwrap_err();
        assert!(fault.contains("the server `origin` takes no feeds, so that it cannot serve"), "{fault}");
        let live = FILM.replace("length", "live = \"60s\"\nlength");
        let fault = nginx(&live).unwrap_err();
        assert!(fault.contains("servers of files cannot serve the live media `film`; use the"), "{fault}");
    }

    #[test]
    fn faults_have_their_place() {
        let film = |from: &str, to: &str| {
            assert!(FILM.contains(from), "{from}");
            with("/bytes/1", &FILM.replace(from, to)).unwrap_err()
        };
        for (from, to, expected) in [
            ("media.film]", "media.\"a b\"]", "15:8: `a b` is not the name of media; use letters, digits"),
            ("\"2s\"", "\"0s\"", "16:11: `segment`: 0 is too short"),
            ("\"1min\"", "\"6h\"", "17:10: `length` has 10800 segments; write at most 10000"),
            ("segment", "segments", "16:1: `segments` is not a key of [media.film]; did you mean `segment`?"),
            (".video]", ".sound]", "18:13: `sound` is not a key of [media.film]"),
            ("\"20%\"", "\"20\"", "20:10: `spread`: `20` is not a share"),
            ("spread = \"20%\"", "medians = [\"1kB\"]", "20:11: `medians` has 1 sizes and `ladder` 2 rates"),
            (
                "spread = \"20%\"",
                "medians = [\"1kB\", \"65MB\"]",
                "20:19: a segment of 65 MB is out of bounds",
            ),
            ("spread = \"20%\"", "scene = \"9s\"", "18:1: [media.film.video] has no `scene_spread`"),
            ("spread = \"20%\"", "scene_spread = \"9%\"", "20:16: `scene_spread` requires `scene`"),
            ("\"8Mbit/s\"", "\"800Mbit/s\"", "19:22: a segment of 200 MB is out of bounds"),
            ("\"8Mbit/s\"", "\"1Mbit/s\"", "19:22: `ladder`: `1Mbit/s` is not above the rate before it"),
        ] {
            let fault = film(from, to);
            assert!(fault.contains(expected), "{to}: {fault}");
        }
        let fault = with("/bytes/1", "[media.film]\nsegment = \"2s\"\nlength = \"1min\"\n").unwrap_err();
        assert!(fault.contains("[media.film] has no tracks; add `video` or `audio`"), "{fault}");
    }
}
