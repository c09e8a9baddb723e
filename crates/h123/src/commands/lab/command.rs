//! The command that runs in a lab, and the signals that it receives.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::{LabError, Node, Process, Program, Terminal};
use rustix::event::{PollFd, PollFlags};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::exit::Exit;
use crate::terminal::note;

/// The exit statuses of shells for a command that does not exist, and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
/// A command that received a signal has this long to end.
const GRACE: Duration = Duration::from_secs(5);
/// Shells add this to a signal's number.
const SIGNALLED: i32 = 128;

/// The user `nobody` of every Linux.
const NOBODY: u32 = 65_534;

/// The user's command.
pub(super) fn program(words: &[OsString], is_user: bool) -> Program {
    match words.split_first() {
        Some((program, args)) if !is_user => Program::new(program).args(args.iter().cloned()),
        _ => as_user().args(words.iter().cloned()),
    }
}

/// Starts a program as an ordinary user in a new user namespace: the caller, or `nobody` if that is root.
fn as_user() -> Program {
    let own = rustix::process::geteuid().as_raw();
    let (user, group) = if own == 0 { (NOBODY, NOBODY) } else { (own, rustix::process::getegid().as_raw()) };
    let map = [format!("--map-user={user}"), format!("--map-group={group}")];
    Program::new("unshare").args(["--user"]).args(map).args(["--"])
}

/// Runs the command to its end; the terminal's signals are the command's.
pub(super) fn run(node: &Node, command: Program) -> Result<Exit> {
    let name = command.program.to_string_lossy().into_owned();
    let mut signals = Signals::watch()?;
    let _terminal = Terminal::remember();
    let process = match node.spawn(command) {
        Ok(process) => process,
        Err(LabError::System { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            note(false, &format!("h123: there is no command `{name}`; name a program in PATH, or a path"));
            return Ok(Exit::Command(NOT_FOUND));
        }
        Err(LabError::System { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            note(false, &format!("h123: `{name}` cannot be executed ({source})"));
            return Ok(Exit::Command(NOT_EXECUTABLE));
        }
        Err(error) => return Err(error.into()),
    };
    let status = signals.wait_for(&process)?.status;
    let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or(0));
    Ok(Exit::Command(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// The signals that end this tool while a command runs.
///
/// The terminal's signals reach the command directly; this tool passes on the others.
struct Signals {
    streams: [UnixStream; 2],
}

impl Signals {
    fn watch() -> Result<Signals> {
        let context = "cannot watch for signals";
        for signal in [SIGINT, SIGQUIT] {
            // The command inherits an ignored signal, but not a handler.
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).context(context)?;
        }
        let stream = |signal| -> Result<UnixStream> {
            let (stream, inside) = UnixStream::pair().context(context)?;
            signal_hook::low_level::pipe::register(signal, inside).context(context)?;
            Ok(stream)
        };
        Ok(Signals { streams: [stream(SIGTERM)?, stream(SIGHUP)?] })
    }

    fn wait_for(&mut self, process: &Process) -> Result<lab::Exit> {
        let mut deadline: Option<Instant> = None;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
            let mut watched = [process.as_fd(), self.streams[0].as_fd(), self.streams[1].as_fd()]
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
            match rustix::event::poll(&mut watched, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).context("waiting for the command"),
            }
            let is_signalled = [1, 2].map(|index| !watched[index].revents().is_empty());
            if let Some(exit) = process.wait_timeout(Duration::ZERO)? {
                return Ok(exit);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(process.kill()?);
            }
            for (index, signal) in
                [rustix::process::Signal::TERM, rustix::process::Signal::HUP].into_iter().enumerate()
            {
                if is_signalled[index] {
                    // One byte for each signal.
                    let _ = std::io::Read::read(&mut self.streams[index], &mut [0; 64]);
                    process.signal(signal);
                    deadline.get_or_insert(Instant::now() + GRACE);
                }
            }
        }
    }
}
