//! A certificate authority per study, kept in the study's folder and never installed on the system.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData,
};

/// The private key's file in a server's folder.
const KEY_FILE: &str = "server.key";
/// Readable by the owner only.
const SECRET_MODE: u32 = 0o600;

/// A certificate authority that only the clients of one study trust (ECDSA P-256).
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The key of all servers, so that browsers can be told one hash.
    key: KeyPair,
}

/// A server's certificate and key, with the authority that signed it; all PEM.
#[derive(Clone)]
pub struct Identity {
    /// The server's certificate.
    pub certificate_pem: String,
    /// Its private key (PKCS #8).
    pub key_pem: String,
    /// The authority's certificate, for clients.
    pub authority_pem: String,
    /// The certificates for other names, with the same key.
    pub hosts: BTreeMap<String, String>,
}

/// The paths of an identity's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFiles {
    /// The server's certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The certificates for other names.
    pub hosts: BTreeMap<String, PathBuf>,
}

impl Authority {
    /// Creates an authority.
    ///
    /// # Errors
    /// The system's random generator failed.
    pub fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "h123 laboratory, do not trust elsewhere");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, key_pair()?)
            .context("cannot create the study's certificate authority")?;
        Ok(Authority { issuer, key: key_pair()? })
    }

    /// The authority's certificate, PEM.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// SHA-256 of the servers' public key (SubjectPublicKeyInfo) in base64, by which Chromium trusts a server
    /// without an authority.
    pub fn key_hash(&self) -> String {
        key_hash(&self.key.subject_public_key_info())
    }

    /// Signs a certificate for a server under these names and addresses.
    ///
    /// # Errors
    /// A name is not a DNS name.
    pub fn issue(&self, names: &[&str], addresses: &[IpAddr]) -> Result<Identity> {
        Ok(Identity {
            certificate_pem: self.sign(names, addresses)?,
            key_pem: self.key.serialize_pem(),
            authority_pem: self.pem(),
            hosts: BTreeMap::new(),
        })
    }

    /// Adds a certificate for another name to an identity, whose own certificate does not have it: browsers
    /// use one connection for all names of a certificate.
    ///
    /// # Errors
    /// The name is not a DNS name.
    pub fn add_host(&self, identity: &mut Identity, name: &str) -> Result<()> {
        identity.hosts.insert(name.to_owned(), self.sign(&[name], &[])?);
        Ok(())
    }

    fn sign(&self, names: &[&str], addresses: &[IpAddr]) -> Result<String> {
        let subjects = names.iter().map(|name| (*name).to_owned());
        let subjects: Vec<String> = subjects.chain(addresses.iter().map(IpAddr::to_string)).collect();
        let context = || format!("cannot sign a certificate for {}", subjects.join(", "));
        let mut params = CertificateParams::new(subjects.clone()).with_context(context)?;
        let common_name = subjects.first().map_or("server", String::as_str);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.key, &self.issuer).with_context(context)?;
        Ok(certificate.pem())
    }
}

impl Identity {
    /// Writes `server.pem`, `server.key` and `authority.pem`, readable by their owner only.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<IdentityFiles> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let of_host = |name: &String| (name.clone(), folder.join(format!("host-{name}.pem")));
        let files = IdentityFiles {
            certificate: folder.join("server.pem"),
            key: folder.join(KEY_FILE),
            authority: folder.join("authority.pem"),
            hosts: self.hosts.keys().map(of_host).collect(),
        };
        for (path, certificate_pem) in files.hosts.values().zip(self.hosts.values()) {
            write_secret(path, certificate_pem)?;
        }
        write_secret(&files.certificate, &self.certificate_pem)?;
        write_secret(&files.key, &self.key_pem)?;
        write_secret(&files.authority, &self.authority_pem)?;
        Ok(files)
    }
}

/// A private key's file. Dropping this removes the file: a result that is passed on must not contain a key,
/// also after a failed start. If this fails, the key is still readable by its owner only.
#[derive(Debug)]
pub(crate) struct KeyFile(PathBuf);

impl KeyFile {
    /// The key in a server's folder, whether or not it has been written.
    pub(crate) fn of(folder: &Path) -> KeyFile {
        KeyFile(folder.join(KEY_FILE))
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn key_pair() -> Result<KeyPair> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .context("cannot create a key: the system's random generator failed")
}

fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(SECRET_MODE);
    options
        .open(path)
        // The mode above applies to new files only.
        .and_then(|file| file.set_permissions(Permissions::from_mode(SECRET_MODE)).map(|()| file))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// SHA-256 of a public key (SubjectPublicKeyInfo, DER) in base64.
pub(crate) fn key_hash(key: &[u8]) -> String {
    let tls13 = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13();
    let hash = tls13.map(|suite| suite.common.hash_provider.hash(key));
    hash.map_or_else(String::new, |hash| BASE64_STANDARD.encode(hash.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new().unwrap();
        let addresses = [IpAddr::from([10, 0, 0, 2]), "fd00::2".parse().unwrap()];
        let identity = authority.issue(&["server.h123.test"], &addresses).unwrap();
        let files = identity.write(folder.path()).unwrap();
        for path in [&files.certificate, &files.key, &files.authority] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, SECRET_MODE);
        }
        let key = KeyPair::from_pem(&fs::read_to_string(&files.key).unwrap()).unwrap();
        assert_eq!(key.algorithm(), &PKCS_ECDSA_P256_SHA256);
        assert!(!format!("{identity:?}").contains("PRIVATE"));
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let error = Authority::new().unwrap().issue(&["sérver"], &[]).unwrap_err().to_string();
        assert!(error.contains("sérver"), "{error}");
    }
}
