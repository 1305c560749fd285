//! Mailboxes on NATS `JetStream`, opened as the settings say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aip_jetstream::config::{ClientCertificate, Login};
use aip_jetstream::{Fresh, JetStreamMailboxes, Options, Parts, StartError};
use aip_relay::dedup::SharedWindow;
use aip_relay::mailbox::rocks::RocksMailboxes;
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use super::bell::Bell;
use crate::config::{NatsSettings, Settings};

const DAY_SECS: u64 = 86_400;

/// Opens the mailboxes. `window` is the dedup window of this process, `shared` that of all.
///
/// # Errors
/// What is wrong with the servers or their streams.
pub(super) async fn open(
    settings: &Settings,
    process: &str,
    window: Arc<RocksMailboxes>,
    shared: Arc<dyn SharedWindow>,
    bell: Arc<Bell>,
) -> Result<JetStreamMailboxes, StartError> {
    let mut rng = UnwrapErr(SysRng);
    let mut fresh = Fresh {
        epoch_bits: rng.next_u64(),
        secret: [0; 32],
    };
    rng.fill_bytes(&mut fresh.secret);
    let parts = Parts {
        window,
        shared,
        fresh,
        seed: rng.next_u64(),
        wake: Arc::new(move |mailbox, seq| bell.ring(mailbox, seq)),
    };
    JetStreamMailboxes::open(options(settings, process, rng.next_u64()), parts).await
}

/// How the servers are reached, and how the store lies on them.
pub(super) fn options(settings: &Settings, process: &str, seed: u64) -> Options {
    let (nats, relay) = (&settings.nats, &settings.relay);
    let urls: Vec<String> = settings.engines.mailbox_servers().map(str::to_owned).collect();
    Options {
        tls_required: urls.iter().all(|url| url.starts_with("tls://")),
        urls,
        login: login(nats),
        tls_ca_file: named(&nats.ca_file),
        tls_client: client_certificate(nats),
        name: format!("aip-hub {process}"),
        domain: Some(nats.domain.clone()).filter(|domain| !domain.is_empty()),
        prefix: nats.prefix.clone(),
        // Their ranges were checked.
        streams: u16::try_from(nats.streams).unwrap_or(u16::MAX),
        replicas: u8::try_from(nats.replicas).unwrap_or(u8::MAX),
        retention_secs: u64::from(relay.retention_days) * DAY_SECS,
        envelope_bytes_max: relay.envelope_bytes_max,
        create_streams: nats.create_streams,
        update_streams: nats.update_streams,
        monitoring_url: Some(nats.monitor_url.clone()).filter(|url| !url.is_empty()),
        publish_try: Duration::from_millis(nats.publish_timeout_millis),
        publish_deadline: Duration::from_secs(nats.publish_deadline_secs),
        read_timeout: Duration::from_millis(nats.read_timeout_millis),
        seed,
        ..Options::default()
    }
}

fn login(nats: &NatsSettings) -> Login {
    if let Some(file) = named(&nats.credentials_file) {
        return Login::CredentialsFile(file);
    }
    if !nats.token.is_empty() {
        return Login::Token(nats.token.reveal().to_owned());
    }
    if nats.user.is_empty() {
        return Login::None;
    }
    Login::Password {
        user: nats.user.clone(),
        password: nats.password.reveal().to_owned(),
    }
}

fn client_certificate(nats: &NatsSettings) -> Option<ClientCertificate> {
    Some(ClientCertificate {
        certificate_file: named(&nats.certificate_file)?,
        key_file: named(&nats.certificate_key_file)?,
    })
}

fn named(path: &Path) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then(|| path.to_owned())
}
