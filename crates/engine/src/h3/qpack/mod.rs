//! QPACK (RFC 9204): field sections to bytes and back.
//!
//! The dynamic table's capacity is 0 in both directions, as the SETTINGS say: every section refers to the static
//! table alone, no section can block, and the instruction streams carry next to nothing.

mod decoder;
mod encoder;
mod static_table;

pub use decoder::Decoder;
pub use encoder::{DecoderFeedback, encode_field, encode_prefix};

use crate::huffman::HuffmanError;
use crate::prefix_integer::PrefixIntegerError;

/// Why a field section or an instruction cannot be read (RFC 9204, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QpackError {
    /// An integer.
    #[error("{0}")]
    Integer(#[from] PrefixIntegerError),
    /// A Huffman-coded string.
    #[error("{0}")]
    Huffman(#[from] HuffmanError),
    /// It ends within a string.
    #[error("found {found} bytes of a string, expected {expected}")]
    ShortString {
        /// Bytes there are.
        found: usize,
        /// Bytes announced.
        expected: u64,
    },
    /// An index beyond the static table.
    #[error("found static index {0}, expected at most 98")]
    StaticIndex(u64),
    /// A reference to the dynamic table, whose capacity is 0.
    #[error("found a reference to the dynamic table, expected none: its capacity is 0")]
    DynamicReference,
    /// An instruction that changes the dynamic table, whose capacity is 0.
    #[error(
        "found the instruction byte {0:#04x}, expected none that needs a dynamic table: its capacity is 0"
    )]
    Instruction(u8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn decode(section: &[u8]) -> Result<Fields, QpackError> {
        let mut fields = Fields::new();
        Decoder::default().section(section, |name, value| fields.push((name.to_vec(), value.to_vec())))?;
        Ok(fields)
    }

    fn field(name: &str, value: &str) -> (Vec<u8>, Vec<u8>) {
        (name.as_bytes().to_vec(), value.as_bytes().to_vec())
    }

    #[test]
    fn reads_the_literal_with_a_static_name_of_appendix_b_1() {
        let section =
            [0x00, 0x00, 0x51, 0x0b, 0x2f, 0x69, 0x6e, 0x64, 0x65, 0x78, 0x2e, 0x68, 0x74, 0x6d, 0x6c];
        assert_eq!(decode(&section), Ok(vec![field(":path", "/index.html")]));
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
    fn refuses_what_the_static_table_cannot_give() {
        let cases: [(&[u8], QpackError); 9] = [
            (&[0x00, 0x00, 0xff, 0x24], QpackError::StaticIndex(99)),
            (&[0x00, 0x00, 0x80], QpackError::DynamicReference),
            (&[0x00, 0x00, 0x40, 0x00], QpackError::DynamicReference),
            (&[0x00, 0x00, 0x10], QpackError::DynamicReference),
            (&[0x00, 0x00, 0x00, 0x00], QpackError::DynamicReference),
            (&[0x02, 0x00, 0xd1], QpackError::DynamicReference),
            (&[0x00, 0x80, 0xd1], QpackError::DynamicReference),
            (&[0x00], QpackError::Integer(PrefixIntegerError::Incomplete)),
            (&[0x00, 0x00, 0x51, 0x0b, 0x2f], QpackError::ShortString { found: 1, expected: 11 }),
        ];
        for (section, error) in cases {
            assert_eq!(decode(section), Err(error), "{section:02x?}");
        }
    }

    #[test]
    fn instruction_streams_carry_only_what_capacity_0_allows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.handle_instructions(&[0x20, 0x20]), Ok(()));
        assert_eq!(decoder.handle_instructions(&[0x3f]), Err(QpackError::Instruction(0x3f)));
        let mut feedback = DecoderFeedback::default();
        assert_eq!(feedback.handle_instructions(&[0x44, 0x7f]), Ok(()));
        assert_eq!(feedback.handle_instructions(&[0x80]), Ok(()), "continues a stream cancellation");
        assert_eq!(feedback.handle_instructions(&[0x01, 0x45]), Ok(()));
        assert_eq!(feedback.handle_instructions(&[0x80]), Err(QpackError::Instruction(0x80)));
        assert_eq!(feedback.handle_instructions(&[0x01]), Err(QpackError::Instruction(0x01)));
    }

    proptest! {
        #[test]
        fn fields_survive_the_way_there_and_back(
            fields in prop::collection::vec(("[a-z:][a-z0-9-]{0,20}", prop::collection::vec(any::<u8>(), 0..300)), 0..20)
        ) {
            let fields: Fields = fields.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            let mut section = Vec::new();
            encode_prefix(&mut section);
            for (name, value) in &fields {
                encode_field(name, value, &mut section);
            }
            prop_assert_eq!(decode(&section), Ok(fields));
        }

        #[test]
        fn any_bytes_are_read_or_refused(section in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut total = 0;
            let _ = Decoder::default().section(&section, |name, value| total += name.len() + value.len());
            prop_assert!(total <= section.len() * 64, "a byte gives at most one entry of the static table");
        }
    }
}
