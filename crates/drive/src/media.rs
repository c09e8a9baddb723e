//! Real media: ffmpeg encodes a test card or a file to a ladder, cuts segments, and h123 writes the
//! manifests.
//!
//! Made media is kept in a cache under a hash of its input and settings, and linked from there.

mod encode;
pub(crate) mod feed;
mod ffmpeg;
mod folder;
mod frames;
mod hds;
mod package;
mod site;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use model::media::Media;
use model::number::float;
use model::units::{NANOS_PER_S, format_expected, format_ns, format_rate, parse_rate_bits_per_s};

use crate::links::link_folder;
use frames::FRAME_NS;

pub use crate::links::files;
pub use ffmpeg::Stopped;
pub use folder::read_folder;
pub use site::read_site;

/// Made media with another version has other bytes.
const CACHE_VERSION: u32 = 2;
/// As many as modelled media may have.
const MOST_SEGMENTS: u64 = 10_000;
/// A card is encoded for about this long; longer media repeats it.
const UNIQUE_NS: u64 = 30 * NANOS_PER_S;

/// What media is made of, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentSettings {
    /// The user's file; `None` for the test card.
    pub input: Option<PathBuf>,
    /// How long it plays; a shorter input is repeated.
    pub length_ns: u64,
    /// The duration of segments, in whole frames.
    pub segment_ns: u64,
    /// The encodings of the pictures, ascending by bit rate.
    pub video: Vec<VideoRung>,
    /// The bit rates of the sound, ascending.
    pub audio_bits_per_s: Vec<u64>,
    /// Whether to make HLS of MPEG-TS segments too.
    pub transport_stream: bool,
    /// HDS, if it is made.
    pub hds: Option<HdsSettings>,
}

/// How HDS is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HdsSettings {
    /// How many fragments are in an archive.
    pub fragments_per_segment: u32,
    /// A fragment number is left out after this many; `None` without gaps.
    pub gap_after: Option<u32>,
}

/// One encoding of the pictures, such as `1080i@8Mbit/s`: 25 frames per second, 16:9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoRung {
    /// Lines of a picture, even.
    pub height: u32,
    /// Whether a frame consists of two fields with different times.
    pub is_interlaced: bool,
    /// The bit rate, in bit/s.
    pub bits_per_s: u64,
}

impl VideoRung {
    /// The width of a picture with the ratio 16:9, even.
    pub const fn width(self) -> u32 {
        (self.height * 16 / 9).next_multiple_of(2)
    }

    /// The level of H.264: what decoders of such pictures have.
    pub(crate) const fn level(self) -> u8 {
        if self.height > 720 { 40 } else { 31 }
    }
}

impl FromStr for VideoRung {
    type Err = String;

    fn from_str(text: &str) -> Result<VideoRung, String> {
        const HEIGHTS: std::ops::RangeInclusive<u32> = 90..=1080;
        let fault = || {
            format!(
                "`{text}` is not an encoding; write lines, `p` or `i`, and a bit rate, such as `1080i@8Mbit/s`, with \
                 an even number of lines from {} to {}",
                HEIGHTS.start(),
                HEIGHTS.end()
            )
        };
        let (picture, rate) = text.split_once('@').ok_or_else(fault)?;
        let (lines, scan) = picture.split_at_checked(picture.len().saturating_sub(1)).ok_or_else(fault)?;
        let is_interlaced = match scan {
            "i" => true,
            "p" => false,
            _ => return Err(fault()),
        };
        let height = lines.parse().ok().filter(|height| HEIGHTS.contains(height) && height % 2 == 0);
        let bits_per_s = parse_rate_bits_per_s(rate)?;
        if !(10_000..=50_000_000).contains(&bits_per_s) {
            return Err(format!("`{text}`: write a bit rate from 10kbit/s to 50Mbit/s"));
        }
        Ok(VideoRung { height: height.ok_or_else(fault)?, is_interlaced, bits_per_s })
    }
}

impl std::fmt::Display for VideoRung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scan = if self.is_interlaced { 'i' } else { 'p' };
        write!(f, "{}{scan} at {}", self.height, format_rate(float(self.bits_per_s)))
    }
}

impl ContentSettings {
    /// Checks that segments are whole frames and that there is something to make.
    ///
    /// # Errors
    /// What is wrong, in one sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.video.is_empty() && self.audio_bits_per_s.is_empty() {
            return Err("there is neither video nor audio to make; name a rung".to_owned());
        }
        let (length, segment) = (format_ns(self.length_ns), format_ns(self.segment_ns));
        if self.segment_ns == 0 || !self.segment_ns.is_multiple_of(FRAME_NS) {
            let frame = format_ns(FRAME_NS);
            let nearest = format_ns((self.segment_ns / FRAME_NS).max(1) * FRAME_NS);
            return Err(format!(
                "--segment: {segment} is not a multiple of a frame's {frame}; write for example {nearest}"
            ));
        }
        if self.length_ns < self.segment_ns {
            return Err(format!("--length: {length} is shorter than one segment of {segment} (--segment)"));
        }
        if self.length_ns.div_ceil(self.segment_ns) > MOST_SEGMENTS {
            let length = format_expected(self.length_ns);
            let most = format_expected(self.segment_ns.saturating_mul(MOST_SEGMENTS));
            return Err(format!(
                "--length: {length} is more than 10 000 segments of {segment}; write at most {most}, or a longer \
                 --segment"
            ));
        }
        if self.video.windows(2).any(|pair| pair[0].bits_per_s >= pair[1].bits_per_s)
            || self.audio_bits_per_s.windows(2).any(|pair| pair[0] >= pair[1])
        {
            return Err("bit rates have to ascend; sort them, each once".to_owned());
        }
        if self.hds.is_some() && self.video.is_empty() {
            return Err("HDS needs video; name a rung".to_owned());
        }
        Ok(())
    }

    /// In words, such as `1 min in segments of 3.84 s: video 1080i at 8 Mbit/s; audio at 128 kbit/s`.
    pub fn describe(&self) -> String {
        let of = match &self.input {
            Some(path) => path.display().to_string(),
            None => "test card".to_owned(),
        };
        let video = self.video.iter().map(|rung| format!("video {rung}"));
        let audio =
            self.audio_bits_per_s.iter().map(|rate| format!("audio at {}", format_rate(float(*rate))));
        let ts = self.transport_stream.then(|| "MPEG-TS".to_owned());
        let hds = self.hds.map(|hds| match hds.gap_after {
            Some(after) => format!("HDS with a gap after {after} fragments"),
            None => "HDS".to_owned(),
        });
        let parts: Vec<String> = video.chain(audio).chain(ts).chain(hds).collect();
        let (length, segment) = (format_ns(self.length_ns), format_ns(self.segment_ns));
        format!("{of}, {length} in segments of {segment}: {}", parts.join(", "))
    }

    /// How long the encodings are that the media repeats: whole segments.
    pub(crate) fn unique_ns(&self) -> u64 {
        let most_ns = if self.input.is_some() { self.length_ns } else { self.length_ns.min(UNIQUE_NS) };
        most_ns.div_ceil(self.segment_ns).saturating_mul(self.segment_ns)
    }

    /// A name for the bytes that these settings make.
    ///
    /// # Errors
    /// The input cannot be read.
    fn hash(&self, ffmpeg: &str) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        hasher.write_u32(CACHE_VERSION);
        hasher.write(ffmpeg.as_bytes());
        hasher.write(format!("{:?}", ContentSettings { input: None, ..self.clone() }).as_bytes());
        if let Some(path) = &self.input {
            let context = || format!("cannot read {}", path.display());
            let mut file = fs::File::open(path).with_context(context)?;
            let mut piece = vec![0; 1 << 16];
            loop {
                match file.read(&mut piece).with_context(context)? {
                    0 => break,
                    length => hasher.write(&piece[..length]),
                }
            }
        }
        Ok(format!("{:016x}", hasher.finish()))
    }
}

/// Where made media is kept: `h123/content` in the user's cache. `None` where the user has no home.
pub fn cache_folder() -> Option<PathBuf> {
    crate::installed::cache().map(|cache| cache.join("h123/content"))
}

/// Unfinished entries begin with this.
const UNFINISHED: &str = "new-";
/// A file in them that is locked while the media is made.
const LOCK: &str = "lock";

/// The file that describes an entry of the cache; the entry is incomplete without it.
const DESCRIPTION: &str = "description.txt";

/// An entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheEntry {
    /// Its folder.
    pub folder: PathBuf,
    /// What it contains, in one line.
    pub description: String,
    /// The length of its files.
    pub bytes: u64,
}

/// The entries of a cache, by their names; none if it does not exist.
///
/// # Errors
/// A folder cannot be read.
pub fn cached(cache: &Path) -> Result<Vec<CacheEntry>> {
    let mut found = Vec::new();
    for folder in folders(cache)? {
        if let Ok(description) = fs::read_to_string(folder.join(DESCRIPTION)) {
            let bytes = files(&folder)?.iter().map(|(_, bytes)| bytes).sum();
            found.push(CacheEntry { folder, description: description.trim().to_owned(), bytes });
        }
    }
    Ok(found)
}

/// The folders of media that was not finished, because the command that made it was killed, and the length of
/// their files. Media that is being made is left out.
///
/// # Errors
/// A folder cannot be read.
pub fn unfinished(cache: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut found = Vec::new();
    for folder in folders(cache)? {
        let is_unfinished =
            folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()));
        let is_locked = || {
            let lock = fs::File::open(folder.join(LOCK));
            lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)))
        };
        if is_unfinished && !is_locked() {
            let bytes = files(&folder)?.iter().map(|(_, bytes)| bytes).sum();
            found.push((folder, bytes));
        }
    }
    Ok(found)
}

/// The folders in a cache, by their names; none if it does not exist.
fn folders(cache: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("cannot read {}", cache.display());
    let entries = match fs::read_dir(cache) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(context)?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).with_context(context));
    let mut found = paths.collect::<Result<Vec<_>>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

/// Makes media in the cache, if it is not there yet, and links its files into `output`.
///
/// # Errors
/// ffmpeg is missing, fails, or takes too long; the user stops ([`Stopped`]); a file cannot be written.
pub fn make(
    settings: &ContentSettings,
    cache: &Path,
    output: &Path,
    stop: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<()> {
    settings.check().map_err(anyhow::Error::msg)?;
    let program = ffmpeg::Ffmpeg::find(stop)?;
    let entry = cache.join(settings.hash(program.version())?);
    if entry.join(DESCRIPTION).is_file() {
        say(&format!("in the cache: {}", entry.display()));
    } else {
        fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
        let work = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(cache);
        let work = work.with_context(|| format!("cannot write to {}", cache.display()))?;
        let _lock = lock(work.path())?;
        let made = work.path().join("made");
        encode::make(settings, &program, work.path(), &made, say)?;
        fs::write(made.join(DESCRIPTION), format!("{}\n", settings.describe()))
            .with_context(|| format!("cannot write to {}", made.display()))?;
        // Another process may have made the same.
        if let Err(error) = fs::rename(&made, &entry)
            && !entry.join(DESCRIPTION).is_file()
        {
            return Err(error).with_context(|| format!("cannot write {}", entry.display()));
        }
    }
    link_folder(&entry, output, Some(DESCRIPTION))
}

/// Marks an entry as being made for as long as the file is open.
fn lock(folder: &Path) -> Result<fs::File> {
    let path = folder.join(LOCK);
    let context = || format!("cannot lock {}", path.display());
    let file = fs::File::create(&path).with_context(context)?;
    file.lock().with_context(context)?;
    Ok(file)
}

/// Writes the files of modelled media to a new folder.
///
/// # Errors
/// A file cannot be written.
pub fn write_modelled(media: &Media, folder: &Path) -> Result<()> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let work = tempfile::tempdir_in(parent);
    let work = work.with_context(|| format!("cannot write to {}", parent.display()))?;
    crate::write_media(work.path(), media)?;
    let written = work.path().join(media.folder().trim_matches('/'));
    fs::rename(written, folder).with_context(|| format!("cannot write {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_read() {
        let rung: VideoRung = "1080i@8Mbit/s".parse().unwrap();
        assert_eq!(rung, VideoRung { height: 1080, is_interlaced: true, bits_per_s: 8_000_000 });
        assert_eq!((rung.width(), rung.level()), (1920, 40));
        let rung: VideoRung = "360p@800kbit/s".parse().unwrap();
        assert_eq!((rung.width(), rung.level(), rung.to_string().as_str()), (640, 31, "360p at 800 kbit/s"));
        for (text, expected) in [
            ("1080i", "is not an encoding; write lines"),
            ("@8Mbit/s", "is not an encoding"),
            ("1080@8Mbit/s", "is not an encoding"),
            ("é@8Mbit/s", "is not an encoding"),
            ("2160p@8Mbit/s", "from 90 to 1080"),
            ("361p@8Mbit/s", "an even number of lines"),
            ("360p@8", "`8` is not a rate"),
            ("360p@80Mbit/s", "from 10kbit/s to 50Mbit/s"),
        ] {
            let problem = text.parse::<VideoRung>().unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    fn settings() -> ContentSettings {
        ContentSettings {
            input: None,
            length_ns: 60 * NANOS_PER_S,
            segment_ns: 3_840_000_000,
            video: vec!["360p@800kbit/s".parse().unwrap(), "1080i@8Mbit/s".parse().unwrap()],
            audio_bits_per_s: vec![128_000],
            transport_stream: true,
            hds: None,
        }
    }

    #[test]
    fn settings_that_cannot_be_made_are_refused() {
        let good = settings();
        assert_eq!(good.check(), Ok(()));
        let none = ContentSettings { video: Vec::new(), audio_bits_per_s: Vec::new(), ..good.clone() };
        assert!(none.check().unwrap_err().contains("neither video nor audio"));
        let uneven = ContentSettings { segment_ns: 2_010_000_000, ..good.clone() };
        assert_eq!(
            uneven.check().unwrap_err(),
            "--segment: 2.01 s is not a multiple of a frame's 40 ms; write for example 2 s"
        );
        let short = ContentSettings { length_ns: 0, ..good.clone() };
        assert_eq!(
            short.check().unwrap_err(),
            "--length: 0 ns is shorter than one segment of 3.84 s (--segment)"
        );
        let long = ContentSettings { length_ns: 10_000 * 3_600 * NANOS_PER_S, ..good.clone() };
        assert_eq!(
            long.check().unwrap_err(),
            "--length: 10000 h 0 min is more than 10 000 segments of 3.84 s; write at most 10 h 40 min, or a longer \
             --segment"
        );
        let longest = ContentSettings { length_ns: 10_000 * good.segment_ns, ..good.clone() };
        assert_eq!(longest.check(), Ok(()));
        let unsorted = ContentSettings { video: good.video.iter().rev().copied().collect(), ..good.clone() };
        assert!(unsorted.check().unwrap_err().contains("have to ascend"));
        let hds = Some(HdsSettings { fragments_per_segment: 5, gap_after: None });
        let silent = ContentSettings { video: Vec::new(), hds, ..good };
        assert!(silent.check().unwrap_err().contains("HDS needs video"));
    }

    #[test]
    fn only_abandoned_media_is_unfinished() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(unfinished(&cache.path().join("none")).unwrap(), []);
        for name in ["new-a", "new-b", "new-c", "0123"] {
            fs::create_dir(cache.path().join(name)).unwrap();
            fs::write(cache.path().join(name).join("video.mp4"), "12345").unwrap();
        }
        let running = lock(&cache.path().join("new-b")).unwrap();
        // Its command was killed.
        drop(lock(&cache.path().join("new-c")).unwrap());
        let found = |name: &str| (cache.path().join(name), 5);
        assert_eq!(unfinished(cache.path()).unwrap(), [found("new-a"), found("new-c")]);
        drop(running);
        assert_eq!(unfinished(cache.path()).unwrap().len(), 3);
    }

    #[test]
    fn a_hash_depends_on_settings_and_input() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "abc").unwrap();
        fs::write(&other, "abd").unwrap();
        let hash = |settings: &ContentSettings, version: &str| settings.hash(version).unwrap();
        let card = settings();
        let longer = ContentSettings { length_ns: 61 * NANOS_PER_S, ..card.clone() };
        let of = |path: &Path| ContentSettings { input: Some(path.to_owned()), ..card.clone() };
        let all = [
            hash(&card, "5"),
            hash(&card, "6"),
            hash(&longer, "5"),
            hash(&of(&one), "5"),
            hash(&of(&other), "5"),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:?}");
        let renamed = folder.path().join("renamed");
        fs::rename(&one, &renamed).unwrap();
        assert_eq!(hash(&of(&renamed), "5"), all[3], "the content counts, not the name");
    }

    #[test]
    fn long_media_repeats_whole_segments() {
        assert_eq!(settings().unique_ns(), 8 * 3_840_000_000);
        let short = ContentSettings { length_ns: 5 * NANOS_PER_S, ..settings() };
        assert_eq!(short.unique_ns(), 2 * 3_840_000_000);
    }
}
