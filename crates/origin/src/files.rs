//! Files below a folder: no path of a request leaves the folder.
//!
//! Three measures ensure this: dot segments and NUL are refused after percent-decoding; every path is opened
//! relative to the folder's descriptor; and the kernel keeps symbolic links inside (`openat2` with
//! `RESOLVE_BENEATH`). Where the kernel lacks that call, a walk that follows no link replaces it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use workload::formats::hds::parse_fragment_name;

use crate::answer::{Answer, Part};
use crate::body::{Content, FileContent, PART_BYTES};

/// The folder whose files are served.
pub(crate) struct Root {
    folder: OwnedFd,
}

/// A decoded and checked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePath {
    /// The parts between slashes; none is empty, `.` or `..`.
    parts: Vec<String>,
    /// Whether the path ended in `/`, which means `index.html`.
    is_folder: bool,
}

impl FilePath {
    /// Decodes the path of a request.
    pub(crate) fn parse(path: &str) -> Result<FilePath, StatusCode> {
        let decoded = percent_decode(path).ok_or(StatusCode::BAD_REQUEST)?;
        let decoded = String::from_utf8(decoded).map_err(|_| StatusCode::NOT_FOUND)?;
        FilePath::of_decoded(decoded.strip_prefix('/').ok_or(StatusCode::BAD_REQUEST)?)
    }

    /// Checks a decoded path, without its first slash.
    pub(crate) fn of_decoded(decoded: &str) -> Result<FilePath, StatusCode> {
        if decoded.contains('\0') {
            return Err(StatusCode::BAD_REQUEST);
        }
        let parts: Vec<String> =
            decoded.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        if parts.iter().any(|part| part == "." || part == "..") {
            return Err(StatusCode::NOT_FOUND);
        }
        Ok(FilePath { parts, is_folder: decoded.is_empty() || decoded.ends_with('/') })
    }

    /// The decoded path.
    pub(crate) fn decoded(&self) -> String {
        let end = if self.is_folder && !self.parts.is_empty() { "/" } else { "" };
        format!("/{}{end}", self.parts.join("/"))
    }

    /// The path of this folder for a `location` field, encoded. A single slash is at its start: clients read
    /// `//host` and `/\\host` as another server.
    fn folder_location(&self) -> String {
        let mut location = String::from("/");
        for part in &self.parts {
            for byte in part.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    location.push(char::from(byte));
                } else {
                    location.push_str(&format!("%{byte:02X}"));
                }
            }
            location.push('/');
        }
        location
    }
}

impl Root {
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())
            .with_context(|| format!("cannot open the folder to serve, {}", folder.display()))?;
        Ok(Root { folder })
    }

    /// The file as an answer; blocks on disk access.
    pub(crate) fn answer(&self, path: &FilePath, fields: &HeaderMap) -> Answer {
        match self.find(path) {
            Ok((file, _, true)) => {
                drop(file);
                Answer::moved(&path.folder_location())
            }
            Ok((file, length, false)) => {
                let name =
                    if path.is_folder { "index.html" } else { path.parts.last().map_or("", String::as_str) };
                read(file, 0, length, media_type(name), fields).for_media(name)
            }
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Answer::status(StatusCode::SERVICE_UNAVAILABLE)
            }
            Err(_) => Answer::status(StatusCode::NOT_FOUND),
        }
    }

    /// The open file, its length, and whether it is a folder.
    pub(crate) fn find(&self, path: &FilePath) -> Result<(File, u64, bool), Errno> {
        let mut parts: Vec<&str> = path.parts.iter().map(String::as_str).collect();
        if path.is_folder {
            parts.push("index.html");
        }
        // Non-blocking, because a named pipe must not hold a thread.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let joined = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        let found = match rustix::fs::openat2(&self.folder, joined, flags, Mode::empty(), beneath) {
            Err(Errno::NOSYS | Errno::PERM) => self.walk(&parts, flags),
            other => other,
        }?;
        let file = File::from(found);
        let metadata = file.metadata().map_err(|_| Errno::IO)?;
        if metadata.is_dir() && !path.is_folder {
            return Ok((file, 0, true));
        }
        if metadata.is_file() { Ok((file, metadata.len(), false)) } else { Err(Errno::NOENT) }
    }

    fn walk(&self, parts: &[&str], flags: OFlags) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::openat(&self.folder, ".", step | OFlags::DIRECTORY, Mode::empty())?;
        let Some((last, folders)) = parts.split_last() else {
            return rustix::fs::openat(&folder, ".", flags, Mode::empty());
        };
        for part in folders {
            folder = rustix::fs::openat(&folder, *part, step | OFlags::DIRECTORY, Mode::empty())?;
        }
        rustix::fs::openat(&folder, *last, flags | OFlags::NOFOLLOW, Mode::empty())
    }
}

/// `length` bytes of a file from `start`, or the part of them that a request's fields ask for, as an answer.
pub(crate) fn read(
    mut file: File,
    start: u64,
    length: u64,
    media_type: HeaderValue,
    fields: &HeaderMap,
) -> Answer {
    let part = Part::of(fields, length);
    let from = if let Part::Range(from, _) = part { start.saturating_add(from) } else { start };
    if from > 0 && std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(from)).is_err() {
        return Answer::status(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let wanted = match part {
        Part::Whole => length,
        Part::Range(from, to) => to - from,
        Part::Unsatisfiable => 0,
    };
    if wanted > PART_BYTES as u64 {
        return Answer::part(media_type, length, part, |_, left| {
            Content::File(FileContent::Idle { file, left })
        });
    }
    let mut data = vec![0; usize::try_from(wanted).unwrap_or(0)];
    match file.read_exact(&mut data) {
        Ok(()) => Answer::part(media_type, length, part, |_, _| Content::Memory(Bytes::from(data))),
        Err(_) => Answer::status(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// Bytes of a path with `%XX` decoded (RFC 3986, section 2.1); `None` where `%` is not followed by two
/// digits.
fn percent_decode(path: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        decoded.push(u8::try_from(value).ok()?);
    }
    Some(decoded)
}

/// The media type of fragments of HDS, which have no extension.
pub(crate) const F4F: HeaderValue = HeaderValue::from_static("video/f4f");

/// The media type of a file, by its name.
pub(crate) fn media_type(name: &str) -> HeaderValue {
    const TYPES: &[(&str, &str)] = &[
        ("html", "text/html; charset=utf-8"),
        ("css", "text/css"),
        ("js", "text/javascript"),
        ("mjs", "text/javascript"),
        ("json", "application/json"),
        ("txt", "text/plain; charset=utf-8"),
        ("xml", "application/xml"),
        ("svg", "image/svg+xml"),
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("gif", "image/gif"),
        ("webp", "image/webp"),
        ("avif", "image/avif"),
        ("ico", "image/vnd.microsoft.icon"),
        ("woff", "font/woff"),
        ("woff2", "font/woff2"),
        ("mpd", "application/dash+xml"),
        ("m3u8", "application/vnd.apple.mpegurl"),
        ("mp4", "video/mp4"),
        ("m4s", "video/iso.segment"),
        ("m4f", "video/iso.segment"),
        ("m4v", "video/mp4"),
        ("cmfv", "video/mp4"),
        ("m4a", "audio/mp4"),
        ("cmfa", "audio/mp4"),
        ("aac", "audio/aac"),
        ("ts", "video/mp2t"),
        ("f4m", "application/f4m+xml"),
        ("bootstrap", "video/abst"),
        ("abst", "video/abst"),
        ("f4f", "video/f4f"),
        ("f4x", "video/f4x"),
        ("webm", "video/webm"),
        ("wasm", "application/wasm"),
        ("pdf", "application/pdf"),
    ];
    if parse_fragment_name(name).is_some() {
        return F4F;
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    HeaderValue::from_static(known.map_or("application/octet-stream", |(_, media_type)| media_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_parent_folder_is_accepted() {
        for path in [
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2e/x",
            "/%2E%2e/x",
            "/a%2f..%2f..%2fx",
            "/.%2e/x",
            "/./x",
            "/a/..",
            "//../x",
            "/..%2f",
        ] {
            assert_eq!(FilePath::parse(path), Err(StatusCode::NOT_FOUND), "{path}");
        }
        for path in ["/a%00", "/%", "/%2", "/%zz", "/%+1", "*", ""] {
            assert_eq!(FilePath::parse(path), Err(StatusCode::BAD_REQUEST), "{path}");
        }
        assert_eq!(FilePath::parse("/%ff"), Err(StatusCode::NOT_FOUND));
        // Decoded once only: what remains is a name like any other.
        assert_eq!(FilePath::parse("/%252e%252e/x").unwrap().decoded(), "/%2e%2e/x");
        assert_eq!(FilePath::parse("//a//b/").unwrap().decoded(), "/a/b/");
        assert_eq!(FilePath::parse("/").unwrap().decoded(), "/");
    }

    #[test]
    fn a_folder_is_never_at_another_server() {
        for (path, location) in [
            ("//evil.example", "/evil.example/"),
            ("///a//b", "/a/b/"),
            ("/%2fevil.example", "/evil.example/"),
            ("/\\evil.example", "/%5Cevil.example/"),
            ("/a%0d%0ab c/%C3%BC", "/a%0D%0Ab%20c/%C3%BC/"),
        ] {
            assert_eq!(FilePath::parse(path).unwrap().folder_location(), location, "{path}");
        }
    }

    #[test]
    fn both_ways_of_opening_stay_below_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let inside = tempfile::tempdir().unwrap();
        std::fs::create_dir(inside.path().join("d")).unwrap();
        std::fs::write(inside.path().join("d/f.txt"), "fine").unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), inside.path().join("d/out")).unwrap();
        std::os::unix::fs::symlink("../..", inside.path().join("d/up")).unwrap();
        let root = Root::open(inside.path()).unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        assert!(root.walk(&["d", "f.txt"], flags).is_ok());
        for escape in [&["out", "secret"][..], &["d", "out"], &["d", "up"]] {
            assert!(root.walk(escape, flags).is_err(), "{escape:?}");
            let path = FilePath::parse(&format!("/{}", escape.join("/"))).unwrap();
            assert!(root.find(&path).is_err(), "{escape:?}");
        }
        assert_eq!(root.find(&FilePath::parse("/d/f.txt").unwrap()).unwrap().1, 4);
        assert!(root.find(&FilePath::parse("/d").unwrap()).unwrap().2);
    }

    #[test]
    fn types_come_from_the_name() {
        assert_eq!(media_type("x.HTML"), "text/html; charset=utf-8");
        assert_eq!(media_type("html"), "application/octet-stream");
        assert_eq!(media_type("filmSeg1-Frag7"), "video/f4f");
        assert_eq!(media_type("main.m3u8"), "application/vnd.apple.mpegurl");
    }
}
