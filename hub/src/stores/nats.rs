//! Mailboxes on NATS `JetStream`, opened as the settings say.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aip_jetstream::config::{ClientCertificate, Login};
use aip_jetstream::server::Report;
use aip_jetstream::{Fresh, JetStreamMailboxes, Options, Parts, StartError, StreamError};
use aip_relay::dedup::{SharedWindow, Unshared};
use aip_relay::mailbox::Epoch;
use aip_relay::mailbox::memory::MemoryMailboxes;
use aip_relay::mailbox::rocks::RocksMailboxes;
use percent_encoding::percent_decode_str;
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};
use url::Url;

use super::bell::Bell;
use crate::clock;
use crate::config::{NatsSettings, Settings};

const DAY_SECS: u64 = 86_400;

/// Opens the mailboxes. `window` is the dedup window of this process, `shared` that of all.
///
/// # Errors
/// What is wrong with the servers or their streams.
pub(crate) async fn open(
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
    JetStreamMailboxes::open(options(settings, process, rng.next_u64()), parts, clock::wall()).await
}

/// Looks at the servers and the streams, and changes nothing; `None` where there is no store yet.
///
/// # Errors
/// What is wrong with them.
pub async fn look(settings: &Settings) -> Result<Option<Report>, StartError> {
    let options = Options {
        create_streams: false,
        replace_lost_streams: false,
        update_streams: false,
        ..options(settings, "doctor", 0)
    };
    let parts = Parts {
        window: Arc::new(MemoryMailboxes::new(Epoch::from_random(0))),
        shared: Arc::new(Unshared),
        fresh: Fresh {
            epoch_bits: 0,
            secret: [0; 32],
        },
        seed: 0,
        wake: Arc::new(|_, _| ()),
    };
    match JetStreamMailboxes::open(options, parts, clock::wall()).await {
        Ok(mailboxes) => Ok(Some(mailboxes.report().clone())),
        Err(StartError::Stream(StreamError::Missing(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How the servers are reached, and how the store lies on them.
pub(crate) fn options(settings: &Settings, process: &str, seed: u64) -> Options {
    let (nats, relay) = (&settings.nats, &settings.relay);
    let servers = settings.engines.mailbox_servers().map(bared);
    let (urls, logins): (Vec<_>, Vec<_>) = servers.unzip();
    let in_address = logins.into_iter().flatten().next();
    Options {
        tls_required: urls.iter().all(|url| url.starts_with("tls://")),
        urls,
        login: login(nats).or(in_address).unwrap_or_default(),
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
        replace_lost_streams: nats.replace_lost_streams,
        update_streams: nats.update_streams,
        monitoring_url: Some(nats.monitor_url.clone()).filter(|url| !url.is_empty()),
        publish_try: Duration::from_millis(nats.publish_timeout_millis),
        publish_deadline: Duration::from_secs(nats.publish_deadline_secs),
        read_timeout: Duration::from_millis(nats.read_timeout_millis),
        seed,
    }
}

fn login(nats: &NatsSettings) -> Option<Login> {
    if let Some(file) = named(&nats.credentials_file) {
        return Some(Login::CredentialsFile(file));
    }
    if !nats.token.is_empty() {
        return Some(Login::Token(nats.token.reveal().to_owned()));
    }
    (!nats.user.is_empty()).then(|| Login::Password {
        user: nats.user.clone(),
        password: nats.password.reveal().to_owned(),
    })
}

/// An address without the user in it, and the user: a driver shows an address in its log. A user without a password
/// is a token there.
fn bared(server: &str) -> (String, Option<Login>) {
    let Ok(mut url) = Url::parse(server) else {
        return (server.to_owned(), None);
    };
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = plain(url.username());
    let login = match url.password() {
        Some(password) => Some(Login::Password {
            password: plain(password),
            user,
        }),
        None => (!user.is_empty()).then_some(Login::Token(user)),
    };
    let taken_out = login.is_some() && url.set_username("").is_ok() && url.set_password(None).is_ok();
    if taken_out {
        return (url.to_string(), login);
    }
    (server.to_owned(), login)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    fn options_of(urls: &str, change: impl FnOnce(&mut NatsSettings)) -> Options {
        let mut settings = Settings::default();
        settings.engines.mailboxes_url = Secret::new(urls);
        change(&mut settings.nats);
        options(&settings, "hub-1", 1)
    }

    /// What a driver says at the level `debug` is not in our hands.
    #[test]
    fn who_signs_in_is_taken_out_of_the_address() {
        let found = options_of("nats://a:4222, nats://hub:p%40ss@b:4222", |_| ());
        assert_eq!(found.urls, ["nats://a:4222", "nats://b:4222"]);
        let Login::Password { user, password } = found.login else {
            panic!("{:?}", found.login)
        };
        assert_eq!((user.as_str(), password.as_str()), ("hub", "p@ss"));
        let found = options_of("tls://t0ken@a:4222", |_| ());
        assert_eq!(found.urls, ["tls://a:4222"]);
        assert!(matches!(found.login, Login::Token(token) if token == "t0ken"));
        assert!(found.tls_required);
    }

    #[test]
    fn a_login_of_the_settings_wins_over_one_in_the_address() {
        let found = options_of("nats://hub:pass@a:4222", |nats| {
            nats.credentials_file = "hub.creds".into();
        });
        assert!(matches!(found.login, Login::CredentialsFile(_)));
        assert!(!format!("{found:?}").contains("pass"));
        assert!(matches!(options_of("nats://a", |_| ()).login, Login::None));
    }
}
