//! Runs ffmpeg: bounded in time, in a process group that ends with the command, its last words in errors.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::log;
use crate::program::{find_program, has_ended, kill_group, output_within};

/// How often a running ffmpeg is checked.
const POLL: Duration = Duration::from_millis(20);
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// The user stopped the command.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped; nothing was written")]
pub struct Stopped;

/// An installed ffmpeg.
pub(crate) struct Ffmpeg<'s> {
    program: PathBuf,
    /// The first line of its version, with which the bytes it makes may change.
    version: String,
    has_text: bool,
    stop: &'s AtomicBool,
}

impl<'s> Ffmpeg<'s> {
    /// Finds it in the folders of PATH.
    ///
    /// # Errors
    /// It is missing, or does not print its version.
    pub(crate) fn find(stop: &'s AtomicBool) -> Result<Ffmpeg<'s>> {
        let program =
            find_program("ffmpeg").context("ffmpeg is missing; install it: apt-get install ffmpeg")?;
        let command =
            |option: &str| [program.display().to_string(), "-hide_banner".to_owned(), option.to_owned()];
        let text = output_within(&command("-version"), VERSION_LIMIT)?;
        let version = text.lines().next().unwrap_or_default().to_owned();
        let filters = output_within(&command("-filters"), VERSION_LIMIT)?;
        let has_text = filters.lines().any(|line| line.split_whitespace().nth(1) == Some("drawtext"));
        Ok(Ffmpeg { program, version, has_text, stop })
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Whether it can draw text.
    pub(crate) const fn has_text(&self) -> bool {
        self.has_text
    }

    /// Runs it in `folder` until it ends. Its output is in the file `ffmpeg.log` there.
    ///
    /// # Errors
    /// It fails or exceeds the limit; the user stops it.
    fn run(&self, folder: &Path, args: &[String], limit: Duration) -> Result<()> {
        let path = folder.join("ffmpeg.log");
        let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut child = Command::new(&self.program)
            .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-y"])
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let deadline = Instant::now() + limit;
        let mut ended = Ok(());
        while ended.is_ok() && !has_ended(&child).context("cannot wait for ffmpeg")? {
            if self.stop.load(Ordering::Relaxed) {
                ended = Err(Stopped.into());
            } else if Instant::now() >= deadline {
                ended = Err(anyhow::anyhow!("ffmpeg did not end within {} s", limit.as_secs()));
            }
            std::thread::sleep(POLL);
        }
        kill_group(&child);
        let status = child.wait().context("cannot wait for ffmpeg")?;
        ended?;
        if !status.success() {
            bail!("ffmpeg failed ({status}){}", log::last_lines(&[&path]));
        }
        Ok(())
    }

    /// Runs it for as long as media of this duration may take.
    ///
    /// # Errors
    /// As [`Ffmpeg::run`].
    pub(crate) fn run_for_media(&self, work: &Path, args: &[String], media_ns: u64) -> Result<()> {
        const LEAST: Duration = Duration::from_secs(120);
        self.run(work, args, LEAST + Duration::from_nanos(media_ns))
    }
}

/// The arguments of a command line without spaces inside them.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}
