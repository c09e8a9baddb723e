//! TLS and QUIC secrets in a file, for programs that decrypt captures.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use rustls::KeyLog;

/// Appends one line for each secret, in the format of NSS (draft-ietf-tls-keylogfile). Only handshakes lock
/// it.
#[derive(Debug)]
pub(crate) struct KeyLogFile(Mutex<File>);

impl KeyLogFile {
    /// Opens the file. A new one is readable by its owner only: it decrypts all connections.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        Ok(KeyLogFile(Mutex::new(file.with_context(|| format!("opening the key log {path}"))?)))
    }

    /// Checks that [`KeyLogFile::open`] would succeed, and leaves no new file behind.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn check(path: &str) -> Result<()> {
        let was_there = Path::new(path).exists();
        Self::open(path)?;
        if !was_there {
            fs::remove_file(path).with_context(|| format!("removing the empty key log {path}"))?;
        }
        Ok(())
    }
}

impl KeyLog for KeyLogFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = String::from(label);
        for bytes in [client_random, secret] {
            line.push(' ');
            for byte in bytes {
                // Writing to a String cannot fail.
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        // A line in one call, so that lines of several threads do not mix. The file was writable at the
        // start; a full disk must not end a connection.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_key_log_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        KeyLogFile::open(path.to_str().unwrap()).unwrap().log("LABEL", &[1], &[0xab]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&path).unwrap(), "LABEL 01 ab\n");
    }
}
