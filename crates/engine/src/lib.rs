//! Client engines: HTTP/1.1, HTTP/2 and HTTP/3, TLS and QUIC as state machines without I/O.
//!
//! ```
//! use engine::h1::{Http1, Limits};
//! use engine::{Event, Protocol, Request};
//!
//! let request = Request {
//!     template: 0,
//!     method: "GET".into(),
//!     scheme: "http".into(),
//!     authority: "example.com".into(),
//!     path: "/".into(),
//!     fields: Vec::new(),
//!     varying: None,
//!     body: Default::default(),
//! };
//! let mut http = Http1::new(Limits::default());
//! http.start();
//! http.send_request(1, &request)?;
//! let mut output = Vec::new();
//! http.poll_output(&mut output);
//! assert_eq!(output, b"GET / HTTP/1.1\r\nhost: example.com\r\n\r\n");
//!
//! let mut body = Vec::new();
//! http.handle_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", &mut |event| {
//!     if let Event::Data { bytes, .. } = event {
//!         body.extend_from_slice(bytes);
//!     }
//! });
//! assert_eq!(body, b"hi");
//! # Ok::<(), engine::NotNow>(())
//! ```
//!
//! [`Connection`] is the contract of a complete connection, with TLS or QUIC; [`Client`] has one for each
//! variant.

pub mod client;
mod codes;
pub mod contract;
pub mod dynamic_table;
pub mod field;
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
    Connection, EarlyData, Event, Fate, Handshake, Head, HeaderBytes, Input, NotNow, Promise, Pushed,
    Request, RequestId, Sink, Transmit, VaryingField,
};
pub use options::Options;
pub use protocol::Protocol;
