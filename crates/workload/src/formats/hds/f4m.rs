//! Flash media manifests (F4M), versions 1.0 to 3.0.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::media::TrackKind;
use roxmltree::Node;

use super::super::error::FormatError;
use super::super::time::{format_seconds, parse_seconds};
use super::super::xml::{child_text, children, escaped, number, parse, place};

/// The most media of a manifest.
const MOST_MEDIA: usize = 1_000;

/// A manifest: of one stream in several qualities, or of a set of such manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct F4m {
    /// The version of its namespace: 1, 2 or 3.
    pub version: u8,
    /// Its name; often empty.
    pub id: String,
    /// What its URLs are relative to, if not to the manifest.
    pub base_url: Option<String>,
    /// Whether the stream is live.
    pub is_live: bool,
    /// How long it plays, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// Its media.
    pub media: Vec<F4mMedia>,
}

/// One quality of a stream, or another track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct F4mMedia {
    /// What it contains.
    pub kind: TrackKind,
    /// Whether it is an alternative such as another language.
    pub is_alternative: bool,
    /// Its name.
    pub id: String,
    /// Its bit rate, in bit/s; 0 if not stated. The manifest counts in kbit/s.
    pub bits_per_s: u64,
    /// Where it is.
    pub source: MediaSource,
}

/// Where a media is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource {
    /// Fragments of this URL, which this bootstrap lists.
    Fragments {
        /// What precedes `Seg1-Frag1` in the fragments' URLs.
        url: String,
        /// The bootstrap.
        bootstrap: BootstrapSource,
    },
    /// Another manifest at this URL (set-level manifests of version 2.0).
    Manifest(String),
}

/// Where a bootstrap is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootstrapSource {
    /// In the manifest.
    Inline(Vec<u8>),
    /// At this URL.
    Url(String),
}

impl F4m {
    /// Reads a manifest.
    ///
    /// # Errors
    /// The place and the fault: no XML, no F4M, no media, a media without a URL or a bootstrap.
    pub fn parse(text: &str) -> Result<F4m, FormatError> {
        let document = parse(text)?;
        let root = document.root_element();
        if root.tag_name().name() != "manifest" {
            let problem = format!("<{}> is not the element <manifest> of an F4M", root.tag_name().name());
            return Err(FormatError::at(place(root), problem));
        }
        let namespace = root.tag_name().namespace().unwrap_or_default();
        let version = match namespace.rsplit('/').next() {
            Some("2.0") => 2,
            Some("3.0") => 3,
            _ => 1,
        };
        let duration = child_text(root, "duration");
        let base_url = child_text(root, "baseURL").filter(|url| !url.is_empty()).map(str::to_owned);
        // Media may be in sets since version 3.0.
        let sets = children(root, "adaptiveSet").flat_map(|set| children(set, "media"));
        let mut media = Vec::new();
        for own in children(root, "media").chain(sets) {
            if media.len() >= MOST_MEDIA {
                return Err(FormatError::at(place(own), format!("more than {MOST_MEDIA} media")));
            }
            media.push(read_media(root, own)?);
        }
        if media.is_empty() {
            return Err(FormatError::at(place(root), "the manifest has no element <media>"));
        }
        Ok(F4m {
            version,
            id: child_text(root, "id").unwrap_or_default().to_owned(),
            base_url,
            is_live: child_text(root, "streamType") == Some("live"),
            duration_ns: duration.and_then(parse_seconds),
            media,
        })
    }

    /// The manifest as text. Media with the same bootstrap share its element.
    pub fn write(&self) -> String {
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
        text.push_str(&format!("<manifest xmlns=\"http://ns.adobe.com/f4m/{}.0\">\n", self.version.max(1)));
        let mut element = |name: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("  <{name}>{}</{name}>\n", escaped(value)));
            }
        };
        element("id", &self.id);
        element("baseURL", self.base_url.as_deref().unwrap_or_default());
        element("streamType", if self.is_live { "live" } else { "recorded" });
        element("deliveryType", "streaming");
        element("duration", &self.duration_ns.map(format_seconds).unwrap_or_default());
        let mut bootstraps: Vec<&BootstrapSource> = Vec::new();
        for own in &self.media {
            if let MediaSource::Fragments { bootstrap, .. } = &own.source
                && !bootstraps.contains(&bootstrap)
            {
                bootstraps.push(bootstrap);
                write_bootstrap(&mut text, bootstraps.len(), bootstrap);
            }
        }
        for own in &self.media {
            write_media(&mut text, own, &bootstraps);
        }
        text.push_str("</manifest>\n");
        text
    }
}

fn read_media(root: Node<'_, '_>, own: Node<'_, '_>) -> Result<F4mMedia, FormatError> {
    let kbits_per_s = number(own, "bitrate")?.unwrap_or(0);
    let kind = match own.attribute("type") {
        Some("audio") => TrackKind::Audio,
        _ => TrackKind::Video,
    };
    let source = match (own.attribute("href"), own.attribute("url")) {
        (Some(href), _) => MediaSource::Manifest(href.trim().to_owned()),
        (None, Some(url)) => {
            MediaSource::Fragments { url: url.trim().to_owned(), bootstrap: find_bootstrap(root, own)? }
        }
        (None, None) => {
            return Err(FormatError::at(place(own), "<media> has neither `url` nor `href`"));
        }
    };
    Ok(F4mMedia {
        kind,
        is_alternative: own.attribute("alternate").is_some_and(|value| value != "false"),
        id: own.attribute("streamId").unwrap_or_default().to_owned(),
        bits_per_s: kbits_per_s.saturating_mul(1_000),
        source,
    })
}

/// The bootstrap that a media names, or else the only one, which older manifests do not name.
fn find_bootstrap(root: Node<'_, '_>, own: Node<'_, '_>) -> Result<BootstrapSource, FormatError> {
    let mut all = children(root, "bootstrapInfo");
    let found = match own.attribute("bootstrapInfoId") {
        Some(id) => all.find(|known| known.attribute("id") == Some(id)),
        None => all.next(),
    };
    let Some(found) = found else {
        let problem = match own.attribute("bootstrapInfoId") {
            Some(id) => {
                format!("<media> names the bootstrap `{}`, which does not exist", super::super::shown(id))
            }
            None => {
                "<media> has no bootstrap; only HTTP streaming with <bootstrapInfo> is supported".to_owned()
            }
        };
        return Err(FormatError::at(place(own), problem));
    };
    if let Some(url) = found.attribute("url") {
        return Ok(BootstrapSource::Url(url.trim().to_owned()));
    }
    let text: String = found.text().unwrap_or_default().split_whitespace().collect();
    let fault = |_| FormatError::at(place(found), "the content of <bootstrapInfo> is not base64");
    STANDARD.decode(text).map(BootstrapSource::Inline).map_err(fault)
}

fn write_bootstrap(text: &mut String, number: usize, own: &BootstrapSource) {
    let head = format!("  <bootstrapInfo profile=\"named\" id=\"bootstrap{number}\"");
    match own {
        BootstrapSource::Url(url) => text.push_str(&format!("{head} url=\"{}\"/>\n", escaped(url))),
        BootstrapSource::Inline(bytes) => {
            text.push_str(&format!("{head}>{}</bootstrapInfo>\n", STANDARD.encode(bytes)));
        }
    }
}

fn write_media(text: &mut String, own: &F4mMedia, bootstraps: &[&BootstrapSource]) {
    text.push_str("  <media");
    let mut attribute = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!(" {name}=\"{}\"", escaped(value)));
        }
    };
    attribute("streamId", &own.id);
    if own.bits_per_s > 0 {
        attribute("bitrate", &own.bits_per_s.div_ceil(1_000).to_string());
    }
    if own.is_alternative {
        attribute("alternate", "true");
    }
    if own.kind == TrackKind::Audio {
        attribute("type", "audio");
    }
    match &own.source {
        MediaSource::Manifest(url) => attribute("href", url),
        MediaSource::Fragments { url, bootstrap } => {
            // An empty URL is valid: the fragments' names follow the base.
            text.push_str(&format!(" url=\"{}\"", escaped(url)));
            let number = bootstraps.iter().position(|known| *known == bootstrap).map_or(0, |place| place + 1);
            text.push_str(&format!(" bootstrapInfoId=\"bootstrap{number}\""));
        }
    }
    text.push_str("/>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(id: &str, bits_per_s: u64, bootstrap: BootstrapSource) -> F4mMedia {
        F4mMedia {
            kind: TrackKind::Video,
            is_alternative: false,
            id: id.to_owned(),
            bits_per_s,
            source: MediaSource::Fragments { url: format!("{id}/&"), bootstrap },
        }
    }

    #[test]
    fn a_manifest_is_written_and_read() {
        let inline = BootstrapSource::Inline(vec![0, 1, 2, 255]);
        let mut audio = media("de", 64_000, BootstrapSource::Url("de.bootstrap".to_owned()));
        (audio.kind, audio.is_alternative) = (TrackKind::Audio, true);
        let own = F4m {
            version: 1,
            id: "film".to_owned(),
            base_url: Some("http://cdn.test/a/".to_owned()),
            is_live: true,
            duration_ns: Some(61_500_000_000),
            media: vec![media("low", 400_000, inline.clone()), media("high", 2_000_000, inline), audio],
        };
        let text = own.write();
        assert_eq!(F4m::parse(&text).unwrap(), own);
        assert_eq!(text.matches("<bootstrapInfo").count(), 2, "equal bootstraps are written once");
        let source = MediaSource::Manifest("low.f4m".to_owned());
        let set = F4mMedia { source, ..media("low", 400_000, BootstrapSource::Url(String::new())) };
        let own = F4m { version: 2, media: vec![set], ..F4m::default() };
        assert_eq!(F4m::parse(&own.write()).unwrap(), own);
    }

    #[test]
    fn a_bootstrap_without_a_name_belongs_to_all() {
        let text = "<manifest xmlns='http://ns.adobe.com/f4m/1.0'><bootstrapInfo>\n AAE\n C \n</bootstrapInfo>\
                    <media url='a'/></manifest>";
        let found = F4m::parse(text).unwrap();
        let bootstrap = BootstrapSource::Inline(vec![0, 1, 2]);
        assert_eq!(found.media[0].source, MediaSource::Fragments { url: "a".to_owned(), bootstrap });
        assert_eq!((found.version, found.is_live, found.media[0].bits_per_s), (1, false, 0));
    }

    #[test]
    fn faults_have_a_place() {
        for (text, expected) in [
            ("<manifest>", "line 1, column"),
            ("<MPD/>", "line 1, column 1: <MPD> is not the element <manifest> of an F4M"),
            ("<manifest/>", "the manifest has no element <media>"),
            ("<manifest>\n <media/></manifest>", "line 2, column 2: <media> has neither `url` nor `href`"),
            ("<manifest><media url='a'/></manifest>", "<media> has no bootstrap"),
            ("<manifest><media url='a' bootstrapInfoId='b'/></manifest>", "names the bootstrap `b`"),
            (
                "<manifest><bootstrapInfo>*</bootstrapInfo><media url='a'/></manifest>",
                "the content of <bootstrapInfo> is not base64",
            ),
            (
                "<manifest><media url='a' bitrate='fast'/></manifest>",
                "`bitrate` is `fast`, not a whole number",
            ),
            ("<!DOCTYPE a [<!ENTITY b 'c'>]><manifest/>", "is not well-formed XML"),
        ] {
            let error = F4m::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
