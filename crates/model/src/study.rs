//! A study as written.
