//! Structures and attributes of netlink as bytes, in the machine's own order.

/// Attributes begin at whole words (NLA_ALIGN of linux/netlink.h).
const ALIGNMENT: usize = 4;
/// Length and type.
const HEADER_BYTES: usize = 4;

/// Bytes that grow.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    pub(super) fn u8(mut self, value: u8) -> Bytes {
        self.0.push(value);
        self
    }

    pub(super) fn u16(mut self, value: u16) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(super) fn i16s(mut self, values: &[i16]) -> Bytes {
        self.0.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
        self
    }

    /// An attribute with its header, filled up to a whole word. What is too long for its length's 16 bits is left out; nothing
    /// here comes near.
    pub(super) fn attribute(mut self, kind: u16, payload: Bytes) -> Bytes {
        let Ok(length) = u16::try_from(HEADER_BYTES + payload.0.len()) else { return self };
        self = self.u16(length).u16(kind);
        self.0.extend(payload.0);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// The same where there is a value.
    pub(super) fn maybe(self, kind: u16, payload: Option<Bytes>) -> Bytes {
        match payload {
            Some(payload) => self.attribute(kind, payload),
            None => self,
        }
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// The attributes of a message, as type and payload; what is cut off ends them.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Flags in the type: nested, and in network order.
    const TYPE: u16 = 0x3fff;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
        let kind = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?) & TYPE;
        let payload = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        Some((kind, payload))
    })
}

/// The number at an offset.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The number at an offset.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_written() {
        let nested = Bytes::default().attribute(7, Bytes::default().u32(9));
        let bytes =
            Bytes::default().attribute(1, Bytes::default().u8(5)).attribute(2 | 1 << 15, nested).done();
        assert_eq!(bytes.len() % ALIGNMENT, 0);
        let found: Vec<_> = attributes(&bytes).collect();
        assert_eq!(found[0], (1, [5].as_slice()));
        assert_eq!(found[1].0, 2);
        assert_eq!(
            attributes(found[1].1).map(|(kind, value)| (kind, u32_at(value, 0))).collect::<Vec<_>>(),
            [(7, Some(9))]
        );
        for cut in 0..bytes.len() {
            assert!(attributes(&bytes[..cut]).count() <= 2);
        }
        assert_eq!(attributes(&[0; 8]).count(), 0, "a length of nothing ends them");
    }
}
