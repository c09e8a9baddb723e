//! WebDriver BiDi: a WebSocket of messages of JSON (w3c.github.io/webdriver-bidi).

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Error, Message, WebSocket};

use super::progress::BrowserError;

/// The longest message.
const MOST_MESSAGE_BYTES: usize = 64 << 20;
/// How long the browser may take to accept a command, or the socket.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Sockets take no timeout of zero.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// The socket of a running browser.
#[derive(Debug)]
pub(super) struct BiDi {
    socket: WebSocket<TcpStream>,
    latest_id: u64,
}

impl BiDi {
    /// Opens the socket over a connection to the browser's port.
    ///
    /// # Errors
    /// The browser ended, or does not speak the protocol.
    pub(super) fn open(stream: TcpStream) -> Result<BiDi, BrowserError> {
        let prepare = || -> std::io::Result<u16> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(WRITE_LIMIT))?;
            stream.set_write_timeout(Some(WRITE_LIMIT))?;
            Ok(stream.peer_addr()?.port())
        };
        let port = prepare().map_err(|_| BrowserError::Closed)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MOST_MESSAGE_BYTES))
            .max_frame_size(Some(MOST_MESSAGE_BYTES));
        // The path of a connection that makes its own session.
        let url = format!("ws://127.0.0.1:{port}/session");
        let (socket, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .map_err(|error| BrowserError::Malformed(error.to_string()))?;
        Ok(BiDi { socket, latest_id: 0 })
    }

    /// Sends a command; returns the id of its answer.
    ///
    /// # Errors
    /// The browser has ended.
    pub(super) fn send(&mut self, method: &str, params: Value) -> Result<u64, BrowserError> {
        self.latest_id += 1;
        let command = json!({ "id": self.latest_id, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string())).map_err(|_| BrowserError::Closed)?;
        Ok(self.latest_id)
    }

    /// The next message; `None` if none came before the deadline.
    ///
    /// # Errors
    /// The browser has ended, or sent what is not a message.
    pub(super) fn next_message(&mut self, deadline: Instant) -> Result<Option<Value>, BrowserError> {
        loop {
            let wait = deadline.saturating_duration_since(Instant::now()).max(LEAST_WAIT);
            self.socket.get_ref().set_read_timeout(Some(wait)).map_err(|_| BrowserError::Closed)?;
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    let message = serde_json::from_str(&text);
                    return message.map(Some).map_err(|error| BrowserError::Malformed(error.to_string()));
                }
                // Pings are answered by the library.
                Ok(_) => {}
                Err(Error::Io(error))
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(error @ (Error::Capacity(_) | Error::Utf8(_))) => {
                    return Err(BrowserError::Malformed(error.to_string()));
                }
                Err(_) => return Err(BrowserError::Closed),
            }
        }
    }

    /// Sends a command and waits for its result. Messages that come before it go to `events`.
    ///
    /// # Errors
    /// As [`BiDi::next_message`]; the browser refuses the command, or does not answer before the deadline.
    pub(super) fn ask(
        &mut self,
        method: &str,
        params: Value,
        deadline: Instant,
        events: &mut dyn FnMut(Value),
    ) -> Result<Value, BrowserError> {
        let id = self.send(method, params)?;
        loop {
            let mut message = self.next_message(deadline)?.ok_or(BrowserError::Late)?;
            if message["id"] != id {
                events(message);
                continue;
            }
            if let Some(reason) = refusal(&message) {
                return Err(BrowserError::Refused { method: method.to_owned(), reason });
            }
            return Ok(message["result"].take());
        }
    }
}

/// Why the browser refuses a command, if the message says so.
pub(super) fn refusal(message: &Value) -> Option<String> {
    (message["type"] == "error").then(|| {
        let words = message["message"].as_str().or_else(|| message["error"].as_str());
        words.unwrap_or("no reason").to_owned()
    })
}
