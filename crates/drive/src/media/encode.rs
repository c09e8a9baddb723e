//! What ffmpeg does: it encodes each rung once, and cuts segments from the encodings as often as they repeat.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use model::number::float;
use model::units::format_rate;

use super::ffmpeg::{Ffmpeg, words};
use super::frames::{FRAMES_PER_S, SAMPLES_PER_S, audio_frames, video_frames};
use super::hds;
use super::package::{self, Cut};
use super::{ContentSettings, VideoRung};

/// Fonts of common systems, for the time code.
const FONTS: [&str; 4] = [
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
    "/usr/share/fonts/TTF/DejaVuSansMono.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf",
];

/// Encodes, cuts and writes everything to `made`, with temporary files in `work`.
///
/// # Errors
/// ffmpeg fails, or a file cannot be read or written.
pub(super) fn make(
    settings: &ContentSettings,
    ffmpeg: &Ffmpeg<'_>,
    work: &Path,
    made: &Path,
    say: &dyn Fn(&str),
) -> Result<()> {
    // ffmpeg runs in `work`.
    let input = settings.input.as_ref().map(|path| std::path::absolute(path).context("no current folder"));
    let input = input.transpose()?;
    let count = settings.video.len() + settings.audio_bits_per_s.len();
    let (mut video, mut audio) = (Vec::new(), Vec::new());
    for (number, rung) in settings.video.iter().enumerate() {
        say(&format!("encoding {} of {count}: video {rung}", number + 1));
        let name = format!("video-{}", rate_name(rung.bits_per_s));
        let mut args = input_args(input.as_deref(), &card(*rung, ffmpeg.has_text()));
        args.extend(video_args(*rung, settings));
        args.push(format!("{name}.mp4"));
        ffmpeg.run_for_media(work, &args, settings.unique_ns().saturating_mul(60))?;
        video.push((name, *rung));
    }
    for (number, bits_per_s) in settings.audio_bits_per_s.iter().enumerate() {
        let rate = format_rate(float(*bits_per_s));
        say(&format!("encoding {} of {count}: audio at {rate}", video.len() + number + 1));
        let name = format!("audio-{}", rate_name(*bits_per_s));
        let tone = format!("sine=frequency=1000:beep_factor=4:sample_rate={SAMPLES_PER_S}");
        let mut args = input_args(input.as_deref(), &tone);
        args.extend(words("-map 0:a:0 -vn -ac 2 -c:a aac -profile:a aac_low"));
        args.extend(["-ar".to_owned(), SAMPLES_PER_S.to_string(), "-b:a".to_owned(), bits_per_s.to_string()]);
        args.extend(["-frames:a".to_owned(), audio_frames(settings.unique_ns()).to_string()]);
        args.push(format!("{name}.mp4"));
        ffmpeg.run_for_media(work, &args, settings.unique_ns().saturating_mul(60))?;
        audio.push((name, *bits_per_s));
    }
    let cut = Cut { settings, ffmpeg, work, made, video: &video, audio: &audio };
    fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    say("cutting segments for DASH and HLS");
    package::write_mp4(&cut)?;
    if settings.transport_stream {
        say("cutting MPEG-TS segments for HLS");
        package::write_transport_streams(&cut)?;
    }
    if let Some(hds) = settings.hds {
        say("writing archives and fragments for HDS");
        hds::write(&cut, hds)?;
    }
    Ok(())
}

/// A bit rate as part of a name, as in modelled media: `8000k`.
fn rate_name(bits_per_s: u64) -> String {
    if bits_per_s.is_multiple_of(1000) { format!("{}k", bits_per_s / 1000) } else { bits_per_s.to_string() }
}

/// The user's file, or a source of ffmpeg. A file is repeated until there are enough frames.
fn input_args(input: Option<&Path>, source: &str) -> Vec<String> {
    match input {
        Some(path) => {
            let path = path.display().to_string();
            [words("-stream_loop -1 -i"), vec![path]].concat()
        }
        None => [words("-f lavfi -i"), vec![source.to_owned()]].concat(),
    }
}

/// A moving test card with a time code: two fields of different times make an interlaced frame.
fn card(rung: VideoRung, has_text: bool) -> String {
    let (width, height) = (rung.width(), rung.height);
    let font = FONTS.iter().find(|font| has_text && Path::new(font).is_file());
    let time_code = font.map_or(String::new(), |font| {
        let (size, margin) = ((height / 16).max(8), height / 20);
        format!(
            ",drawtext=fontfile={font}:timecode='00\\:00\\:00\\:00':rate={FRAMES_PER_S}:fontsize={size}:\
             fontcolor=white:box=1:boxcolor=black:x={margin}:y=h-th-{margin}"
        )
    });
    let (rate, weave) = if rung.is_interlaced {
        (2 * FRAMES_PER_S, ",tinterlace=mode=interleave_top")
    } else {
        (FRAMES_PER_S, "")
    };
    format!("testsrc2=size={width}x{height}:rate={rate}{weave}{time_code}")
}

/// H.264 High with a closed group of pictures for each segment.
fn video_args(rung: VideoRung, settings: &ContentSettings) -> Vec<String> {
    let (rate, group) = (rung.bits_per_s, video_frames(settings.segment_ns));
    let mut args = words("-map 0:v:0 -an -c:v libx264 -preset veryfast -profile:v high -pix_fmt yuv420p");
    if settings.input.is_some() {
        let (width, height) = (rung.width(), rung.height);
        let (fields, rate) = match rung.is_interlaced {
            true => (",tinterlace=mode=interleave_top", 2 * FRAMES_PER_S),
            false => ("", FRAMES_PER_S),
        };
        let fit = format!(
            "fps={rate},scale={width}:{height}:force_original_aspect_ratio=decrease,\
             pad={width}:{height}:-1:-1,setsar=1{fields}"
        );
        args.extend(["-vf".to_owned(), fit]);
    }
    args.extend(words(&format!("-level:v {}.{}", rung.level() / 10, rung.level() % 10)));
    let fields = if rung.is_interlaced { ":tff=1" } else { "" };
    if rung.is_interlaced {
        args.extend(words("-flags +ildct+ilme"));
    }
    args.extend(words(&format!(
        "-x264-params keyint={group}:min-keyint={group}:scenecut=0:open-gop=0{fields} -b:v {rate} -maxrate {} -bufsize {}",
        rate + rate / 4,
        rate * 2
    )));
    args.extend(words(&format!("-frames:v {}", video_frames(settings.unique_ns()))));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_modelled_media() {
        assert_eq!((rate_name(8_000_000).as_str(), rate_name(128_500).as_str()), ("8000k", "128500"));
    }
}
