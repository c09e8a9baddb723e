//! `[feed]` of a server's description: how it takes live streams over RTMP.

use model::reader::{Key, Table};
use model::{InputError, keys};

use crate::requirements::{MODULE_KEYS, Module};
use crate::template::read_template;

pub(crate) const KEYS: &[Key] = keys! {
    "port", "whole number", "required", "1935",
        "The port on the node's loopback address where it takes RTMP, 1 to 65 535; `{{feed_port}}` in templates.";
    "url", "text", "required", r#""rtmp://127.0.0.1:{{feed_port}}/media/{{media}}""#,
        "Where ffmpeg sends the media of the name `{{media}}`.";
    "playlist", "text", "required", r#""{{folder}}/media/{{media}}/index.m3u8""#,
        "The playlist that it writes, which it serves as `/media/{{media}}/index.m3u8`. The server is ready when it lists three segments.";
    "module", "table", "none", r#"{ paths = ["/usr/lib/x/rtmp.so"], install = "apt-get install x-rtmp" }"#,
        "A file that it requires and that may be in another package; `{{feed_module}}` in templates.";
};

/// How a server takes live streams: `[feed]`.
#[derive(Clone, Debug)]
pub(crate) struct FeedSpec {
    pub(crate) port: u16,
    /// Templates of where ffmpeg sends media, and of the playlist that the server writes.
    pub(crate) url: String,
    pub(crate) playlist: String,
    pub(crate) module: Option<Module>,
}

impl FeedSpec {
    /// Reads `[feed]`.
    ///
    /// # Errors
    /// A key is missing or invalid, with its place.
    pub(crate) fn read(table: &Table<'_>) -> Result<FeedSpec, InputError> {
        let module = table.table("module")?;
        Ok(FeedSpec {
            port: table.required("port", |table, key| table.integer(key, 1..=u16::MAX))?.value,
            url: table.required("url", read_template)?.value,
            playlist: table.required("playlist", read_template)?.value,
            module: module.map(|module| Module::read(&module.with_keys(MODULE_KEYS)?)).transpose()?,
        })
    }
}
