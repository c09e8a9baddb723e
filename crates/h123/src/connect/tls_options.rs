//! TLS options that `load` and `trace` share.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use model::Variant;
use model::pins::{KeyExchange, TlsVersion};
use model::tls::{ClientCertificate, OfferedSuite, TlsOffer, TlsOptions};

use crate::connect::target::read_option;
use crate::exit::UsageError;

/// The environment variable that names the file for TLS secrets, as in browsers and curl.
pub(crate) const KEY_LOG_VARIABLE: &str = "SSLKEYLOGFILE";
/// The environment variable that names the folder for qlog, as in other implementations of QUIC.
pub(crate) const QLOG_VARIABLE: &str = "QLOGDIR";

/// Versions, cipher suites, groups and the client's certificate.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Offer these versions: 1.2, 1.3 (default: both; HTTP/3 has only 1.3)
    ///
    /// Example: --tls 1.3
    #[arg(long, value_name = "VERSION,…", value_delimiter = ',', value_parser = parse_version)]
    pub(crate) tls: Vec<TlsVersion>,
    /// Offer these cipher suites, the preferred one first, by their registered or OpenSSL names (default: all
    /// with AES-GCM or ChaCha20, AES-128 first)
    ///
    /// Example: --ciphers ECDHE-ECDSA-AES256-GCM-SHA384
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) ciphers: Vec<OfferedSuite>,
    /// Offer these key exchange groups: x25519, secp256r1 (P-256), secp384r1 (P-384) (default: all three).
    /// The key share is for the first; if the server chooses another, the handshake takes one more round trip
    ///
    /// Example: --groups secp256r1
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_group)]
    pub(crate) groups: Vec<KeyExchange>,
    /// Client certificate (PEM, with its chain)
    ///
    /// Example: --cert client.pem
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM; default: in the same file)
    ///
    /// Example: --cert client.pem --key client.key
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

impl TlsArgs {
    /// The names of the options that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--tls", !self.tls.is_empty()),
            ("--ciphers", !self.ciphers.is_empty()),
            ("--groups", !self.groups.is_empty()),
            ("--cert", self.cert.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// The TLS options for servers of these variants. Files are read; [`load::check`] checks their content.
    ///
    /// # Errors
    /// Versions, suites and variants contradict each other, or a file cannot be read.
    pub(crate) fn resolve(&self, variants: &[Variant], early_data: bool) -> Result<TlsOptions> {
        if let (Some(name), true) = (self.given().first(), variants.iter().all(|one| !one.is_encrypted())) {
            return Err(requires_variant(name, "h1s, h2 or h3", &list(variants)).into());
        }
        let key_log = env::var(KEY_LOG_VARIABLE).ok().filter(|path| !path.is_empty());
        Ok(TlsOptions {
            offer: Some(self.offer(variants, early_data)?),
            client_certificate: self.cert.as_deref().map(|cert| self.certificate(cert)).transpose()?,
            early_data,
            key_log: key_log.filter(|_| variants.iter().any(|variant| variant.is_encrypted())),
        })
    }

    fn offer(&self, variants: &[Variant], early_data: bool) -> Result<TlsOffer, UsageError> {
        let mut offer = TlsOffer::any();
        if !self.groups.is_empty() {
            offer.groups.clone_from(&self.groups);
        }
        if !self.ciphers.is_empty() {
            offer.suites.clone_from(&self.ciphers);
            offer.versions.retain(|version| self.ciphers.iter().any(|suite| suite.version() == *version));
        }
        // Early data needs TLS 1.3, and no option contradicts it.
        if early_data && self.tls.is_empty() && self.ciphers.is_empty() {
            offer = offer.only(&[TlsVersion::V13]);
        }
        if !self.tls.is_empty() {
            if let Some(suite) = self.ciphers.iter().find(|suite| !self.tls.contains(&suite.version())) {
                let (name, version) = (suite.names().0, suite.version().name());
                return Err(UsageError(format!("--ciphers {name} requires --tls {version}")));
            }
            if let Some(version) = self.tls.iter().find(|version| !offer.versions.contains(version)) {
                let version = version.name();
                return Err(UsageError(format!("--tls {version} requires one of its suites in --ciphers")));
            }
            offer = offer.only(&self.tls);
        }
        let has_quic = variants.iter().any(|variant| variant.is_quic());
        if has_quic && !offer.versions.contains(&TlsVersion::V13) {
            let fault = "h3 requires TLS 1.3, the only version that QUIC uses (RFC 9001, section 4.2)";
            return Err(UsageError(fault.into()));
        }
        if early_data && !has_quic && offer.versions != [TlsVersion::V13] {
            let fault = "--early-data requires --tls 1.3; TLS 1.2 has no early data";
            return Err(UsageError(fault.into()));
        }
        Ok(offer)
    }

    fn certificate(&self, cert: &Path) -> Result<ClientCertificate, UsageError> {
        let chain_pem = read_option("--cert", cert)?;
        let key_pem = match &self.key {
            Some(key) => read_option("--key", key)?,
            None => chain_pem.clone(),
        };
        Ok(ClientCertificate { chain_pem, key_pem })
    }
}

/// The folder for qlog that the environment names.
pub(crate) fn qlog_folder(variant: Variant) -> Option<String> {
    env::var(QLOG_VARIABLE).ok().filter(|folder| variant.is_quic() && !folder.is_empty())
}

/// The error for an option that the variant does not support.
pub(crate) fn requires_variant(option: &str, expected: &str, found: &str) -> UsageError {
    UsageError(format!("{option} requires --variant {expected}; this is {found}"))
}

/// Names of variants, for an error.
pub(crate) fn list(variants: &[Variant]) -> String {
    variants.iter().map(|variant| variant.name()).collect::<Vec<_>>().join(" and ")
}

fn parse_version(text: &str) -> Result<TlsVersion, String> {
    let known = [TlsVersion::V12, TlsVersion::V13];
    let found = known.into_iter().find(|version| version.name() == text);
    found.ok_or_else(|| format!("unknown TLS version `{text}`; use 1.2 or 1.3"))
}

fn parse_group(text: &str) -> Result<KeyExchange, String> {
    match text.to_ascii_lowercase().as_str() {
        "x25519" => Ok(KeyExchange::X25519),
        "secp256r1" | "p-256" | "prime256v1" => Ok(KeyExchange::Secp256r1),
        "secp384r1" | "p-384" => Ok(KeyExchange::Secp384r1),
        _ => Err(format!("unknown group `{text}`; use x25519, secp256r1 or secp384r1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(tls: &[&str], ciphers: &[&str]) -> TlsArgs {
        TlsArgs {
            tls: tls.iter().map(|text| parse_version(text).unwrap()).collect(),
            ciphers: ciphers.iter().map(|text| text.parse().unwrap()).collect(),
            ..TlsArgs::default()
        }
    }

    fn fault(args: &TlsArgs, variant: Variant, early_data: bool) -> String {
        args.offer(&[variant], early_data).unwrap_err().to_string()
    }

    #[test]
    fn offers_follow_the_options() {
        let all = args(&[], &[]).offer(&[Variant::H2], false).unwrap();
        assert_eq!(all, TlsOffer::any());
        assert_eq!(all.groups[0], KeyExchange::X25519, "the key share is for the group that studies pin");
        let old = args(&["1.2"], &[]).offer(&[Variant::H2], false).unwrap();
        assert_eq!((old.versions.len(), old.suites.len()), (1, 6));
        let one = args(&[], &["ECDHE-RSA-AES256-GCM-SHA384"]).offer(&[Variant::H1s], false).unwrap();
        assert_eq!(one.versions, [TlsVersion::V12], "a suite says which version");
        let early = args(&[], &[]).offer(&[Variant::H2], true).unwrap();
        assert_eq!(early.versions, [TlsVersion::V13]);
        assert!(parse_group("P-256") == Ok(KeyExchange::Secp256r1) && parse_group("ffdhe2048").is_err());
    }

    #[test]
    fn contradictions_are_found() {
        let old = args(&["1.2"], &[]);
        assert!(fault(&old, Variant::H3, false).starts_with("h3 requires TLS 1.3"));
        assert!(fault(&old, Variant::H2, true).starts_with("--early-data requires --tls 1.3"));
        let both = args(&["1.2"], &["TLS_AES_128_GCM_SHA256"]);
        assert!(fault(&both, Variant::H2, false).contains("TLS_AES_128_GCM_SHA256 requires --tls 1.3"));
        let missing = args(&["1.2", "1.3"], &["TLS_AES_128_GCM_SHA256"]);
        assert!(fault(&missing, Variant::H2, false).contains("--tls 1.2 requires one of its suites"));
        let error = old.resolve(&[Variant::H1], false).unwrap_err().to_string();
        assert_eq!(error, "--tls requires --variant h1s, h2 or h3; this is h1");
    }
}
