//! Pictures of a page whenever it changes during its load.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The folder of the pictures in the browser's folder, and the page that shows them.
const FOLDER: &str = "filmstrip";
const PAGE: &str = "filmstrip.html";
/// Further pictures are left out.
const MOST_PICTURES: usize = 1000;
const MOST_WIDTH: u32 = 640;
const MOST_HEIGHT: u32 = 450;
const QUALITY: u32 = 60;
const MS_PER_S: f64 = 1e3;

/// The pictures, in the order of their times.
#[derive(Clone, Debug, Default)]
pub(super) struct Filmstrip {
    /// Unix time in seconds, and JPEG.
    pictures: Vec<(f64, Vec<u8>)>,
}

/// How Chromium makes the pictures.
pub(super) fn format() -> Value {
    json!({ "format": "jpeg", "quality": QUALITY, "maxWidth": MOST_WIDTH, "maxHeight": MOST_HEIGHT,
            "everyNthFrame": 1 })
}

impl Filmstrip {
    /// Takes a picture out of the event `Page.screencastFrame`.
    pub(super) fn add(&mut self, params: &Value) {
        let data = params["data"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok());
        if let Some((at_s, picture)) = params["metadata"]["timestamp"].as_f64().zip(data)
            && self.pictures.len() < MOST_PICTURES
        {
            self.pictures.push((at_s, picture));
        }
    }

    /// Writes the pictures into a folder, named by the milliseconds since the navigation began, and a page
    /// that shows them in one view. Without pictures it writes nothing.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(&self, folder: &Path, began_unix_s: f64) -> io::Result<()> {
        if self.pictures.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(folder.join(FOLDER))?;
        let mut shown = String::new();
        for (name, picture) in self.named(began_unix_s) {
            fs::write(folder.join(FOLDER).join(&name), picture)?;
            let ms: u32 = name.trim_end_matches("ms.jpeg").parse().unwrap_or(0);
            shown += &format!(
                "<figure><img src=\"{FOLDER}/{name}\" alt=\"the page after {ms} ms\"><figcaption>{ms} ms</figcaption></figure>\n"
            );
        }
        fs::write(folder.join(PAGE), format!("{HEAD}{shown}</body></html>\n"))
    }

    /// The pictures with their file names. Of those before the navigation, and of several in a millisecond,
    /// the last is kept.
    fn named(&self, began_unix_s: f64) -> Vec<(String, &[u8])> {
        let mut named: Vec<(String, &[u8])> = Vec::new();
        for (at_s, picture) in &self.pictures {
            let ms = ((at_s - began_unix_s) * MS_PER_S).max(0.0).round();
            let name = format!("{ms:06}ms.jpeg");
            named.retain(|(known, _)| *known != name);
            named.push((name, picture));
        }
        named
    }
}

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Filmstrip</title>\n\
    <style>body{display:flex;flex-wrap:wrap;gap:12px;margin:16px;font:14px system-ui,sans-serif}\
    figure{margin:0;width:240px}img{width:100%;border:1px solid #888}figcaption{text-align:center}</style></head><body>\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn filmstrip(times_s: &[f64]) -> Filmstrip {
        let mut filmstrip = Filmstrip::default();
        for (number, at_s) in times_s.iter().enumerate() {
            let data = BASE64_STANDARD.encode([u8::try_from(number).unwrap()]);
            filmstrip.add(&json!({ "data": data, "metadata": { "timestamp": at_s }, "sessionId": 1 }));
        }
        filmstrip
    }

    #[test]
    fn pictures_are_named_by_their_time_since_the_navigation() {
        let filmstrip = filmstrip(&[99.9, 99.95, 100.0101, 100.0102, 101.5]);
        let named = filmstrip.named(100.0);
        let expected: [(&str, &[u8]); 3] =
            [("000000ms.jpeg", &[1]), ("000010ms.jpeg", &[3]), ("001500ms.jpeg", &[4])];
        assert_eq!(named.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect::<Vec<_>>(), expected);
        let folder = tempfile::tempdir().unwrap();
        filmstrip.write(folder.path(), 100.0).unwrap();
        let page = fs::read_to_string(folder.path().join(PAGE)).unwrap();
        assert_eq!(page.matches("<figure>").count(), 3);
        assert!(page.contains("the page after 1500 ms"), "{page}");
        assert!(folder.path().join("filmstrip/001500ms.jpeg").exists());
    }

    #[test]
    fn what_is_no_picture_is_left_out() {
        let mut filmstrip = filmstrip(&[]);
        filmstrip.add(&json!({ "data": "%", "metadata": { "timestamp": 1.0 } }));
        filmstrip.add(&json!({ "metadata": { "timestamp": 1.0 } }));
        let folder = tempfile::tempdir().unwrap();
        filmstrip.write(folder.path(), 0.0).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
