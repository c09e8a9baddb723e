//! Integers that start in the low bits of a byte (RFC 7541, section 5.1), for HPACK and QPACK.

/// Why an integer cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixIntegerError {
    /// The bytes end inside the integer.
    #[error("the bytes end inside an integer")]
    Incomplete,
    /// It is 2^62 or more, or its encoding is too long.
    #[error("an integer is 2^62 or more, or encoded in more than 10 bytes")]
    TooLarge,
}

/// Reads an integer with a prefix of `prefix_bits` (1 to 8) at `position`, and moves `position` to its end.
///
/// # Errors
/// [`PrefixIntegerError`]; `position` is unchanged then.
#[inline]
pub fn decode(input: &[u8], position: &mut usize, prefix_bits: u8) -> Result<u64, PrefixIntegerError> {
    let mask = 0xff >> (8 - prefix_bits);
    let first = *input.get(*position).ok_or(PrefixIntegerError::Incomplete)? & mask;
    if first < mask {
        *position += 1;
        return Ok(u64::from(first));
    }
    decode_continued(input, position, mask)
}

/// Reads the rest of an integer whose prefix is full.
fn decode_continued(input: &[u8], position: &mut usize, mask: u8) -> Result<u64, PrefixIntegerError> {
    let mut value = 0u64;
    for index in 0..9 {
        let byte = *input.get(*position + 1 + index).ok_or(PrefixIntegerError::Incomplete)?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let total = value + u64::from(mask);
            if total >= 1 << 62 {
                return Err(PrefixIntegerError::TooLarge);
            }
            *position += index + 2;
            return Ok(total);
        }
    }
    Err(PrefixIntegerError::TooLarge)
}

/// Appends `value` with a prefix of `prefix_bits` (1 to 8); `flags` are the bits above the prefix in the
/// first byte.
#[inline]
pub fn encode(value: u64, prefix_bits: u8, flags: u8, output: &mut Vec<u8>) {
    let mask = 0xff >> (8 - prefix_bits);
    let Some(mut rest) = value.checked_sub(u64::from(mask)) else {
        output.push(flags | (value & 0xff) as u8);
        return;
    };
    output.push(flags | mask);
    while rest >= 0x80 {
        output.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    output.push((rest & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_rfc_7541_c_1() {
        for (value, prefix, bytes) in
            [(10, 5, vec![0x0a]), (1337, 5, vec![0x1f, 0x9a, 0x0a]), (42, 8, vec![0x2a])]
        {
            let mut output = Vec::new();
            encode(value, prefix, 0, &mut output);
            assert_eq!(output, bytes);
            let mut position = 0;
            assert_eq!(decode(&bytes, &mut position, prefix), Ok(value));
            assert_eq!(position, bytes.len());
        }
    }

    #[test]
    fn what_is_cut_short_or_too_large_is_refused() {
        assert_eq!(decode(&[], &mut 0, 5), Err(PrefixIntegerError::Incomplete));
        assert_eq!(decode(&[0x1f, 0x80], &mut 0, 5), Err(PrefixIntegerError::Incomplete));
        let mut position = 0;
        assert_eq!(decode(&[0xff; 20], &mut position, 5), Err(PrefixIntegerError::TooLarge));
        assert_eq!(position, 0);
        let zeros = [0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(decode(&zeros, &mut 0, 5), Err(PrefixIntegerError::TooLarge));
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(value in 0u64..1 << 62, prefix in 1u8..=8, small in any::<bool>()) {
            let value = if small { value & 0x3ff } else { value };
            let flags = 0xff_u8.checked_shl(u32::from(prefix)).unwrap_or(0);
            let mut output = vec![0x55];
            encode(value, prefix, flags, &mut output);
            prop_assert_eq!(output[1] & flags, flags);
            let mut position = 1;
            prop_assert_eq!(decode(&output, &mut position, prefix), Ok(value));
            prop_assert_eq!(position, output.len());
        }
    }
}
