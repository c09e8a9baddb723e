//! The static Huffman code of RFC 7541, appendix B, for HPACK and QPACK.
//!
//! The code is canonical: codes and decoding tables are computed at compile time from the lengths below.
//! Decoding looks up 12 bits at a time, and one entry has up to two symbols: those of ordinary header fields
//! have 5 to 8 bits. (13 bits are 10 % faster, but their 32 kB fill a whole first-level cache.) Longer codes
//! are compared with the last code of each length.

/// Why bytes are not a valid string in this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HuffmanError {
    /// The string contains the end-of-string symbol (RFC 7541, section 5.2).
    #[error("a Huffman string contains the end-of-string symbol")]
    EndOfString,
    /// The padding is longer than 7 bits or not all ones (RFC 7541, section 5.2).
    #[error("the padding of a Huffman string is not 0 to 7 bits of ones")]
    Padding,
}

/// Appends the decoded `input` to `output`, which an error leaves unchanged.
///
/// # Errors
/// [`HuffmanError`], as RFC 7541, section 5.2 requires.
pub fn decode(input: &[u8], output: &mut Vec<u8>) -> Result<(), HuffmanError> {
    let start = output.len();
    // The shortest code has 5 bits; two more bytes let the loop store pairs unconditionally.
    output.resize(start + input.len() * 8 / 5 + 2, 0);
    match decode_into(input, &mut output[start..]) {
        Ok(length) => {
            output.truncate(start + length);
            Ok(())
        }
        Err(error) => {
            output.truncate(start);
            Err(error)
        }
    }
}

/// Appends the code of `input` to `output`, padded with ones to a whole byte.
pub fn encode(input: &[u8], output: &mut Vec<u8>) {
    let mut pending = 0u64;
    let mut pending_bits = 0u32;
    for &byte in input {
        let symbol = usize::from(byte);
        let length = u32::from(LENGTHS[symbol]);
        pending = (pending << length) | u64::from(CODES[symbol]);
        pending_bits += length;
        if pending_bits >= 32 {
            pending_bits -= 32;
            let word = (pending >> pending_bits) & 0xffff_ffff;
            output.extend_from_slice(&word.to_be_bytes()[4..]);
        }
    }
    if pending_bits > 0 {
        let padding = (8 - pending_bits % 8) % 8;
        let padded = (pending << padding) | ((1 << padding) - 1);
        let bytes = ((pending_bits + padding) / 8) as usize;
        output.extend_from_slice(&padded.to_be_bytes()[8 - bytes..]);
    }
}

/// The number of bytes that [`encode`] appends.
pub fn encoded_len(input: &[u8]) -> usize {
    let bits: usize = input.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Decodes into `output`, which has room for the longest result and two more bytes; returns the length of the
/// result.
fn decode_into(input: &[u8], output: &mut [u8]) -> Result<usize, HuffmanError> {
    let mut reader = BitReader { input, position: 0, bits: 0, count: 0 };
    let mut length = 0;
    loop {
        reader.refill();
        while reader.count >= TABLE_BITS {
            let entry = reader.look_up();
            if entry.symbols() > 0 {
                // Both bytes are stored; one that is not a symbol is overwritten or cut off.
                output[length..length + 2].copy_from_slice(&entry.bytes());
                length += entry.symbols();
                reader.consume(entry.bits());
            } else if reader.long_length() <= reader.count {
                output[length] = reader.take_long()?;
                length += 1;
            } else {
                break;
            }
        }
        if reader.position == input.len() {
            break;
        }
    }
    // Fewer bits than an index remain, or an incomplete code.
    loop {
        let entry = reader.look_up();
        if entry.symbols() == 0 || entry.first_bits() > reader.count {
            break;
        }
        output[length] = entry.bytes()[0];
        length += 1;
        reader.consume(entry.first_bits());
    }
    let all_ones = reader.bits | (u64::MAX >> reader.count) == u64::MAX;
    if reader.count < 8 && all_ones { Ok(length) } else { Err(HuffmanError::Padding) }
}

/// The unread bits, left-aligned in a word.
struct BitReader<'a> {
    input: &'a [u8],
    position: usize,
    bits: u64,
    count: u32,
}

impl BitReader<'_> {
    /// Fills up to at least 56 bits, or with all remaining bits.
    #[inline]
    fn refill(&mut self) {
        if let Some(word) = self.input[self.position..].first_chunk::<8>() {
            self.bits |= u64::from_be_bytes(*word) >> self.count;
            let taken = (63 - self.count) >> 3;
            self.position += taken as usize;
            self.count += taken * 8;
            // Bits beyond `count` will be read again, so they are cleared.
            self.bits &= !(u64::MAX >> self.count);
            return;
        }
        while self.count <= 56
            && let Some(&byte) = self.input.get(self.position)
        {
            self.bits |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.position += 1;
        }
    }

    #[inline]
    fn look_up(&self) -> Entry {
        TABLE[(self.bits >> (64 - TABLE_BITS)) as usize]
    }

    #[inline]
    fn consume(&mut self, bits: u32) {
        self.bits <<= bits;
        self.count -= bits;
    }

    /// The length of the next code, which is longer than a table index; missing bits are zeros.
    fn long_length(&self) -> u32 {
        let code = self.bits >> 34;
        let mut length = TABLE_BITS + 1;
        while length < 30 && code >= u64::from(CANONICAL.end[length as usize]) {
            length += 1;
        }
        length
    }

    /// Takes a code longer than a table index.
    fn take_long(&mut self) -> Result<u8, HuffmanError> {
        let length = self.long_length();
        let code = self.bits >> (64 - length);
        let offset = (code - u64::from(CANONICAL.first_code[length as usize])) & 0xffff;
        let index = usize::from(CANONICAL.first_index[length as usize]) + offset as usize;
        self.consume(length);
        u8::try_from(CANONICAL.order[index]).map_err(|_| HuffmanError::EndOfString)
    }
}

const TABLE_BITS: u32 = 12;

/// One entry of the decoding table, in one word: the bytes of two symbols, the bits of both codes, the bits
/// of the first, and the number of symbols: 0 if the code is longer than the index.
#[derive(Clone, Copy)]
struct Entry(u32);

impl Entry {
    const fn new(bytes: [u8; 2], bits: u32, first_bits: u32, symbols: u32) -> Self {
        Entry(u16::from_le_bytes(bytes) as u32 | bits << 16 | first_bits << 21 | symbols << 26)
    }

    #[inline]
    const fn bytes(self) -> [u8; 2] {
        [(self.0 & 0xff) as u8, (self.0 >> 8 & 0xff) as u8]
    }

    #[inline]
    const fn bits(self) -> u32 {
        self.0 >> 16 & 0x1f
    }

    #[inline]
    const fn first_bits(self) -> u32 {
        self.0 >> 21 & 0x1f
    }

    #[inline]
    const fn symbols(self) -> usize {
        (self.0 >> 26) as usize
    }
}

/// The order of the canonical code: by length, then by symbol.
struct Canonical {
    order: [u16; 257],
    /// By length: the index of its first symbol in `order`.
    first_index: [u16; 31],
    /// By length: its first code.
    first_code: [u32; 31],
    /// By length: the first code beyond it, left-aligned to 30 bits.
    end: [u32; 31],
}

/// The length in bits of each symbol's code; 256 is the end of string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26, 30,
];

static CANONICAL: Canonical = canonical();
static CODES: [u32; 257] = codes();
static TABLE: [Entry; 1 << TABLE_BITS] = table();

const fn canonical() -> Canonical {
    let mut result = Canonical { order: [0; 257], first_index: [0; 31], first_code: [0; 31], end: [0; 31] };
    let mut index = 0u16;
    let mut code = 0u32;
    let mut length = 1;
    while length <= 30 {
        code <<= 1;
        result.first_index[length] = index;
        result.first_code[length] = code;
        let mut symbol = 0u16;
        while symbol < 257 {
            if LENGTHS[symbol as usize] as usize == length {
                result.order[index as usize] = symbol;
                index += 1;
                code += 1;
            }
            symbol += 1;
        }
        result.end[length] = code << (30 - length);
        length += 1;
    }
    result
}

const fn codes() -> [u32; 257] {
    let canonical = canonical();
    let mut codes = [0; 257];
    let mut length = 1;
    let mut index = 0u16;
    while length <= 30 {
        let mut code = canonical.first_code[length];
        while index < 257 && LENGTHS[canonical.order[index as usize] as usize] as usize == length {
            codes[canonical.order[index as usize] as usize] = code;
            code += 1;
            index += 1;
        }
        length += 1;
    }
    codes
}

const fn table() -> [Entry; 1 << TABLE_BITS] {
    let mut table = [Entry::new([0; 2], 0, 0, 0); 1 << TABLE_BITS];
    let canonical = canonical();
    let codes = codes();
    // First symbols: each fills the indices that start with its code.
    let mut position = 0;
    while position < 257 {
        let symbol = canonical.order[position];
        let length = LENGTHS[symbol as usize] as u32;
        if length > TABLE_BITS {
            break;
        }
        let shift = TABLE_BITS - length;
        let begin = (codes[symbol as usize] << shift) as usize;
        let mut offset = 0;
        while offset < 1 << shift {
            table[begin + offset] = Entry::new([(symbol & 0xff) as u8, 0], length, length, 1);
            offset += 1;
        }
        position += 1;
    }
    // Second symbols: those that are complete within the index.
    let singles = table;
    let mut index = 0;
    while index < 1 << TABLE_BITS {
        let entry = singles[index];
        if entry.symbols() == 1 {
            let next = singles[(index << entry.bits()) & ((1 << TABLE_BITS) - 1)];
            let bits = entry.bits() + next.bits();
            if next.symbols() == 1 && bits <= TABLE_BITS {
                table[index] = Entry::new([entry.bytes()[0], next.bytes()[0]], bits, entry.bits(), 2);
            }
        }
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut output = b"before".to_vec();
        let result = decode(input, &mut output);
        assert_eq!(&output[..6], b"before");
        result.map(|()| output.split_off(6))
    }

    fn encoded(input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        encode(input, &mut output);
        output
    }

    #[test]
    fn the_code_is_complete() {
        let sum: u64 = LENGTHS.iter().map(|&length| 1u64 << (30 - length)).sum();
        assert_eq!(sum, 1 << 30);
        assert_eq!(
            (CODES[0], CODES[usize::from(b' ')], CODES[255], CODES[256]),
            (0x1ff8, 0x14, 0x3ff_ffee, 0x3fff_ffff)
        );
    }

    #[test]
    fn strings_of_appendix_c_of_rfc_7541() {
        let vectors: [(&str, &[u8]); 4] = [
            ("www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (text, code) in vectors {
            assert_eq!(encoded(text.as_bytes()), code);
            assert_eq!(decoded(code).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn every_single_byte_and_every_pair_comes_back() {
        for first in 0..=255u8 {
            assert_eq!(decoded(&encoded(&[first])).unwrap(), [first]);
            for second in 0..=255u8 {
                let pair = [first, second, first];
                assert_eq!(decoded(&encoded(&pair)).unwrap(), pair);
            }
        }
    }

    #[test]
    fn bad_padding_and_end_of_string_are_refused() {
        assert_eq!(decoded(&[0xff]), Err(HuffmanError::Padding), "8 bits of padding");
        assert_eq!(decoded(&[0x1f, 0xff]), Err(HuffmanError::Padding), "'a' and 11 bits of padding");
        assert_eq!(decoded(&[0x18]), Err(HuffmanError::Padding), "'a' and zeros");
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(HuffmanError::EndOfString));
        assert_eq!(decoded(&[0xff; 40]), Err(HuffmanError::EndOfString));
        assert_eq!(decoded(&[0xff, 0xff, 0xf8]), Err(HuffmanError::Padding), "a long code cut short");
        assert_eq!(decoded(&[]), Ok(vec![]));
        assert_eq!(decoded(&[0x1f]), Ok(vec![b'a']));
    }

    /// A reference decoder: bit by bit against the list of codes.
    fn slow_decode(input: &[u8]) -> Result<Vec<u8>, ()> {
        let (mut output, mut code, mut length) = (Vec::new(), 0u32, 0u8);
        for bit in input.iter().flat_map(|byte| (0..8).rev().map(move |shift| byte >> shift & 1)) {
            code = code << 1 | u32::from(bit);
            length += 1;
            if let Some(symbol) = (0..257).find(|&s| LENGTHS[s] == length && CODES[s] == code) {
                output.push(u8::try_from(symbol).map_err(|_| ())?);
                (code, length) = (0, 0);
            }
        }
        if length < 8 && code == (1 << length) - 1 { Ok(output) } else { Err(()) }
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            let code = encoded(&input);
            prop_assert_eq!(code.len(), encoded_len(&input));
            prop_assert_eq!(decoded(&code).unwrap(), input);
        }

        #[test]
        fn text_comes_back(input in "[ -~]{0,300}") {
            prop_assert_eq!(decoded(&encoded(input.as_bytes())).unwrap(), input.as_bytes());
        }

        #[test]
        fn any_bytes_decode_as_with_the_plain_decoder(input in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decoded(&input).map_err(|_| ()), slow_decode(&input));
        }
    }
}
