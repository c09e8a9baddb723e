//! What waits to be sent, bodies apart.

/// How much one `poll_output` gives at most, in bytes.
pub(super) const OUTPUT_BYTES: usize = 64 << 10;

/// Frames in the order in which they leave.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    taken: usize,
    replies: usize,
}

impl Output {
    /// The place to append frames to.
    pub(super) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Counts bytes that the peer made us queue, and says how many of them wait.
    pub(super) fn count_reply(&mut self, bytes: usize) -> usize {
        self.replies += bytes;
        self.replies
    }

    /// Moves up to [`OUTPUT_BYTES`] to `out`; whether there was anything.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) -> bool {
        let waiting = &self.bytes[self.taken..];
        let length = waiting.len().min(OUTPUT_BYTES);
        out.extend_from_slice(&waiting[..length]);
        self.taken += length;
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
            self.replies = 0;
        }
        length > 0
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
