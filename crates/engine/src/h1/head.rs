//! Response heads (RFC 9112, sections 4 and 5).
//!
//! A line may end with a lone LF, as RFC 9112, section 2.2 permits for the status line and for fields: it
//! does not change the end of the head. A lone CR is an error.

use memchr::{memchr, memchr2};
use model::HttpVersion;
use model::sample::{Failure, FailureKind, ServerClose};

use super::{Limits, protocol};
use crate::contract::{ContentFields, HeaderBytes};
use crate::field::{EARLY_HINTS, NOT_TOKEN, join_links, name_faults, parse_length};

/// The parts of a head that a client needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: HttpVersion,
    /// `content-length`.
    pub content_length: Option<u64>,
    /// Whether the only transfer coding is chunked.
    pub chunked: bool,
    /// Why the connection cannot be reused (RFC 9112, section 9.3); `None` if it can.
    pub closes: Option<ServerClose>,
    /// What the body is.
    pub content: ContentFields,
    /// Its size.
    pub size: HeaderBytes,
    /// Its length in bytes.
    pub length: usize,
}

/// The result of `parse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A complete head.
    Whole(ResponseHead),
    /// The end of the head is missing.
    Partial,
}

/// Parses the head at the start of `bytes`.
///
/// # Errors
/// The head is malformed or exceeds `limits`.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Parsed, Failure> {
    let Some(status_line) = line(bytes, 0) else { return partial(bytes, limits) };
    let (version, status) = parse_status_line(status_line.text)?;
    let mut fields = Fields { keeps_alive: version == HttpVersion::Http11, ..Fields::default() };
    let mut position = status_line.end;
    let mut count = 0;
    loop {
        let Some(next) = line(bytes, position) else { return partial(bytes, limits) };
        position = next.end;
        if position > limits.head_bytes {
            return Err(too_large(limits));
        }
        if next.text.is_empty() {
            break;
        }
        if count == limits.fields {
            return Err(too_large(limits));
        }
        fields.add(next.text, count == 0)?;
        count += 1;
    }
    if fields.chunked && fields.content_length.is_some() {
        return Err(protocol("the response has both transfer-encoding and content-length"));
    }
    if fields.chunked && version == HttpVersion::Http10 {
        return Err(protocol("an HTTP/1.0 response has transfer-encoding"));
    }
    Ok(Parsed::Whole(ResponseHead {
        status,
        version,
        content_length: fields.content_length,
        chunked: fields.chunked,
        closes: match fields {
            Fields { close: true, .. } => Some(ServerClose::CloseOption),
            Fields { keeps_alive: false, .. } => Some(ServerClose::Http10),
            _ => None,
        },
        content: fields.content,
        size: HeaderBytes {
            raw: u32::try_from(":status".len() + 3 + fields.raw).unwrap_or(u32::MAX),
            wire: u32::try_from(position).unwrap_or(u32::MAX),
        },
        length: position,
    }))
}

/// The last head: a server under load sends equal heads until its clock's next second, and equal bytes parse
/// equally.
#[derive(Debug, Default)]
pub struct KnownHead {
    bytes: Vec<u8>,
    head: Option<ResponseHead>,
}

/// The longest head that is remembered.
const KNOWN_BYTES: usize = 1024;

impl KnownHead {
    /// The remembered head, if `bytes` starts with it.
    #[inline]
    pub fn find(&self, bytes: &[u8]) -> Option<ResponseHead> {
        self.head.filter(|_| bytes.starts_with(&self.bytes))
    }

    /// Remembers a head.
    pub fn remember(&mut self, bytes: &[u8], head: ResponseHead) {
        if bytes.len() <= KNOWN_BYTES {
            self.bytes.clear();
            self.bytes.extend_from_slice(bytes);
            self.head = Some(head);
        }
    }
}

/// The end of the head at the start of `bytes`; `from` is at most 3 bytes before the new bytes.
pub fn find_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut position = from;
    while let Some(found) = memchr(b'\n', &bytes[position..]) {
        position += found + 1;
        match &bytes[position..] {
            [b'\n', ..] => return Some(position + 1),
            [b'\r', b'\n', ..] => return Some(position + 2),
            _ => {}
        }
    }
    None
}

/// The failure of a field section that exceeds `limits`.
pub fn too_large(limits: &Limits) -> Failure {
    Failure::new(
        FailureKind::Limit,
        format!(
            "the response's head or trailers have more than {} bytes or {} fields",
            limits.head_bytes, limits.fields
        ),
    )
}

/// Checks one line, with its end, of a trailer section; trailers are ignored.
///
/// # Errors
/// The line is not a field.
pub fn check_trailer(line: &[u8]) -> Result<(), Failure> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    split_field(text.strip_suffix(b"\r").unwrap_or(text)).map(|_| ())
}

impl ResponseHead {
    /// How the end of the body is found (RFC 9112, section 6.3).
    pub fn framing(&self, is_head: bool) -> Framing {
        match self.content_length {
            _ if is_head || self.status == 204 || self.status == 304 => Framing::None,
            _ if self.chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        }
    }
}

/// The values of `link` in a head of 103 (RFC 8297) at the start of `bytes`; empty in other heads.
pub fn links(head: &ResponseHead, bytes: &[u8]) -> Vec<u8> {
    let mut links = Vec::new();
    if head.status == EARLY_HINTS {
        let lines = bytes[..head.length.min(bytes.len())].split(|byte| *byte == b'\n').skip(1);
        for (name, value) in lines.filter_map(|line| split_field(line.trim_ascii_end()).ok()) {
            if name.eq_ignore_ascii_case(b"link") {
                join_links(&mut links, value);
            }
        }
    }
    links
}

/// How the end of a body is found (RFC 9112, section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// `content-length`.
    Length(u64),
    /// `transfer-encoding: chunked`.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// A line without its end, and the start of the next line.
struct Line<'a> {
    text: &'a [u8],
    end: usize,
}

fn line(bytes: &[u8], start: usize) -> Option<Line<'_>> {
    let length = memchr(b'\n', bytes.get(start..)?)?;
    let text = &bytes[start..start + length];
    Some(Line { text: text.strip_suffix(b"\r").unwrap_or(text), end: start + length + 1 })
}

fn partial(bytes: &[u8], limits: &Limits) -> Result<Parsed, Failure> {
    check_beginning(bytes)?;
    if bytes.len() > limits.head_bytes { Err(too_large(limits)) } else { Ok(Parsed::Partial) }
}

/// The first characters of every response; enough to tell HTTP/1 from anything else.
const BEGINNING: &[u8] = b"HTTP/1.";

/// Rejects bytes that start no response before the line is complete: such a peer may wait now, or never end
/// its line.
///
/// # Errors
/// A failure that names the peer's protocol.
pub fn check_beginning(bytes: &[u8]) -> Result<(), Failure> {
    match refused_at_end(bytes) {
        Some(failure) if !may_be_other_protocol(bytes) => Err(failure),
        _ => Ok(()),
    }
}

/// The failure of a stream that ends after `bytes`, if these are not the start of a head.
pub fn refused_at_end(bytes: &[u8]) -> Option<Failure> {
    let length = bytes.len().min(BEGINNING.len());
    (bytes[..length] != BEGINNING[..length]).then(|| not_http1(bytes))
}

/// Whether more bytes may identify the peer's protocol.
fn may_be_other_protocol(bytes: &[u8]) -> bool {
    matches!(bytes, [0] | [0, 0] | [0, 0, _] | [TLS_ALERT | TLS_HANDSHAKE])
}

const SETTINGS: u8 = 4;
const TLS_ALERT: u8 = 0x15;
const TLS_HANDSHAKE: u8 = 0x16;

/// The failure of bytes that are not an HTTP/1 head.
fn not_http1(bytes: &[u8]) -> Failure {
    let other = match bytes {
        [0, 0, _, SETTINGS, ..] => Some("in HTTP/2"),
        [TLS_ALERT | TLS_HANDSHAKE, 3, ..] => Some("in TLS"),
        _ => None,
    };
    match other {
        Some(other) => Failure::new(
            FailureKind::WrongVersion,
            format!("the server answers {other} where HTTP/1.1 in cleartext was asked for"),
        ),
        None => {
            let shown = bytes[..bytes.len().min(40)].escape_ascii();
            protocol(format!(
                "the response starts with \"{shown}\"; expected HTTP/1.1 and a status from 100 to 599"
            ))
        }
    }
}

/// RFC 9112, section 4. The space before an empty reason may be missing: many servers omit it.
fn parse_status_line(text: &[u8]) -> Result<(HttpVersion, u16), Failure> {
    let bad = || not_http1(text);
    let (version, rest) = match text {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1', b' ', rest @ ..] => (HttpVersion::Http11, rest),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0', b' ', rest @ ..] => (HttpVersion::Http10, rest),
        _ => return Err(bad()),
    };
    let (code, reason) = match rest {
        [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] => ([a, b, c], reason),
        _ => return Err(bad()),
    };
    if !matches!(reason.first(), None | Some(b' ')) || memchr2(b'\r', 0, reason).is_some() {
        return Err(bad());
    }
    Ok((version, code.iter().fold(0, |status, digit| status * 10 + u16::from(**digit - b'0'))))
}

/// The parsed fields.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keeps_alive: bool,
    content: ContentFields,
    raw: usize,
    /// The engine acts on the previous field.
    is_relevant: bool,
}

impl Fields {
    fn add(&mut self, text: &[u8], is_first: bool) -> Result<(), Failure> {
        if matches!(text.first(), Some(b' ' | b'\t')) {
            return self.fold(text, is_first);
        }
        let (name, value) = split_field(text)?;
        self.raw += name.len() + value.len();
        self.is_relevant = true;
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => self.connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.transfer_encoding(value)?,
            _ => {
                self.is_relevant = false;
                self.content.add(name, value);
            }
        }
        Ok(())
    }

    /// A folded line (RFC 9112, section 5.2) continues the previous value after one space. It is an error if
    /// the previous field frames the message, because implementations differ on its meaning.
    fn fold(&mut self, text: &[u8], is_first: bool) -> Result<(), Failure> {
        if is_first {
            return Err(protocol("white space before the first field"));
        }
        if self.is_relevant {
            return Err(protocol("a folded line in a field that frames the message"));
        }
        let more = text.trim_ascii();
        check_value(more)?;
        self.raw += more.len() + usize::from(!more.is_empty());
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keeps_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Equal repetitions count once; different ones are an error (RFC 9110, section 8.6).
    fn length(&mut self, value: &[u8]) -> Result<(), Failure> {
        for part in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let length = parse_length(part).ok_or_else(|| {
                let shown = value[..value.len().min(40)].escape_ascii();
                protocol(format!("content-length \"{shown}\" is not a number below 2^64"))
            })?;
            if self.content_length.is_some_and(|other| other != length) {
                return Err(protocol(format!(
                    "the response has two different content-lengths, one of them {length}"
                )));
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Failure> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            let shown = value[..value.len().min(40)].escape_ascii();
            return Err(protocol(format!("transfer-encoding \"{shown}\"; expected chunked, once")));
        }
        self.chunked = true;
        Ok(())
    }
}

/// Name and value of a field line without its end (RFC 9112, section 5).
fn split_field(text: &[u8]) -> Result<(&[u8], &[u8]), Failure> {
    let colon = memchr(b':', text).unwrap_or(0);
    let (name, rest) = text.split_at(colon);
    if name.is_empty() || name_faults(name) & NOT_TOKEN != 0 {
        let shown = text[..text.len().min(40)].escape_ascii();
        return Err(protocol(format!(
            "the line \"{shown}\" is not a field; expected a token, a colon and a value"
        )));
    }
    let value = rest[1..].trim_ascii();
    check_value(value)?;
    Ok((name, value))
}

fn check_value(value: &[u8]) -> Result<(), Failure> {
    if memchr2(b'\r', 0, value).is_some() {
        return Err(protocol("a field value has a lone CR or a NUL"));
    }
    Ok(())
}
