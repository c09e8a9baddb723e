//! Blocks of a capture file (draft-ietf-opsawg-pcapng), which Wireshark and tshark read.

/// Ethernet (LINKTYPE_ETHERNET).
const LINK_TYPE: u16 = 1;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const STATISTICS_DROPPED: u16 = 5;

/// Whether a node received or sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// To the node.
    Inbound,
    /// From the node.
    Outbound,
}

/// One frame at one node's interface.
#[derive(Debug)]
pub(super) struct Packet<'a> {
    /// Index of the interface's description, from 0.
    pub(super) interface: u32,
    pub(super) heading: Heading,
    /// Nanoseconds of Unix time.
    pub(super) at_unix_ns: u64,
    pub(super) bytes: &'a [u8],
    pub(super) comment: Option<&'a str>,
}

/// The start of a file: one section with these interfaces and timestamps in nanoseconds.
pub(super) fn begin(interfaces: &[&str]) -> Vec<u8> {
    let mut file = Vec::new();
    block(&mut file, SECTION_HEADER, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend([1_u16, 0].map(u16::to_le_bytes).concat());
        // The section's length is unknown.
        body.extend(u64::MAX.to_le_bytes());
        option(body, SECTION_APPLICATION, concat!("h123 ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(body, OPTION_END, &[]);
    });
    for name in interfaces {
        block(&mut file, INTERFACE_DESCRIPTION, |body| {
            body.extend([LINK_TYPE, 0].map(u16::to_le_bytes).concat());
            // No snapshot length: frames are complete.
            body.extend(0_u32.to_le_bytes());
            option(body, INTERFACE_NAME, name.as_bytes());
            option(body, INTERFACE_RESOLUTION, &[9]);
            option(body, OPTION_END, &[]);
        });
    }
    file
}

/// A frame.
pub(super) fn packet(file: &mut Vec<u8>, packet: &Packet<'_>) {
    block(file, ENHANCED_PACKET, |body| {
        body.extend(packet.interface.to_le_bytes());
        time(body, packet.at_unix_ns);
        let length = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        body.extend([length, length].map(u32::to_le_bytes).concat());
        padded(body, packet.bytes);
        let flags: u32 = match packet.heading {
            Heading::Inbound => 1,
            Heading::Outbound => 2,
        };
        option(body, PACKET_FLAGS, &flags.to_le_bytes());
        if let Some(comment) = packet.comment {
            option(body, OPTION_COMMENT, comment.as_bytes());
        }
        option(body, OPTION_END, &[]);
    });
}

/// The number of frames of an interface that are missing from the file.
pub(super) fn missing(file: &mut Vec<u8>, interface: u32, at_unix_ns: u64, frames: u64) {
    block(file, INTERFACE_STATISTICS, |body| {
        body.extend(interface.to_le_bytes());
        time(body, at_unix_ns);
        option(body, STATISTICS_DROPPED, &frames.to_le_bytes());
        option(body, OPTION_END, &[]);
    });
}

/// Type, length, body, and the length again.
fn block(file: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend(kind.to_le_bytes());
    file.extend([0; 4]);
    write(file);
    let length = u32::try_from(file.len() - start + 4).unwrap_or(u32::MAX).to_le_bytes();
    file[start + 4..start + 8].copy_from_slice(&length);
    file.extend(length);
}

/// A timestamp: the upper half comes first.
fn time(body: &mut Vec<u8>, unix_ns: u64) {
    let [a, b, c, d, e, f, g, h] = unix_ns.to_le_bytes();
    body.extend([e, f, g, h, a, b, c, d]);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
    padded(body, value);
}

/// Bytes, padded to a multiple of four.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(std::iter::repeat_n(0, bytes.len().next_multiple_of(4) - bytes.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types and lengths of the blocks.
    fn blocks(mut file: &[u8]) -> Vec<(u32, usize)> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut found = Vec::new();
        while !file.is_empty() {
            let length = word(&file[4..]) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(&file[length - 4..]) as usize, length, "the length stands at both ends");
            found.push((word(file), length));
            file = &file[length..];
        }
        found
    }

    #[test]
    fn blocks_are_as_the_draft_lays_them_out() {
        let mut file = begin(&["client", "server"]);
        let kinds: Vec<u32> = blocks(&file).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION]);
        let before = file.len();
        let heading = Heading::Inbound;
        let (bytes, comment) = (&[7; 61][..], Some("lost"));
        packet(&mut file, &Packet { interface: 1, heading, at_unix_ns: 0x1_0000_0002, bytes, comment });
        // 8 + 20, 61 bytes and 3 of padding, flags, comment, end, length.
        assert_eq!(blocks(&file[before..]), [(ENHANCED_PACKET, 28 + 64 + 8 + 8 + 4 + 4)]);
        assert_eq!(file[before + 8..before + 20], [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let before = file.len();
        missing(&mut file, 0, 5, 9);
        assert_eq!(blocks(&file[before..]), [(INTERFACE_STATISTICS, 8 + 12 + 12 + 4 + 4)]);
    }
}
