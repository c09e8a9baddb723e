//! `h123 content`: makes media that players can decode, or files of modelled media, and keeps it in a cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use drive::media::{self, ContentSettings, HdsSettings, Stopped, VideoRung};
use model::number::float;
use model::units::{format_bytes, parse_duration_ns, parse_rate_bits_per_s};

use crate::exit::{Exit, UsageError};
use crate::library::media_of;
use crate::terminal::{note, print, table};

/// Make media for studies: a test card or your file, encoded by ffmpeg, or modelled segments
#[derive(Args, Debug)]
pub(crate) struct ContentArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make media and write it to a folder, with a manifest of DASH and playlists of HLS for the same
    /// segments
    Make(Box<MakeArgs>),
    /// List the media in the cache
    List(CacheArgs),
    /// Remove the media in the cache, unfinished media too; folders that were made from it keep their files
    Clean(CacheArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 content make film
  h123 content make film --length 34min --segment 3.84s --video 1080i@8Mbit/s --audio 128kbit/s
  h123 content make film --input holiday.mp4 --ts --hds
  h123 content make film --modelled bbc-dash

A study then has a table [media.film] with folder = \"film\".")]
struct MakeArgs {
    /// The folder to write, which must not exist
    ///
    /// Example: film
    folder: PathBuf,
    /// Encode this file in place of the moving test card with time code and tone
    ///
    /// Example: --input holiday.mp4
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// How long it plays; a shorter input is repeated
    ///
    /// Example: --length 34min
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = parse_duration_ns)]
    length: u64,
    /// The duration of a segment, a multiple of 40ms
    ///
    /// Example: --segment 2s
    #[arg(long, value_name = "TIME", default_value = "3.84s", value_parser = parse_duration_ns)]
    segment: u64,
    /// The encodings of the pictures, H.264 with 25 frames per second: lines, `p` or `i` (interlaced), and
    /// bit rate, ascending; `none` for sound alone
    ///
    /// Example: --video 720p@2.8Mbit/s,1080i@8Mbit/s
    #[arg(long, value_name = "LIST", default_value = "360p@800kbit/s,720p@2.8Mbit/s,1080i@8Mbit/s")]
    video: String,
    /// The bit rates of the sound, AAC-LC with 48 kHz in stereo, ascending; `none` for pictures alone
    ///
    /// Example: --audio 64kbit/s,128kbit/s
    #[arg(long, value_name = "LIST", default_value = "128kbit/s")]
    audio: String,
    /// Write HLS of MPEG-TS segments too, to the folder ts
    ///
    /// Example: --ts
    #[arg(long)]
    ts: bool,
    /// Write HDS too: archives of fragments to the folder hds, and the same fragments as files to hds-static
    ///
    /// Example: --hds
    #[arg(long)]
    hds: bool,
    /// How many fragments an archive of HDS has
    ///
    /// Example: --hds --hds-fragments 5
    #[arg(long, value_name = "N", default_value_t = 5, requires = "hds", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    hds_fragments: u32,
    /// Leave out a fragment number of HDS after this many, so that they are not contiguous; 0 for none
    ///
    /// Example: --hds --hds-gap 7
    #[arg(long, value_name = "N", default_value_t = 10, requires = "hds", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    hds_gap: u32,
    /// Write the segments of this modelled media (a name of `h123 list media`), without ffmpeg and with
    /// nothing to decode
    ///
    /// Example: --modelled bbc-dash
    #[arg(long, value_name = "NAME", conflicts_with_all = ["input", "length", "segment", "video", "audio", "ts", "hds"])]
    modelled: Option<String>,
    #[command(flatten)]
    cache: CacheArgs,
}

#[derive(Args, Debug)]
struct CacheArgs {
    /// The folder of the cache [default: h123/content in $XDG_CACHE_HOME or ~/.cache]
    ///
    /// Example: --cache /var/tmp/h123
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl CacheArgs {
    fn folder(&self) -> Result<PathBuf> {
        let missing = "there is no home for the cache; name a folder with `--cache DIR`";
        self.cache.clone().or_else(media::cache_folder).ok_or_else(|| UsageError(missing.to_owned()).into())
    }
}

/// Runs the command.
///
/// # Errors
/// Settings that cannot be made; ffmpeg is missing or fails; a folder cannot be read or written.
pub(crate) fn run(args: &ContentArgs, stop: &AtomicBool) -> Result<Exit> {
    match &args.action {
        Action::Make(args) => make(args, stop),
        Action::List(args) => list(&args.folder()?),
        Action::Clean(args) => clean(&args.folder()?),
    }
}

fn make(args: &MakeArgs, stop: &AtomicBool) -> Result<Exit> {
    let folder = args.folder.display();
    if args.folder.symlink_metadata().is_ok() {
        return Err(UsageError(format!("{folder} exists; choose another name or remove it")).into());
    }
    match &args.modelled {
        Some(name) => {
            let modelled = media_of(name)?;
            note(false, &modelled.describe());
            media::write_modelled(&modelled, &args.folder)?;
        }
        None => {
            let settings = args.settings().map_err(UsageError)?;
            let made =
                media::make(&settings, &args.cache.folder()?, &args.folder, stop, &|text| note(false, text));
            match made {
                Err(error) if error.is::<Stopped>() => return Ok(Exit::Interrupted),
                made => made?,
            }
        }
    }
    let files = media::files(&args.folder)?;
    let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    print(&format!("{folder}: {} files, {}", files.len(), format_bytes(float(bytes))))?;
    Ok(Exit::Done)
}

impl MakeArgs {
    fn settings(&self) -> Result<ContentSettings, String> {
        if let Some(input) = &self.input {
            let problem = match fs::metadata(input) {
                Ok(found) if found.is_file() => None,
                Ok(_) => Some("it is not a file".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                return Err(format!("--input: cannot read {}: {problem}", input.display()));
            }
        }
        let settings = ContentSettings {
            input: self.input.clone(),
            length_ns: self.length,
            segment_ns: self.segment,
            video: read_list("video", &self.video, str::parse::<VideoRung>)?,
            audio_bits_per_s: read_list("audio", &self.audio, audio_rate)?,
            transport_stream: self.ts,
            hds: self.hds.then_some(HdsSettings {
                fragments_per_segment: self.hds_fragments,
                gap_after: Some(self.hds_gap).filter(|after| *after > 0),
            }),
        };
        settings.check().map(|()| settings)
    }
}

/// The parts between commas; `none` is none.
fn read_list<T>(
    option: &str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let read = |part| read(part).map_err(|problem| format!("--{option}: {problem}"));
    text.split(',').map(read).collect()
}

fn audio_rate(text: &str) -> Result<u64, String> {
    let rate = parse_rate_bits_per_s(text)?;
    let is_aac = (16_000..=320_000).contains(&rate);
    is_aac.then_some(rate).ok_or_else(|| format!("`{text}` is out of bounds; write 16kbit/s to 320kbit/s"))
}

fn list(cache: &Path) -> Result<Exit> {
    let mut listed = table(&["entry", "size", "content"]);
    for entry in media::cached(cache)? {
        let name = entry.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        listed.add_row([name, format_bytes(float(entry.bytes)), entry.description]);
    }
    print(&listed.trim_fmt())?;
    note(false, &format!("the cache is {}", cache.display()));
    let unfinished = media::unfinished(cache)?;
    if !unfinished.is_empty() {
        note(false, &format!("{}; `h123 content clean` removes what is unfinished", describe(&unfinished)));
    }
    Ok(Exit::Done)
}

fn clean(cache: &Path) -> Result<Exit> {
    let entries = media::cached(cache)?.into_iter().map(|entry| (entry.folder, entry.bytes));
    let entries: Vec<(PathBuf, u64)> = entries.collect();
    let unfinished = media::unfinished(cache)?;
    for (folder, _) in entries.iter().chain(&unfinished) {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let bytes = format_bytes(float(entries.iter().map(|(_, bytes)| bytes).sum()));
    let mut text = format!("removed {}, {bytes}", counted_entries(entries.len()));
    if !unfinished.is_empty() {
        text = format!("{text}; {}", describe(&unfinished));
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// `2 unfinished entries, 43.0 MB`.
fn describe(unfinished: &[(PathBuf, u64)]) -> String {
    let bytes = format_bytes(float(unfinished.iter().map(|(_, bytes)| bytes).sum()));
    format!("{}, {bytes}", counted_entries(unfinished.len()).replacen(' ', " unfinished ", 1))
}

fn counted_entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn unfinished_entries_are_counted() {
        let of = |bytes| (PathBuf::from("new-x"), bytes);
        assert_eq!(describe(&[of(1_000)]), "1 unfinished entry, 1 kB");
        assert_eq!(describe(&[of(1_000), of(2_000)]), "2 unfinished entries, 3 kB");
    }

    #[test]
    fn a_missing_input_is_wrong_usage() {
        let settings = |words: &[&str]| {
            let command = MakeArgs::augment_args(clap::Command::new("make"));
            let matches = command.try_get_matches_from([&["make", "film"], words].concat()).unwrap();
            MakeArgs::from_arg_matches(&matches).unwrap().settings().map(drop)
        };
        assert_eq!(settings(&[]), Ok(()));
        let missing = settings(&["--input", "/no/such.mp4"]).unwrap_err();
        assert_eq!(missing, "--input: cannot read /no/such.mp4: No such file or directory (os error 2)");
        assert_eq!(settings(&["--input", "/"]), Err("--input: cannot read /: it is not a file".to_owned()));
    }
}
