//! Playlists of HTTP Live Streaming (RFC 8216).

mod reader;
mod writer;

pub use reader::{MediaPlaylist, Multivariant, Part, Playlist, PlaylistSegment, Rendition, Variant};
pub use writer::{write_media, write_multivariant};
