//! Engines against test peers on a virtual clock.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod authority;
mod client;
mod early_data;
mod fuzz_smoke;
mod qpack;
mod quic;
mod quic_peer;
mod stream;
mod tls;
