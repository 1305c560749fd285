//! Transport security: rustls with the ring provider and the machine's own roots, for HTTP and WebSocket alike.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// The configuration for talking to hubs over https and wss.
///
/// # Errors
/// [`Error::Tls`] when the machine has no root certificates.
pub(crate) fn with_machine_roots() -> Result<ClientConfig> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(Error::Tls(
            "no root certificates found; install the package ca-certificates".to_owned(),
        ));
    }
    config(roots)
}

/// The configuration where no https is ever spoken: it trusts nobody.
pub(crate) fn without_roots() -> Result<ClientConfig> {
    config(RootCertStore::empty())
}

fn config(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Tls(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_provider_speaks_tls() {
        let config = without_roots().unwrap();
        assert!(!config.crypto_provider().cipher_suites.is_empty());
    }
}
