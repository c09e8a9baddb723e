//! Connection errors and stream errors.

use model::sample::{Failure, FailureKind};

use super::frame::ErrorCode;

/// The result of handling input that can end the connection.
pub type Result<T = ()> = std::result::Result<T, ConnectionError>;

/// A connection error (RFC 9113, section 5.4.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct ConnectionError {
    /// The code in GOAWAY.
    pub code: ErrorCode,
    /// The kind of failure.
    pub kind: FailureKind,
    /// The reason.
    pub reason: String,
}

/// A stream error (RFC 9113, section 5.4.2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct StreamError {
    /// The code in RST_STREAM.
    pub code: ErrorCode,
    /// The kind of failure.
    pub kind: FailureKind,
    /// The reason.
    pub reason: String,
}

impl ConnectionError {
    /// A protocol error of the peer.
    pub fn new(code: ErrorCode, reason: impl Into<String>) -> Self {
        ConnectionError { code, kind: FailureKind::Protocol, reason: reason.into() }
    }

    /// PROTOCOL_ERROR.
    pub fn protocol(reason: impl Into<String>) -> Self {
        ConnectionError::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    /// FLOW_CONTROL_ERROR.
    pub fn flow_control(reason: impl Into<String>) -> Self {
        ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, reason)
    }

    /// A limit of ours was exceeded: ENHANCE_YOUR_CALM.
    pub fn limit(reason: String) -> Self {
        ConnectionError { code: ErrorCode::ENHANCE_YOUR_CALM, kind: FailureKind::Limit, reason }
    }

    /// The failure of the requests.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, reason: self.to_string() }
    }
}

impl StreamError {
    /// A body with another length than announced, which also makes a response malformed.
    pub fn wrong_length(reason: impl Into<String>) -> Self {
        StreamError { kind: FailureKind::WrongLength, ..StreamError::malformed(reason) }
    }

    /// A malformed response (RFC 9113, section 8.1.1).
    pub fn malformed(reason: impl Into<String>) -> Self {
        StreamError { code: ErrorCode::PROTOCOL_ERROR, kind: FailureKind::Protocol, reason: reason.into() }
    }

    /// FLOW_CONTROL_ERROR.
    pub fn flow_control(reason: impl Into<String>) -> Self {
        StreamError { code: ErrorCode::FLOW_CONTROL_ERROR, ..StreamError::malformed(reason) }
    }

    /// More informational responses than `limit`: ENHANCE_YOUR_CALM.
    pub fn informational(limit: u32, noun: &str) -> Self {
        let reason = format!("more than {limit} {noun}");
        StreamError { code: ErrorCode::ENHANCE_YOUR_CALM, kind: FailureKind::Limit, reason }
    }

    /// The failure of the requests.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, reason: self.to_string() }
    }
}
