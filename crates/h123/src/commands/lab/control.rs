//! `--change`: changes of a link of a running lab. The lab listens at a socket in its folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use lab::Lab;
use lab::registry::LabEntry;
use model::named::unknown;
use serde::{Deserialize, Serialize};

use super::LabArgs;
use super::network_keys::changed;
use crate::exit::{Exit, UsageError};
use crate::terminal::print;

const SOCKET: &str = "control";
/// Longer requests and answers are cut off.
const MOST_BYTES: u64 = 1 << 16;
const PATIENCE: Duration = Duration::from_secs(10);

/// What `--change` asks of a lab.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    /// The only emulated link where `None`.
    link: Option<String>,
    keys: Vec<(String, String)>,
    rebind: bool,
}

/// The link's network afterwards, or why nothing changed.
type Answer = Result<String, String>;

/// The socket of a running lab.
pub(crate) struct Control<'l> {
    lab: &'l Lab,
    listener: UnixListener,
    path: PathBuf,
    has_ended: AtomicBool,
}

/// See [`Control::end_when_dropped`].
pub(crate) struct Ending<'c, 'l>(&'c Control<'l>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
        let _: Result<_, _> = UnixStream::connect(&self.0.path);
    }
}

impl<'l> Control<'l> {
    /// Listens in the lab's folder.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub(crate) fn new(lab: &'l Lab, folder: &Path) -> Result<Control<'l>> {
        let path = folder.join(SOCKET);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen at {}", path.display()))?;
        Ok(Control { lab, listener, path, has_ended: AtomicBool::new(false) })
    }

    /// Answers until [`Control::end_when_dropped`] ends.
    pub(crate) fn serve(&self) {
        for stream in self.listener.incoming() {
            if self.has_ended.load(Ordering::Acquire) {
                return;
            }
            // A client that went away needs no answer.
            let _ = stream.map(|stream| self.answer(&stream));
        }
    }

    /// Lets [`Control::serve`] return when the result is dropped, also after a panic: otherwise the lab would
    /// wait for it forever.
    pub(crate) fn end_when_dropped(&self) -> Ending<'_, 'l> {
        Ending(self)
    }

    fn answer(&self, stream: &UnixStream) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line)?;
        let answer: Answer = match serde_json::from_str(&line) {
            Ok(request) => self.change(&request).map_err(|error| format!("{error:#}")),
            Err(error) => {
                Err(format!("the request is not understood ({error}); use the same version of h123"))
            }
        };
        let mut stream = stream;
        Ok(stream.write_all(format!("{}\n", serde_json::to_string(&answer)?).as_bytes())?)
    }

    fn change(&self, request: &Request) -> Result<String> {
        let links = self.lab.link_names();
        let link = match (&request.link, links.as_slice()) {
            (Some(link), links) if links.contains(&link.as_str()) => link.as_str(),
            (Some(link), links) => return Err(UsageError(unknown(link, "an emulated link", links)).into()),
            (None, [only]) => only,
            (None, links) => {
                let problem = format!("the link is missing; name one of {}", links.join(", "));
                return Err(UsageError(problem).into());
            }
        };
        let before = self.lab.network_of_link(link).context("the link has no network")?;
        let after = changed(&before, &request.keys)?;
        before.check_live_change(&after).map_err(UsageError)?;
        if before != after {
            self.lab.change_link(link, &after)?;
        }
        if request.rebind {
            self.lab.rebind(link)?;
        }
        let rebound = if request.rebind { "; the NAT forgot its mappings" } else { "" };
        Ok(format!("{link}: {}{rebound}", model::network::describe(&after)))
    }
}

/// Changes a link of a running lab.
///
/// # Errors
/// Nothing to change is named, or the lab refuses.
pub(crate) fn request(args: &LabArgs, lab: &LabEntry, link: Option<&String>) -> Result<Exit> {
    let request = Request { link: link.cloned(), keys: args.keys.given(), rebind: args.rebind };
    if request.keys.is_empty() && !request.rebind {
        let problem = "--change requires a change; add one such as `--rtt 80ms`, or --rebind";
        return Err(UsageError(problem.to_owned()).into());
    }
    let path = lab.folder.join(SOCKET);
    let context = || format!("cannot ask the lab {} at {} (it may be ending)", lab.what, path.display());
    let mut stream = UnixStream::connect(&path).with_context(context)?;
    stream.set_read_timeout(Some(PATIENCE)).with_context(context)?;
    stream.write_all(format!("{}\n", serde_json::to_string(&request)?).as_bytes()).with_context(context)?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line).with_context(context)?;
    match serde_json::from_str::<Answer>(&line).with_context(context)? {
        Ok(text) => print(&text)?,
        Err(problem) => return Err(UsageError(problem).into()),
    }
    Ok(Exit::Done)
}
