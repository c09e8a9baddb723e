//! Frames (RFC 9113, sections 4, 6 and 7).

use crate::codes::error_codes;

/// The length of a frame's header in bytes.
pub const HEADER_BYTES: usize = 9;

/// The client's preface (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The frame types (RFC 9113, section 6).
pub mod kind {
    #![expect(missing_docs, reason = "the names say all")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The flags (RFC 9113, section 6).
pub mod flag {
    #![expect(missing_docs, reason = "the names say all")]
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The payload's length.
    pub length: u32,
    /// One of [`kind`], or unknown.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream, 0 for the connection.
    pub stream: u32,
}

/// A complete frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// Its payload, of the length in the header.
    pub payload: &'a [u8],
}

impl FrameHeader {
    /// Reads a header.
    #[inline]
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
        }
    }

    /// Appends the header.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags, s0, s1, s2, s3]);
    }

    /// The whole frame's length in bytes, its header included.
    pub fn wire_bytes(self) -> u32 {
        self.length.saturating_add(9)
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a RST_STREAM frame.
pub fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    FrameHeader { length: 4, kind: kind::RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a WINDOW_UPDATE frame.
pub fn write_window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    FrameHeader { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends a GOAWAY frame; a client has processed no streams of the server.
pub fn write_goaway(code: ErrorCode, out: &mut Vec<u8>) {
    FrameHeader { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&0u32.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

error_codes! {
    /// An error code (RFC 9113, section 7); shown by its registered name.
    ErrorCode(u32), "error code":
    NO_ERROR = 0,
    PROTOCOL_ERROR = 1,
    INTERNAL_ERROR = 2,
    FLOW_CONTROL_ERROR = 3,
    SETTINGS_TIMEOUT = 4,
    STREAM_CLOSED = 5,
    FRAME_SIZE_ERROR = 6,
    REFUSED_STREAM = 7,
    CANCEL = 8,
    COMPRESSION_ERROR = 9,
    CONNECT_ERROR = 10,
    ENHANCE_YOUR_CALM = 11,
    INADEQUATE_SECURITY = 12,
    HTTP_1_1_REQUIRED = 13,
}
