//! Reads media manifests and everything that they refer to, from servers and from files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::assignment::Trust;
use model::media::ByteRange;
use model::url::Url;
use workload::formats::manifest::{MOST_BYTES, Manifest, Need, Resolver};

use crate::input::{read_bytes, read_range};
use crate::outside::{FetchError, Fetched, Fetcher, Follower};

/// The time for one resource.
const LIMIT: Duration = Duration::from_secs(10);
/// The time for a manifest and everything that it refers to.
const TOTAL_LIMIT: Duration = Duration::from_secs(120);

/// A manifest cannot be read: what is wrong, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(pub String);

/// A manifest that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundManifest {
    /// Where it is, after redirects. Paths in the manifest are on this origin.
    pub url: Url,
    /// What it lists.
    pub manifest: Manifest,
}

/// Reads the manifest at a URL.
///
/// # Errors
/// It or something that it refers to cannot be fetched, is longer than 64 MiB or no manifest, or all of it
/// takes more than 120 s.
pub fn of_url(url: &Url, trust: &Trust) -> Result<FoundManifest, ManifestError> {
    let most_bytes = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let fetcher = Fetcher::new(trust, LIMIT, most_bytes);
    let mut follower = Follower::new(fetcher.map_err(|error| ManifestError(format!("{error:#}")))?);
    let read = |need: &Need| {
        let (url, fetched) = follower.fetch(&need.url, need.range).map_err(|FetchError(reason)| {
            // The reasons of some faults name the URL already.
            let url = need.url.to_string();
            if reason.contains(&url) { reason } else { format!("{url}: {reason}") }
        })?;
        if fetched.is_cut {
            return Err(format!("{url} did not end within {} s and 64 MiB", LIMIT.as_secs()));
        }
        Ok((url, within(fetched, need.range)))
    };
    resolve(url, read, Url::to_string)
}

/// The bytes of a range, also if the server ignored that a range was requested.
fn within(fetched: Fetched, range: Option<ByteRange>) -> Vec<u8> {
    let Some(range) = range.filter(|_| fetched.status == 200) else { return fetched.body };
    let end = usize::try_from(range.last).unwrap_or(usize::MAX).saturating_add(1);
    let first = usize::try_from(range.first).unwrap_or(usize::MAX);
    fetched.body.get(first..end.min(fetched.body.len())).unwrap_or_default().to_vec()
}

/// Reads the manifest in a file that a server would offer at `url`; `locate` is the file of a URL, if it has
/// one.
///
/// # Errors
/// It or something that it refers to cannot be read, is longer than 64 MiB or no manifest.
pub fn of_file(
    path: &Path,
    url: &Url,
    locate: impl Fn(&Url) -> Option<PathBuf>,
) -> Result<FoundManifest, ManifestError> {
    let file_of = |of: &Url| if of == url { Some(path.to_owned()) } else { locate(of) };
    let read = |need: &Need| {
        let file = file_of(&need.url).ok_or_else(|| {
            format!("{} is not below the folder of the manifest; name the URL of the manifest", need.url)
        })?;
        let read = match need.range {
            Some(range) => read_range(&file, range, MOST_BYTES),
            None => read_bytes(&file, MOST_BYTES),
        };
        let bytes = read.map_err(|error: io::Error| format!("{}: {error}", file.display()))?;
        Ok((need.url.clone(), bytes))
    };
    // Nobody wrote the URL of a file.
    resolve(url, read, |of| file_of(of).map_or_else(|| of.to_string(), |file| file.display().to_string()))
}

/// Reads a manifest and what it refers to; `name` is how errors name what was read.
fn resolve(
    url: &Url,
    mut read: impl FnMut(&Need) -> Result<(Url, Vec<u8>), String>,
    name: impl Fn(&Url) -> String,
) -> Result<FoundManifest, ManifestError> {
    let until = Instant::now() + TOTAL_LIMIT;
    let now_unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_unix_ns = u64::try_from(now_unix.as_nanos()).unwrap_or(u64::MAX);
    let first = Need { url: url.clone(), range: None };
    let (url, bytes) = read(&first).map_err(ManifestError)?;
    let fault = |url: &Url, error: &dyn std::fmt::Display| ManifestError(format!("{}: {error}", name(url)));
    let mut resolver = Resolver::new(&bytes, &url, now_unix_ns).map_err(|error| fault(&url, &error))?;
    loop {
        let needs = resolver.needs();
        if needs.is_empty() {
            break;
        }
        for need in needs {
            if Instant::now() > until {
                let limit = TOTAL_LIMIT.as_secs();
                return Err(fault(&url, &format!("what it refers to takes more than {limit} s to read")));
            }
            let (from, bytes) = read(&need).map_err(ManifestError)?;
            resolver.handle_resource(&need, &from, &bytes).map_err(|error| fault(&need.url, &error))?;
        }
    }
    let manifest = resolver.finish().map_err(|error| fault(&url, &error))?;
    Ok(FoundManifest { url, manifest })
}
