//! The terminal while a command owns it. Only this file changes how this process handles SIGTTOU.

use rustix::process::Pid;
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The state of the terminal on standard input. Dropping this restores it after a command that took the
/// terminal (a shell) or left it in another mode (a killed editor).
#[derive(Debug)]
pub struct Terminal {
    group: Pid,
    attributes: Termios,
}

impl Terminal {
    /// Saves the terminal's state; `None` where standard input is no terminal, or this process runs in the
    /// background.
    pub fn remember() -> Option<Terminal> {
        let group = tcgetpgrp(stdin()).ok()?;
        // SAFETY: the call takes nothing and always succeeds.
        let own = unsafe { libc::getpgrp() };
        // It is 0 where the group is outside of this PID namespace, which rustix does not expect.
        if group.as_raw_nonzero().get() != own {
            return None;
        }
        Some(Terminal { group, attributes: tcgetattr(stdin()).ok()? })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // SAFETY: replaces a disposition, not a handler of Rust. SIGTTOU stops a background process that
        // takes the terminal unless the process ignores it (tcsetpgrp(3)).
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
