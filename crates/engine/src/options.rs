//! Options of a client besides its pins.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// The default number of TLS 1.3 tickets that a client group keeps.
pub const SESSION_LIMIT: usize = 4096;

/// Options of a client group.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sends safe requests as early data if a ticket allows it (RFC 8446, section 2.3; RFC 9001, section
    /// 4.6); requires `pins.resumption` and TLS 1.3.
    pub early_data: bool,
    /// The limit of TLS 1.3 tickets that are kept; each is used once.
    pub session_limit: usize,
    /// The receiver of TLS and QUIC secrets, such as `rustls::KeyLogFile` for `SSLKEYLOGFILE`.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// The receiver of the events of QUIC connections.
    pub qlog: Option<Arc<dyn Qlog>>,
    /// Allows HTTP/2 server push (RFC 9113, section 8.4); pushed responses are counted and discarded.
    pub accept_push: bool,
    /// The limit of blocked streams, which wait for QPACK's dynamic table (RFC 9204, section 2.1.2).
    pub qpack_blocked_streams: u16,
    /// Passes several UDP datagrams to the system in one call (GSO).
    pub segmentation_offload: bool,
}

impl Default for Options {
    /// No early data, no push, no key log, no qlog; 4096 tickets, 100 blocked streams (Chromium's value), GSO
    /// on.
    fn default() -> Self {
        Options {
            early_data: false,
            session_limit: SESSION_LIMIT,
            key_log: None,
            qlog: None,
            accept_push: false,
            qpack_blocked_streams: 100,
            segmentation_offload: true,
        }
    }
}

/// Records the events of QUIC connections: packets sent, received and lost, and loss recovery.
pub trait Qlog: fmt::Debug + Send + Sync {
    /// The writer for a new connection, which is identified by its first destination connection ID in
    /// hexadecimal. It gets a header and then events, each as one record of a JSON text sequence (RFC 7464;
    /// draft-ietf-quic-qlog-main-schema-02). `None`: the connection is not recorded. Times are milliseconds
    /// since the driver's clock read 0.
    fn begin(&self, original_destination_id: &str) -> Option<Box<dyn Write + Send + Sync>>;
}
