//! The tool as its users run it: the real binary, real namespaces, real servers, a real browser.
//!
//! Studies share one machine: each holds [`tool::machine`] while it measures, so that no two measure at once.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod backends;
mod bad_input;
mod bad_servers;
mod browser;
mod browser_handover;
mod browser_record;
mod browser_video;
mod capture;
mod chromium;
mod content;
mod coverage;
mod damage;
mod data;
mod discovery;
mod docs;
mod external;
mod firefox;
mod flaws;
mod generator;
mod groups;
mod handover;
mod interrupted;
mod lab;
mod live_table;
mod load_limits;
mod load_options;
mod load_output;
mod load_protocols;
mod load_rows;
mod load_tls;
mod loops;
mod manifests;
mod monitor;
mod names;
mod nginx;
mod other_tools;
mod outside;
mod own_studies;
mod permissions;
mod player;
mod published;
mod push;
mod quick;
mod real_server;
mod replayed;
mod schema;
mod scripts;
mod server_time;
mod servers;
mod site_media;
mod statistics;
mod streaming;
mod tool;
mod topologies;
mod tunables;
mod typed;
mod urls;
