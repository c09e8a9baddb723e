//! Playlists of HTTP Live Streaming (RFC 8216).

mod writer;

pub use writer::{write_media, write_multivariant};
