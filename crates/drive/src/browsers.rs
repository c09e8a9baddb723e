//! Browsers: programs that load pages in place of h123's own client, described by folders `browsers/NAME`.
//! Folders in the current directory take precedence.
//!
//! A protocol is one file that drives the browser and returns a [`workload::formats::page_load::PageLoad`];
//! what a load becomes is the same for all.

mod bidi;
mod chromium;
pub(crate) mod command;
pub(crate) mod description;
pub mod devtools;
mod filmstrip;
mod firefox;
mod playback;
pub mod players;
mod profile;
mod progress;
pub(crate) mod report;
pub mod run;
mod settle;

use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::description::{DescriptionError, Shelf, file_name, read};
use description::Browser;
pub use profile::clean;
pub use progress::BrowserError;

static BROWSERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../browsers");
/// The file that describes a browser.
pub(crate) const BROWSER_FILE: &str = "browser.toml";
static SHELF: Shelf = Shelf { noun: "browser", folder: "browsers", file: BROWSER_FILE, embedded: &BROWSERS };

/// The browsers described in the current directory and in the binary.
#[derive(Clone, Copy, Debug)]
pub struct Browsers;

impl Browsers {
    /// The names of all described browsers, sorted.
    pub fn names() -> Vec<String> {
        SHELF.names()
    }

    /// Reads one browser's description.
    ///
    /// # Errors
    /// There is none of that name, or it is invalid; with file, line and column.
    pub fn find(name: &str) -> Result<Browser, DescriptionError> {
        Ok(Browser::parse(name, SHELF.find(name)?)?)
    }

    /// Reads a browser's description from any folder; the folder's name is the browser's.
    ///
    /// # Errors
    /// As [`Browsers::find`].
    pub fn read(folder: &Path) -> Result<Browser, DescriptionError> {
        let name = file_name(folder).unwrap_or_default();
        Ok(Browser::parse(&name, read(folder)?)?)
    }
}

#[cfg(test)]
mod tests {
    use model::Variant;

    use super::*;

    #[test]
    fn every_embedded_browser_is_read_and_has_no_h2c() {
        assert_eq!(Browsers::names(), ["chromium", "firefox"]);
        for name in Browsers::names() {
            let variants = Browsers::find(&name).unwrap().variants;
            let variants: Vec<Variant> = variants.iter().map(|entry| entry.variant).collect();
            assert_eq!(variants, [Variant::H1, Variant::H1s, Variant::H2, Variant::H3], "{name}");
        }
    }
}
