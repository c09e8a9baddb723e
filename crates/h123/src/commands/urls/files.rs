//! What of a manifest's resources is on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use drive::input::open_regular;
use model::media::{ByteRange, Representation, Segment};
use model::url::Url;
use serde::Serialize;
use workload::formats::hds::f4f;
use workload::formats::hds::{fragment_name, parse_fragment_name};
use workload::formats::isobmff::Scan;
use workload::formats::manifest::{Manifest, ManifestFormat};

use crate::exit::UsageError;

/// The most files of a folder that are looked at.
const MOST_FILES: usize = 100_000;
/// Folders in folders.
const MOST_DEPTH: usize = 8;

/// Whether a resource that the manifest lists is present on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Presence {
    /// It is.
    #[serde(rename = "listed and present")]
    Both,
    /// It is missing, or shorter than its range.
    #[serde(rename = "listed only")]
    ListedOnly,
    /// It is on another origin or outside the folder.
    #[serde(rename = "elsewhere")]
    Elsewhere,
}

/// The folder of a manifest, and the URL that it stands for.
pub(super) struct Folder {
    /// The folder, canonical.
    path: PathBuf,
    /// The manifest's URL.
    url: Url,
    /// Whether the user named the URL; otherwise paths are relative to the folder.
    has_base: bool,
}

/// The fragments in archives that were looked at, by the archive's path; `None` if it is none.
#[derive(Default)]
pub(super) struct Archives(BTreeMap<PathBuf, Option<BTreeSet<u32>>>);

impl Folder {
    /// # Errors
    /// A [`UsageError`]: the manifest does not exist, or the base is not a URL.
    pub(super) fn of_manifest(manifest: &Path, base: Option<&str>) -> Result<Folder, UsageError> {
        let shown = manifest.display();
        let missing = |error: io::Error| UsageError(format!("{shown}: {error}; name a manifest or its URL"));
        let canonical = manifest.canonicalize().map_err(missing)?;
        let (Some(path), Some(name)) = (canonical.parent(), manifest.file_name()) else {
            return Err(UsageError(format!("{shown} is a folder; name a manifest in it")));
        };
        let name = encoded(name);
        let url = match base {
            Some(base) => {
                let base = base_url(base)?;
                let folder = base.path.split('?').next().unwrap_or_default().trim_end_matches('/');
                Url { path: format!("{folder}/{name}"), ..base }
            }
            None => {
                let folder = encoded(path.as_os_str());
                let path = format!("{}/{name}", folder.trim_end_matches('/'));
                // The files are not on a server; only the path of this URL is used.
                let host = "localhost".to_owned();
                Url { encrypted: false, authority: host.clone(), host, port: 80, path }
            }
        };
        Ok(Folder { path: path.to_owned(), url, has_base: base.is_some() })
    }

    /// The URL of the manifest.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The folder's path on its origin, with a slash at the end.
    fn prefix(&self) -> &str {
        self.url.path.rsplit_once('/').map_or("", |(folder, _)| &self.url.path[..=folder.len()])
    }

    /// A resource as it is printed: with the base, or as a path from the folder.
    pub(super) fn shown(&self, url: &str) -> String {
        match url.strip_prefix(self.prefix()) {
            _ if self.has_base && url.starts_with('/') => format!("{}{url}", self.url.origin()),
            Some(inside) if !self.has_base => format!("/{inside}"),
            _ => url.to_owned(),
        }
    }

    /// The file of a URL.
    pub(super) fn file_of(&self, url: &Url) -> Option<PathBuf> {
        if url.has_origin_of(&self.url) { self.file_at(&url.path) } else { None }
    }

    /// The file of a path on the folder's origin. Without a base, the path is that of the file.
    fn file_at(&self, path: &str) -> Option<PathBuf> {
        let path = path.split('?').next().unwrap_or_default();
        let file = match path.strip_prefix(self.prefix()) {
            Some(inside) => self.path.join(decoded(inside)),
            None if !self.has_base => decoded(path),
            None => return None,
        };
        // An encoded `..` is a name in a URL, but not on the disk.
        let is_plain = !file.components().any(|part| part == Component::ParentDir);
        is_plain.then_some(file)
    }

    /// Whether a resource is present: as a file, or as a fragment in an archive of its folder.
    pub(super) fn presence(&self, segment: &Segment, archives: &mut Archives) -> Presence {
        let Some(file) = segment.url.starts_with('/').then(|| self.file_at(&segment.url)).flatten() else {
            return Presence::Elsewhere;
        };
        let end = segment.range.map_or(0, |range| range.last.saturating_add(1));
        let is_file = fs::metadata(&file).is_ok_and(|found| found.is_file() && found.len() >= end);
        match is_file || archives.has(&file) {
            true => Presence::Both,
            false => Presence::ListedOnly,
        }
    }

    /// What is in the folder with an extension of something that is listed, but is not listed itself; and of
    /// a manifest of HDS the fragments in archives that are not listed. Each once, in order.
    ///
    /// # Errors
    /// A [`UsageError`]: the folder cannot be read or has too many files.
    pub(super) fn present_only(
        &self,
        manifest: &Manifest,
        archives: &mut Archives,
    ) -> Result<Vec<String>, UsageError> {
        let tracks = manifest.presentation.tracks.iter().chain(&manifest.alternatives);
        let of_tracks = tracks.flat_map(|track| &track.representations);
        let of_tracks = of_tracks.flat_map(Representation::resources);
        let all = of_tracks.chain(&manifest.others).chain(&manifest.references);
        let own = [&self.url.path].into_iter().map(String::as_str);
        let listed: BTreeSet<PathBuf> =
            all.map(|own| own.url.as_str()).chain(own).filter_map(|url| self.file_at(url)).collect();
        let extensions: BTreeSet<Option<&OsStr>> = listed.iter().map(|file| extension(file)).collect();
        let mut files = Vec::new();
        walk(&self.path, 0, &mut files)
            .map_err(|error| UsageError(format!("{}: {error}", self.path.display())))?;
        let is_hds = manifest.format == ManifestFormat::Hds;
        let archived: Vec<PathBuf> =
            files.iter().filter(|_| is_hds).flat_map(|file| archives.names_in(file)).collect();
        let present = files.into_iter().filter(|file| extensions.contains(&extension(file)));
        let only: BTreeSet<PathBuf> = present.chain(archived).filter(|file| !listed.contains(file)).collect();
        Ok(only.iter().map(|file| self.name_of(file)).collect())
    }

    /// A file as it is printed.
    fn name_of(&self, file: &Path) -> String {
        let inside = file.strip_prefix(&self.path).unwrap_or(file);
        let url = format!("{}{}", self.prefix(), encoded(inside.as_os_str()));
        self.shown(&url)
    }
}

/// A base with its scheme: without one, a misspelt path would become a host.
fn base_url(text: &str) -> Result<Url, UsageError> {
    if !text.contains("://") {
        let words =
            format!("--base: `{text}` has no scheme; write a URL such as `https://www.example.test/film/`");
        return Err(UsageError(words));
    }
    Url::parse(text).map_err(|error| UsageError(format!("--base: {error}")))
}

impl Archives {
    /// Whether the archive that would contain a fragment does so.
    fn has(&mut self, fragment: &Path) -> bool {
        let Some(path) = fragment.to_str() else { return false };
        let Some((media, segment, number)) = parse_fragment_name(path) else { return false };
        let archive = PathBuf::from(format!("{media}Seg{segment}.f4f"));
        self.fragments_of(&archive).is_some_and(|numbers| numbers.contains(&number))
    }

    /// The paths of the fragments in an archive; none if the file is not one.
    fn names_in(&mut self, archive: &Path) -> Vec<PathBuf> {
        let stem = archive.to_str().and_then(|path| path.strip_suffix(".f4f"));
        let Some((media, segment)) = stem.and_then(|stem| stem.rsplit_once("Seg")) else { return Vec::new() };
        let Ok(segment) = segment.parse() else { return Vec::new() };
        let numbers = self.fragments_of(archive).into_iter().flatten();
        numbers.map(|number| PathBuf::from(format!("{media}{}", fragment_name(segment, *number)))).collect()
    }

    fn fragments_of(&mut self, archive: &Path) -> Option<&BTreeSet<u32>> {
        if !self.0.contains_key(archive) {
            self.0.insert(archive.to_owned(), read_archive(archive).ok());
        }
        self.0.get(archive)?.as_ref()
    }
}

/// The numbers of the fragments in an archive.
fn read_archive(archive: &Path) -> anyhow::Result<BTreeSet<u32>> {
    let file = open_regular(archive)?;
    let mut scan = Scan::new(file.metadata()?.len());
    while let Some(range) = scan.poll_read() {
        scan.handle_bytes(&read_at(&file, range)?)?;
    }
    Ok(f4f::fragments(&scan.finish())?.iter().map(|own| own.number).collect())
}

fn read_at(file: &fs::File, range: ByteRange) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.length()).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, range.first)?;
    Ok(bytes)
}

/// The extension of a file; that of a fragment is none, also if its media has dots in its name.
fn extension(file: &Path) -> Option<&OsStr> {
    let is_fragment = file.to_str().is_some_and(|path| parse_fragment_name(path).is_some());
    file.extension().filter(|_| !is_fragment)
}

/// The regular files below a folder. Links are not followed.
fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MOST_DEPTH {
            walk(&entry.path(), depth + 1, files)?;
        } else if kind.is_file() {
            if files.len() >= MOST_FILES {
                let words = format!(
                    "it has more than {MOST_FILES} files; move the manifest to a folder without others"
                );
                return Err(io::Error::other(words));
            }
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A path as part of a URL (RFC 3986, section 3.3).
fn encoded(path: &OsStr) -> String {
    let mut text = String::new();
    for byte in path.as_bytes() {
        match byte {
            b'%' | b'?' | b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                text.push_str(&format!("%{byte:02X}"));
            }
            byte if byte.is_ascii_graphic() => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The path that a part of a URL encodes.
fn decoded(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escape = (*first == b'%').then(|| after.get(..2)).flatten();
        let value = escape.and_then(|hex| std::str::from_utf8(hex).ok());
        match value.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use model::media::Media;
    use workload::hds_media::HdsPackage;

    use super::*;

    #[test]
    fn paths_are_encoded_and_decoded() {
        for (path, expected) in [("a b/ü?.m4s", "a%20b/%C3%BC%3F.m4s"), ("a%2e", "a%252e"), ("a+b", "a+b")] {
            assert_eq!(encoded(OsStr::new(path)), expected);
            assert_eq!(decoded(expected), Path::new(path));
        }
        assert_eq!(decoded("a%2"), Path::new("a%2"));
        assert_eq!(decoded("a%zz"), Path::new("a%zz"));
    }

    #[test]
    fn urls_are_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let manifest = root.join("x y.mpd");
        fs::write(&manifest, "").unwrap();
        let own = Folder::of_manifest(&manifest, Some("https://a.test/m?x")).unwrap();
        assert_eq!(own.url().to_string(), "https://a.test/m/x%20y.mpd");
        assert_eq!(own.file_at("/m/a/1.m4s?token"), Some(root.join("a/1.m4s")));
        for outside in ["/n/1.m4s", "/m/%2e%2e/1.m4s"] {
            assert_eq!(own.file_at(outside), None, "{outside}");
        }
        assert_eq!(own.shown("/m/a/1.m4s"), "https://a.test/m/a/1.m4s");
        assert_eq!(own.shown("https://b.test/1"), "https://b.test/1");
        let own = Folder::of_manifest(&manifest, None).unwrap();
        let above = own.url().join("../1.m4s").unwrap();
        assert_eq!(own.file_of(&above), Some(root.parent().unwrap().join("1.m4s")));
        assert_eq!(own.shown(&own.url().join("a/1.m4s").unwrap().path), "/a/1.m4s");
        let error = Folder::of_manifest(&manifest, Some("nourl")).err().unwrap();
        assert!(error.0.starts_with("--base: `nourl` has no scheme; write a URL"), "{}", error.0);
    }

    /// Writes the files of an archive with the fragments 1 and 2, and the second one as a file too.
    fn write_archive(folder: &Path) {
        let media = Media::parse(
            "film",
            model::error::Source {
                file: "film.toml",
                text: "title = 'x'\nsegment = '1s'\nlength = '2s'\nhds = { fragments = 2 }\n[video]\nladder = ['800kbit/s']\n",
            },
        )
        .unwrap();
        let package = HdsPackage::new(&media).unwrap();
        let archive: Vec<u8> = package.segments[&1].iter().flat_map(|own| own.parts().flatten()).collect();
        fs::write(folder.join("Seg1.f4f"), archive).unwrap();
        fs::write(folder.join("Seg1-Frag2"), "x").unwrap();
    }

    fn manifest_of(format: ManifestFormat, listed: &str) -> Manifest {
        let segment = Segment { url: listed.to_owned(), range: None, bytes: None };
        Manifest {
            format,
            presentation: model::media::Presentation::default(),
            places: Vec::new(),
            alternatives: Vec::new(),
            others: vec![segment],
            references: Vec::new(),
            live: None,
        }
    }

    #[test]
    fn archives_count_for_hds_only_and_every_fragment_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("x.manifest");
        fs::write(&path, "").unwrap();
        write_archive(place.path());
        let folder = Folder::of_manifest(&path, Some("https://a.test/m/")).unwrap();
        let present_only = |format, listed: &str| {
            folder.present_only(&manifest_of(format, listed), &mut Archives::default()).unwrap()
        };
        assert_eq!(
            present_only(ManifestFormat::Hds, "/m/otherSeg1-Frag1"),
            ["https://a.test/m/Seg1-Frag1", "https://a.test/m/Seg1-Frag2"]
        );
        assert_eq!(present_only(ManifestFormat::Hds, "/m/Seg1-Frag1"), ["https://a.test/m/Seg1-Frag2"]);
        assert_eq!(present_only(ManifestFormat::Dash, "/m/1.m4s"), Vec::<String>::new());
    }
}
