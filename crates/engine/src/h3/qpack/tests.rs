//! The vectors of RFC 9204, appendix B, hostile input, and both halves against each other.

use proptest::prelude::*;

use super::*;
use crate::prefix_integer::PrefixIntegerError;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn field(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// What a decoder makes of a section; `None` where it is blocked.
fn read(decoder: &mut Decoder, stream: u64, section: &[u8]) -> Result<Option<Fields>, QpackError> {
    let mut fields = Fields::new();
    let end = decoder.section(stream, section, |name, value| fields.push((name.to_vec(), value.to_vec())))?;
    Ok((end != Section::Blocked).then_some(fields))
}

fn decode(section: &[u8]) -> Result<Option<Fields>, QpackError> {
    read(&mut Decoder::new(0, 0), 0, section)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn feedback(decoder: &mut Decoder) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.poll_feedback(&mut out);
    out
}

fn instructions(all: &[EncoderInstruction<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|instruction| instruction.write(&mut out));
    out
}

const CAPACITY: &str = "3fbd01";
const AUTHORITY: &str = "c00f 7777 772e 6578 616d 706c 652e 636f 6d";
const PATH: &str = "c10c 2f73 616d 706c 652f 7061 7468";
const CUSTOM: &str = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
const DUPLICATE: &str = "02";
const CUSTOM_2: &str = "810d 6375 7374 6f6d 2d76 616c 7565 32";

#[test]
fn reads_the_examples_of_appendix_b() {
    let mut decoder = Decoder::new(220, 1);
    let b1 = hex("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(read(&mut decoder, 0, &b1), Ok(Some(vec![field(":path", "/index.html")])));
    assert_eq!(feedback(&mut decoder), [0_u8; 0]);
    // B.2, the section first: it waits for both insertions.
    let b2 = hex("0381 10 11");
    assert_eq!(read(&mut decoder, 4, &b2), Ok(None));
    decoder.handle_instructions(&hex(CAPACITY)).unwrap();
    decoder.handle_instructions(&hex(AUTHORITY)).unwrap();
    assert_eq!(decoder.poll_unblocked(), None);
    decoder.handle_instructions(&hex(PATH)).unwrap();
    assert_eq!((decoder.inserts(), decoder.table_size()), (2, 106));
    assert_eq!(decoder.poll_unblocked(), Some(4));
    let expected = vec![field(":authority", "www.example.com"), field(":path", "/sample/path")];
    assert_eq!(read(&mut decoder, 4, &b2), Ok(Some(expected)));
    assert_eq!(feedback(&mut decoder), hex("84"));
    // B.3
    decoder.handle_instructions(&hex(CUSTOM)).unwrap();
    assert_eq!((feedback(&mut decoder), decoder.table_size()), (hex("01"), 160));
    // B.4
    decoder.handle_instructions(&hex(DUPLICATE)).unwrap();
    assert_eq!(decoder.table_size(), 217);
    let b4 = hex("0500 80 c1 81");
    let expected = vec![
        field(":authority", "www.example.com"),
        field(":path", "/"),
        field("custom-key", "custom-value"),
    ];
    assert_eq!(read(&mut decoder, 8, &b4), Ok(Some(expected)));
    decoder.cancel(8);
    assert_eq!(feedback(&mut decoder), hex("88 48"), "read here, and given up");
    // B.5
    decoder.handle_instructions(&hex(CUSTOM_2)).unwrap();
    assert_eq!((decoder.inserts(), decoder.table_size()), (5, 215));
    assert_eq!(read(&mut decoder, 12, &hex("0600 80")), Ok(Some(vec![field("custom-key", "custom-value2")])));
    assert_eq!(read(&mut decoder, 12, &hex("0600 84")), Err(QpackError::DynamicReference), "evicted");
}

#[test]
fn writes_the_examples_of_appendix_b() {
    use EncoderInstruction as Say;
    let value = Text::plain(b"www.example.com");
    let path = Text::plain(b"/sample/path");
    let (name, custom) = (Text::plain(b"custom-key"), Text::plain(b"custom-value"));
    let custom_2 = Text::plain(b"custom-value2");
    let vectors = [
        (Say::SetCapacity(220), CAPACITY),
        (Say::InsertWithStaticName { index: 0, value }, AUTHORITY),
        (Say::InsertWithStaticName { index: 1, value: path }, PATH),
        (Say::InsertWithLiteralName { name, value: custom }, CUSTOM),
        (Say::Duplicate(2), DUPLICATE),
        (Say::InsertWithDynamicName { index: 1, value: custom_2 }, CUSTOM_2),
    ];
    for (instruction, bytes) in vectors {
        let bytes = hex(bytes);
        assert_eq!(instructions(std::slice::from_ref(&instruction)), bytes);
        assert_eq!(EncoderInstruction::parse(&bytes, 220), Ok(Some((instruction, bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(EncoderInstruction::parse(&bytes[..cut], 220), Ok(None), "{cut} of {bytes:02x?}");
        }
    }
    let said = [
        (DecoderInstruction::SectionAcknowledgment(4), "84"),
        (DecoderInstruction::InsertCountIncrement(1), "01"),
        (DecoderInstruction::StreamCancellation(8), "48"),
    ];
    for (instruction, bytes) in said {
        let mut out = Vec::new();
        instruction.write(&mut out);
        assert_eq!(out, hex(bytes));
        assert_eq!(DecoderInstruction::parse(&out), Ok(Some((instruction, 1))));
    }
    for (prefix, bytes) in [
        (Prefix { required_inserts: 0, base: 0 }, "0000"),
        (Prefix { required_inserts: 2, base: 0 }, "0381"),
        (Prefix { required_inserts: 4, base: 4 }, "0500"),
    ] {
        let mut out = Vec::new();
        prefix.write(220 / 32, &mut out);
        assert_eq!(out, hex(bytes));
        assert_eq!(Prefix::read(&out, &mut 0, 220 / 32, prefix.required_inserts), Ok(prefix));
    }
    let mut section = Vec::new();
    let line = [(&b":path"[..], &b"/index.html"[..], Indexing::Without)];
    assert_eq!(Encoder::new(0, 0).encode(0, line, &mut section), None);
    assert_eq!(decode(&section), Ok(Some(vec![field(":path", "/index.html")])));
}

#[test]
fn the_encoder_does_what_appendix_b_2_does() {
    let mut encoder = Encoder::new(220, 1);
    encoder.set_peer_limits(220, 1);
    let fields = [
        (&b":authority"[..], &b"www.example.com"[..], Indexing::Insert),
        (&b":path"[..], &b"/sample/path"[..], Indexing::Insert),
    ];
    let mut section = Vec::new();
    let references = encoder.encode(4, fields, &mut section).unwrap();
    assert_eq!(section, hex("0381 10 11"));
    assert_eq!(references, References { required_inserts: 2, oldest: 0 });
    encoder.track(4, references);
    encoder.handle_feedback(&hex("84")).unwrap();
    assert_eq!(encoder.inserts(), (2, 2));
    section.clear();
    encoder.encode(8, fields, &mut section).unwrap();
    assert_eq!(section, hex("0300 81 80"), "now relative to the newest");
}

#[test]
fn without_blocking_only_what_is_acknowledged_is_used() {
    let (mut encoder, mut decoder) = (Encoder::new(4096, 0), Decoder::new(4096, 0));
    encoder.set_peer_limits(4096, 100);
    let fields = [(&b"user-agent"[..], &b"h123"[..], Indexing::Insert), (b"x-once", b"1", Indexing::Without)];
    let mut section = Vec::new();
    assert_eq!(encoder.encode(0, fields, &mut section), None);
    let long = section.len();
    assert_eq!(read(&mut decoder, 0, &section).unwrap().unwrap().len(), 2);
    let mut said = Vec::new();
    encoder.poll_instructions(&mut said);
    decoder.handle_instructions(&said).unwrap();
    encoder.handle_feedback(&feedback(&mut decoder)).unwrap();
    let before = encoder.generation();
    section.clear();
    let references = encoder.encode(4, fields, &mut section).unwrap();
    encoder.track(4, references);
    assert!(section.len() < long && encoder.generation() == before, "written once more, and nothing new");
    assert_eq!(read(&mut decoder, 4, &section).unwrap().unwrap().len(), 2);
    encoder.handle_feedback(&feedback(&mut decoder)).unwrap();
}

#[test]
fn entries_that_are_referred_to_are_not_evicted() {
    let mut encoder = Encoder::new(100, 0);
    encoder.set_peer_limits(100, 0);
    let mut section = Vec::new();
    let mut encode = |encoder: &mut Encoder, stream, value: &str| {
        section.clear();
        encoder.encode(stream, [(&b"x"[..], value.as_bytes(), Indexing::Insert)], &mut section)
    };
    encode(&mut encoder, 0, "one");
    encode(&mut encoder, 0, "two");
    assert_eq!(encoder.inserts(), (2, 0));
    encode(&mut encoder, 0, "three");
    assert_eq!(encoder.inserts(), (2, 0), "unacknowledged entries stay");
    encoder.handle_feedback(&[0x02]).unwrap();
    let references = encode(&mut encoder, 4, "one").unwrap();
    encoder.track(4, references);
    encode(&mut encoder, 8, "three");
    assert_eq!(encoder.inserts(), (2, 2), "a section on its way refers to it");
    encoder.handle_feedback(&[0x44]).unwrap();
    encode(&mut encoder, 8, "three");
    assert_eq!(encoder.inserts(), (3, 2), "the stream was cancelled");
}

#[test]
fn writes_what_the_tables_allow_shortest() {
    let mut section = Vec::new();
    encode_prefix(&mut section);
    encode_field(b":method", b"GET", &mut section);
    assert_eq!(section, [0, 0, 0xc0 | 17]);
    encode_field(b"x-frame-options", b"sameorigin", &mut section);
    assert_eq!(section[3..], [0xff, 98 - 63]);
    section.truncate(2);
    encode_field(b":path", b"/1", &mut section);
    assert_eq!(section[2], 0x51, "the name comes from the static table");
}

#[test]
fn sections_that_no_table_can_give_are_refused() {
    let cases: [(&[u8], QpackError); 10] = [
        (&[0x00, 0x00, 0xff, 0x24], QpackError::StaticIndex(99)),
        (&[0x00, 0x00, 0x80], QpackError::DynamicReference),
        (&[0x00, 0x00, 0x40, 0x00], QpackError::DynamicReference),
        (&[0x00, 0x00, 0x10], QpackError::DynamicReference),
        (&[0x00, 0x00, 0x00, 0x00], QpackError::DynamicReference),
        (&[0x02, 0x00, 0xd1], QpackError::RequiredInserts(2)),
        (&[0x00, 0x80, 0xd1], QpackError::Base),
        (&[0x00], QpackError::Integer(PrefixIntegerError::Incomplete)),
        (&[0x00, 0x00, 0x51, 0x0b, 0x2f], QpackError::ShortString { found: 1, expected: 11 }),
        (
            &[0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            QpackError::Integer(PrefixIntegerError::TooLarge),
        ),
    ];
    for (section, error) in cases {
        assert_eq!(decode(section), Err(error), "{section:02x?}");
    }
}

#[test]
fn sections_that_lie_about_the_dynamic_table_are_refused() {
    let mut decoder = Decoder::new(220, 1);
    decoder.handle_instructions(&hex(CAPACITY)).unwrap();
    decoder.handle_instructions(&hex(AUTHORITY)).unwrap();
    let cases: [(&str, QpackError); 5] = [
        ("0200 81", QpackError::DynamicReference),
        ("0200 10", QpackError::DynamicReference),
        ("0201 bf ffff ffff ffff ff3f", QpackError::DynamicReference),
        ("0d00 80", QpackError::RequiredInserts(13)),
        ("0281 80", QpackError::Base),
    ];
    for (section, error) in cases {
        assert_eq!(read(&mut decoder, 0, &hex(section)), Err(error), "{section}");
    }
    assert_eq!(
        read(&mut decoder, 0, &hex("0280 10")),
        Ok(Some(vec![field(":authority", "www.example.com")]))
    );
    assert_eq!(read(&mut decoder, 4, &hex("0300 80")), Ok(None));
    assert_eq!(read(&mut decoder, 8, &hex("0300 80")), Err(QpackError::TooManyBlocked { limit: 1 }));
    decoder.cancel(4);
    assert_eq!(read(&mut decoder, 8, &hex("0300 80")), Ok(None), "a cancelled stream waits no more");
}

#[test]
fn instructions_that_break_the_table_are_refused() {
    let cases: [(&str, QpackError); 9] = [
        ("3fbe01", QpackError::Capacity { found: 221, limit: 220 }),
        ("3fbd01 00", QpackError::RelativeIndex { index: 0, entries: 0 }),
        ("3fbd01 8000", QpackError::RelativeIndex { index: 0, entries: 0 }),
        ("3fbd01 ff2400", QpackError::StaticIndex(99)),
        (AUTHORITY, QpackError::LargeEntry { found: 57, capacity: 0 }),
        ("3f09 c003 616263", QpackError::LargeEntry { found: 45, capacity: 40 }),
        ("3fbd01 c07f fa06", QpackError::LongString { found: 127 + 0x7a + (6 << 7), limit: 880 }),
        ("3fbd01 c081 ff", QpackError::Huffman(crate::huffman::HuffmanError::Padding)),
        ("3fff ffff ffff ffff ffff ff", QpackError::Integer(PrefixIntegerError::TooLarge)),
    ];
    for (instructions, error) in cases {
        let instructions = hex(instructions);
        assert_eq!(
            Decoder::new(220, 0).handle_instructions(&instructions),
            Err(error),
            "{instructions:02x?}"
        );
        let mut slow = Decoder::new(220, 0);
        let result = instructions.iter().try_for_each(|byte| slow.handle_instructions(&[*byte]));
        assert_eq!(result, Err(error), "byte by byte: {instructions:02x?}");
    }
    let mut none = Decoder::new(0, 0);
    assert_eq!(none.handle_instructions(&[0x20, 0x20]), Ok(()), "capacity 0 is all that capacity 0 allows");
    assert_eq!(none.handle_instructions(&[0x21]), Err(QpackError::Capacity { found: 1, limit: 0 }));
}

#[test]
fn feedback_about_nothing_is_refused() {
    let mut encoder = Encoder::new(0, 0);
    assert_eq!(encoder.handle_feedback(&[0x44, 0x7f]), Ok(()));
    assert_eq!(encoder.handle_feedback(&[0x80]), Ok(()), "continues a stream cancellation");
    assert_eq!(encoder.handle_feedback(&[0x01]), Ok(()), "ends it");
    assert_eq!(encoder.handle_feedback(&[0x01]), Err(QpackError::Increment { found: 1, limit: 0 }));
    assert_eq!(
        Encoder::new(0, 0).handle_feedback(&[0x00]),
        Err(QpackError::Increment { found: 0, limit: 0 })
    );
    assert_eq!(Encoder::new(0, 0).handle_feedback(&[0x80]), Err(QpackError::Acknowledgment(0)));
    assert_eq!(
        Encoder::new(0, 0).handle_feedback(&[0xff; 12]),
        Err(QpackError::Integer(PrefixIntegerError::TooLarge))
    );
}

/// A small world of fields, so that they repeat.
fn any_field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Indexing)> {
    let names = prop_oneof![
        Just(":path".to_owned()),
        Just("user-agent".to_owned()),
        Just("cookie".to_owned()),
        "x-[a-d]{1,2}",
    ];
    let values = prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff)], 0..40);
    let indexing = prop_oneof![4 => Just(Indexing::Insert), 1 => Just(Indexing::Without)];
    (names, values, indexing).prop_map(|(name, value, indexing)| (name.into_bytes(), value, indexing))
}

/// What happens next between an encoder and a decoder.
#[derive(Clone, Debug)]
enum Step {
    Encode(Vec<(Vec<u8>, Vec<u8>, Indexing)>),
    /// So many bytes of the encoder stream arrive.
    Instructions(usize),
    /// One of the sections under way arrives.
    Section(usize),
    /// So many bytes of the decoder stream arrive.
    Feedback(usize),
    /// A section under way is given up.
    Cancel(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop::collection::vec(any_field(), 0..6).prop_map(Step::Encode),
        3 => (1usize..60).prop_map(Step::Instructions),
        3 => any::<usize>().prop_map(Step::Section),
        2 => (1usize..9).prop_map(Step::Feedback),
        1 => any::<usize>().prop_map(Step::Cancel),
    ]
}

/// Both ends and what is on its way between them.
struct World {
    encoder: Encoder,
    decoder: Decoder,
    to_decoder: Vec<u8>,
    to_encoder: Vec<u8>,
    /// Stream, section, its fields.
    sections: Vec<(u64, Vec<u8>, Fields)>,
    waiting: Vec<(u64, Vec<u8>, Fields)>,
    next_stream: u64,
}

impl World {
    fn encode(&mut self, fields: &[(Vec<u8>, Vec<u8>, Indexing)]) {
        let stream = self.next_stream;
        self.next_stream += 4;
        let lines = fields.iter().map(|(name, value, indexing)| (&name[..], &value[..], *indexing));
        let mut section = Vec::new();
        if let Some(references) = self.encoder.encode(stream, lines, &mut section) {
            self.encoder.track(stream, references);
        }
        self.encoder.poll_instructions(&mut self.to_decoder);
        let fields = fields.iter().map(|(name, value, _)| (name.clone(), value.clone())).collect();
        self.sections.push((stream, section, fields));
    }

    fn deliver(&mut self, (stream, section, fields): (u64, Vec<u8>, Fields)) {
        match read(&mut self.decoder, stream, &section).unwrap() {
            Some(found) => assert_eq!(found, fields),
            None => self.waiting.push((stream, section, fields)),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Encode(fields) => self.encode(fields),
            Step::Instructions(bytes) => {
                let arrived: Vec<u8> = self.to_decoder.drain(..(*bytes).min(self.to_decoder.len())).collect();
                self.decoder.handle_instructions(&arrived).unwrap();
                while let Some(stream) = self.decoder.poll_unblocked() {
                    let at = self.waiting.iter().position(|(waits, ..)| *waits == stream).unwrap();
                    let section = self.waiting.remove(at);
                    self.deliver(section);
                }
            }
            Step::Section(which) if !self.sections.is_empty() => {
                let section = self.sections.remove(which % self.sections.len());
                self.deliver(section);
            }
            Step::Cancel(which) if !self.sections.is_empty() => {
                let (stream, ..) = self.sections.remove(which % self.sections.len());
                self.decoder.cancel(stream);
            }
            Step::Feedback(bytes) => {
                self.decoder.poll_feedback(&mut self.to_encoder);
                let arrived: Vec<u8> = self.to_encoder.drain(..(*bytes).min(self.to_encoder.len())).collect();
                self.encoder.handle_feedback(&arrived).unwrap();
            }
            Step::Section(_) | Step::Cancel(_) => {}
        }
    }
}

proptest! {
    /// In any order of arrival, every section decodes to its fields, and no more streams wait than allowed.
    #[test]
    fn sections_survive_any_order_of_delivery(
        steps in prop::collection::vec(any_step(), 0..150),
        capacity in prop_oneof![Just(0usize), 32usize..2000],
        blocked in 0usize..4,
    ) {
        let mut world = World {
            encoder: Encoder::new(1500, blocked),
            decoder: Decoder::new(capacity, blocked),
            to_decoder: Vec::new(),
            to_encoder: Vec::new(),
            sections: Vec::new(),
            waiting: Vec::new(),
            next_stream: 0,
        };
        world.encoder.set_peer_limits(capacity as u64, blocked as u64);
        for step in &steps {
            world.step(step);
        }
        world.step(&Step::Instructions(usize::MAX));
        while !world.sections.is_empty() {
            world.step(&Step::Section(0));
        }
        world.step(&Step::Feedback(usize::MAX));
        prop_assert!(world.waiting.is_empty() && world.decoder.blocked_streams() == 0);
        let (inserts, known) = world.encoder.inserts();
        prop_assert_eq!((inserts, known), (world.decoder.inserts(), inserts));
        prop_assert!(world.decoder.table_size() <= capacity);
    }

    #[test]
    fn fields_survive_without_a_table(
        fields in prop::collection::vec(("[a-z:][a-z0-9-]{0,20}", prop::collection::vec(any::<u8>(), 0..300)), 0..20)
    ) {
        let fields: Fields = fields.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
        let mut section = Vec::new();
        encode_prefix(&mut section);
        for (name, value) in &fields {
            encode_field(name, value, &mut section);
        }
        prop_assert_eq!(decode(&section), Ok(Some(fields)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        sections in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..4),
        instructions in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut decoder = Decoder::new(300, 2);
        let _ = decoder.handle_instructions(&[0x3f, 0xe1, 0x01]);
        let _ = decoder.handle_instructions(&instructions);
        for (stream, section) in (0..).zip(&sections) {
            let mut total = 0;
            let _ = decoder.section(stream, section, |name, value| total += name.len() + value.len());
            prop_assert!(total <= section.len() * 300, "a byte gives at most one entry");
        }
        let _ = Encoder::new(100, 1).handle_feedback(&instructions);
    }
}
