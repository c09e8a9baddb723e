//! HTTP/2 (RFC 9113).

pub mod field;
pub mod hpack;
