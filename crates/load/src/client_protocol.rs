//! The client's side of the protocol: an assignment on standard input, frames of messages on standard output.

use std::io::{Read, Write};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClientMessage};
use model::frame;
use model::sample::{Failure, FailureKind};

use crate::dns_lookup::NameNotFound;
use crate::worker;

/// Rows in a message: such a frame is far below the frame limit.
const ROWS_PER_MESSAGE: usize = 4096;

/// Reads one assignment, runs it and writes the result.
///
/// # Errors
/// The assignment cannot be read, or the reader is gone. Failures of the work are [`ClientMessage::Fault`]s
/// or rows.
pub fn serve_assignment(mut input: impl Read, mut output: impl Write, stop: &AtomicBool) -> Result<()> {
    let mut text = String::new();
    input.read_to_string(&mut text).context("reading the assignment")?;
    let assignment = Assignment::from_json(&text).map_err(anyhow::Error::msg)?;
    let mut send = |message: &ClientMessage| -> Result<()> {
        let bytes = frame::encode(message).context("encoding a message")?;
        output.write_all(&bytes).context("writing a message")
    };
    send(&ClientMessage::Hello { version: ASSIGNMENT_VERSION })?;
    match worker::run(&assignment, stop) {
        Ok(report) => {
            for rows in report.samples.chunks(ROWS_PER_MESSAGE) {
                send(&ClientMessage::Samples(rows.to_vec()))?;
            }
            for rows in report.connections.chunks(ROWS_PER_MESSAGE) {
                send(&ClientMessage::Connections(rows.to_vec()))?;
            }
            for rows in report.player.chunks(ROWS_PER_MESSAGE) {
                send(&ClientMessage::Player(rows.to_vec()))?;
            }
            send(&ClientMessage::Done(Box::new(report.client)))?;
        }
        Err(error) => {
            let reason = format!("{error:#}");
            let kind = if error.is::<NameNotFound>() { FailureKind::Dns } else { FailureKind::Client };
            send(&ClientMessage::Fault(Failure { kind, reason }))?;
        }
    }
    output.flush().context("writing the last message")
}
