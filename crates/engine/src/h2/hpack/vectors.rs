//! The examples of RFC 7541, appendix C, in both directions, and the rules of decoding.

use proptest::prelude::*;

use super::*;
use crate::huffman::HuffmanError;
use crate::prefix_integer::PrefixIntegerError;

type Fields = Vec<(String, String)>;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn fields(text: &str) -> Fields {
    let pair = |line: &str| {
        let (name, value) = line.trim().rsplit_once(" = ").unwrap();
        (name.to_owned(), value.to_owned())
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |field| fields.push((text(field.name), text(field.value))))?;
    Ok(fields)
}

fn encode(encoder: &mut Encoder, fields: &Fields) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.field(name.as_bytes(), value.as_bytes(), Indexing::Incremental, &mut block);
    }
    block
}

const REQUESTS: [&str; 3] = [
    ":method = GET
     :scheme = http
     :path = /
     :authority = www.example.com",
    ":method = GET
     :scheme = http
     :path = /
     :authority = www.example.com
     cache-control = no-cache",
    ":method = GET
     :scheme = https
     :path = /index.html
     :authority = www.example.com
     custom-key = custom-value",
];

const RESPONSES: [&str; 3] = [
    ":status = 302
     cache-control = private
     date = Mon, 21 Oct 2013 20:13:21 GMT
     location = https://www.example.com",
    ":status = 307
     cache-control = private
     date = Mon, 21 Oct 2013 20:13:21 GMT
     location = https://www.example.com",
    ":status = 200
     cache-control = private
     date = Mon, 21 Oct 2013 20:13:22 GMT
     location = https://www.example.com
     content-encoding = gzip
     set-cookie = foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];

/// Blocks of one connection, each with the fields and with the table's size behind it.
fn check_both_ways(table: usize, huffman: bool, texts: &[&str], blocks: [(&str, usize); 3]) {
    let mut decoder = Decoder::new(table);
    let mut encoder = if huffman { Encoder::new(table) } else { Encoder::without_huffman(table) };
    for (text, (hex, size)) in texts.iter().zip(blocks) {
        let (fields, block) = (fields(text), bytes(hex));
        assert_eq!(decode(&mut decoder, &block).unwrap(), fields);
        assert_eq!(decoder.table_size(), size);
        assert_eq!(encode(&mut encoder, &fields), block, "{text}");
    }
}

#[test]
fn c_2_single_fields() {
    let cases = [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
            55,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path", "/sample/path", 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password", "secret", 0),
        ("82", ":method", "GET", 0),
    ];
    let indexing = [Indexing::Incremental, Indexing::Without, Indexing::Never, Indexing::Incremental];
    for ((hex, name, value, size), indexing) in cases.into_iter().zip(indexing) {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decode(&mut decoder, &bytes(hex)).unwrap(), [(name.to_owned(), value.to_owned())]);
        assert_eq!(decoder.table_size(), size);
        let mut block = Vec::new();
        Encoder::without_huffman(4096).field(name.as_bytes(), value.as_bytes(), indexing, &mut block);
        assert_eq!(block, bytes(hex));
    }
}

#[test]
fn c_3_requests_without_huffman() {
    let blocks = [
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", 57),
        ("8286 84be 5808 6e6f 2d63 6163 6865", 110),
        ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", 164),
    ];
    check_both_ways(4096, false, &REQUESTS, blocks);
}

#[test]
fn c_4_requests_with_huffman() {
    let blocks = [
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", 57),
        ("8286 84be 5886 a8eb 1064 9cbf", 110),
        ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", 164),
    ];
    check_both_ways(4096, true, &REQUESTS, blocks);
}

#[test]
fn c_5_responses_without_huffman() {
    let blocks = [
        (
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
             3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            222,
        ),
        ("4803 3330 37c1 c0bf", 222),
        (
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
             7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
             6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
            215,
        ),
    ];
    check_both_ways(256, false, &RESPONSES, blocks);
}

#[test]
fn c_6_responses_with_huffman() {
    let blocks = [
        (
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
             1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            222,
        ),
        ("4883 640e ffc1 c0bf", 222),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
             e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            215,
        ),
    ];
    check_both_ways(256, true, &RESPONSES, blocks);
}

#[test]
fn broken_blocks_are_refused_by_name() {
    let cases = [
        ("80", HpackError::Index { index: 0, entries: 61 }),
        ("be", HpackError::Index { index: 62, entries: 61 }),
        ("7e 00", HpackError::Index { index: 62, entries: 61 }),
        ("ff", HpackError::Integer(PrefixIntegerError::Incomplete)),
        ("ff ff ff ff ff ff ff ff ff ff ff 7f", HpackError::Integer(PrefixIntegerError::TooLarge)),
        ("40 05 61 62", HpackError::StringTooLong { length: 5, left: 2 }),
        ("40", HpackError::Integer(PrefixIntegerError::Incomplete)),
        ("40 81 ff 00", HpackError::Huffman(HuffmanError::Padding)),
        ("40 84 ff ff ff ff 00", HpackError::Huffman(HuffmanError::EndOfString)),
        ("3f e2 1f", HpackError::SizeTooLarge { size: 4097, limit: 4096 }),
        ("82 20", HpackError::SizeLate),
    ];
    for (hex, error) in cases {
        assert_eq!(decode(&mut Decoder::new(4096), &bytes(hex)), Err(error), "{hex}");
    }
}

#[test]
fn a_lowered_limit_must_be_acknowledged_by_an_update() {
    let mut decoder = Decoder::new(4096);
    decoder.set_limit(100);
    assert_eq!(decode(&mut decoder, &bytes("82")), Err(HpackError::SizeMissing));
    assert_eq!(decode(&mut decoder, &bytes("20 3f 45 82")).unwrap().len(), 1, "0, then 100");
    assert_eq!(decode(&mut decoder, &bytes("82")).unwrap().len(), 1);
    assert_eq!(
        decode(&mut decoder, &bytes("3f 46")),
        Err(HpackError::SizeTooLarge { size: 101, limit: 100 })
    );
}

#[test]
fn the_encoder_sends_the_smallest_and_the_last_size() {
    let mut encoder = Encoder::new(4096);
    let request = fields("x-a = 1");
    encode(&mut encoder, &request);
    let before = encoder.generation();
    encoder.set_peer_limit(0);
    encoder.set_peer_limit(100);
    assert_ne!(encoder.generation(), before, "blocks made before must not be repeated");
    let block = encode(&mut encoder, &request);
    assert_eq!(block[..3], [0x20, 0x3f, 0x45], "0, then 100");
    assert_eq!(block[3], 0x40, "the table was emptied: the field comes in full again");
    encoder.set_peer_limit(100);
    assert_eq!(encode(&mut encoder, &request), [0xbe]);
}

proptest! {
    /// What the encoder writes the decoder reads, over blocks, evictions and changes of size.
    #[test]
    fn blocks_come_back(
        blocks in proptest::collection::vec(
            (proptest::collection::vec(("[a-d]{1,3}|content-type|etag|:path", "[ -~]{0,40}"), 0..12), 0u32..40),
            1..40,
        ),
        huffman in any::<bool>(),
    ) {
        let mut encoder = if huffman { Encoder::new(4096) } else { Encoder::without_huffman(4096) };
        let mut decoder = Decoder::new(4096);
        for (fields, resize) in blocks {
            if resize < 10 {
                encoder.set_peer_limit(resize as usize * 60);
            }
            let block = encode(&mut encoder, &fields);
            prop_assert_eq!(decode(&mut decoder, &block), Ok(fields));
        }
    }

    /// No input makes the decoder panic.
    #[test]
    fn any_bytes_decode_or_are_refused(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..8)) {
        let mut decoder = Decoder::new(4096);
        for block in blocks {
            if decode(&mut decoder, &block).is_err() {
                break;
            }
        }
    }
}
