//! SETTINGS (RFC 9113, section 6.5).

use super::error::{ConnectionError, Result};
use super::flow::LARGEST_WINDOW;
use super::frame::{ErrorCode, FrameHeader, kind};

/// The identifiers of the settings (RFC 9113, section 6.5.2).
mod id {
    pub(super) const HEADER_TABLE_SIZE: u16 = 1;
    pub(super) const ENABLE_PUSH: u16 = 2;
    pub(super) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(super) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(super) const MAX_FRAME_SIZE: u16 = 5;
    pub(super) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The smallest and the largest value of SETTINGS_MAX_FRAME_SIZE.
pub const SMALLEST_MAX_FRAME: u32 = 16_384;
const LARGEST_MAX_FRAME: u32 = (1 << 24) - 1;

/// The window of a stream before any SETTINGS (RFC 9113, section 6.9.2).
pub const DEFAULT_WINDOW: u32 = 65_535;

/// The client's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub header_table_bytes: u32,
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    pub stream_window_bytes: u32,
    /// SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_bytes: u32,
    /// SETTINGS_MAX_HEADER_LIST_SIZE.
    pub header_list_bytes: u32,
    /// The limit of concurrent pushed streams (SETTINGS_MAX_CONCURRENT_STREAMS); 0 disables push.
    pub pushes: u32,
}

/// The peer's settings, or the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub header_table_bytes: u32,
    /// SETTINGS_MAX_CONCURRENT_STREAMS; 100 before SETTINGS, as browsers assume.
    pub concurrent_streams: u32,
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    pub stream_window_bytes: u32,
    /// SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_bytes: u32,
}

impl LocalSettings {
    /// The settings, clamped to the range that the RFC permits.
    pub fn permitted(self) -> Self {
        LocalSettings {
            stream_window_bytes: self.stream_window_bytes.min(LARGEST_WINDOW),
            max_frame_bytes: self.max_frame_bytes.clamp(SMALLEST_MAX_FRAME, LARGEST_MAX_FRAME),
            ..self
        }
    }

    /// Appends the SETTINGS frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        let pushes = (self.pushes > 0).then_some((id::MAX_CONCURRENT_STREAMS, self.pushes));
        let settings = [
            (id::HEADER_TABLE_SIZE, self.header_table_bytes),
            (id::ENABLE_PUSH, u32::from(self.pushes > 0)),
            (id::INITIAL_WINDOW_SIZE, self.stream_window_bytes),
            (id::MAX_FRAME_SIZE, self.max_frame_bytes),
            (id::MAX_HEADER_LIST_SIZE, self.header_list_bytes),
        ];
        let settings = settings.into_iter().chain(pushes);
        let length = if self.pushes > 0 { 6 * 6 } else { 6 * 5 };
        FrameHeader { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
        for (id, value) in settings {
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

impl Default for PeerSettings {
    fn default() -> Self {
        PeerSettings {
            header_table_bytes: 4096,
            concurrent_streams: 100,
            stream_window_bytes: DEFAULT_WINDOW,
            max_frame_bytes: SMALLEST_MAX_FRAME,
        }
    }
}

impl PeerSettings {
    /// Takes the payload of a SETTINGS frame, in the order of its entries; `table` is told each table size,
    /// as a table that shrinks and grows again must be emptied (RFC 7541, section 4.2).
    ///
    /// # Errors
    /// A value is not permitted.
    pub fn apply(&mut self, payload: &[u8], mut table: impl FnMut(u32)) -> Result {
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(ConnectionError::new(
                ErrorCode::FRAME_SIZE_ERROR,
                format!("SETTINGS of {} bytes, expected a multiple of 6", payload.len()),
            ));
        }
        for &[i0, i1, v0, v1, v2, v3] in entries {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([i0, i1]) {
                id::HEADER_TABLE_SIZE => {
                    self.header_table_bytes = value;
                    table(value);
                }
                id::ENABLE_PUSH if value != 0 => {
                    return Err(ConnectionError::protocol(format!(
                        "a server sent SETTINGS_ENABLE_PUSH {value}"
                    )));
                }
                id::MAX_CONCURRENT_STREAMS => self.concurrent_streams = value,
                id::INITIAL_WINDOW_SIZE if value > LARGEST_WINDOW => {
                    return Err(ConnectionError::flow_control(format!(
                        "SETTINGS_INITIAL_WINDOW_SIZE {value} is above 2147483647"
                    )));
                }
                id::INITIAL_WINDOW_SIZE => self.stream_window_bytes = value,
                id::MAX_FRAME_SIZE if !(SMALLEST_MAX_FRAME..=LARGEST_MAX_FRAME).contains(&value) => {
                    return Err(ConnectionError::protocol(format!(
                        "SETTINGS_MAX_FRAME_SIZE {value} is not from 16384 to 16777215"
                    )));
                }
                id::MAX_FRAME_SIZE => self.max_frame_bytes = value,
                // MAX_HEADER_LIST_SIZE is advice to a client; unknown settings are ignored.
                _ => {}
            }
        }
        Ok(())
    }
}
