//! Client engines: HTTP/1.1, HTTP/2 and HTTP/3, TLS and QUIC as state machines without I/O.

pub mod client;
pub mod contract;
pub mod dynamic_table;
pub mod fuzz_targets;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod huffman;
pub mod options;
pub mod prefix_integer;
pub mod protocol;
pub mod quic;
pub mod tcp;
pub mod tls;

pub use client::{Client, ClientConfig, ClientConfigError};
pub use contract::{
    Connection, EarlyData, Event, Handshake, Head, HeaderBytes, Input, NotNow, Pushed, Request, RequestId,
    Sink, Transmit, VaryingField,
};
pub use options::Options;
pub use protocol::Protocol;
