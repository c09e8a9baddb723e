//! CMCD, version 1 (CTA-5004): what requests say about their player.

use std::fmt::Write;

/// The keys of one request, as the groups of their fields (CTA-5004, section 3.1). A group is a list of keys
/// with their values, sorted and separated by commas; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmcdKeys {
    /// `CMCD-Object`: the requested object.
    pub object: String,
    /// `CMCD-Request`: this request.
    pub request: String,
    /// `CMCD-Session`: the whole session.
    pub session: String,
    /// `CMCD-Status`: the player, from time to time.
    pub status: String,
}

impl CmcdKeys {
    /// The value of the query argument `CMCD`: all keys, sorted, encoded for a URL (CTA-5004, section 3.2).
    pub fn query(&self) -> String {
        let groups = [&self.object, &self.request, &self.session, &self.status];
        let mut keys: Vec<&str> = groups.into_iter().flat_map(|group| split(group)).collect();
        keys.sort_unstable();
        let mut encoded = String::with_capacity(160);
        for byte in keys.join(",").bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    encoded.push(char::from(byte))
                }
                // Writing to a String cannot fail.
                other => drop(write!(encoded, "%{other:02X}")),
            }
        }
        encoded
    }

    /// The fields that are not empty, with their names in lowercase.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("cmcd-object", self.object.as_str()),
            ("cmcd-request", self.request.as_str()),
            ("cmcd-session", self.session.as_str()),
            ("cmcd-status", self.status.as_str()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    }
}

/// The keys of a group; values in quotation marks contain no commas here.
fn split(group: &str) -> impl Iterator<Item = &str> {
    group.split(',').filter(|key| !key.is_empty())
}
