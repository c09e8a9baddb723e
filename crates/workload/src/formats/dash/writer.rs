//! Writes MPDs.

use model::media::TrackKind;

use super::super::package::{Live, Package, PackagedRepresentation, PackagedTrack};
use super::super::ticks_to_ns;
use super::super::time::{format_date, format_duration};
use super::super::xml::escaped;

/// How an MPD lists segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Each by its time and duration (`SegmentTimeline`).
    #[default]
    Timeline,
    /// By number, all with the same duration except the last; a client computes what exists from the duration
    /// of the period or, live, from the time. A track for which that is wrong gets a timeline.
    Number,
}

/// The MPD of a package. `published_unix_ns` is the time that a live MPD states as its own.
pub fn write_mpd(package: &Package, addressing: Addressing, published_unix_ns: u64) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    text.push_str("<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"");
    text.push_str(" profiles=\"urn:mpeg:dash:profile:isoff-live:2011\"");
    let longest = package.tracks.iter().map(PackagedTrack::longest_ns).max().unwrap_or(0);
    text.push_str(&format!(" minBufferTime=\"{}\"", format_duration(longest)));
    match &package.live {
        None => {
            let duration = format_duration(package.duration_ns());
            text.push_str(&format!(" type=\"static\" mediaPresentationDuration=\"{duration}\">\n"));
        }
        Some(live) => text.push_str(&live_attributes(live, published_unix_ns)),
    }
    text.push_str("  <Period id=\"0\" start=\"PT0S\">\n");
    for (place, track) in package.tracks.iter().enumerate() {
        let is_numbered = addressing == Addressing::Number && !track.media.uses_time();
        let even = even_duration(track)
            .filter(|_| is_numbered)
            .filter(|ticks| package.live.is_some() || ends_with_period(track, *ticks, package.duration_ns()));
        write_track(&mut text, place, track, even);
    }
    text.push_str("  </Period>\n</MPD>\n");
    text
}

fn live_attributes(live: &Live, published_unix_ns: u64) -> String {
    let mut text = String::from(" type=\"dynamic\"");
    let mut push = |name: &str, value: String| text.push_str(&format!(" {name}=\"{value}\""));
    push("availabilityStartTime", format_date(live.epoch_unix_ns.unwrap_or(0)));
    push("publishTime", format_date(published_unix_ns));
    let durations = [
        ("timeShiftBufferDepth", live.window_ns),
        ("minimumUpdatePeriod", live.reload_ns),
        ("suggestedPresentationDelay", live.delay_ns),
    ];
    for (name, value) in durations {
        value.into_iter().for_each(|ns| push(name, format_duration(ns)));
    }
    text.push_str(">\n");
    text
}

/// `even` is the duration of each segment, in ticks, if their numbers suffice.
fn write_track(text: &mut String, place: usize, track: &PackagedTrack, even: Option<u64>) {
    let kind = track.kind;
    text.push_str(&format!(
        "    <AdaptationSet id=\"{place}\" contentType=\"{kind}\" segmentAlignment=\"true\" startWithSAP=\"1\">\n"
    ));
    text.push_str(&format!(
        "      <SegmentTemplate timescale=\"{}\" startNumber=\"{}\"",
        track.timescale, track.first_number
    ));
    if let Some(initialization) = &track.initialization {
        text.push_str(&format!(" initialization=\"{}\"", escaped(initialization.written())));
    }
    text.push_str(&format!(" media=\"{}\"", escaped(track.media.written())));
    match even {
        Some(duration) => {
            // The first number has the first time.
            if track.first_time > 0 {
                text.push_str(&format!(" presentationTimeOffset=\"{}\"", track.first_time));
            }
            text.push_str(&format!(" duration=\"{duration}\"/>\n"));
        }
        None => {
            text.push_str(">\n        <SegmentTimeline>\n");
            write_timeline(text, track);
            text.push_str("        </SegmentTimeline>\n      </SegmentTemplate>\n");
        }
    }
    for representation in &track.representations {
        write_representation(text, track.kind, representation);
    }
    text.push_str("    </AdaptationSet>\n");
}

/// The duration of all segments but the last, which may be shorter.
fn even_duration(track: &PackagedTrack) -> Option<u64> {
    let (last, others) = track.durations.split_last()?;
    let first = others.first().unwrap_or(last);
    (others.iter().all(|ticks| ticks == first) && last <= first && *first > 0).then_some(*first)
}

/// Whether as many segments begin in a period as the track has.
fn ends_with_period(track: &PackagedTrack, ticks: u64, period_ns: u64) -> bool {
    let count = track.durations.len() as u64;
    let end_ns = |count: u64| ticks_to_ns(ticks.saturating_mul(count), track.timescale.into());
    end_ns(count.saturating_sub(1)) < period_ns && period_ns <= end_ns(count)
}

fn write_timeline(text: &mut String, track: &PackagedTrack) {
    let mut rest = track.durations.as_slice();
    let mut time = Some(track.first_time);
    while let Some(ticks) = rest.first() {
        let count = rest.iter().take_while(|own| *own == ticks).count();
        text.push_str("          <S");
        time.take().into_iter().for_each(|time| text.push_str(&format!(" t=\"{time}\"")));
        text.push_str(&format!(" d=\"{ticks}\""));
        if count > 1 {
            text.push_str(&format!(" r=\"{}\"", count - 1));
        }
        text.push_str("/>\n");
        rest = &rest[count..];
    }
}

fn write_representation(text: &mut String, kind: TrackKind, own: &PackagedRepresentation) {
    let id = escaped(&own.id);
    text.push_str(&format!("      <Representation id=\"{id}\" bandwidth=\"{}\"", own.bits_per_s));
    let media_type = if own.media_type.is_empty() { format!("{kind}/mp4") } else { own.media_type.clone() };
    text.push_str(&format!(" mimeType=\"{}\"", escaped(&media_type)));
    if !own.codecs.is_empty() {
        text.push_str(&format!(" codecs=\"{}\"", escaped(&own.codecs)));
    }
    if let Some((width, height)) = own.picture {
        text.push_str(&format!(" width=\"{width}\" height=\"{height}\""));
    }
    if let Some(rate) = own.sampling_rate_hz {
        text.push_str(&format!(" audioSamplingRate=\"{rate}\""));
    }
    text.push_str("/>\n");
}
