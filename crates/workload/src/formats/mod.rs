//! Formats of files that other tools write: parsed from text, never read from disk here.

pub mod timing_script;
pub mod url_list;
