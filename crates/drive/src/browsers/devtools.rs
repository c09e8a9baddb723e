//! Chromium's DevTools protocol over its pipe: messages of JSON, each ended by a zero byte. No port and no
//! timing.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::progress::BrowserError;

/// The longest message.
const MOST_MESSAGE_BYTES: usize = 64 << 20;
/// How much is read at once, and how many portions wait.
const READ_BYTES: usize = 1 << 16;
const MOST_WAITING: usize = 64;
/// Chromium reads commands from descriptor 3 and writes to 4. What it prints joins its errors.
const SCRIPT: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>&2";

/// The command that runs a browser with its DevTools pipe on standard input and output.
pub fn piped(command: impl IntoIterator<Item = String>) -> Vec<String> {
    ["sh", "-c", SCRIPT, "sh"].map(str::to_owned).into_iter().chain(command).collect()
}

/// The pipe of a running browser. Dropping it closes the pipe, which ends the browser.
#[derive(Debug)]
pub struct DevTools {
    commands: ChildStdin,
    portions: Receiver<Vec<u8>>,
    /// What has arrived of the messages that were not returned yet.
    buffer: Vec<u8>,
    /// How much of the buffer has no zero byte.
    searched: usize,
    latest_id: u64,
}

impl DevTools {
    /// The pipe of a browser that was started by [`piped`].
    ///
    /// # Errors
    /// The reading thread cannot be started.
    pub fn new(commands: ChildStdin, mut messages: ChildStdout) -> std::io::Result<DevTools> {
        let (sender, portions) = sync_channel(MOST_WAITING);
        let read = move || {
            let mut portion = vec![0; READ_BYTES];
            while let Ok(count @ 1..) = messages.read(&mut portion) {
                if sender.send(portion[..count].to_vec()).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("h123-devtools".to_owned()).spawn(read)?;
        Ok(DevTools { commands, portions, buffer: Vec::new(), searched: 0, latest_id: 0 })
    }

    /// Sends a command to the browser, or to a session of it; returns the id of its answer.
    ///
    /// # Errors
    /// The browser has ended.
    pub fn send(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<u64, BrowserError> {
        self.latest_id += 1;
        let mut command = json!({ "id": self.latest_id, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut text = command.to_string().into_bytes();
        text.push(0);
        self.commands.write_all(&text).map_err(|_| BrowserError::Closed)?;
        Ok(self.latest_id)
    }

    /// The next message; `None` if none came before the deadline.
    ///
    /// # Errors
    /// The browser has ended, or sent what is not a message.
    pub fn next_message(&mut self, deadline: Instant) -> Result<Option<Value>, BrowserError> {
        loop {
            if let Some(length) = self.buffer[self.searched..].iter().position(|byte| *byte == 0) {
                let end = self.searched + length;
                let message = serde_json::from_slice(&self.buffer[..end])
                    .map_err(|error| BrowserError::Malformed(error.to_string()));
                self.buffer.drain(..=end);
                self.searched = 0;
                return message.map(Some);
            }
            self.searched = self.buffer.len();
            if self.searched > MOST_MESSAGE_BYTES {
                let problem = format!("it has more than {MOST_MESSAGE_BYTES} bytes");
                return Err(BrowserError::Malformed(problem));
            }
            match self.portions.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(portion) => self.buffer.extend_from_slice(&portion),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(BrowserError::Closed),
            }
        }
    }

    /// Sends a command and waits for its result. Messages that come before it go to `events`.
    ///
    /// # Errors
    /// As [`DevTools::next_message`]; the browser refuses the command, or does not answer before the
    /// deadline.
    pub fn ask(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        deadline: Instant,
        events: &mut dyn FnMut(Value),
    ) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        loop {
            let mut message = self.next_message(deadline)?.ok_or(BrowserError::Late)?;
            if message["id"] != id {
                events(message);
                continue;
            }
            if let Some(reason) = message["error"]["message"].as_str() {
                return Err(BrowserError::Refused { method: method.to_owned(), reason: reason.to_owned() });
            }
            return Ok(message["result"].take());
        }
    }
}
