//! Reads playlists.

use model::media::ByteRange;

use super::super::error::{FormatError, Place};
use super::super::shown;
use super::super::time::{parse_date, parse_seconds};

/// The most segments, variants and renditions of a playlist.
const MOST_ENTRIES: usize = 200_000;

/// A playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Playlist {
    /// Of variants and renditions.
    Multivariant(Multivariant),
    /// Of segments.
    Media(MediaPlaylist),
}

/// A playlist of variants and renditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multivariant {
    /// The variants in the order of the playlist.
    pub variants: Vec<Variant>,
    /// The renditions.
    pub renditions: Vec<Rendition>,
}

/// A variant stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Its media playlist.
    pub uri: String,
    /// Its line, from 1.
    pub line: u32,
    /// Its peak bit rate with its renditions, in bit/s.
    pub bits_per_s: u64,
    /// Its codecs; empty if not stated.
    pub codecs: Vec<String>,
    /// Whether it states a resolution.
    pub has_resolution: bool,
    /// The group of its audio renditions.
    pub audio_group: Option<String>,
    /// Whether it has only pictures for seeking (`EXT-X-I-FRAME-STREAM-INF`).
    pub is_for_seeking: bool,
}

/// A rendition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendition {
    /// Its media playlist; `None` if it is in the variants.
    pub uri: Option<String>,
    /// Its line, from 1.
    pub line: u32,
    /// Its type, such as `AUDIO`.
    pub kind: String,
    /// Its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Whether players prefer it.
    pub is_default: bool,
}

/// A playlist of segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaPlaylist {
    /// Upper bound on the duration of segments, in nanoseconds.
    pub target_ns: u64,
    /// The number of the first segment.
    pub first_number: u64,
    /// Whether nothing follows.
    pub is_ended: bool,
    /// How far behind its end to play, in nanoseconds.
    pub hold_back_ns: Option<u64>,
    /// The Unix time of the first segment.
    pub start_unix_ns: Option<u64>,
    /// What decoders need, in the order of the segments.
    pub maps: Vec<Part>,
    /// The segments, without those that the playlist marks as missing (`EXT-X-GAP`).
    pub segments: Vec<PlaylistSegment>,
    /// The URIs of keys.
    pub keys: Vec<String>,
}

/// A segment of a playlist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaylistSegment {
    /// Its bytes.
    pub part: Part,
    /// Its number; segments that are missing have one too.
    pub number: u64,
    /// Its duration, in nanoseconds.
    pub duration_ns: u64,
    /// Its bit rate, about (`EXT-X-BITRATE`), in bit/s.
    pub bits_per_s: Option<u64>,
    /// Whether timestamps or codecs change before it.
    pub is_discontinuity: bool,
    /// Which of the playlist's maps it needs, counted from 0; `None` before the first.
    pub map: Option<usize>,
}

/// A resource or a range of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The resource.
    pub uri: String,
    /// Its line, from 1.
    pub line: u32,
    /// The range; `None` for the whole.
    pub range: Option<ByteRange>,
}

/// Tags that apply to the next segment.
#[derive(Default)]
struct Next {
    duration_ns: Option<u64>,
    range: Option<(u64, Option<u64>)>,
    is_discontinuity: bool,
    is_gap: bool,
    variant: Option<Variant>,
}

/// The playlist while it is read.
#[derive(Default)]
struct Reader {
    media: MediaPlaylist,
    multivariant: Multivariant,
    next: Next,
    has_target: bool,
    /// The bit rate of the segments from here on that have no range.
    bits_per_s: Option<u64>,
    /// The number of segments, with missing ones.
    count: u64,
    /// Where the next range without an offset begins, and in which resource.
    range_end: Option<(String, u64)>,
}

impl Playlist {
    /// Reads a playlist.
    ///
    /// # Errors
    /// The line and the fault: no playlist, a tag with a value of another form, a segment without a duration,
    /// or variants and segments in one playlist.
    pub fn parse(text: &str) -> Result<Playlist, FormatError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = text.lines().zip(1_u32..);
        if lines.next().is_none_or(|(first, _)| first.trim_end() != "#EXTM3U") {
            return Err(FormatError::at(Place::Line(1), "a playlist begins with `#EXTM3U`"));
        }
        let mut reader = Reader::default();
        for (text, line) in lines {
            let text = text.trim();
            let read = match text.strip_prefix('#') {
                Some(tag) => reader.handle_tag(tag, line),
                None if text.is_empty() => Ok(()),
                None => reader.handle_uri(text, line),
            };
            read?;
        }
        reader.finish()
    }
}

impl Reader {
    fn handle_tag(&mut self, tag: &str, line: u32) -> Result<(), FormatError> {
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        match name {
            "EXTINF" => {
                let duration = value.split(',').next().unwrap_or_default();
                self.next.duration_ns = Some(seconds(line, duration)?);
            }
            "EXT-X-BYTERANGE" => self.next.range = Some(byte_range(line, value)?),
            "EXT-X-DISCONTINUITY" => self.next.is_discontinuity = true,
            "EXT-X-GAP" => self.next.is_gap = true,
            "EXT-X-TARGETDURATION" => {
                self.media.target_ns = seconds(line, value)?;
                self.has_target = true;
            }
            "EXT-X-BITRATE" => self.bits_per_s = Some(whole(line, value)?.saturating_mul(1_000)),
            "EXT-X-MEDIA-SEQUENCE" => self.media.first_number = whole(line, value)?,
            "EXT-X-ENDLIST" => self.media.is_ended = true,
            "EXT-X-PROGRAM-DATE-TIME" if self.count == 0 => {
                let fault = || fault(line, value, "a date and time such as `2026-01-01T00:00:00Z`");
                self.media.start_unix_ns = Some(parse_date(value).ok_or_else(fault)?);
            }
            "EXT-X-SERVER-CONTROL" => {
                let list = Attributes::parse(line, value)?;
                let text = list.get("HOLD-BACK");
                self.media.hold_back_ns = text.map(|text| seconds(line, text)).transpose()?;
            }
            "EXT-X-MAP" => self.handle_map(value, line)?,
            "EXT-X-KEY" => {
                let list = Attributes::parse(line, value)?;
                let uri = list.get("URI").map(str::to_owned);
                self.media.keys.extend(uri.filter(|uri| !self.media.keys.contains(uri)));
                self.check_count(line, self.media.keys.len())?;
            }
            "EXT-X-STREAM-INF" => self.next.variant = Some(variant(value, line)?),
            "EXT-X-I-FRAME-STREAM-INF" => {
                let uri = Attributes::parse(line, value)?.required("URI")?.to_owned();
                let own = variant(value, line)?;
                self.multivariant.variants.push(Variant { uri, is_for_seeking: true, ..own });
                self.check_count(line, self.multivariant.variants.len())?;
            }
            // URLs with variables would be wrong.
            "EXT-X-DEFINE" => {
                let words = "`#EXT-X-DEFINE` defines variables, which h123 does not support; write the values instead";
                return Err(problem(line, words.to_owned()));
            }
            "EXT-X-MEDIA" => {
                self.multivariant.renditions.push(rendition(value, line)?);
                self.check_count(line, self.multivariant.renditions.len())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn handle_map(&mut self, value: &str, line: u32) -> Result<(), FormatError> {
        let list = Attributes::parse(line, value)?;
        let uri = list.required("URI")?.to_owned();
        let range = list.get("BYTERANGE").map(|text| byte_range(line, text)).transpose()?;
        let range = range.map(|(length, first)| {
            ByteRange::of_length(first.unwrap_or(0), length).ok_or_else(|| empty_range(line))
        });
        self.media.maps.push(Part { uri, line, range: range.transpose()? });
        self.check_count(line, self.media.maps.len())
    }

    fn handle_uri(&mut self, uri: &str, line: u32) -> Result<(), FormatError> {
        let next = std::mem::take(&mut self.next);
        if let Some(variant) = next.variant {
            self.multivariant.variants.push(Variant { uri: uri.to_owned(), line, ..variant });
            return self.check_count(line, self.multivariant.variants.len());
        }
        let Some(duration_ns) = next.duration_ns else {
            let found = shown(uri);
            return Err(problem(line, format!("`{found}` has neither `#EXTINF` nor `#EXT-X-STREAM-INF`")));
        };
        let range = match next.range {
            Some((length, first)) => Some(self.next_range(uri, line, length, first)?),
            None => None,
        };
        let number = self.media.first_number.saturating_add(self.count);
        self.count += 1;
        if next.is_gap {
            return Ok(());
        }
        let part = Part { uri: uri.to_owned(), line, range };
        let is_discontinuity = next.is_discontinuity;
        let map = self.media.maps.len().checked_sub(1);
        // Segments that are ranges have lengths (draft-pantos-hls-rfc8216bis, section 4.4.4.8).
        let bits_per_s = self.bits_per_s.filter(|_| part.range.is_none());
        let segment = PlaylistSegment { part, number, duration_ns, bits_per_s, is_discontinuity, map };
        self.media.segments.push(segment);
        self.check_count(line, self.media.segments.len())
    }

    /// A range without an offset begins where the one before ends (RFC 8216, section 4.3.2.2).
    fn next_range(
        &mut self,
        uri: &str,
        line: u32,
        length: u64,
        first: Option<u64>,
    ) -> Result<ByteRange, FormatError> {
        let previous = self.range_end.as_ref().filter(|(known, _)| known == uri).map(|(_, end)| *end);
        let Some(first) = first.or(previous) else {
            let words = "`#EXT-X-BYTERANGE` needs an offset: no range of the same resource is before it";
            return Err(problem(line, words.to_owned()));
        };
        let range = ByteRange::of_length(first, length).ok_or_else(|| empty_range(line))?;
        self.range_end = Some((uri.to_owned(), range.last.saturating_add(1)));
        Ok(range)
    }

    fn check_count(&self, line: u32, count: usize) -> Result<(), FormatError> {
        let words = || format!("more than {MOST_ENTRIES} entries of one kind");
        if count > MOST_ENTRIES { Err(problem(line, words())) } else { Ok(()) }
    }

    fn finish(self) -> Result<Playlist, FormatError> {
        let has_segments = self.has_target || self.count > 0;
        match (has_segments, self.multivariant.variants.is_empty()) {
            (true, false) => Err(FormatError::new("the playlist has both segments and variants")),
            (false, false) => Ok(Playlist::Multivariant(self.multivariant)),
            (true, true) if !self.has_target => {
                Err(FormatError::new("the playlist has segments, but no `#EXT-X-TARGETDURATION`"))
            }
            (true, true) => Ok(Playlist::Media(self.media)),
            (false, true) => Err(FormatError::new("the playlist has neither segments nor variants")),
        }
    }
}

fn variant(value: &str, line: u32) -> Result<Variant, FormatError> {
    let list = Attributes::parse(line, value)?;
    let codecs = list.get("CODECS").unwrap_or_default().split(',').map(str::trim);
    Ok(Variant {
        line,
        bits_per_s: whole(line, list.required("BANDWIDTH")?)?,
        codecs: codecs.filter(|codec| !codec.is_empty()).map(str::to_owned).collect(),
        has_resolution: list.get("RESOLUTION").is_some(),
        audio_group: list.get("AUDIO").map(str::to_owned),
        ..Variant::default()
    })
}

fn rendition(value: &str, line: u32) -> Result<Rendition, FormatError> {
    let list = Attributes::parse(line, value)?;
    Ok(Rendition {
        uri: list.get("URI").map(str::to_owned),
        line,
        kind: list.required("TYPE")?.to_owned(),
        group: list.required("GROUP-ID")?.to_owned(),
        name: list.get("NAME").unwrap_or_default().to_owned(),
        is_default: list.get("DEFAULT") == Some("YES"),
    })
}

/// A list of attributes (RFC 8216, section 4.2).
struct Attributes<'a> {
    line: u32,
    list: Vec<(&'a str, &'a str)>,
}

impl<'a> Attributes<'a> {
    fn parse(line: u32, text: &'a str) -> Result<Attributes<'a>, FormatError> {
        const EXPECTED: &str = "a list such as `NAME=value,OTHER=\"text\"`";
        let mut list = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (name, after) = rest.split_once('=').ok_or_else(|| fault(line, rest, EXPECTED))?;
            let (value, after) = match after.strip_prefix('"') {
                Some(after) => {
                    let (value, after) = after.split_once('"').ok_or_else(|| fault(line, rest, EXPECTED))?;
                    (value, after.strip_prefix(',').unwrap_or(after))
                }
                None => after.split_once(',').unwrap_or((after, "")),
            };
            list.push((name.trim(), value.trim()));
            rest = after.trim_start();
        }
        Ok(Attributes { line, list })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.list.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn required(&self, name: &str) -> Result<&'a str, FormatError> {
        self.get(name).ok_or_else(|| problem(self.line, format!("the attribute `{name}` is missing")))
    }
}

/// Length and offset of `LENGTH[@OFFSET]`.
fn byte_range(line: u32, text: &str) -> Result<(u64, Option<u64>), FormatError> {
    let (length, first) = match text.trim().split_once('@') {
        Some((length, first)) => (length, Some(first)),
        None => (text.trim(), None),
    };
    let first = first.map(|first| whole(line, first)).transpose()?;
    Ok((whole(line, length)?, first))
}

fn whole(line: u32, text: &str) -> Result<u64, FormatError> {
    text.trim().parse().map_err(|_| fault(line, text, "a whole number"))
}

fn seconds(line: u32, text: &str) -> Result<u64, FormatError> {
    parse_seconds(text).ok_or_else(|| fault(line, text, "a duration in seconds"))
}

fn fault(line: u32, found: &str, expected: &str) -> FormatError {
    problem(line, format!("`{}` is not {expected}", shown(found)))
}

fn empty_range(line: u32) -> FormatError {
    problem(line, "the range of bytes is empty or ends beyond any file".to_owned())
}

fn problem(line: u32, problem: String) -> FormatError {
    FormatError::at(Place::Line(line), problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(text: &str) -> MediaPlaylist {
        match Playlist::parse(text).unwrap() {
            Playlist::Media(media) => media,
            Playlist::Multivariant(_) => panic!("no media playlist"),
        }
    }

    #[test]
    fn a_media_playlist_is_read() {
        let found = media(
            "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:17\n\
             #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,HOLD-BACK=12.5\n\
             #EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"700@0\"\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n\
             #EXTINF:3.84,title, with comma\n#EXT-X-BYTERANGE:1000@700\na.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:500\na.mp4\n\
             #EXTINF:4,\n#EXT-X-GAP\nmissing.mp4\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP:URI=\"other.mp4\"\n\
             #EXT-X-PROGRAM-DATE-TIME:2027-01-01T00:00:00Z\n# a comment\n#EXTINF:2\r\nb.mp4\n#EXT-X-ENDLIST\n",
        );
        let expected = [
            ("a.mp4", Some(ByteRange { first: 700, last: 1_699 }), 17, 3_840_000_000, false),
            ("a.mp4", Some(ByteRange { first: 1_700, last: 2_199 }), 18, 4_000_000_000, false),
            ("b.mp4", None, 20, 2_000_000_000, true),
        ];
        let segments: Vec<_> = found
            .segments
            .iter()
            .map(|own| {
                (own.part.uri.as_str(), own.part.range, own.number, own.duration_ns, own.is_discontinuity)
            })
            .collect();
        assert_eq!(segments, expected);
        assert_eq!((found.target_ns, found.first_number, found.is_ended), (4_000_000_000, 17, true));
        assert_eq!(found.hold_back_ns, Some(12_500_000_000));
        assert_eq!(found.start_unix_ns, Some(1_767_225_600_000_000_000));
        let needs: Vec<_> = found.segments.iter().map(|own| own.map).collect();
        assert_eq!(needs, [Some(0), Some(0), Some(1)]);
        let maps: Vec<_> = found.maps.iter().map(|map| (map.uri.as_str(), map.range)).collect();
        assert_eq!(maps, [("init.mp4", Some(ByteRange { first: 0, last: 699 })), ("other.mp4", None)]);
    }

    #[test]
    fn a_multivariant_playlist_is_read() {
        let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en, main\",DEFAULT=YES,URI=\"en.m3u8\"\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=800000,CODECS=\"avc1.64001f,mp4a.40.2\",RESOLUTION=640x360,AUDIO=\"a\"\n\
                    low.m3u8\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9,URI=\"seek.m3u8\"\n";
        let Playlist::Multivariant(found) = Playlist::parse(text).unwrap() else { panic!("no variants") };
        let low = &found.variants[0];
        assert_eq!((low.uri.as_str(), low.bits_per_s, low.has_resolution), ("low.m3u8", 800_000, true));
        assert_eq!(low.codecs, ["avc1.64001f", "mp4a.40.2"]);
        assert_eq!(low.audio_group.as_deref(), Some("a"));
        assert!(found.variants[1].is_for_seeking && found.variants[1].uri == "seek.m3u8");
        let audio = &found.renditions[0];
        assert_eq!((audio.name.as_str(), audio.is_default), ("en, main", true));
        assert_eq!(audio.uri.as_deref(), Some("en.m3u8"));
    }

    #[test]
    fn faults_have_a_line() {
        const HEAD: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";
        for (text, expected) in [
            ("EXTM3U", "line 1: a playlist begins with `#EXTM3U`"),
            ("", "line 1: a playlist begins with `#EXTM3U`"),
            ("#EXTM3U", "neither segments nor variants"),
            ("#EXTM3U\n#EXTINF:1,\na", "no `#EXT-X-TARGETDURATION`"),
            (&format!("{HEAD}a.ts"), "line 3: `a.ts` has neither `#EXTINF` nor `#EXT-X-STREAM-INF`"),
            (&format!("{HEAD}#EXTINF:x,\na"), "line 3: `x` is not a duration in seconds"),
            (&format!("{HEAD}#EXTINF:-1,\na"), "line 3: `-1` is not a duration"),
            (
                &format!("{HEAD}#EXTINF:1,\n#EXT-X-BYTERANGE:5\na"),
                "line 5: `#EXT-X-BYTERANGE` needs an offset",
            ),
            (&format!("{HEAD}#EXTINF:1,\n#EXT-X-BYTERANGE:0@1\na"), "line 5: the range of bytes is empty"),
            (&format!("{HEAD}#EXT-X-MAP:BYTERANGE=\"1@0\""), "line 3: the attribute `URI` is missing"),
            (&format!("{HEAD}#EXT-X-MAP:URI"), "line 3: `URI` is not a list"),
            (&format!("{HEAD}#EXT-X-MAP:URI=\"a"), "is not a list"),
            ("#EXTM3U\n#EXT-X-STREAM-INF:CODECS=\"a\"\na", "line 2: the attribute `BANDWIDTH` is missing"),
            (&format!("{HEAD}#EXT-X-STREAM-INF:BANDWIDTH=1\na"), "both segments and variants"),
        ] {
            let error = Playlist::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
