//! Media whose files exist: a folder and the presentation of a manifest in it.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};
use model::media::{Media, MediaFolder, MediaSource, Segment};
use model::number::float;
use model::units::format_bytes;
use model::url::Url;
use workload::formats::hds::parse_fragment_name;

use super::{DESCRIPTION, files};
use crate::manifests;

/// The manifests of a folder for which a study names none, the first that exists.
const MANIFESTS: [&str; 4] = ["manifest.mpd", "main.m3u8", "manifest.f4m", "hds/manifest.f4m"];
/// A study writes its files as links before the first run.
const MOST_FILES: usize = 20_000;
/// The longest segment, like the longest file of other content.
const MOST_SEGMENT_BYTES: u64 = 64_000_000;

/// Reads the media in a folder.
///
/// # Errors
/// The folder or the manifest cannot be read, the manifest is live, or it lists a segment that does not
/// exist.
pub fn read_folder(name: &str, folder: &Path, manifest: Option<&str>) -> Result<Media> {
    let base = format!("/media/{name}/");
    let url_path = |file: &Path| {
        let parts = file.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        format!("{base}{}", parts.collect::<Vec<_>>().join("/"))
    };
    let found = files(folder)?.into_iter().filter(|(file, _)| file != Path::new(DESCRIPTION));
    let all: BTreeMap<String, u64> = found.map(|(file, bytes)| (url_path(&file), bytes)).collect();
    if all.len() > MOST_FILES {
        bail!("{} has {} files; write at most {MOST_FILES}", folder.display(), all.len());
    }
    let manifest = match manifest {
        Some(manifest)
            if Path::new(manifest).components().all(|part| matches!(part, Component::Normal(_))) =>
        {
            manifest
        }
        Some(other) => bail!("the manifest `{other}` leaves the folder; write a path below it"),
        None => MANIFESTS
            .into_iter()
            .find(|manifest| all.contains_key(&format!("{base}{manifest}")))
            .with_context(|| {
                format!("{} has no {}; name a `manifest`", folder.display(), MANIFESTS.join(" or "))
            })?,
    };
    let url = Url::parse(&format!("http://media.h123.test{base}{manifest}")).map_err(anyhow::Error::msg)?;
    let located = |url: &Url| Some(folder.join(url.path.strip_prefix(&base)?));
    let read = manifests::of_file(&folder.join(manifest), &url, located)?.manifest;
    if read.live.is_some() {
        bail!("{manifest} is the manifest of a live stream; name one of media on demand");
    }
    let mut presentation = read.presentation;
    for track in &mut presentation.tracks {
        for of in &mut track.representations {
            for segment in of.resources_mut() {
                measure(segment, &all).with_context(|| manifest.to_owned())?;
            }
        }
    }
    let folder = std::path::absolute(folder).context("no current folder")?.display().to_string();
    let source = MediaSource::Folder(MediaFolder { folder, manifest: manifest.to_owned(), files: all });
    Ok(Media { name: name.to_owned(), presentation, source, titles: 0, live_window_ns: None })
}

/// Fills in the length of a segment.
fn measure(segment: &mut Segment, all: &BTreeMap<String, u64>) -> Result<()> {
    let known = all.get(segment.url.split('?').next().unwrap_or_default());
    match (known, segment.range) {
        (Some(bytes), Some(range)) if range.last >= *bytes => {
            bail!("{} has {bytes} bytes, without those of {range}", segment.url)
        }
        (Some(_), Some(range)) => segment.bytes = Some(range.length()),
        (Some(bytes), None) => segment.bytes = Some(*bytes),
        // A fragment of an archive, which the origin cuts out.
        (None, _) if is_archived(&segment.url, all) => {}
        (None, _) => bail!("it lists {}, which does not exist; remove it, or add the file", segment.url),
    }
    match segment.bytes.filter(|bytes| *bytes > MOST_SEGMENT_BYTES) {
        None => Ok(()),
        Some(bytes) => bail!(
            "{} has {}; segments have at most {}",
            segment.url,
            format_bytes(float(bytes)),
            format_bytes(float(MOST_SEGMENT_BYTES))
        ),
    }
}

fn is_archived(url: &str, all: &BTreeMap<String, u64>) -> bool {
    let archive = parse_fragment_name(url).map(|(media, segment, _)| format!("{media}Seg{segment}.f4f"));
    archive.is_some_and(|archive| all.contains_key(&archive))
}
