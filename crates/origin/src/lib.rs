//! The built-in server: one process that serves the same content over all five variants, each on a port of its own.
//!
//! What it serves: the resources of pages, files under a folder, `/bytes/N`, `/delay/MS`, `/echo`, `/status/NNN`.
//! Every variant answers with the same fields; `catalogue.rs` says what a path means and
//! `access_log.rs` what is written down. [`serve`] is the way in.

mod access_log;
mod answer;
mod body;
mod catalogue;
mod config;
mod files;
mod guard;
mod http1;
mod http2;
mod http3;
mod listen;
mod server;
mod timer;
mod tls;

pub use config::{Config, Identity};
pub use server::{Served, flag, serve};
