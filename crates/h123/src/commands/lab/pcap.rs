//! `--pcap` of `h123 lab`: the files of the capture and of the secrets that decrypt it.

use std::ffi::OsString;
use std::fmt::Write;
use std::io::ErrorKind;
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
            return match std::fs::remove_file(&keys) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot replace {}", keys.display()))
                }
                _ => Pcap { qlog: file.with_added_extension("qlog"), file, keys }.prepared(),
            };
        };
        Err(UsageError(fault).into())
    }

    /// Creates the folder of qlog, which most programs do not, and removes the logs of an earlier capture.
    fn prepared(self) -> Result<Pcap> {
        let context = || format!("cannot prepare the folder {}", self.qlog.display());
        std::fs::create_dir_all(&self.qlog).with_context(context)?;
        for entry in std::fs::read_dir(&self.qlog).with_context(context)?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "sqlog" || extension == "qlog") {
                std::fs::remove_file(path).with_context(context)?;
            }
        }
        Ok(self)
    }

    /// The variables for the environment of commands.
    pub(crate) fn environment(&self) -> [(OsString, OsString); 2] {
        [(KEY_LOG_VARIABLE, &self.keys), (QLOG_VARIABLE, &self.qlog)]
            .map(|(name, path)| (name.into(), path.into()))
    }

    /// How to open the capture.
    pub(crate) fn describe(&self) -> String {
        let (file, keys) = (self.file.display(), self.keys.display());
        let mut text = if self.keys.exists() {
            format!("captured: wireshark -o tls.keylog_file:{keys} -r {file}")
        } else {
            format!("captured: wireshark -r {file} (the command wrote no secrets to SSLKEYLOGFILE)")
        };
        // An empty folder is removed.
        if std::fs::remove_dir(&self.qlog).is_err() {
            let _ = write!(text, "\nqlog, for qvis: {}", self.qlog.display());
        }
        text
    }
}
