//! Errors of HTTP/3 and QPACK with their code names (RFC 9114, section 8.1; RFC 9204, section 6).

use std::borrow::Cow;

use model::sample::FailureKind;

use crate::codes::error_codes;

error_codes! {
    /// An error code.
    Code(u64), "code":
    H3_NO_ERROR = 0x100,
    H3_GENERAL_PROTOCOL_ERROR = 0x101,
    H3_INTERNAL_ERROR = 0x102,
    H3_STREAM_CREATION_ERROR = 0x103,
    H3_CLOSED_CRITICAL_STREAM = 0x104,
    H3_FRAME_UNEXPECTED = 0x105,
    H3_FRAME_ERROR = 0x106,
    H3_EXCESSIVE_LOAD = 0x107,
    H3_ID_ERROR = 0x108,
    H3_SETTINGS_ERROR = 0x109,
    H3_MISSING_SETTINGS = 0x10a,
    H3_REQUEST_REJECTED = 0x10b,
    H3_REQUEST_CANCELLED = 0x10c,
    H3_REQUEST_INCOMPLETE = 0x10d,
    H3_MESSAGE_ERROR = 0x10e,
    H3_CONNECT_ERROR = 0x10f,
    H3_VERSION_FALLBACK = 0x110,
    QPACK_DECOMPRESSION_FAILED = 0x200,
    QPACK_ENCODER_STREAM_ERROR = 0x201,
    QPACK_DECODER_STREAM_ERROR = 0x202,
}

/// A violation of the protocol by the peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Violation {
    /// The code of the answer.
    pub code: Code,
    /// What the peer did wrong.
    pub reason: Cow<'static, str>,
    /// The kind of failure.
    pub kind: FailureKind,
}

impl Violation {
    /// A violated rule.
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Violation { code, reason: reason.into(), kind: FailureKind::Protocol }
    }

    /// A limit of ours was exceeded.
    pub fn limit(reason: impl Into<Cow<'static, str>>) -> Self {
        Violation { code: Code::H3_EXCESSIVE_LOAD, reason: reason.into(), kind: FailureKind::Limit }
    }

    /// A body with another length than announced (RFC 9114, section 4.1.2).
    pub fn wrong_length(reason: impl Into<Cow<'static, str>>) -> Self {
        Violation { code: Code::H3_MESSAGE_ERROR, reason: reason.into(), kind: FailureKind::WrongLength }
    }
}

/// The result of handling input that can end a stream or the connection.
pub type Result<T = ()> = std::result::Result<T, Fault>;

/// The scope of a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection ends.
    Connection(Violation),
    /// The stream ends.
    Stream(Violation),
}

impl Fault {
    /// A connection error.
    pub fn connection(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Fault::Connection(Violation::new(code, reason))
    }

    /// A stream error.
    pub fn stream(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Fault::Stream(Violation::new(code, reason))
    }
}
