//! Requests as templates: one for each URL, encoded once by the engine.

use std::fmt::Write;
use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use engine::{Request, RequestId, VaryingField};
use model::assignment::{Assignment, Target};
use model::media::ByteRange;
use model::options::RequestOptions;
use model::page::ResourceKind;
use model::player::Cmcd;
use model::sample::{REQUEST_ID_FIELD, RequestName};
use model::url_pattern::Pattern;
use model::workload::Workload;
use workload::{CmcdKeys, RequestSource, Seeds, UrlTable};

/// A request by its slot and its number; slots are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestId,
    pub(crate) number: u64,
}

/// The origin of a resource (RFC 9110, section 4.3.1).
pub(crate) struct Origin {
    pub(crate) scheme: &'static str,
    pub(crate) authority: String,
}

impl Origin {
    /// The origin of a host, by its number.
    pub(crate) fn of(assignment: &Assignment, host: u16) -> Arc<Origin> {
        let target = target(assignment, host.into());
        Arc::new(Origin { scheme: target.variant.scheme(), authority: target.authority.clone() })
    }
}

/// The user agent of h123's clients.
const USER_AGENT: &str = concat!("h123/", env!("CARGO_PKG_VERSION"));
/// The template number of requests that differ every time: beyond any that an engine keeps.
const NO_TEMPLATE: u32 = u32::MAX;
const RANGE_FIELD: &str = "range";
const CMCD_FIELDS: &str = "cmcd-";
/// Room for the numbers of a group and a request.
const REQUEST_ID_BYTES: usize = 32;

/// The requests of an assignment, by URL number.
pub(crate) struct Requests {
    templates: Vec<Request>,
    /// Empty if no path has random parts.
    patterns: Vec<Option<Pattern>>,
    labels: Vec<String>,
    seed: u64,
    group: u16,
    /// How requests carry CMCD keys, if they do.
    cmcd: Option<Cmcd>,
}

impl Requests {
    /// One template for each path of the workload, in the same order.
    ///
    /// # Errors
    /// A random part of a path has another form.
    pub(crate) fn new(assignment: &Assignment, work: &impl RequestSource) -> Result<Self> {
        let paths = work.paths();
        let cmcd = assignment.workload.player().and_then(|player| player.cmcd);
        let options = &assignment.options.requests;
        let bodies: Vec<Bytes> =
            options.bodies.iter().map(|body| Bytes::from_owner(Arc::clone(&body.0))).collect();
        let mut templates = Vec::with_capacity(paths.len());
        let mut labels = Vec::with_capacity(paths.len());
        let mut patterns = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let of_path = options.paths.get(index).map_or(0, |own| own.target);
            let target = target(assignment, usize::from(of_path));
            let body = options.body_of(index).and_then(|body| bodies.get(body as usize)).cloned();
            let scheme = target.variant.scheme().to_owned();
            labels.push(match of_path {
                0 => (*path).to_owned(),
                _ => format!("{scheme}://{}{path}", target.authority),
            });
            if options.random_parts {
                patterns.push(Pattern::parse(path)?);
            }
            let is_drawn = patterns.get(index).is_some_and(Option::is_some) || cmcd.is_some();
            #[expect(clippy::cast_possible_truncation, reason = "URL numbers are u32 everywhere")]
            let number = index as u32;
            templates.push(Request {
                template: if is_drawn { NO_TEMPLATE } else { number },
                method: options.method_of(index).to_owned(),
                scheme,
                authority: target.authority.clone(),
                path: (*path).to_owned(),
                fields: all_fields(&assignment.workload, options, index, work.range(number)),
                varying: options.request_ids.then(|| VaryingField {
                    name: REQUEST_ID_FIELD,
                    value: String::with_capacity(REQUEST_ID_BYTES),
                }),
                body: body.unwrap_or_default(),
            });
        }
        let (seed, group) = (Seeds::new(assignment.seed, assignment.group, 0).own, assignment.group);
        Ok(Requests { templates, patterns, labels, seed, group, cmcd })
    }

    /// The request to a URL, with its number and what it says about its player. `urls` has the URLs that the
    /// workload has learnt of.
    pub(crate) fn of(
        &mut self,
        (url, number): (u32, u64),
        cmcd: Option<CmcdKeys>,
        urls: &UrlTable,
    ) -> Option<&Request> {
        let index = url as usize;
        if index >= self.templates.len() {
            self.learn(urls);
        }
        let template = self.templates.get_mut(index)?;
        if let (Some(way), Some(keys)) = (self.cmcd, cmcd) {
            say(template, self.labels.get(index)?, way, &keys);
        }
        if let Some(Some(pattern)) = self.patterns.get(index) {
            pattern.fill(self.seed, number, &mut template.path);
        }
        if let Some(id) = &mut template.varying {
            id.value.clear();
            // Writing to a String cannot fail; its memory is allocated already.
            let _ = write!(id.value, "{}", RequestName { group: self.group, request: number });
        }
        Some(template)
    }

    /// Adds the URLs that the workload has learnt of: on the first host, with the fields of the first URL.
    fn learn(&mut self, urls: &UrlTable) {
        let Some(first) = self.templates.first().cloned() else { return };
        for resource in urls.resources().iter().skip(self.templates.len()) {
            let number = u32::try_from(self.templates.len()).unwrap_or(NO_TEMPLATE);
            let mut fields = first.fields.clone();
            fields.retain(|(name, _)| name != RANGE_FIELD && !name.starts_with(CMCD_FIELDS));
            fields.extend(resource.range.map(range_field));
            self.labels.push(resource.path.clone());
            self.templates.push(Request {
                template: if self.cmcd.is_some() { NO_TEMPLATE } else { number },
                path: resource.path.clone(),
                fields,
                ..first.clone()
            });
        }
    }

    /// Whether a request to a URL may be sent again although it may have been processed (RFC 9110, section
    /// 9.2.2).
    pub(crate) fn is_idempotent(&self, url: u32) -> bool {
        let idempotent = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];
        self.templates.get(url as usize).is_some_and(|request| idempotent.contains(&request.method.as_str()))
    }

    /// The URLs as rows name them.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The URLs as rows name them.
    pub(crate) fn into_labels(self) -> Vec<String> {
        self.labels
    }
}

/// A host of an assignment by its number.
pub(crate) fn target(assignment: &Assignment, number: usize) -> &Target {
    let further = &assignment.options.requests.further_targets;
    number.checked_sub(1).and_then(|index| further.get(index)).unwrap_or(&assignment.target)
}

fn range_field(range: ByteRange) -> (String, String) {
    (RANGE_FIELD.to_owned(), range.to_string())
}

/// Puts CMCD keys into a request, in place of those of the last request for the same URL.
fn say(request: &mut Request, path: &str, way: Cmcd, keys: &CmcdKeys) {
    match way {
        Cmcd::Headers => {
            request.fields.retain(|(name, _)| !name.starts_with(CMCD_FIELDS));
            request.fields.extend(keys.fields().map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        Cmcd::Query => {
            let separator = if path.contains('?') { '&' } else { '?' };
            request.path.clear();
            // Writing to a String cannot fail.
            let _ = write!(request.path, "{path}{separator}CMCD={}", keys.query());
        }
    }
}

/// The client's own fields, replaced or followed by those of the options.
fn merge(mut own: Vec<(String, String)>, asked: &[(String, String)]) -> Vec<(String, String)> {
    own.retain(|(name, _)| asked.iter().all(|(other, _)| other != name));
    own.extend(asked.iter().cloned());
    own
}

/// The fields of a path's requests: the client's own, those of all requests, those of the path; `range` is
/// what the workload requests of it.
fn all_fields(
    workload: &Workload,
    options: &RequestOptions,
    index: usize,
    range: Option<ByteRange>,
) -> Vec<(String, String)> {
    let all = merge(fields(workload, index), &options.fields);
    let own = options.paths.get(index);
    let all = merge(all, own.map_or(&[], |own| own.fields.as_slice()));
    let range = own.and_then(|own| own.range).or(range).map(range_field);
    merge(all, range.as_slice())
}

/// Fields like those of a browser, in kind and length, so that header compression is realistic.
fn fields(workload: &Workload, index: usize) -> Vec<(String, String)> {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let Some(page) = workload.page() else {
        return vec![field("user-agent", USER_AGENT), field("accept", "*/*")];
    };
    let kind = page.resources.get(index).map_or(ResourceKind::Html, |resource| resource.kind);
    let accept = match kind {
        ResourceKind::Html => "text/html,application/xhtml+xml,application/xml;q=0.9,image/png,*/*;q=0.8",
        ResourceKind::Css => "text/css,*/*;q=0.1",
        ResourceKind::Image => "image/png,image/*,*/*;q=0.8",
        ResourceKind::Js | ResourceKind::Font => "*/*",
    };
    let mut fields = vec![
        field("user-agent", USER_AGENT),
        field("accept", accept),
        field("accept-language", "en-GB,en;q=0.9"),
        field("sec-fetch-dest", kind.destination()),
        field("sec-fetch-site", if index == 0 { "none" } else { "same-origin" }),
    ];
    if page.is_outside() {
        // Browsers ask real sites for compressed bodies.
        fields.push(field("accept-encoding", "gzip"));
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::Variant;
    use model::error::Source;
    use model::media::{ByteRange, Media};
    use model::options::{Options, PathOptions};
    use model::workload::{ClosedLoop, LoopLoad};
    use workload::{Beginning, SharedWorkload};

    use super::*;
    use crate::fixtures::assignment;

    #[test]
    fn a_paths_own_fields_and_range_replace_those_of_all_requests() {
        let workload = Workload::Closed(ClosedLoop::new(LoopLoad::new("/"), None));
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let own = PathOptions {
            fields: vec![field("accept", "video/mp4"), field("x-all", "own")],
            range: ByteRange::of_length(500, 500),
            ..PathOptions::default()
        };
        let options = RequestOptions {
            fields: vec![field("x-all", "1"), field("range", "bytes=0-1")],
            paths: vec![own],
            ..RequestOptions::default()
        };
        assert_eq!(
            all_fields(&workload, &options, 0, ByteRange::of_length(7, 7))[1..],
            [field("accept", "video/mp4"), field("x-all", "own"), field("range", "bytes=500-999")]
        );
        let others = all_fields(&workload, &options, 1, None);
        assert_eq!(others[1..], [field("accept", "*/*"), field("x-all", "1"), field("range", "bytes=0-1")]);
    }

    /// The paths that a loop over media in random order requests.
    fn requested(media: &Media, seed: u64) -> Vec<String> {
        let load = LoopLoad { paths: media.segment_paths(), requests: Some(2_000), ..LoopLoad::new("/") };
        let requests = RequestOptions { random_order: true, random_parts: true, ..RequestOptions::default() };
        let workload = Workload::Closed(ClosedLoop::new(load, None));
        let assignment = Assignment {
            seed,
            options: Options { requests, ..Options::default() },
            ..assignment(([127, 0, 0, 1], 1).into(), Variant::H1, workload)
        };
        let shared = SharedWorkload::new(&assignment.workload, &assignment.options, 1);
        let mut work = shared.begin(Seeds::new(seed, 0, 0), Beginning::at(0));
        let mut requests = Requests::new(&assignment, &work).unwrap();
        let urls = UrlTable::new(Vec::new());
        let due = std::iter::from_fn(|| work.poll_request(0, 1));
        due.zip(0..)
            .map(|(due, number)| requests.of((due.url, number), None, &urls).unwrap().path.clone())
            .collect()
    }

    #[test]
    fn a_loop_over_a_library_draws_titles_and_segments() {
        let text = "title = 'x'\nsegment = '4s'\nlength = '20s'\ntitles = 3\n\
                    hds = { fragments = 5, gaps = [3] }\n[video]\nladder = ['80kbit/s']\n";
        let media = Media::parse("film", Source { file: "x.toml", text }).unwrap();
        let paths = requested(&media, 1);
        assert_eq!(paths.len(), 2_000);
        let mut different: Vec<&str> =
            BTreeSet::from_iter(paths.iter().map(String::as_str)).into_iter().collect();
        let files = ["Seg1-Frag1", "Seg1-Frag2", "Seg1-Frag4", "Seg1-Frag5", "Seg2-Frag6"];
        for title in 1..=3 {
            for file in files {
                let path = format!("/media/film/{title}/{file}");
                let count = paths.iter().filter(|requested| **requested == path).count();
                assert!((90..=180).contains(&count), "{path}: {count} of 2000, expected about 133");
                different.retain(|other| *other != path);
            }
        }
        assert!(different.is_empty(), "{different:?}");
        assert_eq!(paths, requested(&media, 1), "the same seed draws the same");
        assert_ne!(paths, requested(&media, 2));
    }
}
