//! `--pcap` of `h123 lab`: the files of the capture and of the secrets that decrypt it.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::Topology;

use crate::connect::tls_options::{KEY_LOG_VARIABLE, QLOG_VARIABLE};
use crate::exit::UsageError;

/// The files of a capture.
pub(crate) struct Pcap {
    /// The packets on the links.
    pub(crate) file: PathBuf,
    /// The secrets of TLS and QUIC, from programs that support SSLKEYLOGFILE.
    pub(crate) keys: PathBuf,
    /// The logs of QUIC connections, from programs that support QLOGDIR.
    qlog: PathBuf,
}

impl Pcap {
    /// Prepares a capture to this file and removes the secrets of an earlier one.
    ///
    /// # Errors
    /// Nothing is emulated, or the file cannot be created there.
    pub(crate) fn new(file: &Path, topology: Option<&Topology>) -> Result<Pcap> {
        let shown = file.display();
        let is_emulated =
            topology.is_some_and(|topology| topology.links.iter().any(|link| link.network.is_some()));
        let fault = if !is_emulated {
            "--pcap requires an emulated link; choose a network, or a topology with one".to_owned()
        } else if file.is_dir() {
            format!("--pcap: {shown} is a folder; name a file")
        } else if !std::path::absolute(file).is_ok_and(|file| file.parent().is_some_and(Path::is_dir)) {
            format!("--pcap: the folder of {shown} does not exist; create it first")
        } else {
            let file =
                std::path::absolute(file).with_context(|| format!("cannot find the path of {shown}"))?;
            let keys = file.with_added_extension("keys");
            // Old secrets cannot decrypt this capture, but would be passed on with it.
            return match fs::remove_file(&keys) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot replace {}", keys.display()))
                }
                _ => Pcap { qlog: file.with_added_extension("qlog"), file, keys }.prepared(),
            };
        };
        Err(UsageError(fault).into())
    }

    /// Creates the file of the secrets, readable by its owner only, and the folder of qlog, which most
    /// programs do not; removes the logs of an earlier capture.
    fn prepared(self) -> Result<Pcap> {
        let context = || format!("cannot prepare the folder {}", self.qlog.display());
        fs::create_dir_all(&self.qlog).with_context(context)?;
        for entry in fs::read_dir(&self.qlog).with_context(context)?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "sqlog" || extension == "qlog") {
                fs::remove_file(path).with_context(context)?;
            }
        }
        let keys = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.keys);
        keys.with_context(|| format!("cannot create {}", self.keys.display()))?;
        Ok(self)
    }

    fn has_keys(&self) -> bool {
        fs::metadata(&self.keys).is_ok_and(|keys| keys.len() > 0)
    }

    /// The variables for the environment of commands.
    pub(crate) fn environment(&self) -> [(OsString, OsString); 2] {
        [(KEY_LOG_VARIABLE, &self.keys), (QLOG_VARIABLE, &self.qlog)]
            .map(|(name, path)| (name.into(), path.into()))
    }

    /// How to open the capture.
    pub(crate) fn describe(&self) -> String {
        let (file, keys) = (self.file.display(), self.keys.display());
        let mut text = if self.has_keys() {
            format!("captured: wireshark -o tls.keylog_file:{keys} -r {file}")
        } else {
            format!("captured: wireshark -r {file} (the command wrote no secrets to SSLKEYLOGFILE)")
        };
        // An empty folder is removed.
        if fs::remove_dir(&self.qlog).is_err() {
            let _ = write!(text, "\nqlog, for qvis: {}", self.qlog.display());
        }
        text
    }
}

impl Drop for Pcap {
    fn drop(&mut self) {
        if !self.has_keys() {
            // Nothing was written, for example because the lab did not start.
            let _ = fs::remove_file(&self.keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secrets_are_for_their_owner_only_and_an_empty_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        let new = || Pcap { file: of("a.pcap"), keys: of("a.keys"), qlog: of("a.qlog") }.prepared().unwrap();
        drop(new());
        assert!(!of("a.keys").exists());
        let pcap = new();
        assert_eq!(fs::metadata(of("a.keys")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&pcap.keys, "secret").unwrap();
        assert!(pcap.describe().contains("keylog_file"), "{}", pcap.describe());
        drop(pcap);
        assert!(of("a.keys").exists());
    }
}
