//! What goes wrong, for the connection or for one stream.

use model::sample::{Failure, FailureKind};

use super::frame::ErrorCode;

/// The connection cannot go on (RFC 9113, section 5.4.1).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct ConnectionError {
    /// What GOAWAY says.
    pub code: ErrorCode,
    /// How it is counted.
    pub kind: FailureKind,
    /// What happened.
    pub reason: String,
}

/// One stream cannot go on (RFC 9113, section 5.4.2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct StreamError {
    /// What RST_STREAM says.
    pub code: ErrorCode,
    /// How it is counted.
    pub kind: FailureKind,
    /// What happened.
    pub reason: String,
}

impl ConnectionError {
    /// The peer broke the protocol in the way that `code` names.
    pub fn new(code: ErrorCode, reason: String) -> Self {
        ConnectionError { code, kind: FailureKind::Protocol, reason }
    }

    /// PROTOCOL_ERROR.
    pub fn protocol(reason: String) -> Self {
        ConnectionError::new(ErrorCode::PROTOCOL_ERROR, reason)
    }

    /// A limit of ours was hit: ENHANCE_YOUR_CALM.
    pub fn limit(reason: String) -> Self {
        ConnectionError { code: ErrorCode::ENHANCE_YOUR_CALM, kind: FailureKind::Limit, reason }
    }

    /// As it is stored.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, reason: self.to_string() }
    }
}

impl StreamError {
    /// A body that is not as long as announced, which makes a response malformed too.
    pub fn wrong_length(reason: String) -> Self {
        StreamError { kind: FailureKind::WrongLength, ..StreamError::malformed(reason) }
    }

    /// A malformed response (RFC 9113, section 8.1.1).
    pub fn malformed(reason: String) -> Self {
        StreamError { code: ErrorCode::PROTOCOL_ERROR, kind: FailureKind::Protocol, reason }
    }

    /// As it is stored.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, reason: self.to_string() }
    }
}
