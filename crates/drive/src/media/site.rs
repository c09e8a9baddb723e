//! Media of a site: what the manifest of a URL lists when a study is planned.

use anyhow::{Context, Result, anyhow, bail};
use model::media::{Media, MediaSite, MediaSource, Presentation, Representation};
use model::plan::RemoteTrust;
use model::url::Url;

use crate::manifests;
use crate::outside::resolve_trust;

/// Reads the media of a manifest at a URL.
///
/// # Errors
/// As [`manifests::of_url`]; or the manifest is live, or its segments are at several origins.
pub fn read_site(name: &str, manifest: &Url, trust: &RemoteTrust) -> Result<Media> {
    let found = manifests::of_url(manifest, &resolve_trust(trust)?)?;
    if found.manifest.live.is_some() {
        bail!(
            "{manifest} is the manifest of a live stream; name one of media on demand, or write its path as `manifest` \
             of a player"
        );
    }
    let mut presentation = found.manifest.presentation;
    let origin = move_to_origin(&mut presentation, &found.url)
        .with_context(|| format!("{manifest} cannot be played"))?
        .origin();
    let source = MediaSource::Site(MediaSite { manifest: manifest.clone(), origin });
    Ok(Media { name: name.to_owned(), presentation, source, titles: 0, live_window_ns: None })
}

/// Makes all URLs paths on the one origin that has them; paths so far are on that of `base`.
fn move_to_origin(presentation: &mut Presentation, base: &Url) -> Result<Url> {
    let representations = presentation.tracks.iter_mut().flat_map(|track| &mut track.representations);
    let mut origin: Option<Url> = None;
    for segment in representations.flat_map(Representation::resources_mut) {
        let url = match segment.url.starts_with('/') {
            true => Url { path: segment.url.clone(), ..base.clone() },
            false => {
                Url::parse(&segment.url).map_err(|problem| anyhow!("it lists a segment, and {problem}"))?
            }
        };
        let own = origin.get_or_insert_with(|| url.clone());
        if !own.has_origin_of(&url) {
            let (one, other) = (own.origin(), url.origin());
            bail!(
                "its segments are at {one} and at {other}, and a player has one server; name a manifest whose segments \
                 are at one of them"
            );
        }
        segment.url = url.path;
    }
    origin.context("it lists no segments; name another manifest")
}

#[cfg(test)]
mod tests {
    use model::player::constant_rate_video;

    use super::*;

    fn moved(urls: [&str; 2]) -> Result<(Vec<String>, String), String> {
        let mut presentation = constant_rate_video(&[1_000_000], 1_000_000_000, 2);
        for (segment, url) in presentation.tracks[0].representations[0].segments.iter_mut().zip(urls) {
            url.clone_into(&mut segment.url);
        }
        let base = Url::parse("https://site.test/film/main.mpd").unwrap();
        let origin = move_to_origin(&mut presentation, &base).map_err(|error| error.to_string())?.origin();
        Ok((presentation.segments().map(|segment| segment.url.clone()).collect(), origin))
    }

    #[test]
    fn segments_of_one_origin_become_its_paths() {
        let paths = vec!["/a".to_owned(), "/b?c=1".to_owned()];
        assert_eq!(moved(["/a", "/b?c=1"]), Ok((paths.clone(), "https://site.test".to_owned())));
        let elsewhere = moved(["https://cdn.test:444/a", "https://CDN.test:444/b?c=1"]);
        assert_eq!(elsewhere, Ok((paths.clone(), "https://cdn.test:444".to_owned())));
        assert_eq!(moved(["/a", "https://site.test:443/b?c=1"]), Ok((paths, "https://site.test".to_owned())));
    }

    #[test]
    fn segments_of_several_origins_are_refused() {
        for other in ["https://cdn.test/b", "http://site.test/b", "https://site.test:444/b"] {
            let fault = moved(["/a", other]).unwrap_err();
            assert!(fault.contains("at https://site.test and at "), "{fault}");
        }
    }
}
