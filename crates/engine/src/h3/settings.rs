//! SETTINGS of HTTP/3 (RFC 9114, section 7.2.4; RFC 9204, section 5).

use super::error::{Code, Violation};
use super::frame::{self, decode_integer, encode_integer};

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;

/// How many settings a peer may send; there are about ten registered ones.
const SETTINGS_LIMIT: usize = 64;

/// What a peer announced, or we do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Largest dynamic table of QPACK that the sender's decoder keeps, in bytes.
    pub qpack_table_bytes: u64,
    /// How many streams may wait for the dynamic table.
    pub qpack_blocked_streams: u64,
    /// Largest field section, in bytes of names and values and 32 for each field.
    pub max_field_section_bytes: Option<u64>,
}

impl Settings {
    /// Appends the SETTINGS frame; values that are the default are left out.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let mut payload = Vec::new();
        let mut setting = |identifier: u64, value: u64| {
            encode_integer(identifier, &mut payload);
            encode_integer(value, &mut payload);
        };
        if self.qpack_table_bytes > 0 {
            setting(QPACK_MAX_TABLE_CAPACITY, self.qpack_table_bytes);
        }
        if let Some(bytes) = self.max_field_section_bytes {
            setting(MAX_FIELD_SECTION_SIZE, bytes);
        }
        if self.qpack_blocked_streams > 0 {
            setting(QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams);
        }
        frame::encode_header(frame::SETTINGS, payload.len() as u64, output);
        output.extend_from_slice(&payload);
    }

    /// Reads the payload of a SETTINGS frame.
    ///
    /// # Errors
    /// H3_FRAME_ERROR or H3_SETTINGS_ERROR, both connection errors.
    pub fn decode(mut payload: &[u8]) -> Result<Settings, Violation> {
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let (identifier, value) = pair(&mut payload)
                .ok_or_else(|| Violation::new(Code::H3_FRAME_ERROR, "SETTINGS end within a setting"))?;
            if seen.contains(&identifier) {
                let reason = format!("duplicate setting {identifier:#x}");
                return Err(Violation::new(Code::H3_SETTINGS_ERROR, reason));
            }
            if seen.len() == SETTINGS_LIMIT {
                return Err(Violation::limit(format!("more than {SETTINGS_LIMIT} settings")));
            }
            seen.push(identifier);
            match identifier {
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_table_bytes = value,
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_bytes = Some(value),
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                0x00 | 0x02..=0x05 => {
                    let reason = format!("setting {identifier:#x} of HTTP/2, which HTTP/3 forbids");
                    return Err(Violation::new(Code::H3_SETTINGS_ERROR, reason));
                }
                _ => {}
            }
        }
        Ok(settings)
    }
}

fn pair(payload: &mut &[u8]) -> Option<(u64, u64)> {
    let (identifier, identifier_bytes) = decode_integer(payload)?;
    let (value, value_bytes) = decode_integer(&payload[identifier_bytes..])?;
    *payload = &payload[identifier_bytes + value_bytes..];
    Some((identifier, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_encoding_and_decoding() {
        let settings = Settings {
            qpack_table_bytes: 4096,
            qpack_blocked_streams: 16,
            max_field_section_bytes: Some(65_536),
        };
        let mut frame = Vec::new();
        settings.encode(&mut frame);
        assert_eq!(usize::from(frame[1]), frame.len() - 2);
        assert_eq!(Settings::decode(&frame[2..]), Ok(settings));
    }

    #[test]
    fn refuses_what_is_forbidden() {
        let code = |payload: &[u8]| Settings::decode(payload).unwrap_err().code;
        assert_eq!(code(&[0x02, 0x00]), Code::H3_SETTINGS_ERROR);
        assert_eq!(code(&[0x06, 0x00, 0x06, 0x00]), Code::H3_SETTINGS_ERROR);
        assert_eq!(code(&[0x06]), Code::H3_FRAME_ERROR);
        assert_eq!(Settings::decode(&[0x21, 0x05]), Ok(Settings::default()), "reserved ones are ignored");
    }
}
