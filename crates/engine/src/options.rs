//! What a client may be asked to do beyond its pins.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// TLS 1.3 tickets that the connections of one client group keep, unless told otherwise.
pub const SESSION_LIMIT: usize = 4096;

/// Options of a client group, all of which are off, or as usual, by default.
#[derive(Clone, Debug)]
pub struct Options {
    /// Send safe requests as early data where a ticket allows it (RFC 8446, section 2.3; RFC 9001, section 4.6);
    /// needs `pins.resumption` and TLS 1.3.
    pub early_data: bool,
    /// How many TLS 1.3 tickets are kept at most; each is used once.
    pub session_limit: usize,
    /// Where the secrets of TLS and QUIC go, such as `rustls::KeyLogFile` for `SSLKEYLOGFILE`.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
    /// Where it is told what QUIC connections do.
    pub qlog: Option<Arc<dyn Qlog>>,
    /// Let an HTTP/2 server push (RFC 9113, section 8.4); what it pushes is counted and thrown away.
    pub accept_push: bool,
    /// How many HTTP/3 responses may wait for QPACK's dynamic table (RFC 9204, section 2.1.2); no table, no waiting.
    pub qpack_blocked_streams: u16,
    /// Hand several UDP datagrams to the system in one call (GSO).
    pub segmentation_offload: bool,
}

impl Default for Options {
    /// No early data, no push, no key log, no qlog; 4096 tickets, 100 blocked streams (Chromium's value), GSO on.
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

/// Keeps what QUIC connections do: packets sent, received and lost, and what recovery made of them.
pub trait Qlog: fmt::Debug + Send + Sync {
    /// A connection begins, whose first destination connection id this is, in hexadecimal. What is returned is given a
    /// header and then events, one record of a JSON text sequence each (RFC 7464; draft-ietf-quic-qlog-main-schema-02);
    /// `None` leaves the connection out. Times count in milliseconds from when the driver's clock reads 0.
    fn begin(&self, original_destination_id: &str) -> Option<Box<dyn Write + Send + Sync>>;
}
