//! `--pcap` of `h123 lab`: where the capture goes, and beside it the secrets that decrypt it.

use std::ffi::OsString;
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::Topology;

use crate::commands::load::protocol_options::QLOG_VARIABLE;
use crate::connect::tls_options::KEY_LOG_VARIABLE;
use crate::exit::UsageError;

/// The files of a capture by hand.
pub(crate) struct Pcap {
    /// What is on the links.
    pub(crate) file: PathBuf,
    /// The secrets of TLS and QUIC, by whoever heeds SSLKEYLOGFILE.
    pub(crate) keys: PathBuf,
    /// What QUIC connections do, by whoever heeds QLOGDIR.
    qlog: PathBuf,
}

impl Pcap {
    /// Where nothing stands in the way of a capture to this file; secrets of one before are removed.
    ///
    /// # Errors
    /// Nothing is emulated, or the file cannot be made there.
    pub(crate) fn new(file: &Path, topology: Option<&Topology>) -> Result<Pcap> {
        let shown = file.display();
        let is_emulated =
            topology.is_some_and(|topology| topology.links.iter().any(|link| link.network.is_some()));
        let fault = if !is_emulated {
            "--pcap: found no emulated link, expected a network or a topology with one".to_owned()
        } else if file.is_dir() {
            format!("--pcap: found the folder {shown}, expected a file's name")
        } else if !std::path::absolute(file).is_ok_and(|file| file.parent().is_some_and(Path::is_dir)) {
            format!("--pcap: found {shown}, expected a file in a folder that exists")
        } else {
            let file = std::path::absolute(file).with_context(|| format!("the place of {shown}"))?;
            let keys = file.with_added_extension("keys");
            // They would decrypt nothing of this capture, but go where it goes.
            return match std::fs::remove_file(&keys) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("replacing {}", keys.display()))
                }
                _ => Pcap { qlog: file.with_added_extension("qlog"), file, keys }.prepared(),
            };
        };
        Err(UsageError(fault).into())
    }

    /// Makes the folder of qlog, since most programs make none; those of a capture before are removed.
    fn prepared(self) -> Result<Pcap> {
        let context = || format!("preparing the folder {}", self.qlog.display());
        std::fs::create_dir_all(&self.qlog).with_context(context)?;
        for entry in std::fs::read_dir(&self.qlog).with_context(context)?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "sqlog" || extension == "qlog") {
                std::fs::remove_file(path).with_context(context)?;
            }
        }
        Ok(self)
    }

    /// What the commands' environment says of it.
    pub(crate) fn environment(&self) -> [(OsString, OsString); 2] {
        [(KEY_LOG_VARIABLE, &self.keys), (QLOG_VARIABLE, &self.qlog)]
            .map(|(name, path)| (name.into(), path.into()))
    }

    /// How to look at it.
    pub(crate) fn describe(&self) -> String {
        let (file, keys) = (self.file.display(), self.keys.display());
        let mut text = if self.keys.exists() {
            format!("captured: wireshark -o tls.keylog_file:{keys} -r {file}")
        } else {
            format!("captured: wireshark -r {file} (the command wrote no secrets to SSLKEYLOGFILE)")
        };
        // Where nothing was written nothing is left.
        if std::fs::remove_dir(&self.qlog).is_err() {
            let _ = write!(text, "\nqlog, for qvis: {}", self.qlog.display());
        }
        text
    }
}
