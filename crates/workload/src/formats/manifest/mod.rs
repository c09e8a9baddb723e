//! Any media manifest, and everything that it refers to, as one presentation.
//!
//! Manifests refer to further ones: playlists, bootstraps, indexes. Nothing is fetched here. The owner of a
//! [`Resolver`] reads what [`Resolver::needs`] lists, from wherever it likes, and gives it to
//! [`Resolver::handle_resource`], until nothing is needed.

mod assembly;
mod audio_rates;
mod hds;
mod hls;

use model::media::{ByteRange, Presentation, Segment, Track};
use model::url::Url;

use self::audio_rates::AudioRates;
use super::dash::read_mpd;
use super::error::FormatError;
use super::hds::bootstrap::Bootstrap;
use super::isobmff::{FragmentedMp4, boxes, parse_sidx, scan};
pub use super::listing::SegmentPlace;
use super::listing::{
    ListedRepresentation, ListedSegment, ListedTrack, Period, Purpose, Reference, Resource, SegmentCount,
    Slot,
};
pub use super::package::Live;
use super::shown;

/// The longest manifest, playlist, bootstrap or index, in bytes.
pub const MOST_BYTES: u64 = 64 << 20;
/// The most resources that one manifest may refer to.
const MOST_REFERENCES: usize = 10_000;

model::named! { "a format of manifests";
    /// The format of a manifest.
    pub enum ManifestFormat {
        /// An MPD (ISO/IEC 23009-1).
        Dash = "dash",
        /// A playlist (RFC 8216).
        Hls = "hls",
        /// A manifest (F4M) or a bootstrap of HTTP Dynamic Streaming.
        Hds = "hds",
        /// A fragmented MP4 file without a manifest.
        Mp4 = "mp4",
    }
}

/// What a manifest and everything that it refers to lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The format.
    pub format: ManifestFormat,
    /// What a player plays: one track of each kind, the one that the manifest prefers.
    pub presentation: Presentation,
    /// The places of the segments of each track of the presentation.
    pub places: Vec<Vec<SegmentPlace>>,
    /// Further tracks, such as other languages.
    pub alternatives: Vec<Track>,
    /// What else exists: subtitles and thumbnails.
    pub others: Vec<Segment>,
    /// What the manifest refers to and was read: playlists, bootstraps, further manifests.
    pub references: Vec<Segment>,
    /// The facts of a live stream; `None` on demand.
    pub live: Option<Live>,
}

/// Something that has to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its URL.
    pub url: Url,
    /// The range of bytes that suffices; a resource that is shorter ends it.
    pub range: Option<ByteRange>,
}

/// A manifest whose references are being read.
#[derive(Clone, Debug)]
pub struct Resolver {
    format: ManifestFormat,
    base: Url,
    periods: Vec<Period>,
    live: Option<Live>,
    pending: Vec<Reference>,
    read: Vec<Resource>,
    count: SegmentCount,
    audio_rates: AudioRates,
}

impl Resolver {
    /// Begins with the bytes of a manifest, the URL that they came from after redirects, and the Unix time,
    /// which decides what exists of some live streams.
    ///
    /// # Errors
    /// The bytes are no manifest that h123 knows, or it is damaged.
    pub fn new(bytes: &[u8], url: &Url, now_unix_ns: u64) -> Result<Resolver, FormatError> {
        let mut resolver = Resolver {
            format: sniff(bytes)?,
            base: url.clone(),
            periods: Vec::new(),
            live: None,
            pending: Vec::new(),
            read: Vec::new(),
            count: SegmentCount::default(),
            audio_rates: AudioRates::default(),
        };
        match resolver.format {
            ManifestFormat::Dash => {
                let mpd = read_mpd(&text(bytes)?, url, now_unix_ns, &mut resolver.count)?;
                (resolver.periods, resolver.live) = (mpd.periods, mpd.live);
                mpd.references.into_iter().try_for_each(|own| resolver.refer(own))?;
            }
            ManifestFormat::Hls => resolver.begin_hls(&text(bytes)?, url)?,
            ManifestFormat::Hds if bytes.get(4..8) == Some(b"abst") => {
                resolver.begin_bootstrap(bytes, url)?
            }
            ManifestFormat::Hds => resolver.begin_f4m(&text(bytes)?, url)?,
            ManifestFormat::Mp4 => resolver.begin_mp4(bytes, url)?,
        }
        Ok(resolver)
    }

    /// What has to be read next, each resource once; empty at the end.
    pub fn needs(&self) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        for Reference { resource, .. } in &self.pending {
            let need = Need { url: resource.url.clone(), range: resource.range };
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    /// Takes the bytes of something that is needed, and the URL that they came from after redirects.
    ///
    /// # Errors
    /// It does not have the format that the manifest implies, or is damaged.
    pub fn handle_resource(&mut self, need: &Need, url: &Url, bytes: &[u8]) -> Result<(), FormatError> {
        let is_it = |own: &Reference| own.resource.url == need.url && own.resource.range == need.range;
        let (answered, pending) = std::mem::take(&mut self.pending).into_iter().partition(is_it);
        let answered: Vec<Reference> = answered;
        self.pending = pending;
        if let Some(first) = answered.first() {
            self.read.push(first.resource.clone());
        }
        for Reference { resource, purpose } in answered {
            match purpose {
                Purpose::Index { slot, media, start_ns, duration_ns } => {
                    let place = SegmentPlace::of_time(start_ns, duration_ns);
                    let first_byte = resource.range.map_or(0, |range| range.first);
                    self.handle_index(slot, &media, place, bytes, first_byte)?;
                }
                Purpose::Playlist { slot } => self.handle_playlist(slot, &text(bytes)?, url)?,
                Purpose::Bootstrap { slot, media } => self.handle_bootstrap(slot, &media, bytes)?,
                Purpose::Manifest { bits_per_s } => self.handle_f4m(&text(bytes)?, url, bits_per_s)?,
            }
        }
        Ok(())
    }

    /// The manifest with everything that it refers to.
    ///
    /// # Errors
    /// Something is still needed, or the manifest lists no segment.
    pub fn finish(mut self) -> Result<Manifest, FormatError> {
        if let Some(reference) = self.pending.first() {
            let url = shown(&reference.resource.url.to_string());
            let problem = format!("{url} is needed and was not read");
            return Err(FormatError::new(problem));
        }
        self.audio_rates.fill(&mut self.periods);
        assembly::assemble(self)
    }

    fn refer(&mut self, reference: Reference) -> Result<(), FormatError> {
        if self.pending.len() + self.read.len() >= MOST_REFERENCES {
            let problem = format!("the manifest refers to more than {MOST_REFERENCES} resources");
            return Err(FormatError::new(problem));
        }
        self.pending.push(reference);
        Ok(())
    }

    fn representation(&mut self, slot: Slot) -> Option<&mut ListedRepresentation> {
        let track = self.periods.get_mut(slot.period)?.tracks.get_mut(slot.track)?;
        track.representations.get_mut(slot.representation)
    }

    /// The segments of one file by its index, whose bytes begin at `first_byte`; without an index, the whole
    /// file is a segment. `place` is that of the period.
    fn handle_index(
        &mut self,
        slot: Slot,
        media: &Url,
        place: SegmentPlace,
        bytes: &[u8],
        first_byte: u64,
    ) -> Result<(), FormatError> {
        let index = boxes(bytes, first_byte).map_while(Result::ok).find(|own| own.kind.0 == *b"sidx");
        let resource = |range| Resource { url: media.clone(), range };
        let listed = |range, place: SegmentPlace| ListedSegment {
            resource: resource(range),
            place,
            duration_ns: place.length,
            initialization: Some(0),
        };
        let mut segments = vec![listed(None, place)];
        let mut begins = None;
        if let Some(index) = index {
            let end = index.body_start.saturating_add(index.body.len() as u64);
            let found = parse_sidx(&index)?.segments(end)?;
            self.count.add(found.len(), super::error::Place::Whole)?;
            begins = Some(index.start);
            let mut start = place.start;
            let all = found.iter().map(|own| {
                let place = SegmentPlace::of_time(start, own.duration_ns);
                start = start.saturating_add(own.duration_ns);
                listed(Some(own.range), place)
            });
            segments = all.collect();
        }
        if let Some(own) = self.representation(slot) {
            // Without a statement, the initialization is what precedes the index.
            let initialization = begins.and_then(|begins| ByteRange::of_length(0, begins));
            if own.initializations.is_empty() && initialization.is_some() {
                own.initializations.push(resource(initialization));
            }
            own.segments = segments;
        }
        Ok(())
    }

    fn begin_mp4(&mut self, bytes: &[u8], url: &Url) -> Result<(), FormatError> {
        let found = FragmentedMp4::of_boxes(&scan(bytes)?)?;
        self.count.add(found.fragments.len(), super::error::Place::Whole)?;
        let resource = |range| Resource { url: url.clone(), range: Some(range) };
        let segments = found.fragments.iter().map(|own| ListedSegment {
            resource: resource(own.range),
            place: SegmentPlace::of_time(own.start_ns, own.duration_ns),
            duration_ns: own.duration_ns,
            initialization: Some(0),
        });
        let representation = ListedRepresentation {
            name: "mp4".to_owned(),
            initializations: vec![resource(found.initialization)],
            segments: segments.collect(),
            ..ListedRepresentation::default()
        };
        let track =
            ListedTrack { kind: Some(found.kind), is_main: true, representations: vec![representation] };
        self.periods = vec![Period { tracks: vec![track] }];
        Ok(())
    }
}

/// The format of a manifest, by its first bytes.
fn sniff(bytes: &[u8]) -> Result<ManifestFormat, FormatError> {
    const LONGEST: usize = 64 << 10;
    if let Some(b"ftyp" | b"styp" | b"moov" | b"sidx") = bytes.get(4..8) {
        return Ok(ManifestFormat::Mp4);
    }
    if bytes.get(4..8) == Some(b"abst") {
        return Ok(ManifestFormat::Hds);
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    let head = head.trim_start_matches('\u{feff}').trim_start();
    if head.starts_with("#EXTM3U") {
        return Ok(ManifestFormat::Hls);
    }
    // The first element decides; declarations and comments may precede it.
    let element = head.split('<').skip(1).find(|part| !part.starts_with(['?', '!', '/']));
    let name = element.and_then(|part| part.split(|c: char| c.is_whitespace() || "/>".contains(c)).next());
    match name.and_then(|name| name.rsplit(':').next()) {
        Some("MPD") => Ok(ManifestFormat::Dash),
        Some("manifest") => Ok(ManifestFormat::Hds),
        _ => Err(FormatError::new(
            "it is neither an MPD, an HLS playlist, an F4M manifest, an HDS bootstrap nor an MP4 file; name one of these",
        )),
    }
}

fn text(bytes: &[u8]) -> Result<String, FormatError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| FormatError::new("it is not a text in UTF-8"))
}

/// The fragments of a bootstrap as segments; what precedes their names is `media`.
fn fragments(bootstrap: &Bootstrap, media: &Url) -> Result<ListedRepresentation, FormatError> {
    let (path, query) = media.path.split_once('?').unwrap_or((&media.path, ""));
    let mut own = ListedRepresentation::default();
    for fragment in &bootstrap.fragments()? {
        let name = super::hds::fragment_name(fragment.segment, fragment.number);
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let url = Url { path: format!("{path}{name}{query}"), ..media.clone() };
        let resource = Resource { url, range: None };
        let duration_ns = fragment.duration_ns;
        let time_ns = Some((fragment.start_ns, duration_ns));
        let place = SegmentPlace { time_ns, ..SegmentPlace::of_number(fragment.number.into()) };
        own.segments.push(ListedSegment { resource, place, duration_ns, initialization: None });
    }
    Ok(own)
}

#[cfg(test)]
mod tests;
