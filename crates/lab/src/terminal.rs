//! The terminal while a command has it: the only file that changes how this process takes SIGTTOU.

use rustix::process::{Pid, getpgrp};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal on standard input as it was; dropping this takes it back from a command that made itself its owner
/// (a shell) or left it in another mode (a killed editor).
#[derive(Debug)]
pub struct Terminal {
    group: Pid,
    attributes: Termios,
}

impl Terminal {
    /// Remembers the terminal; `None` where standard input is none, or this process runs in its background.
    pub fn remember() -> Option<Terminal> {
        let group = getpgrp();
        if tcgetpgrp(stdin()).ok()? != group {
            return None;
        }
        Some(Terminal { group, attributes: tcgetattr(stdin()).ok()? })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // SAFETY: replaces a disposition and no handler of Rust's own. A process in the background that takes the terminal
        // is stopped by SIGTTOU unless it ignores that (tcsetpgrp(3)).
        let before = unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
        // The terminal may have been closed meanwhile.
        let _: Result<_, _> = tcsetpgrp(stdin(), self.group);
        let _: Result<_, _> = tcsetattr(stdin(), OptionalActions::Drain, &self.attributes);
        if before != libc::SIG_ERR {
            // SAFETY: the disposition that was there before.
            unsafe { libc::signal(libc::SIGTTOU, before) };
        }
    }
}
