//! A page load as browsers report it, whatever their protocol, and the rows that it becomes.
//!
//! Each file of a protocol fills a [`PageLoad`]; [`PageLoad::rows`] makes the same rows of it that h123's own
//! client has.

use std::borrow::Cow;
use std::collections::HashMap;

use model::Page;
use model::number::small;
use model::page::Resource;
use model::page_events::PageEvents;
use model::sample::{ConnectionRow, FailureKind, Outcome, Sample};
use model::url::Url;
use model::variant::HttpVersion;

/// A page load. Stamps are nanoseconds since the run's start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageLoad {
    /// The requests that used the network and ended, in the order of their begin; the document first.
    pub requests: Vec<LoadedRequest>,
    /// Requests that had not ended when the observation did, or were beyond the limit of their number.
    pub unfinished: u64,
    /// The events of the page; the group is not set.
    pub events: PageEvents,
    /// Whether a response announced HTTP/3 (Alt-Svc, RFC 7838).
    pub announces_http3: bool,
    /// When the navigation began, Unix time in nanoseconds, for people.
    pub began_unix_ns: Option<u64>,
}

/// A request of a page load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadedRequest {
    /// The absolute URL.
    pub url: String,
    /// The method.
    pub method: String,
    /// The URL of what named it: a document, a style sheet or a script.
    pub initiator: Option<String>,
    /// When the browser wanted it.
    pub intended_ns: u64,
    /// The phases before it was sent.
    pub phases: Phases,
    /// When it was sent.
    pub sent_ns: Option<u64>,
    /// When the head of its response was read.
    pub first_byte_ns: Option<u64>,
    /// When its last byte was read, or when it failed.
    pub done_ns: Option<u64>,
    /// The status code.
    pub status: Option<u16>,
    /// The protocol of the response as the browser names it, such as `h2`.
    pub protocol: Option<String>,
    /// The browser's name of the connection.
    pub connection: Option<String>,
    /// What TLS negotiated.
    pub tls: Option<Negotiated>,
    /// Body bytes, after transfer coding and before content coding.
    pub body_bytes: u64,
    /// Media type and content coding, such as `text/css, gzip`.
    pub content: Option<String>,
    /// The value of `Content-Range` of a part of a resource (RFC 9110, section 14.4).
    pub content_range: Option<String>,
    /// How it failed, if it did.
    pub failure: Option<(FailureKind, String)>,
    /// Whether it is for the document, or for what a redirect replaced it with.
    pub is_document: bool,
}

/// When a phase began and ended.
pub type Phase = Option<(u64, u64)>;

/// The phases of a request before it is sent; `None` where it did not need them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// The DNS lookup.
    pub dns: Phase,
    /// From the connect of TCP, or the handshake of QUIC, until requests can be sent.
    pub connect: Phase,
    /// The handshake of TLS or QUIC.
    pub handshake: Phase,
}

/// What TLS negotiated, by registered names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The version, as h123's own rows name it.
    pub version: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// The key exchange.
    pub key_exchange: String,
}

/// What the cell wanted to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct WantedPage<'a> {
    /// The client group.
    pub group: u16,
    /// What it lists; [`WantedPage::resources_of`] for a page.
    pub resources: &'a [WantedResource<'a>],
    /// The document's URL, whose origin is compared.
    pub document: &'a Url,
    /// The version of every response from there.
    pub http: HttpVersion,
}

/// A resource that the cell wants: its path, or its URL on another host, and the length of its body if it is
/// known.
pub type WantedResource<'a> = (Cow<'a, str>, Option<u64>);

impl WantedPage<'_> {
    /// The resources of a page at the URL of its document. Those of a site that h123 does not serve may have
    /// changed.
    pub fn resources_of<'p>(page: &'p Page, document: &Url) -> Vec<WantedResource<'p>> {
        let scheme = if document.encrypted { "https" } else { "http" };
        let name = |resource: &'p Resource| match page.hosts.get(usize::from(resource.origin)) {
            Some(host) if resource.origin > 0 => Cow::from(format!("{scheme}://{host}{}", resource.path)),
            _ => Cow::from(&resource.path),
        };
        let resources = page.resources.iter().filter(|_| !page.is_outside());
        resources.map(|resource| (name(resource), Some(resource.bytes))).collect()
    }
}

/// The rows of a page load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageRows {
    /// One for each request.
    pub samples: Vec<Sample>,
    /// One for each connection that carried one.
    pub connections: Vec<ConnectionRow>,
    /// What [`Sample::url`] counts: the paths of the page's resources, then what else was requested.
    pub urls: Vec<String>,
    /// What [`Sample::content`] counts.
    pub contents: Vec<String>,
}

/// The version of HTTP of a protocol's name (RFC 7301's registry); `None` for any other.
pub fn http_version(protocol: &str) -> Option<HttpVersion> {
    Some(match protocol {
        "http/1.0" => HttpVersion::Http10,
        "http/1.1" => HttpVersion::Http11,
        "h2" => HttpVersion::Http2,
        "h3" => HttpVersion::Http3,
        _ => return None,
    })
}

impl PageLoad {
    /// The request for the document, the last one after redirects.
    pub fn document(&self) -> Option<&LoadedRequest> {
        self.requests.iter().rev().find(|request| request.is_document)
    }

    /// Sets the phases of the page's events from those of the document.
    pub(crate) fn set_document_phases(&mut self) {
        let Some(document) = self.document() else { return };
        let Phases { dns, connect, handshake } = document.phases;
        let is_quic = document.protocol.as_deref().and_then(http_version) == Some(HttpVersion::Http3);
        // Requests can be sent once TLS is established, so TCP's connect ends where TLS begins.
        let connect = connect.filter(|_| !is_quic).map(|(began_ns, ended_ns)| {
            (began_ns, handshake.map_or(ended_ns, |(began_ns, _)| began_ns.min(ended_ns)))
        });
        let (sent_ns, first_byte_ns, done_ns) = (document.sent_ns, document.first_byte_ns, document.done_ns);
        let events = &mut self.events;
        (events.dns_began_ns, events.dns_ended_ns) = dns.unzip();
        (events.connect_began_ns, events.connect_ended_ns) = connect.unzip();
        (events.handshake_began_ns, events.handshake_ended_ns) = handshake.unzip();
        (events.sent_ns, events.first_byte_ns, events.done_ns) = (sent_ns, first_byte_ns, done_ns);
    }

    /// The first response from the origin of a URL in another version, with its protocol.
    pub fn request_in_other_version(&self, url: &Url, http: HttpVersion) -> Option<(&str, &str)> {
        let of_origin = |request: &&LoadedRequest| {
            request.status.is_some() && Url::parse(&request.url).is_ok_and(|own| own.has_origin_of(url))
        };
        self.requests.iter().filter(of_origin).find_map(|request| {
            let protocol = request.protocol.as_deref().unwrap_or("unknown");
            (http_version(protocol) != Some(http)).then_some((request.url.as_str(), protocol))
        })
    }

    /// The rows, with the version of every response asserted.
    pub fn rows(&self, wanted: &WantedPage<'_>) -> PageRows {
        let mut rows = RowBuilder::new(wanted);
        for request in &self.requests {
            rows.add(request);
        }
        rows.finish()
    }
}

struct RowBuilder<'a> {
    wanted: &'a WantedPage<'a>,
    rows: PageRows,
    urls: HashMap<String, u32>,
    /// The connections by the browser's names.
    connections: HashMap<&'a str, usize>,
}

impl<'a> RowBuilder<'a> {
    fn new(wanted: &'a WantedPage<'a>) -> Self {
        let mut builder = RowBuilder {
            wanted,
            rows: PageRows::default(),
            urls: HashMap::new(),
            connections: HashMap::new(),
        };
        // Several parts of a resource have a number each; a request is for the first.
        for (number, (path, _)) in wanted.resources.iter().enumerate() {
            builder.rows.urls.push(path.to_string());
            builder.urls.entry(path.to_string()).or_insert(small(number));
        }
        builder
    }

    fn number_of(&mut self, url: &str) -> u32 {
        if let Some(number) = self.urls.get(url) {
            return *number;
        }
        let number = small(self.rows.urls.len());
        self.rows.urls.push(url.to_owned());
        self.urls.insert(url.to_owned(), number);
        number
    }

    fn add(&mut self, request: &'a LoadedRequest) {
        let url = Url::parse(&request.url).ok();
        let is_own = url.as_ref().is_some_and(|url| url.has_origin_of(self.wanted.document));
        let shown = url.filter(|_| is_own).map_or_else(|| request.url.clone(), |url| url.path);
        let url = self.number_of(&shown);
        let wanted = self.wanted.resources.get(url as usize);
        let expected_body_bytes = wanted.and_then(|(_, bytes)| *bytes);
        // The cell's server also answers for the further hosts of its page.
        let is_own = is_own || wanted.is_some();
        let content = request.content.as_ref().map(|content| self.content_of(content));
        let sample = Sample {
            group: self.wanted.group,
            request: self.rows.samples.len() as u64,
            url,
            connection: self.connection_of(request),
            intended_ns: request.intended_ns,
            sent_ns: request.sent_ns,
            first_byte_ns: request.first_byte_ns,
            done_ns: request.done_ns,
            status: request.status,
            version: request.protocol.as_deref().and_then(http_version),
            response_body_bytes: request.body_bytes,
            expected_body_bytes,
            content,
            outcome: outcome(request, self.wanted.http, is_own, expected_body_bytes),
            ..Sample::default()
        };
        self.rows.samples.push(sample);
    }

    fn content_of(&mut self, content: &str) -> u16 {
        let contents = &mut self.rows.contents;
        let place = contents.iter().position(|known| known == content).unwrap_or_else(|| {
            contents.push(content.to_owned());
            contents.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    /// The number of the request's connection, whose row the first request makes that reports its phases.
    fn connection_of(&mut self, request: &'a LoadedRequest) -> Option<u32> {
        let name = request.connection.as_deref()?;
        let connections = &mut self.rows.connections;
        let place = *self.connections.entry(name).or_insert_with(|| {
            connections.push(ConnectionRow {
                group: self.wanted.group,
                connection: small(connections.len()),
                opened_ns: request.sent_ns.unwrap_or(request.intended_ns),
                lacks_bytes: true,
                ..ConnectionRow::default()
            });
            connections.len() - 1
        });
        let row = connections.get_mut(place)?;
        let Phases { connect, handshake, .. } = request.phases;
        if let Some((began_ns, ended_ns)) = connect.filter(|_| row.ready_ns.is_none()) {
            row.opened_ns = began_ns;
            row.ready_ns = Some(ended_ns);
            let is_quic = request.protocol.as_deref().and_then(http_version) == Some(HttpVersion::Http3);
            row.connected_ns = match handshake {
                _ if is_quic => None,
                Some((began_ns, _)) => Some(began_ns.min(ended_ns)),
                None => Some(ended_ns),
            };
        }
        if let Some(Negotiated { version, cipher_suite, key_exchange }) = &request.tls {
            let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            row.alpn.clone_from(&request.protocol);
            (row.tls_version, row.cipher_suite) = (known(version), known(cipher_suite));
            row.key_exchange = known(key_exchange);
        }
        Some(row.connection)
    }

    fn finish(self) -> PageRows {
        let mut rows = self.rows;
        // Rows of connections are numbered in the order of opening.
        let mut order: Vec<usize> = (0..rows.connections.len()).collect();
        order.sort_by_key(|place| rows.connections[*place].opened_ns);
        let mut numbers = vec![0; order.len()];
        for (number, place) in order.iter().enumerate() {
            numbers[*place] = small(number);
        }
        for row in &mut rows.connections {
            row.connection = numbers.get(row.connection as usize).copied().unwrap_or(row.connection);
        }
        rows.connections.sort_by_key(|row| row.connection);
        for sample in &mut rows.samples {
            sample.connection = sample.connection.and_then(|place| numbers.get(place as usize).copied());
        }
        rows
    }
}

/// How a request ended. Hosts other than the document's may not offer the cell's version.
fn outcome(request: &LoadedRequest, http: HttpVersion, is_own: bool, expected_bytes: Option<u64>) -> Outcome {
    if let Some((kind, reason)) = &request.failure {
        return Outcome::failed(*kind, reason.clone());
    }
    let protocol = request.protocol.as_deref().unwrap_or("unknown");
    if is_own && http_version(protocol) != Some(http) {
        let reason = format!("the response used the protocol `{protocol}`, not {}", http.name());
        return Outcome::failed(FailureKind::WrongVersion, reason);
    }
    match request.status {
        // Redirects and answers without a body are part of real pages.
        Some(status) if status < 400 => {}
        Some(status) => {
            return Outcome::failed(FailureKind::WrongStatus, format!("status {status}, expected 2xx"));
        }
        None => return Outcome::failed(FailureKind::Protocol, "the browser reports no status"),
    }
    match expected_bytes.filter(|bytes| *bytes != request.body_bytes) {
        Some(bytes) => {
            let reason = format!("{} body bytes, expected {bytes}", request.body_bytes);
            Outcome::failed(FailureKind::WrongLength, reason)
        }
        None => Outcome::Ok,
    }
}
