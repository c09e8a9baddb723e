//! Messages, structures and attributes of netlink as bytes, in native byte order.

use std::io;

/// Attributes and messages are aligned to this (NLA_ALIGN and NLMSG_ALIGN of linux/netlink.h).
const ALIGNMENT: usize = 4;
/// Length and type of an attribute.
const HEADER_BYTES: usize = 4;

/// Length, type, flags, sequence number and sender of a message (linux/netlink.h).
pub(crate) const MESSAGE_HEADER_BYTES: usize = 16;
/// The type of a message that reports an error.
pub(crate) const NLMSG_ERROR: u16 = 2;
/// The type of a message that ends a list.
pub(crate) const NLMSG_DONE: u16 = 3;
/// A list comes in portions of up to 32 KiB (`NLMSG_GOODSIZE` and the socket's growth).
pub(crate) const PORTION_BYTES: usize = 64 << 10;

/// Bytes under construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    pub(crate) fn u8(mut self, value: u8) -> Bytes {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Bytes {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn i16s(mut self, values: &[i16]) -> Bytes {
        self.0.extend(values.iter().flat_map(|value| value.to_ne_bytes()));
        self
    }

    /// An attribute with its header, padded to the alignment. A payload too long for the length's 16 bits is
    /// left out; no payload here is that long.
    pub(crate) fn attribute(mut self, kind: u16, payload: Bytes) -> Bytes {
        let Ok(length) = u16::try_from(HEADER_BYTES + payload.0.len()) else { return self };
        self = self.u16(length).u16(kind);
        self.0.extend(payload.0);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// An attribute where there is a value.
    pub(crate) fn maybe(self, kind: u16, payload: Option<Bytes>) -> Bytes {
        match payload {
            Some(payload) => self.attribute(kind, payload),
            None => self,
        }
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Passes the type and payload of each message of a list's portion to `handle`; returns whether the list is
/// complete.
///
/// # Errors
/// The kernel reports one, or the portion is cut off: its end may have been in what is missing.
pub(crate) fn each_message(portion: &[u8], mut handle: impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut rest = portion;
    while let (Some(length), Some(kind)) = (u32_at(rest, 0), u16_at(rest, 4)) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(message) = rest.get(MESSAGE_HEADER_BYTES..length) else { break };
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = u32_at(message, 0).map_or(0, u32::cast_signed);
                return Err(io::Error::from_raw_os_error(code.saturating_neg()));
            }
            _ => handle(kind, message),
        }
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
    }
    if rest.is_empty() {
        return Ok(false);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's netlink list is cut off"))
}

/// The attributes of a message, as type and payload; they end where the bytes are cut off.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// The type without its flags (nested, network byte order).
    const TYPE: u16 = 0x3fff;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE;
        let payload = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or(&[]);
        Some((kind, payload))
    })
}

/// The number at an offset.
fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The number at an offset.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

/// The number at an offset.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
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
