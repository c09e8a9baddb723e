//! Pending output, except bodies.

/// The limit of output per `poll_output`, in bytes.
pub(super) const OUTPUT_BYTES: usize = 64 << 10;

/// Frames in the order of sending.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    taken: usize,
    replies: usize,
}

impl Output {
    /// The buffer to which frames are appended.
    pub(super) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Counts bytes of replies; returns how many of them are unsent.
    pub(super) fn count_reply(&mut self, bytes: usize) -> usize {
        self.replies += bytes;
        self.replies
    }

    /// Moves up to [`OUTPUT_BYTES`] to `out`; returns whether there were any.
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

    /// Whether there is no output.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
