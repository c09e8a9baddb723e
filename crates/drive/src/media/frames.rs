//! How pictures and sound are divided in time, in every encoding.

use model::units::NANOS_PER_S;

/// Frames in a second of every encoding.
pub(super) const FRAMES_PER_S: u64 = 25;
/// The duration of a frame.
pub(super) const FRAME_NS: u64 = NANOS_PER_S / FRAMES_PER_S;
/// The sampling rate of every encoding, in Hz.
pub(super) const SAMPLES_PER_S: u64 = 48_000;
/// The samples of a frame of AAC-LC.
const SAMPLES_PER_FRAME: u64 = 1_024;

/// How many frames of pictures a duration has.
pub(super) const fn video_frames(ns: u64) -> u64 {
    ns / FRAME_NS
}

/// How many frames of sound a duration has; the last one may exceed it.
pub(super) const fn audio_frames(ns: u64) -> u64 {
    let samples = ns / 1_000 * SAMPLES_PER_S / (NANOS_PER_S / 1_000);
    samples.div_ceil(SAMPLES_PER_FRAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_fill_a_duration() {
        assert_eq!(video_frames(3_840_000_000), 96);
        assert_eq!(audio_frames(3_840_000_000), 180);
        assert_eq!(audio_frames(2_000_000_000), 94, "93.75 frames");
    }
}
