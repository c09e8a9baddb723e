//! What requests of a player say about it by CMCD.

use model::media::TrackKind;

use super::track::Fetch;
use super::{NORMAL_PPM, Playback, VideoPlayer};
use crate::cmcd::CmcdKeys;

/// Rounded to hundreds, as the specification asks of durations and throughputs.
fn hundreds(value: u64) -> u64 {
    (value.saturating_add(50) / 100).saturating_mul(100)
}

fn kilobits(bits_per_s: u64) -> u64 {
    bits_per_s.div_ceil(1000)
}

impl VideoPlayer {
    /// The keys of a request for a URL that has just been taken.
    pub(super) fn cmcd_keys(&self, url: u32) -> Option<CmcdKeys> {
        let mut keys = CmcdKeys::default();
        let is_starting = self.playback == Playback::Waiting;
        let session = self.session;
        let streaming = if self.video.player.live.is_some() { "l" } else { "v" };
        let (high, low) = (session.rotate_left(17), session);
        // A version 4 UUID in form (RFC 9562, section 5.4), from the client's seed.
        let uuid = format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        );
        keys.session = format!("sid=\"{uuid}\",st={streaming}");
        let Some(number) = self.track_of(url) else {
            keys.object = "ot=m".to_owned();
            return Some(keys);
        };
        let (track, media) = (&self.tracks[number], &self.media[number]);
        let Fetch::InFlight { wish, .. } = track.fetch else { return None };
        let kind = match (wish.is_initialization, media.kind) {
            (true, _) => "i",
            (false, TrackKind::Audio) => "a",
            (false, TrackKind::Video) => "v",
        };
        let rate = kilobits(media.bits_per_s(wish.place));
        let top = kilobits(media.ladder.last().copied().unwrap_or(0));
        keys.object = if wish.is_initialization {
            format!("br={rate},ot={kind},tb={top}")
        } else {
            let duration_ms = media.duration_ns(track.next) / 1_000_000;
            format!("br={rate},d={duration_ms},ot={kind},tb={top}")
        };
        let buffered_ns = track.buffered_ns(self.position_ns);
        let buffer_ms = hundreds(buffered_ns / 1_000_000);
        let mut request = vec![format!("bl={buffer_ms}")];
        if self.playback == Playback::Playing {
            let deadline_ms = hundreds(self.duration_of(buffered_ns) / 1_000_000);
            request.push(format!("dl={deadline_ms}"));
        }
        if track.throughput_bits_per_s > 0 {
            request.push(format!("mtp={}", hundreds(kilobits(track.throughput_bits_per_s))));
        }
        if let Some(next) = self.next_object(number, wish.place, wish.is_initialization) {
            request.push(format!("nor=\"{next}\""));
        }
        if is_starting {
            request.push("su".to_owned());
        }
        keys.request = request.join(",");
        if self.speed_ppm != NORMAL_PPM {
            keys.session.insert_str(
                0,
                &format!("pr={}.{:02},", self.speed_ppm / NORMAL_PPM, self.speed_ppm % NORMAL_PPM / 10_000),
            );
        }
        // The buffer was empty since the last segment of the track was requested.
        if is_starting && self.has_begun {
            keys.status = "bs".to_owned();
        }
        Some(keys)
    }

    /// The path of the object that follows in the same representation, encoded for a URL, relative to the
    /// host.
    fn next_object(&self, number: usize, place: usize, is_initialization: bool) -> Option<String> {
        let next = self.tracks[number].next + usize::from(!is_initialization);
        let resource = self.media[number].resource(place, next)?;
        let path = &self.video.urls.resources().get(resource.url as usize)?.path;
        // Quotation marks and commas would end the value.
        Some(path.replace('"', "%22").replace(',', "%2C"))
    }
}
