//! TLS from a bad server: certificates that no client should trust, garbage, alerts, ends at the wrong time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use model::Variant;
use model::assignment::Trust;
use model::sample::FailureKind::{self, Closed, Limit, Protocol, Reset, Timeout, Tls, WrongVersion};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::Ending::{self, Close, Hold, Repeat};
use super::{
    Hostile, assert_failed, assert_ok, assignment, expecting, never_connecting, outlast, run, say,
    take_something,
};

/// An authority that clients trust, and what it makes.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Authority {
    pub(super) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    pub(super) fn trust(&self) -> Trust {
        Trust::Authority(self.issuer.pem())
    }

    /// An identity of this name, valid until the end of this year.
    pub(super) fn identity(&self, name: &str, until: i32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = date_time_ymd(until, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

/// A server's settings with this identity and these protocols.
pub(super) fn config(identity: &Identity, alpn: &[&str]) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

fn accept(config: &Arc<ServerConfig>, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream)
}

const GOOD: i32 = 2200;

#[test]
fn certificates_that_no_client_should_trust() {
    let authority = Authority::new("known");
    let strangers = Authority::new("unknown");
    let key = KeyPair::generate().unwrap();
    let alone = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let alone = Identity {
        chain: vec![alone.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    };
    for (name, identity, part) in [
        ("another name", authority.identity("elsewhere.test", GOOD), "not valid for name"),
        ("expired", authority.identity("localhost", 2000), "expired"),
        ("unknown issuer", strangers.identity("localhost", GOOD), "UnknownIssuer"),
        ("self-signed", alone, "UnknownIssuer"),
    ] {
        for variant in [Variant::H1s, Variant::H2] {
            let config = config(&identity, &["h2", "http/1.1"]);
            let server = Hostile::new(move |stream| {
                let mut stream = accept(&config, stream);
                // The client's alert ends the handshake.
                let _ = stream.flush();
                while stream.conn.complete_io(&mut stream.sock).is_ok_and(|(read, _)| read > 0) {}
            });
            let mut assignment = expecting(Tls, assignment(variant, server.address, 2));
            assignment.target.trust = authority.trust();
            assert_failed(name, &run(name, &assignment), Tls, part);
        }
    }
}

/// What a server sends instead of a handshake and how it ends; the kind of failure and what its reason names.
type Case = (&'static str, &'static [u8], Ending, FailureKind, &'static str);

const CASES: &[Case] = &[
    ("words", b"220 mail.test ESMTP\r\n", Hold, Tls, "corrupt message"),
    ("HTTP/1.1", b"HTTP/1.1 400 Bad Request\r\n\r\n", Hold, Tls, "InvalidContentType"),
    ("a record of 64 kB", b"\x16\x03\x03\xff\xff", Hold, Tls, "corrupt message"),
    ("a message of another kind", b"\x16\x03\x03\0\x04\x0e\0\0\0", Hold, Tls, "unexpected"),
    ("an empty record", b"\x16\x03\x03\0\0", Hold, Tls, "corrupt message"),
    ("data before the handshake", b"\x17\x03\x03\0\x05hello", Hold, Tls, "TLS: "),
    ("an alert", b"\x15\x03\x03\0\x02\x02\x28", Hold, Tls, "HandshakeFailure"),
    ("an alert about ALPN", b"\x15\x03\x03\0\x02\x02\x78", Hold, WrongVersion, "NoApplicationProtocol"),
    ("close_notify", b"\x15\x03\x03\0\x02\x01\0", Close, Closed, "before it was ready"),
    ("silence", b"", Hold, Timeout, "400 ms passed in the TLS handshake"),
    ("half a record", b"\x16\x03\x03\0\x7a\x02\0\0", Hold, Timeout, "400 ms passed in the TLS handshake"),
    ("half a record, closed", b"\x16\x03\x03\0\x7a\x02\0\0", Close, Closed, "before it was ready"),
    ("a half-close", b"", Close, Closed, "before it was ready"),
    ("a reset", b"", Ending::Reset, Reset, "127.0.0.1:"),
];

#[test]
fn handshakes_that_are_none() {
    for (name, answer, ending, kind, part) in CASES {
        let pieces = [answer.to_vec()];
        let server = Hostile::new(move |mut stream| {
            take_something(&mut stream);
            say(&mut stream, &pieces, *ending);
        });
        for variant in [Variant::H1s, Variant::H2] {
            let assignment = never_connecting(*kind, assignment(variant, server.address, 2));
            assert_failed(name, &run(name, &assignment), *kind, part);
        }
    }
}

#[test]
fn a_handshake_message_without_end_is_a_limit() {
    // A ServerHello of 16 MB, in records of 16 kB.
    let first = [b"\x16\x03\x03\x40\0\x02\xff\xff\xff".as_slice(), &[0; 16_380]].concat();
    let more = [b"\x16\x03\x03\x40\0".as_slice(), &[0; 16_384]].concat();
    let server = Hostile::new(move |mut stream| {
        take_something(&mut stream);
        say(&mut stream, &[first.clone(), more.clone()], Repeat);
    });
    let report = run("handshake", &assignment(Variant::H1s, server.address, 2));
    for sample in &report.samples {
        let model::sample::Outcome::Failed(failure) = &sample.outcome else { panic!("{sample:?}") };
        assert!(matches!(failure.kind, Limit | Tls), "{failure:?}");
    }
}

/// Serves TLS, sends `answer` to each request, and ends like this.
fn secured(alpn: &'static [&'static str], answer: &'static [u8], ending: Ending, notify: bool) -> Hostile {
    let identity = Authority::new("known").identity("localhost", GOOD);
    let config = config(&identity, alpn);
    Hostile::new(move |stream| {
        let mut stream = accept(&config, stream);
        while stream.conn.is_handshaking() {
            if stream.conn.complete_io(&mut stream.sock).is_err() {
                return;
            }
        }
        if !answer.is_empty() && stream.read(&mut [0; 4096]).is_err() {
            return;
        }
        if stream.write_all(answer).is_err() {
            return;
        }
        if notify {
            stream.conn.send_close_notify();
        }
        let _ = stream.flush();
        say(&mut stream.sock, &[Vec::new()], ending);
    })
}

#[test]
fn what_comes_within_tls() {
    let length_3: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\na";
    let until_close: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nabc";
    for (name, answer, ending, notify, kind, part) in [
        ("a cut body", length_3, Close, true, Closed, "after 1 of 3 body bytes"),
        ("a cut connection", length_3, Close, false, Closed, "no close_notify"),
        ("a body until an end that was not said", until_close, Close, false, Closed, "no close_notify"),
        ("a reset", length_3, Ending::Reset, false, Reset, "127.0.0.1:"),
        ("garbage within", b"garbage\r\n", Hold, false, Protocol, "garbage"),
        ("the end at once", b"", Hold, true, Closed, "before any"),
        ("silence", b"", Hold, false, Timeout, "no response within 400 ms"),
    ] {
        let server = secured(&["http/1.1"], answer, ending, notify);
        let assignment = expecting(kind, assignment(Variant::H1s, server.address, 2));
        assert_failed(name, &run(name, &assignment), kind, part);
    }
    let server = secured(&["http/1.1"], until_close, Close, true);
    assert_ok("until the end", &run("until the end", &assignment(Variant::H1s, server.address, 2)));
}

#[test]
fn another_protocol_than_asked_for() {
    let server = secured(&[], b"", Hold, false);
    let report = run("no ALPN", &assignment(Variant::H2, server.address, 2));
    assert_failed("no ALPN", &report, WrongVersion, "ALPN chose no protocol, expected h2");
    let server = secured(&["http/1.1"], b"", Hold, false);
    let report = run("no h2", &assignment(Variant::H2, server.address, 2));
    assert_failed("no h2", &report, WrongVersion, "NoApplicationProtocol");
}

#[test]
fn garbage_behind_a_handshake_is_no_record() {
    let identity = Authority::new("known").identity("localhost", GOOD);
    let config = config(&identity, &["http/1.1"]);
    let server = Hostile::new(move |stream| {
        let mut stream = accept(&config, stream);
        while stream.conn.is_handshaking() {
            if stream.conn.complete_io(&mut stream.sock).is_err() {
                return;
            }
        }
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.sock.write_all(b"\x17\x03\x03\0\x20this is 32 bytes and no record..");
        outlast(&mut stream.sock);
    });
    let report = run("garbage", &assignment(Variant::H1s, server.address, 2));
    assert_failed("garbage", &report, Tls, "TLS: ");
}
