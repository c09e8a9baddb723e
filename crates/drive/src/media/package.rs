//! Segments and their manifests, cut from encodings.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use model::media::{Presentation, Representation, Segment, Track, TrackKind};
use model::number::{float, nearest};
use model::units::NANOS_PER_S;
use workload::media::{Encoding, Naming, manifests_of, package};

use super::ffmpeg::{Ffmpeg, words};
use super::frames::{SAMPLES_PER_S, audio_frames, video_frames};
use super::{ContentSettings, VideoRung};

/// The files that ffmpeg lists its segments in, before ours take their place.
const PLAYLIST: &str = "index.m3u8";
const INITIALIZATION: &str = "init.mp4";

/// Encodings to cut.
pub(super) struct Cut<'a> {
    pub(super) settings: &'a ContentSettings,
    pub(super) ffmpeg: &'a Ffmpeg<'a>,
    /// The folder of the encodings, which are named after their representations.
    pub(super) work: &'a Path,
    /// The folder of the media.
    pub(super) made: &'a Path,
    pub(super) video: &'a [(String, VideoRung)],
    pub(super) audio: &'a [(String, u64)],
}

/// Cuts fragmented MP4 and writes an MPD and playlists for the same segments.
///
/// # Errors
/// ffmpeg fails, or a file cannot be read or written.
pub(super) fn write_mp4(cut: &Cut<'_>) -> Result<()> {
    let length_ns = cut.settings.length_ns;
    let mut presentation = Presentation::default();
    for (kind, names) in [
        (TrackKind::Video, cut.video.iter().map(|(name, rung)| (name, rung.bits_per_s)).collect::<Vec<_>>()),
        (TrackKind::Audio, cut.audio.iter().map(|(name, rate)| (name, *rate)).collect()),
    ] {
        let mut representations = Vec::new();
        for (name, bits_per_s) in names {
            let frames = match kind {
                TrackKind::Video => format!("-frames:v {}", video_frames(length_ns)),
                TrackKind::Audio => format!("-frames:a {}", audio_frames(length_ns)),
            };
            let inputs = format!("-stream_loop -1 -i {name}.mp4 -map 0 {frames}");
            let folder = cut.made.join(name);
            cut_hls(cut, &inputs, &folder, "m4s")?;
            representations.push((name.clone(), bits_per_s, read_segments(&folder, "m4s")?));
        }
        if !representations.is_empty() {
            presentation.tracks.push(track(kind, representations)?);
        }
    }
    write_manifests(cut, &presentation, cut.made, Naming::Mp4)
}

/// Cuts MPEG-TS segments with pictures and the best sound, and writes playlists below `ts/`.
///
/// # Errors
/// As [`write_mp4`].
pub(super) fn write_transport_streams(cut: &Cut<'_>) -> Result<()> {
    let length_ns = cut.settings.length_ns;
    let root = cut.made.join("ts");
    let audio = cut.audio.last();
    let mut representations = Vec::new();
    for (name, rung) in cut.video {
        let (sound, map) = match audio {
            Some((audio, _)) => {
                let frames = audio_frames(length_ns);
                (format!("-stream_loop -1 -i {audio}.mp4 "), format!("-map 1:a -frames:a {frames}"))
            }
            None => (String::new(), "-an".to_owned()),
        };
        let frames = video_frames(length_ns);
        let inputs = format!("-stream_loop -1 -i {name}.mp4 {sound}-map 0:v {map} -frames:v {frames}");
        let folder = root.join(name);
        cut_hls(cut, &inputs, &folder, "ts")?;
        let bits_per_s = rung.bits_per_s + audio.map_or(0, |(_, rate)| *rate);
        representations.push((name.clone(), bits_per_s, read_segments(&folder, "ts")?));
    }
    let tracks = vec![track(TrackKind::Video, representations)?];
    write_manifests(cut, &Presentation { tracks }, &root, Naming::TransportStream)
}

/// Cuts segments of one representation at key frames, and lists them in `folder`.
fn cut_hls(cut: &Cut<'_>, inputs: &str, folder: &Path, extension: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let segment_s = float(cut.settings.segment_ns) / float(NANOS_PER_S);
    let mut args = words(inputs);
    args.extend(words(&format!(
        "-c copy -f hls -hls_time {segment_s} -hls_list_size 0 -hls_playlist_type vod -start_number 1"
    )));
    if extension == "m4s" {
        args.extend(words(&format!("-hls_segment_type fmp4 -hls_fmp4_init_filename {INITIALIZATION}")));
    }
    // ffmpeg reads `%` in this name.
    let escaped = folder.display().to_string().replace('%', "%%");
    args.extend(["-hls_segment_filename".to_owned(), format!("{escaped}/%d.{extension}")]);
    args.push(folder.join(PLAYLIST).display().to_string());
    cut.ffmpeg.run_for_media(cut.work, &args, cut.settings.length_ns)
}

/// What ffmpeg cut of a representation.
struct CutSegments {
    durations_ns: Vec<u64>,
    segments: Vec<Segment>,
}

/// The segments that ffmpeg listed in a folder, with their lengths.
fn read_segments(folder: &Path, extension: &str) -> Result<CutSegments> {
    let path = folder.join(PLAYLIST);
    let text = crate::input::read_text(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut cut = CutSegments { durations_ns: Vec::new(), segments: Vec::new() };
    for duration in text.lines().filter_map(|line| line.strip_prefix("#EXTINF:")) {
        let seconds: Option<f64> = duration.trim_end_matches(',').parse().ok();
        let seconds =
            seconds.with_context(|| format!("{}: ffmpeg wrote the duration `{duration}`", path.display()))?;
        let name = format!("{}.{extension}", cut.segments.len() + 1);
        let file = fs::metadata(folder.join(&name)).ok().filter(fs::Metadata::is_file);
        let file = file.with_context(|| format!("ffmpeg did not write {}", folder.join(&name).display()))?;
        cut.durations_ns.push(nearest(seconds * 1e6) * 1_000);
        cut.segments.push(Segment { url: name, range: None, bytes: Some(file.len()) });
    }
    ensure!(!cut.segments.is_empty(), "{}: ffmpeg listed no segments", path.display());
    Ok(cut)
}

/// A track of representations whose segments have the same durations, by names, bit rates and segments. The
/// manifests follow from them alone.
fn track(kind: TrackKind, all: Vec<(String, u64, CutSegments)>) -> Result<Track> {
    let mut track = Track { kind, durations_ns: Vec::new(), representations: Vec::new() };
    for (name, bits_per_s, cut) in all {
        if track.representations.is_empty() {
            track.durations_ns = cut.durations_ns;
        }
        let (found, expected) = (cut.segments.len(), track.durations_ns.len());
        ensure!(
            found == expected,
            "ffmpeg cut {found} segments of {name}, but {expected} of the first representation"
        );
        track.representations.push(Representation {
            name,
            bits_per_s,
            initialization: None,
            later_initializations: Vec::new(),
            segments: cut.segments,
        });
    }
    Ok(track)
}

/// Writes the manifests of a presentation over those of ffmpeg.
fn write_manifests(cut: &Cut<'_>, presentation: &Presentation, folder: &Path, naming: Naming) -> Result<()> {
    let encoding = |track: &Track, of: &Representation| {
        let sound = "mp4a.40.2";
        let rung = cut.video.iter().find(|(name, _)| *name == of.name).map(|(_, rung)| *rung);
        match (track.kind, rung) {
            (TrackKind::Video, Some(rung)) => {
                // High profile (0x64) without constraints, and the level (RFC 6381, section 3.3).
                let mut codecs = format!("avc1.6400{:02x}", rung.level());
                if naming == Naming::TransportStream && !cut.audio.is_empty() {
                    codecs.push_str(&format!(",{sound}"));
                }
                let picture = Some((rung.width(), rung.height));
                Encoding { codecs, picture, sampling_rate_hz: None }
            }
            _ => Encoding {
                codecs: sound.to_owned(),
                picture: None,
                sampling_rate_hz: u32::try_from(SAMPLES_PER_S).ok(),
            },
        }
    };
    let packaged = package(presentation, naming, encoding).context("the URLs of segments fit no template")?;
    for manifest in manifests_of("", &packaged, naming) {
        let path = folder.join(&manifest.path);
        fs::write(&path, manifest.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
