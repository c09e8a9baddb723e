//! One file per command.

mod access_log;
mod class_option;
pub(crate) mod compare;
pub(crate) mod content;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod lab;
pub(crate) mod load;
mod log_format;
pub(crate) mod page;
pub(crate) mod page_model;
pub(crate) mod plan;
pub(crate) mod players;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod shell;
pub(crate) mod trace;
pub(crate) mod urls;
