//! What a lab sets for the links and routes of its nodes.

use model::Pins;
use model::pins::CongestionControl;

/// Settings of every link and route. The kernel keeps its own values where a setting is `None`, so that
/// programs can choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Largest IP packet on every link, in bytes.
    pub mtu_bytes: u32,
    /// TCP's congestion control. A route that names one overrides the choice of every program.
    pub congestion_control: Option<CongestionControl>,
    /// TCP's initial congestion window, in full-sized packets.
    pub initial_window_packets: Option<u32>,
}

impl From<&Pins> for LinkSettings {
    /// Everything is fixed, as in every run of a study.
    fn from(pins: &Pins) -> LinkSettings {
        LinkSettings {
            mtu_bytes: pins.mtu_bytes,
            congestion_control: Some(pins.congestion_control),
            initial_window_packets: Some(pins.initial_window_packets),
        }
    }
}
