//! Modelled media: segments whose sizes come from a seeded distribution, without anything to decode.
//!
//! The segments of an encoder that keeps the quality have sizes that follow the complexity of the pictures:
//! close to a log-normal distribution, and alike within a scene. A model therefore multiplies the median of a
//! representation by two factors: that of the scene, and that of the segment. All representations of a track
//! share them, because they encode the same pictures.

use serde::{Deserialize, Serialize};

use super::{HdsModel, Presentation, Representation, Segment, Track, TrackKind};
use crate::number::{float, nearest};
use crate::shuffle::SplitMix64;
use crate::units::{NANOS_PER_S, counted, format_bytes, format_ns, format_rate, three_digits};

/// What modelled media consists of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaModel {
    /// The duration of every segment except the last, in nanoseconds.
    pub segment_ns: u64,
    /// How long it plays, in nanoseconds.
    pub length_ns: u64,
    /// The seed of the sizes.
    pub seed: u64,
    /// The tracks, at least one.
    pub tracks: Vec<TrackModel>,
    /// How its segments are packaged for HDS; `None` for DASH and HLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hds: Option<HdsModel>,
}

/// A track of modelled media.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrackModel {
    /// What it contains.
    pub kind: TrackKind,
    /// The representations, ascending by bit rate; at least one.
    pub representations: Vec<RepresentationModel>,
    /// How far the segments of a scene spread: 84 % of them have at most 1 + this times their median.
    pub spread_share: f64,
    /// Scenes with different sizes; `None` if all segments are of one scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenes: Option<SceneModel>,
}

/// A representation of modelled media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepresentationModel {
    /// Its bit rate as the manifest states it, in bit/s of media.
    pub bits_per_s: u64,
    /// The median length of its segments, in bytes.
    pub median_bytes: u64,
}

/// The scenes of a track.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SceneModel {
    /// How long a scene is on average, in nanoseconds.
    pub mean_ns: u64,
    /// How far scenes spread: 84 % of them have segments of at most 1 + this times the median.
    pub spread_share: f64,
}

/// A factor is cut at this many standard deviations: an encoder's buffer bounds the size of a segment.
const FURTHEST: f64 = 3.0;
/// The lengths of initialization segments, in bytes: about those of an encoder with one track.
const INITIALIZATION_BYTES: u64 = 800;

/// The length of a segment of constant bit rate, in whole bytes.
pub fn segment_bytes(bits_per_s: u64, segment_ns: u64) -> u64 {
    let bits = u128::from(bits_per_s) * u128::from(segment_ns) / u128::from(NANOS_PER_S);
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

impl MediaModel {
    /// How many segments each representation has.
    pub fn segments(&self) -> u64 {
        self.length_ns.div_ceil(self.segment_ns.max(1))
    }

    /// The names of the segments of a representation in its folder.
    fn files(&self) -> Vec<String> {
        let count = usize::try_from(self.segments()).unwrap_or(usize::MAX);
        match &self.hds {
            Some(hds) => hds.numbers().take(count).map(|number| hds.file(number)).collect(),
            None => (1..=self.segments()).map(|number| format!("{number}.m4s")).collect(),
        }
    }

    /// The presentation, with paths below `/media/NAME/`: always the same for the same model.
    pub fn presentation(&self, name: &str) -> Presentation {
        Presentation { tracks: self.tracks.iter().map(|track| self.track(name, track)).collect() }
    }

    fn track(&self, name: &str, track: &TrackModel) -> Track {
        let durations_ns = self.durations_ns();
        let factors = self.factors(track, durations_ns.len());
        let files = self.files();
        let representation = |of: &RepresentationModel| {
            let label = format!("{}-{}", track.kind, rate_label(of.bits_per_s));
            let folder = match self.hds {
                Some(_) => format!("/media/{name}"),
                None => format!("/media/{name}/{label}"),
            };
            let segment = |file: &str, bytes: u64| Segment {
                url: format!("{folder}/{file}"),
                range: None,
                bytes: Some(bytes),
            };
            let lengths = durations_ns.iter().zip(&factors).map(|(duration_ns, factor)| {
                let share = float(*duration_ns) / float(self.segment_ns.max(1));
                nearest(float(of.median_bytes) * factor * share).max(1)
            });
            Representation {
                name: label,
                bits_per_s: of.bits_per_s,
                initialization: self.hds.is_none().then(|| segment("init.mp4", INITIALIZATION_BYTES)),
                later_initializations: Vec::new(),
                segments: lengths.zip(&files).map(|(bytes, file)| segment(file, bytes)).collect(),
            }
        };
        let representations = track.representations.iter().map(representation).collect();
        Track { kind: track.kind, durations_ns, representations }
    }

    /// The last segment has the rest of the length.
    fn durations_ns(&self) -> Vec<u64> {
        let last = self.segments().saturating_sub(1);
        let rest_ns = self.length_ns.saturating_sub(last.saturating_mul(self.segment_ns));
        (0..last).map(|_| self.segment_ns).chain([rest_ns]).collect()
    }

    /// The factors of a track's segments. Their median is 1.
    fn factors(&self, track: &TrackModel, segments: usize) -> Vec<f64> {
        // Tracks have independent factors, whatever their order.
        let salt = track.kind.name().bytes().fold(0, |salt: u64, byte| salt << 8 | u64::from(byte));
        let mut random = SplitMix64::new(self.seed ^ salt);
        let deviation = track.spread_share.ln_1p();
        let of_scenes = track.scenes.map_or(0.0, |scenes| scenes.spread_share.ln_1p());
        let change = track.scenes.map_or(0.0, |scenes| float(self.segment_ns) / float(scenes.mean_ns.max(1)));
        let mut scene = of_scenes * normal(&mut random);
        let mut logarithms = Vec::with_capacity(segments);
        for _ in 0..segments {
            if uniform(&mut random) < change {
                scene = of_scenes * normal(&mut random);
            }
            logarithms.push(scene + deviation * normal(&mut random));
        }
        let median = median(&logarithms);
        logarithms.into_iter().map(|logarithm| (logarithm - median).exp()).collect()
    }

    /// In words, such as `34 min in segments of 3.84 s; video at 8 Mbit/s, median 3.7 MB, spread 25 %; seed
    /// 1`.
    pub fn describe(&self) -> String {
        let length = format!(
            "{} of {}",
            counted(self.segments(), "segment"),
            format_ns(self.segment_ns.min(self.length_ns))
        );
        let tracks = self.tracks.iter().map(TrackModel::describe);
        let hds = self.hds.iter().map(HdsModel::describe);
        let parts: Vec<String> =
            std::iter::once(length).chain(hds).chain(tracks).chain([format!("seed {}", self.seed)]).collect();
        parts.join("; ")
    }
}

impl TrackModel {
    /// In words, such as `video at 1 or 8 Mbit/s: log-normal around a median of 462 kB or 3.7 MB, …`.
    fn describe(&self) -> String {
        let rates = self.representations.iter().map(|of| format_rate(float(of.bits_per_s)));
        let medians = self.representations.iter().map(|of| format_bytes(float(of.median_bytes)));
        let percent = |share: f64| format!("{} %", three_digits(share * 100.0));
        let scenes = self.scenes.map_or(String::new(), |scenes| {
            format!(
                ", scenes of {} on average that spread by {}",
                format_ns(scenes.mean_ns),
                percent(scenes.spread_share)
            )
        });
        format!(
            "{} at {}: sizes log-normal around {}, spread {}{scenes}",
            self.kind,
            choices(rates.collect()),
            choices(medians.collect()),
            percent(self.spread_share)
        )
    }
}

/// `1, 2 or 3` of such texts.
pub(super) fn choices(mut texts: Vec<String>) -> String {
    let last = texts.pop().unwrap_or_default();
    if texts.is_empty() { last } else { format!("{} or {last}", texts.join(", ")) }
}

/// A bit rate as part of a name, such as `2500k`.
fn rate_label(bits_per_s: u64) -> String {
    if bits_per_s.is_multiple_of(1000) { format!("{}k", bits_per_s / 1000) } else { bits_per_s.to_string() }
}

/// A number above 0 and below 1.
fn uniform(random: &mut SplitMix64) -> f64 {
    (float(random.next_u64() >> 12) + 0.5) / float(1 << 52)
}

/// A standard normal number, cut at [`FURTHEST`] (Box and Muller, 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    let (radius, angle) = (uniform(random), uniform(random));
    let value = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
    value.clamp(-FURTHEST, FURTHEST)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => f64::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(seed: u64, spread_share: f64, scenes: Option<SceneModel>) -> MediaModel {
        let of = |bits_per_s, median_bytes| RepresentationModel { bits_per_s, median_bytes };
        MediaModel {
            segment_ns: 3_840_000_000,
            length_ns: 34 * 60 * NANOS_PER_S,
            seed,
            tracks: vec![
                TrackModel {
                    kind: TrackKind::Video,
                    representations: vec![of(2_500_000, 1_200_000), of(8_000_000, 3_700_000)],
                    spread_share,
                    scenes,
                },
                TrackModel {
                    kind: TrackKind::Audio,
                    representations: vec![of(128_000, 60_000)],
                    spread_share: 0.05,
                    scenes: None,
                },
            ],
            hds: None,
        }
    }

    fn lengths(representation: &Representation) -> Vec<u64> {
        representation.segments.iter().filter_map(|segment| segment.bytes).collect()
    }

    #[test]
    fn sizes_have_the_stated_median_and_spread_for_every_seed() {
        for seed in 0..20 {
            let presentation = model(seed, 0.25, None).presentation("film");
            let [video, audio] = presentation.tracks.as_slice() else { panic!("two tracks") };
            for (representation, expected, above) in [
                (&video.representations[1], 3_700_000, 1.25),
                (&video.representations[0], 1_200_000, 1.25),
                (&audio.representations[0], 60_000, 1.05),
            ] {
                let mut sorted = lengths(representation);
                sorted.pop();
                sorted.sort_unstable();
                let median = sorted[sorted.len() / 2];
                let error = (float(median) / float(expected) - 1.0).abs();
                assert!(error < 0.005, "seed {seed}: the median is {median}, not {expected}");
                let at = float(sorted[sorted.len() * 84 / 100]) / float(expected);
                assert!((at - above).abs() < 0.25 * (above - 1.0), "seed {seed}: 84 % are below {at}");
            }
        }
    }

    #[test]
    fn a_scene_has_segments_of_like_size_in_every_representation() {
        let scenes = SceneModel { mean_ns: 19_200_000_000, spread_share: 1.0 };
        let presentation = model(3, 0.02, Some(scenes)).presentation("film");
        let representations = &presentation.tracks[0].representations;
        let (low, high) = (lengths(&representations[0]), lengths(&representations[1]));
        for (low, high) in low.iter().zip(&high) {
            assert!((float(*high) / float(*low) / (37.0 / 12.0) - 1.0).abs() < 1e-4);
        }
        let steps = high.windows(2).filter(|pair| (float(pair[1]) / float(pair[0]) - 1.0).abs() > 0.1);
        let scenes = steps.count() + 1;
        // 532 segments in scenes of 5; some neighbours are alike by chance.
        assert!((75..=125).contains(&scenes), "{scenes} scenes");
    }

    #[test]
    fn segments_fill_the_length_and_depend_on_the_seed_alone() {
        let one = model(7, 0.25, None);
        let presentation = one.presentation("film");
        assert_eq!(presentation.duration_ns(), one.length_ns);
        assert_eq!(presentation, one.presentation("film"));
        assert_ne!(presentation, model(8, 0.25, None).presentation("film"));
        let video = &presentation.tracks[0];
        assert_eq!(video.durations_ns.len(), 532);
        assert_eq!(video.durations_ns[531], 960_000_000, "the rest of 34 minutes");
        let representation = &video.representations[1];
        assert_eq!(representation.name, "video-8000k");
        assert_eq!(representation.segments[531].url, "/media/film/video-8000k/532.m4s");
        let last = representation.segments[531].bytes.unwrap();
        assert!(last < 2_000_000, "a quarter of the duration has about a quarter of the bytes: {last}");
        let constant = model(7, 0.0, None).presentation("film");
        let mut all = lengths(&constant.tracks[0].representations[1]);
        assert_eq!(all.pop(), Some(925_000));
        assert!(all.iter().all(|bytes| *bytes == 3_700_000), "without a spread all are alike");
    }

    #[test]
    fn the_description_states_the_distribution() {
        let scenes = SceneModel { mean_ns: 12 * NANOS_PER_S, spread_share: 0.4 };
        assert_eq!(
            model(1, 0.25, Some(scenes)).describe(),
            "532 segments of 3.84 s; video at 2.5 Mbit/s or 8 Mbit/s: sizes log-normal around 1.2 MB or 3.7 MB, \
             spread 25 %, scenes of 12 s on average that spread by 40 %; audio at 128 kbit/s: sizes log-normal \
             around 60 kB, spread 5 %; seed 1"
        );
    }

    #[test]
    fn rates_are_part_of_paths() {
        assert_eq!(rate_label(8_000_000), "8000k");
        assert_eq!(rate_label(128_500), "128500");
    }
}
