//! Every fuzz target on a small corpus made from a fixed seed: no nightly toolchain needed.

use engine::fuzz_targets::TARGETS;

/// Beginnings that a decoder takes, so that mutations reach deep.
const SEEDS: &[&[u8]] = &[
    b"\x07HTTP/1.1 200 OK\r\ncontent-length: 5\r\nserver: a\r\n\r\nhello",
    b"\x03HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n",
    // SETTINGS, its acknowledgement, HEADERS on stream 1, DATA.
    b"\x05\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x02\0\x01\0\0\0\x01hi",
    // The same with PUSH_PROMISE of stream 2.
    b"\x01\0\0\0\x04\0\0\0\0\0\0\0\x08\x05\x04\0\0\0\x01\0\0\0\x02\x82\x84\x87\x01\0\0\x01\x01\x05\0\0\0\x02\x88",
    b"\x03\x82\x41\x00\x05\x40\x01a\x01b\xbe",
    &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
    &[0x1f, 0x9a, 0x0a],
    // Control stream with SETTINGS, encoder stream with an insertion, a response.
    &[4, 3, 0, 4, 0, 5, 6, 2, 0x3f, 0xbd, 0x01, 0xc0, 0x00, 0, 8, 1, 3, 0, 0, 0xd9, 0, 1, b'x', 0, 2, 0, 0],
    &[0, 3, 0x3f, 0xbd, 0x01, 0, 3, 0xc0, 1, b'a', 1, 3, 2, 0, 0x80, 3, 2, b'v', b'w', 2, 1, 1],
    // TLS: a ServerHello's record header; QUIC: a long header.
    &[0x16, 0x03, 0x03, 0x00, 0x04, 0x02, 0x00, 0x00, 0x00],
    &[4, 0xc0, 0, 0, 0, 1, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0x40, 0x75],
    &[3, 0, 0, 0, 0, 1, 2],
];

const MUTATIONS: u64 = 400;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    /// A seed with some bytes changed, cut, repeated or inserted.
    fn mutated(&mut self) -> Vec<u8> {
        let mut bytes = SEEDS[self.below(SEEDS.len())].to_vec();
        for _ in 0..self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 if !bytes.is_empty() => bytes[at] = self.byte(),
                1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                2 => bytes.truncate(at),
                3 => {
                    let more = SEEDS[self.below(SEEDS.len())];
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
    for (number, (name, target)) in (1..).zip(TARGETS) {
        let mut random = Random(number);
        for seed in SEEDS {
            target(seed);
        }
        target(&[]);
        for _ in 0..MUTATIONS {
            let bytes = random.mutated();
            let result = std::panic::catch_unwind(|| target(&bytes));
            assert!(result.is_ok(), "target {name} panics on {bytes:02x?}");
        }
    }
}
