//! What ffmpeg feeds to servers: the best tracks of media in one file, which can be sent again and again.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use super::ffmpeg::Ffmpeg;

/// Writes the best video and audio of a manifest on disk to `to`, without encoding them again.
///
/// # Errors
/// ffmpeg is missing, cannot read the manifest, or finds codecs that RTMP does not carry.
pub(crate) fn write_feed(manifest: &Path, to: &Path, media_ns: u64) -> Result<()> {
    static STOP: AtomicBool = AtomicBool::new(false);
    // ffmpeg runs in the folder of its output.
    let to = std::path::absolute(to).context("no current folder")?;
    let text = |path: &Path| path.display().to_string();
    let args = ["-i".to_owned(), text(manifest), "-c".to_owned(), "copy".to_owned(), text(&to)];
    Ffmpeg::find(&STOP)?.run_for_media(to.parent().unwrap_or(&to), &args, media_ns)
}
