//! Manifests and bootstraps of HDS.

use model::media::TrackKind;
use model::url::Url;

use super::super::error::{FormatError, Place};
use super::super::hds::bootstrap::Bootstrap;
use super::super::hds::f4m::{BootstrapSource, F4m, F4mMedia, MediaSource};
use super::super::listing::{
    ListedRepresentation, ListedTrack, Period, Purpose, Reference, Resource, Slot, join,
};
use super::super::package::Live;
use super::super::shown;
use super::{Resolver, fragments};

impl Resolver {
    /// A bootstrap without a manifest: its fragments are in its folder and have its name, without the
    /// extension.
    pub(super) fn begin_bootstrap(&mut self, bytes: &[u8], url: &Url) -> Result<(), FormatError> {
        let path = url.path.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let media = join(url, &format!("./{stem}"), Place::Whole)?;
        self.add_track(TrackKind::Video, true);
        let slot = self.add_representation(0, stem, 0);
        self.handle_bootstrap(slot, &media, bytes)
    }

    pub(super) fn begin_f4m(&mut self, text: &str, url: &Url) -> Result<(), FormatError> {
        let manifest = F4m::parse(text)?;
        if manifest.is_live {
            self.live = Some(Live::default());
        }
        let base = base_of(&manifest, url)?;
        for own in &manifest.media {
            match &own.source {
                MediaSource::Manifest(href) => {
                    let resource = Resource { url: join(&base, href, Place::Whole)?, range: None };
                    let purpose = Purpose::Manifest { bits_per_s: own.bits_per_s };
                    self.refer(Reference { resource, purpose })?;
                }
                MediaSource::Fragments { .. } => self.add_media(own, &base, own.bits_per_s)?,
            }
        }
        Ok(())
    }

    /// A manifest of a set; it may not refer to further ones.
    pub(super) fn handle_f4m(&mut self, text: &str, url: &Url, bits_per_s: u64) -> Result<(), FormatError> {
        let manifest = F4m::parse(text)?;
        if manifest.is_live && self.live.is_none() {
            self.live = Some(Live::default());
        }
        let base = base_of(&manifest, url)?;
        for own in &manifest.media {
            if let MediaSource::Manifest(href) = &own.source {
                let href = shown(href);
                return Err(FormatError::new(format!(
                    "the manifest of a set refers to a further manifest, `{href}`"
                )));
            }
            // The set states the bit rate of a manifest that does not.
            let stated = if own.bits_per_s > 0 { own.bits_per_s } else { bits_per_s };
            self.add_media(own, &base, stated)?;
        }
        Ok(())
    }

    /// The fragments of a representation, by its bootstrap.
    pub(super) fn handle_bootstrap(
        &mut self,
        slot: Slot,
        media: &Url,
        bytes: &[u8],
    ) -> Result<(), FormatError> {
        let bootstrap = Bootstrap::parse(bytes)?;
        let found = fragments(&bootstrap, media)?;
        self.count.add(found.segments.len(), Place::Whole)?;
        if bootstrap.is_live {
            // A new fragment exists after about the duration of the last.
            let live = self.live.get_or_insert_default();
            live.reload_ns = found.segments.last().map(|last| last.duration_ns).or(live.reload_ns);
        }
        if let Some(own) = self.representation(slot) {
            own.segments = found.segments;
        }
        Ok(())
    }

    fn add_media(&mut self, own: &F4mMedia, base: &Url, bits_per_s: u64) -> Result<(), FormatError> {
        let MediaSource::Fragments { url, bootstrap } = &own.source else { return Ok(()) };
        // A URL without a path is its base: the fragments' names follow.
        let media =
            if url.is_empty() { join(base, ".", Place::Whole)? } else { join(base, url, Place::Whole)? };
        let track = self.track_of(own);
        let name = if own.id.is_empty() { url } else { &own.id };
        let slot = self.add_representation(track, name, bits_per_s);
        match bootstrap {
            BootstrapSource::Inline(bytes) => self.handle_bootstrap(slot, &media, bytes),
            BootstrapSource::Url(reference) => {
                let resource = Resource { url: join(base, reference, Place::Whole)?, range: None };
                self.refer(Reference { resource, purpose: Purpose::Bootstrap { slot, media } })
            }
        }
    }

    /// The track of a media: alternatives are tracks of their own.
    fn track_of(&mut self, own: &F4mMedia) -> usize {
        let is_main = !own.is_alternative;
        let tracks = self.periods.first().map(|period| period.tracks.as_slice()).unwrap_or_default();
        let known = tracks.iter().position(|track| track.kind == Some(own.kind) && track.is_main && is_main);
        known.unwrap_or_else(|| self.add_track(own.kind, is_main))
    }

    fn add_track(&mut self, kind: TrackKind, is_main: bool) -> usize {
        if self.periods.is_empty() {
            self.periods.push(Period::default());
        }
        let tracks = &mut self.periods[0].tracks;
        tracks.push(ListedTrack { kind: Some(kind), is_main, representations: Vec::new() });
        tracks.len() - 1
    }

    fn add_representation(&mut self, track: usize, name: &str, bits_per_s: u64) -> Slot {
        let own = ListedRepresentation { name: name.to_owned(), bits_per_s, ..Default::default() };
        let list = &mut self.periods[0].tracks[track].representations;
        list.push(own);
        Slot { period: 0, track, representation: list.len() - 1 }
    }
}

fn base_of(manifest: &F4m, url: &Url) -> Result<Url, FormatError> {
    match &manifest.base_url {
        // A base is a folder, with or without the slash.
        Some(base) => join(url, &format!("{}/", base.trim_end_matches('/')), Place::Whole),
        None => Ok(url.clone()),
    }
}
