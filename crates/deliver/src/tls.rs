//! TLS: whose certificates are believed.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The certificates that are believed.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// The certificates of the system.
    System,
    /// The certificates of a file, as PEM.
    Pem(String),
}

impl Trust {
    /// How to connect. It reads the certificates of the system, so this comes before files are out
    /// of reach.
    ///
    /// # Errors
    /// If there is no certificate.
    pub fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        match self {
            Trust::System => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    let why = found.errors.first().map(|e| format!(" ({e})")).unwrap_or_default();
                    return Err(format!(
                        "the system has no certificates to check others by{why}: install the \
                         package ca-certificates, or name a file of them by ca=FILE"
                    ));
                }
            }
            Trust::Pem(text) => {
                for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
                    let certificate = certificate.map_err(|e| format!("no certificate: {e}"))?;
                    roots.add(certificate).map_err(|e| format!("no certificate: {e}"))?;
                }
                if roots.is_empty() {
                    return Err("the file has no certificate (PEM)".to_owned());
                }
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused() {
        for text in ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Trust::Pem(text.to_owned()).config().is_err(), "{text}");
        }
    }
}
