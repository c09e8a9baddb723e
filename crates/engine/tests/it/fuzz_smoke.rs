//! Every fuzz target on a small corpus made from a fixed seed: no nightly toolchain needed.

use engine::fuzz_targets::TARGETS;

/// Beginnings that a decoder takes, so that mutations reach deep, by target.
const SEEDS: &[(&str, &[u8])] = &[
    ("http1", b"\x07HTTP/1.1 200 OK\r\ncontent-length: 5\r\nserver: a\r\n\r\nhello"),
    ("http1", b"\x03HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n"),
    ("http1", b"\x02HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\nHTTP/1.0 404 \r\nx: a\r\n b\r\n\r\nuntil the end"),
    // SETTINGS, its acknowledgement, HEADERS on stream 1, DATA.
    ("http2", b"\x05\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x02\0\x01\0\0\0\x01hi"),
    // The same with PUSH_PROMISE of stream 2.
    ("http2", b"\x01\0\0\0\x04\0\0\0\0\0\0\0\x08\x05\x04\0\0\0\x01\0\0\0\x02\x82\x84\x87\x01\0\0\x01\x01\x05\0\0\0\x02\x88"),
    // SETTINGS with values, padded HEADERS and CONTINUATION on stream 3, padded DATA.
    (
        "http2",
        b"\x09\0\0\x0c\x04\0\0\0\0\0\0\x01\0\0\x10\0\0\x03\0\0\0\x05\0\0\x04\x01\x08\0\0\0\x03\x01\x88\x40\0\
          \0\0\x04\x09\x04\0\0\0\x03\x01a\x01b\0\0\x04\0\x09\0\0\0\x03\x01hi\0",
    ),
    // SETTINGS, PING, WINDOW_UPDATE, RST_STREAM, PRIORITY, a frame of a reserved type, GOAWAY.
    (
        "http2",
        b"\x04\0\0\0\x04\0\0\0\0\0\0\0\x08\x06\0\0\0\0\x0012345678\0\0\x04\x08\0\0\0\0\0\0\0\x01\0\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08\
          \0\0\x05\x02\0\0\0\0\x03\0\0\0\0\x10\0\0\x01\x2a\0\0\0\0\0x\0\0\x08\x07\0\0\0\0\0\0\0\0\x03\0\0\0\0",
    ),
    ("hpack", b"\x03\x82\x41\x00\x05\x40\x01a\x01b\xbe"),
    ("hpack", b"\x0c\x3f\xe1\x1f\x48\x82\x64\x02\x0f\x0d\x01\x35\x88\xbe"),
    ("huffman", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
    ("integer", &[0x1f, 0x9a, 0x0a]),
    // Control stream with SETTINGS, encoder stream with an insertion, a response.
    (
        "http3",
        &[4, 3, 0, 4, 0, 5, 6, 2, 0x3f, 0xbd, 0x01, 0xc0, 0x00, 0, 8, 1, 3, 0, 0, 0xd9, 0, 1, b'x', 0, 2, 0, 0],
    ),
    // Control stream with SETTINGS, a frame of a reserved type and GOAWAY; a stream of a reserved type;
    // trailers.
    (
        "http3",
        &[4, 9, 0, 4, 2, 7, 1, 0x21, 0, 7, 1, 4, 0, 7, 2, 0x21, 5, 0, 12, 1, 3, 0, 0, 0xd9, 0, 1, b'x', 1, 3, 0, 0, 0xc4],
    ),
    ("qpack", &[0, 3, 0x3f, 0xbd, 0x01, 0, 3, 0xc0, 1, b'a', 1, 3, 2, 0, 0x80, 3, 2, b'v', b'w', 2, 1, 1]),
    ("qpack", &[0, 3, 0x3f, 0xbd, 0x01, 0, 5, 0x41, b'a', 1, b'b', 0x00, 1, 3, 2, 0, 0x10, 2, 1, 0x84, 2, 1, 0x48]),
    // TLS: a ServerHello's record header, an alert; QUIC: a long header, a version negotiation.
    ("tls", &[0x16, 0x03, 0x03, 0x00, 0x04, 0x02, 0x00, 0x00, 0x00]),
    ("tls", &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]),
    ("quic", &[4, 0xc0, 0, 0, 0, 1, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x40, 0x75]),
    ("quic", &[4, 0x80, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 0x2a, 0x3a, 0x4a]),
    ("client_protocol", &[3, 0, 0, 0, 0, 1, 2]),
    ("client_protocol", &[1, 0, 0, 0, 1, 2, 0, 0, 0, 4, 0]),
];

const MUTATIONS: u64 = 1000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// A seed of this target, or now and then of another.
    fn seed(&mut self, target: &str) -> &'static [u8] {
        let own: Vec<&[u8]> = SEEDS.iter().filter(|(of, _)| *of == target).map(|(_, seed)| *seed).collect();
        if self.below(8) == 0 { SEEDS[self.below(SEEDS.len())].1 } else { own[self.below(own.len())] }
    }

    /// A seed with some bytes changed, cut, repeated or inserted.
    fn mutated(&mut self, target: &str) -> Vec<u8> {
        let mut bytes = self.seed(target).to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 if !bytes.is_empty() => bytes[at] = self.byte(),
                1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                2 => bytes.truncate(at),
                3 => {
                    let more = self.seed(target);
                    bytes.extend_from_slice(&more[self.below(more.len())..]);
                }
                _ => bytes.insert(at, self.byte()),
            }
        }
        bytes
    }
}

#[test]
fn no_decoder_panics_on_a_small_corpus() {
    let base = crate::quic_peer::base();
    for (number, (name, target)) in (1..).zip(TARGETS) {
        let mut random = Random(number);
        for (_, seed) in SEEDS {
            target(seed, base);
        }
        target(&[], base);
        for _ in 0..MUTATIONS {
            let bytes = random.mutated(name);
            let result = std::panic::catch_unwind(|| target(&bytes, base));
            assert!(result.is_ok(), "target {name} panics on {bytes:02x?}");
        }
    }
}

/// A target that is called by its name must be known by it; others are functions, which the compiler knows.
#[test]
#[expect(clippy::disallowed_methods, reason = "a look at the repository")]
fn every_name_that_the_fuzzer_calls_is_known() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .filter_map(|text| Some(text.split_once("h123_fuzz::run(\"")?.1.split_once('"')?.0.to_owned()))
        .collect();
    let of_workload = workload::fuzz_targets::TARGETS.iter().map(|(name, _)| *name);
    let mut known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).chain(of_workload).collect();
    found.sort();
    known.sort_unstable();
    assert_eq!(found, known);
}
