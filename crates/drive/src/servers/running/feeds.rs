//! Live streams that ffmpeg feeds to a server over RTMP, as an encoder in a studio does. The server cuts
//! segments and lists them in a playlist.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::{Node, Output, Process, Program};
use minijinja::value::Value;
use model::Variant;
use model::media::{Media, MediaFeed};
use model::number::float;

use crate::content::feed_file;
use crate::log;
use crate::program::{ProgramInfo, find_program};
use crate::servers::adapter::Adapter;
use crate::servers::ready::free_ports;
use crate::template::Variables;

/// How often the playlist is read.
const POLL: Duration = Duration::from_millis(20);
/// The playlist may take this many times the duration of its segments.
const PATIENCE: u32 = 4;
/// What the keys of segments and the server's own delays may add.
const GRACE: Duration = Duration::from_secs(10);

/// The variables that feeds add to a server's templates: `feeds`, `feed_port` and `feed_module`.
pub(crate) fn variables(
    adapter: &Adapter,
    info: &ProgramInfo,
    node: &Node,
    media: &[Media],
) -> Result<Variables> {
    let Some(spec) = &adapter.feed else { return Ok(values(&[], 0, "")) };
    // TCP, as h1 is.
    let ports = free_ports(node, std::net::Ipv4Addr::LOCALHOST.into(), &[(Variant::H1, spec.port)])?;
    let port = ports.first().map_or(spec.port, |(_, port)| *port);
    let module = info.feed.as_ref().and_then(|found| found.as_ref().ok()).map_or("", String::as_str);
    Ok(values(media, port, module))
}

/// The variables for media, of which those that are fed are listed.
pub(crate) fn values(media: &[Media], port: u16, module: &str) -> Variables {
    let feed = |media: &Media| {
        let milliseconds = |ns: u64| Value::from(ns / 1_000_000);
        Some(Value::from(BTreeMap::from([
            ("name", Value::from(media.name.as_str())),
            ("segment_ms", milliseconds(media.feed()?.segment_ns)),
            ("window_ms", milliseconds(media.live_window_ns?)),
        ])))
    };
    Variables::from([
        ("feeds", Value::from(media.iter().filter_map(feed).collect::<Vec<_>>())),
        ("feed_port", Value::from(port)),
        ("feed_module", Value::from(module)),
    ])
}

/// The running feeds of a server; dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Vec<Feed>);

/// One ffmpeg that sends one medium.
#[derive(Debug)]
struct Feed {
    media: String,
    process: Process,
    playlist: PathBuf,
    log: PathBuf,
    first_segments: Duration,
}

impl Feeds {
    /// Starts an ffmpeg for each medium that is fed. `content` has the files to send, `folder` is the run's.
    ///
    /// # Errors
    /// ffmpeg is missing, or a file cannot be written.
    pub(crate) fn start(
        node: &Node,
        adapter: &Adapter,
        info: &ProgramInfo,
        variables: &Variables,
        media: &[Media],
        (content, folder): (&Path, &Path),
    ) -> Result<Feeds> {
        let Some(spec) = &adapter.feed else { return Ok(Feeds::default()) };
        let mut feeds = Vec::new();
        for (media, feed) in media.iter().filter_map(|media| Some((media, media.feed()?))) {
            let mut variables = variables.clone();
            variables.insert("media", Value::from(media.name.as_str()));
            let templates = [spec.url.clone(), spec.playlist.clone()];
            let filled = adapter.fill(&templates, &info.version, &info.build, &variables)?;
            let [url, playlist] = filled.as_slice() else { bail!("a template of `[feed]` is empty") };
            let log = folder.join(format!("feed-{}.log", media.name));
            let open = || log::open(&log).with_context(|| format!("cannot open {}", log.display()));
            let ffmpeg =
                find_program("ffmpeg").context("ffmpeg is missing; install it: apt-get install ffmpeg")?;
            let file = feed_file(content, media);
            let mut program = Program::new(ffmpeg)
                .args(["-hide_banner", "-nostdin", "-loglevel", "error", "-re", "-stream_loop", "-1", "-i"])
                .args([file.as_os_str()])
                .args(["-c", "copy", "-f", "flv", url])
                .stdout(Output::File(open()?))
                .stderr(Output::File(open()?));
            program.file_limit_bytes = Some(log::LIMIT_BYTES);
            feeds.push(Feed {
                media: media.name.clone(),
                process: node.spawn(program)?,
                playlist: PathBuf::from(playlist),
                log,
                first_segments: Duration::from_nanos(feed.first_segments_ns()),
            });
        }
        Ok(Feeds(feeds))
    }

    /// Waits until every playlist lists enough segments for a player to begin.
    ///
    /// # Errors
    /// ffmpeg ended, or a playlist is not complete in time.
    pub(crate) fn wait_until_listed(&self) -> Result<()> {
        let started = Instant::now();
        for feed in &self.0 {
            let limit = feed.first_segments * PATIENCE + GRACE;
            let least = MediaFeed::LEAST_SEGMENTS.into();
            while listed(&feed.playlist) < least {
                if let Some(fault) = feed.fault()? {
                    bail!(fault);
                }
                if started.elapsed() >= limit {
                    bail!(
                        "the server has {} of {least} segments of the live media `{}` after {:.0} s{}",
                        listed(&feed.playlist),
                        feed.media,
                        float(u64::try_from(limit.as_millis())?) / 1e3,
                        log::last_lines(&[&feed.log])
                    );
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// The CPU time of all, in user space and in the kernel, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> (u64, u64) {
        let all = self.0.iter().map(|feed| feed.process.cpu_ns());
        all.fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1))
    }

    /// Why one has ended, if one has.
    ///
    /// # Errors
    /// waitpid(2) failed.
    pub(crate) fn fault(&self) -> Result<Option<String>> {
        for feed in &self.0 {
            if let Some(fault) = feed.fault()? {
                return Ok(Some(fault));
            }
        }
        Ok(None)
    }
}

impl Feed {
    fn fault(&self) -> Result<Option<String>> {
        let ended = self.process.wait_timeout(Duration::ZERO)?;
        Ok(ended.map(|exit| {
            let lines = log::last_lines(&[&self.log]);
            format!("ffmpeg, which feeds the live media `{}`, ended ({}){lines}", self.media, exit.status)
        }))
    }
}

/// How many segments a playlist lists; 0 while it does not exist.
fn listed(playlist: &Path) -> usize {
    fs::read_to_string(playlist).map_or(0, |text| text.matches("#EXTINF:").count())
}
