//! Flow control (RFC 9113, sections 5.2 and 6.9).

/// The largest window, 2^31 - 1.
pub const LARGEST_WINDOW: u32 = 0x7fff_ffff;

/// The peer's window; negative after the peer lowered SETTINGS_INITIAL_WINDOW_SIZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of this size.
    pub fn new(size: u32) -> Self {
        SendWindow(i64::from(size))
    }

    /// The number of bytes that can be sent now.
    pub fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Takes `sent` bytes, at most what was available.
    pub fn take(&mut self, sent: usize) {
        self.0 -= i64::try_from(sent).unwrap_or(i64::MAX);
    }

    /// Changes the window by `change`; `false` if it would exceed 2^31 - 1.
    #[must_use]
    pub fn change(&mut self, change: i64) -> bool {
        self.0 += change;
        self.0 <= i64::from(LARGEST_WINDOW)
    }
}

/// The bytes of our window that the peer used since the last update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveWindow {
    used: u32,
}

impl ReceiveWindow {
    /// Takes `received` bytes; `false` if the peer exceeded `size`.
    #[must_use]
    pub fn take(&mut self, received: u32, size: u32) -> bool {
        match self.used.checked_add(received) {
            Some(used) if used <= size => {
                self.used = used;
                true
            }
            _ => false,
        }
    }

    /// The increment to send when half of `size` is used.
    pub fn replenish(&mut self, size: u32) -> Option<u32> {
        if self.used == 0 || self.used < size / 2 {
            return None;
        }
        Some(std::mem::take(&mut self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_replenished_when_half_is_used() {
        let mut window = ReceiveWindow::default();
        assert!(window.take(49, 100));
        assert_eq!(window.replenish(100), None);
        assert!(window.take(1, 100));
        assert_eq!(window.replenish(100), Some(50));
        assert!(window.take(100, 100));
        assert!(!window.take(1, 100));
    }

    #[test]
    fn a_send_window_may_be_negative_and_not_too_large() {
        let mut window = SendWindow::new(10);
        window.take(10);
        assert!(window.change(-20));
        assert_eq!(window.available(), 0);
        assert!(window.change(25));
        assert_eq!(window.available(), 5);
        assert!(!window.change(i64::from(LARGEST_WINDOW)));
    }
}
