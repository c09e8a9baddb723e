//! What a path means.
//!
//! | path | answer |
//! |---|---|
//! | the path of a page's resource | that resource, after its think time; any host name is taken |
//! | `/`, without a folder | a list of the pages and of the paths below |
//! | `/bytes/N` | N bytes that do not compress, at most 1 TiB |
//! | `/delay/MS` | a short message after MS milliseconds (fractions allowed), at most 60 000 |
//! | `/echo` | POST and PUT: drains the body, answers with its length in bytes |
//! | `/status/NNN` | that status, 200 to 599 |
//! | a path of modelled media, `/media/NAME/…` | its segment or manifest; of a live stream, if it is available |
//! | a part of an archive below the folder, with [`crate::config::JustInTime`] | the part, cut out of the archive |
//! | anything else | the file below the folder, `index.html` where the path ends in `/` |
//!
//! Every path except `/echo` answers GET and HEAD. The query is ignored.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use model::Page;
use model::media::Media;
use model::origin_path::OriginPath;
use model::page::{Resource, ResourceKind};

use crate::answer::{ALWAYS_ASK, ANY_ORIGIN, Answer, DateField, FOREVER, PLAIN, Part, fields};
use crate::body::Content;
use crate::config::Config;
use crate::faults::Faults;
use crate::files::{FilePath, Root};
use crate::media::{Cutter, ModelledMedia};
use crate::{host, timer};

/// The media type of the index.
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// All that the origin serves.
pub(crate) struct Catalogue {
    resources: HashMap<String, Prepared>,
    /// What is sent before the documents of pages, by their paths.
    ahead: HashMap<String, Ahead>,
    pattern: Bytes,
    media: ModelledMedia,
    folder: Option<Arc<Folder>>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) date: DateField,
}

/// The folder of files.
struct Folder {
    root: Root,
    cutter: Option<Cutter>,
    faults: Arc<Faults>,
}

/// What is sent before a document.
pub(crate) struct Ahead {
    /// The paths of resources to push.
    pub(crate) push: Vec<String>,
    /// The field `link` of Early Hints (RFC 8297).
    pub(crate) links: Option<HeaderValue>,
}

struct Prepared {
    /// How long the answer takes.
    delay: Duration,
    media_type: HeaderValue,
    fields: HeaderMap,
    body: Bytes,
}

/// How a request will be answered.
pub(crate) enum Plan {
    /// At once.
    Now(Answer),
    /// After a delay.
    After(Duration, Answer),
    /// After the request's body has been read.
    Echo,
    /// After the file has been opened.
    File(FileRequest),
}

/// A request for a file.
pub(crate) struct FileRequest {
    folder: Arc<Folder>,
    path: FilePath,
    fields: HeaderMap,
    is_head: bool,
}

impl Catalogue {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let (mut resources, mut ahead) = (HashMap::new(), HashMap::new());
        for page in &config.pages {
            prepare(page, config.is_cacheable, &mut resources)?;
            ahead.extend(Ahead::of(page)?);
        }
        if config.root.is_none() {
            resources.entry("/".to_owned()).or_insert_with(|| index(&config.pages, &config.media));
        }
        let faults = Arc::new(Faults::default());
        let folder = match config.root.as_deref() {
            Some(root) => {
                let cutter = config.just_in_time.map(Cutter::new).transpose()?;
                let (root, faults) = (Root::open(root)?, Arc::clone(&faults));
                Some(Arc::new(Folder { root, cutter, faults }))
            }
            None => None,
        };
        let media = ModelledMedia::new(&config.media, now_unix_ns())?;
        let pattern = Bytes::from(workload::content::pattern_block());
        Ok(Catalogue { resources, ahead, pattern, media, folder, faults, date: DateField::new() })
    }

    /// What is sent before the answer to this request.
    pub(crate) fn ahead<B>(&self, request: &Request<B>) -> Option<&Ahead> {
        self.ahead.get(request.uri().path()).filter(|_| request.method() == Method::GET)
    }

    /// How to answer this request.
    pub(crate) fn plan<B>(&self, request: &Request<B>) -> Plan {
        if !host::is_valid(request) {
            return Plan::Now(Answer::status(StatusCode::BAD_REQUEST));
        }
        let path = request.uri().path();
        let plan = match (path, request.method()) {
            ("/echo", &Method::POST | &Method::PUT) => Plan::Echo,
            ("/echo", _) => Plan::Now(Answer::not_allowed("POST, PUT")),
            (_, &Method::GET | &Method::HEAD) => self.get(path, request.headers()),
            _ => Plan::Now(Answer::not_allowed("GET, HEAD")),
        };
        if request.method() == Method::HEAD { plan.without_body() } else { plan }
    }

    fn get(&self, path: &str, fields: &HeaderMap) -> Plan {
        if let Some(prepared) = self.resources.get(path) {
            return prepared.plan(fields);
        }
        match OriginPath::parse(path) {
            Ok(Some(OriginPath::Bytes(bytes))) => Plan::Now(self.bytes(bytes, fields)),
            Ok(Some(OriginPath::DelayNs(ns))) => delay(path, Duration::from_nanos(ns)),
            Ok(Some(OriginPath::Status(status))) => Plan::Now(of_status(status)),
            Ok(Some(OriginPath::Echo)) => Plan::Now(Answer::not_allowed("POST, PUT")),
            Ok(None) => match self.media.answer(path, fields, &self.pattern, now_unix_ns()) {
                Some(answer) => Plan::Now(answer.readable_if_media(path)),
                None => self.file(path, fields),
            },
            Err(problem) => Plan::Now(Answer::message(StatusCode::BAD_REQUEST, problem + "\n")),
        }
    }

    fn bytes(&self, length: u64, fields: &HeaderMap) -> Answer {
        let media_type = HeaderValue::from_static("application/octet-stream");
        let content = |offset, left| Content::of_pattern(&self.pattern, offset, left);
        Answer::part(media_type, length, Part::of(fields, length), content)
    }

    fn file(&self, path: &str, fields: &HeaderMap) -> Plan {
        let file_path = match FilePath::parse(path) {
            Ok(file_path) => file_path,
            Err(refused) => return Plan::Now(Answer::status(refused)),
        };
        if let Some(prepared) = self.resources.get(&file_path.decoded()) {
            return prepared.plan(fields);
        }
        let Some(folder) = &self.folder else {
            return Plan::Now(Answer::status(StatusCode::NOT_FOUND).readable_if_media(path));
        };
        Plan::File(FileRequest {
            folder: Arc::clone(folder),
            path: file_path,
            fields: fields.clone(),
            is_head: false,
        })
    }
}

impl Plan {
    /// The plan for a request with HEAD.
    fn without_body(self) -> Plan {
        match self {
            Plan::Now(answer) => Plan::Now(answer.without_body()),
            Plan::After(wait, answer) => Plan::After(wait, answer.without_body()),
            Plan::File(file) => Plan::File(FileRequest { is_head: true, ..file }),
            Plan::Echo => Plan::Echo,
        }
    }

    /// Carries the plan out. `drain` reads the request's body and returns its length, `None` where the body
    /// broke off.
    pub(crate) async fn answer(self, drain: impl Future<Output = Option<u64>>) -> Answer {
        match self {
            Plan::Now(answer) => answer,
            Plan::After(wait, answer) => {
                timer::wait(wait).await;
                answer
            }
            Plan::File(file) => file.answer().await,
            Plan::Echo => match drain.await {
                Some(bytes) => Answer::message(StatusCode::OK, format!("{bytes}\n")),
                None => Answer::status(StatusCode::BAD_REQUEST),
            },
        }
    }
}

impl Folder {
    /// Blocks on disk access.
    fn answer(&self, path: &FilePath, fields: &HeaderMap) -> Answer {
        let decoded = path.decoded();
        let cut = self.cutter.as_ref().and_then(|cutter| {
            cutter.answer(&self.root, decoded.trim_start_matches('/'), fields, &self.faults)
        });
        cut.unwrap_or_else(|| self.root.answer(path, fields)).readable_if_media(&decoded)
    }
}

impl FileRequest {
    /// Opens the file on a thread that may block.
    async fn answer(self) -> Answer {
        let is_head = self.is_head;
        let asked = tokio::task::spawn_blocking(move || self.folder.answer(&self.path, &self.fields));
        let answer = asked.await.unwrap_or_else(|_| Answer::status(StatusCode::INTERNAL_SERVER_ERROR));
        if is_head { answer.without_body() } else { answer }
    }
}

impl Ahead {
    /// What is sent before a page's document, by its path; `None` for a page that is delivered plainly.
    fn of(page: &Page) -> anyhow::Result<Option<(String, Ahead)>> {
        let resources = |indices: &[usize]| {
            indices.iter().filter_map(|index| page.resources.get(*index)).collect::<Vec<_>>()
        };
        let push: Vec<_> = resources(&page.delivery.push).iter().map(|pushed| pushed.path.clone()).collect();
        let link = |hinted: &&Resource| {
            // Fonts are requested in CORS mode (CSS Fonts, section 4.8).
            let mode = if hinted.kind == ResourceKind::Font { "; crossorigin" } else { "" };
            format!("<{}>; rel=preload; as={}{mode}", hinted.path, hinted.kind.destination())
        };
        let links: Vec<_> = resources(&page.delivery.early_hints).iter().map(link).collect();
        let links = (!links.is_empty()).then(|| HeaderValue::try_from(links.join(", "))).transpose()?;
        let document = page.resources.first().filter(|_| !push.is_empty() || links.is_some());
        Ok(document.map(|document| (document.path.clone(), Ahead { push, links })))
    }

    /// The head of Early Hints, if there are any.
    pub(crate) fn hints(&self) -> Option<http::Response<()>> {
        let mut head = http::Response::new(());
        *head.status_mut() = StatusCode::EARLY_HINTS;
        head.headers_mut().insert(http::header::LINK, self.links.clone()?);
        Some(head)
    }
}

impl Prepared {
    fn plan(&self, fields: &HeaderMap) -> Plan {
        match self.delay {
            Duration::ZERO => Plan::Now(self.answer(fields)),
            delay => Plan::After(delay, self.answer(fields)),
        }
    }

    fn answer(&self, fields: &HeaderMap) -> Answer {
        let length = self.body.len() as u64;
        match Part::of(fields, length) {
            Part::Whole => Answer {
                status: StatusCode::OK,
                fields: self.fields.clone(),
                body_bytes: length,
                content: Content::Memory(self.body.clone()),
            },
            part => Answer::part(self.media_type.clone(), length, part, |offset, left| {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.body.len());
                let to =
                    from.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)).min(self.body.len());
                Content::Memory(self.body.slice(from..to))
            }),
        }
    }
}

/// The answer to `/`: links to the pages, and the paths that a test can ask for.
fn index(pages: &[Page], media: &[Media]) -> Prepared {
    // Names of pages come from names of files.
    let text = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let link = |page: &Page| {
        let path = page.resources.first().map_or("/", |resource| resource.path.as_str());
        format!("<li><a href=\"{}\">{}</a>: {}</li>\n", text(path), text(&page.name), text(&page.title))
    };
    let manifests = media.iter().flat_map(Media::manifests);
    let manifest = |path: String| format!("<li><a href=\"{0}\">{0}</a></li>\n", text(&path));
    let links: String = pages.iter().map(link).chain(manifests.map(manifest)).collect();
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>h123 origin</title>\n\
         <h1>h123 origin</h1>\n<ul>\n{links}</ul>\n\
         <p>Also: <code>/bytes/N</code>, <code>/delay/MS</code>, <code>/status/NNN</code>, <code>/echo</code> (POST, PUT)</p>\n\
         </html>\n"
    );
    let (media_type, body, delay) = (HTML, Bytes::from(html), Duration::ZERO);
    Prepared { delay, fields: fields(media_type.clone(), body.len() as u64), media_type, body }
}

/// The answers of a page. Where it is cacheable, only its document is requested in each visit.
fn prepare(page: &Page, is_cacheable: bool, resources: &mut HashMap<String, Prepared>) -> anyhow::Result<()> {
    for (index, resource) in page.resources.iter().enumerate() {
        let body = Bytes::from(workload::content::page_body(page, index));
        let media_type = HeaderValue::from_static(resource.kind.media_type());
        let mut fields = fields(media_type.clone(), body.len() as u64);
        if is_cacheable {
            fields.insert(CACHE_CONTROL, if index == 0 { ALWAYS_ASK } else { FOREVER });
        }
        let is_shared = page.hosts.len() > 1 && resource.kind == ResourceKind::Font;
        if is_shared {
            // Fonts are requested in CORS mode (CSS Fonts, section 4.8).
            fields.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        }
        let document_ns = if index == 0 { page.delivery.document_delay_ns } else { 0 };
        let delay = resource.wait_ns.saturating_add(document_ns);
        let prepared = Prepared { delay: Duration::from_nanos(delay), media_type, fields, body };
        let known = resources.insert(resource.path.clone(), prepared);
        ensure!(
            known.is_none(),
            "page `{}` repeats the path `{}`; rename one of the two resources",
            page.name,
            resource.path
        );
    }
    Ok(())
}

/// The time that live streams follow.
fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn of_status(status: u16) -> Answer {
    Answer::status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}

/// The answer to `/delay/MS`, which repeats MS.
fn delay(path: &str, wait: Duration) -> Plan {
    let body = format!("{}\n", path.rsplit('/').next().unwrap_or_default());
    Plan::After(wait, Answer::whole(PLAIN, body.len() as u64, Content::Memory(body.into())))
}
