//! Connecting: once at the start, and again for ever.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::{ConnectOptions, Event};
use tokio::sync::watch;

use super::inbox::Inbox;
use super::{Inner, Nats};
use crate::config::{Login, Options, OptionsError, shown};
use crate::limits;
use crate::stats::Stats;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The file with the credentials cannot be used.
    #[error("the NATS credentials in {path} cannot be used: {cause}")]
    Credentials {
        /// Which file.
        path: String,
        /// What went wrong.
        cause: std::io::Error,
    },
    /// No server lets us in.
    #[error("no NATS server of {urls} can be used: {cause}")]
    Unreachable {
        /// The servers, without their users.
        urls: String,
        /// What went wrong with the last one.
        cause: String,
    },
}

impl Nats {
    /// Connects to one of the servers; from then on reconnects for ever.
    pub(crate) async fn connect(options: Options) -> Result<Self, ConnectError> {
        options.check()?;
        let stats = Arc::new(Stats::default());
        let (disturb, disturbed) = watch::channel(0);
        let unreachable = |cause: String| ConnectError::Unreachable {
            urls: options
                .urls
                .iter()
                .map(|url| shown(url))
                .collect::<Vec<_>>()
                .join(", "),
            cause,
        };
        let client = login(&options)
            .await?
            .event_callback(watcher(Arc::clone(&stats), disturb))
            .connect(options.urls.as_slice())
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let inbox = Inbox::new(&client)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        let (api, context) = match &options.domain {
            Some(domain) => (
                format!("$JS.{domain}.API"),
                ContextBuilder::new()
                    .domain(domain.as_str())
                    .build(client.clone()),
            ),
            None => (
                "$JS.API".to_owned(),
                ContextBuilder::new()
                    .timeout(limits::ADMIN_TIMEOUT)
                    .build(client.clone()),
            ),
        };
        Ok(Self(Arc::new(Inner {
            client,
            context,
            api: api.into_boxed_str(),
            options,
            stats,
            inbox,
            disturbed,
        })))
    }
}

async fn login(options: &Options) -> Result<ConnectOptions, ConnectError> {
    let seed = options.seed;
    let mut connect = ConnectOptions::new()
        .name(&options.name)
        .require_tls(options.tls_required)
        .connection_timeout(limits::CONNECT_TIMEOUT)
        .ping_interval(limits::PING_INTERVAL)
        .client_capacity(limits::SEND_QUEUE_MAX)
        .subscription_capacity(limits::SUBSCRIPTION_QUEUE_MAX)
        .max_reconnects(None)
        .reconnect_delay_callback(move |attempts| pause(seed, attempts));
    if let Some(file) = &options.tls_ca_file {
        connect = connect.add_root_certificates(file.clone());
    }
    if let Some(client) = &options.tls_client {
        connect = connect.add_client_certificate(client.certificate_file.clone(), client.key_file.clone());
    }
    match &options.login {
        Login::None => Ok(connect),
        Login::Password { user, password } => Ok(connect.user_and_password(user.clone(), password.clone())),
        Login::Token(token) => Ok(connect.token(token.clone())),
        Login::CredentialsFile(path) => {
            connect
                .credentials_file(path)
                .await
                .map_err(|cause| ConnectError::Credentials {
                    path: path.display().to_string(),
                    cause,
                })
        }
    }
}

/// The pause before attempt number `attempts`: doubling up to a cap, the last quarter of it by chance.
fn pause(seed: u64, attempts: usize) -> Duration {
    let Some(doublings) = attempts.checked_sub(2) else {
        return Duration::ZERO;
    };
    let factor = 1_u32 << doublings.min(16);
    let whole = limits::RECONNECT_PAUSE_FIRST
        .saturating_mul(factor)
        .min(limits::RECONNECT_PAUSE_MAX);
    // The first step of SplitMix64: enough to scatter processes.
    let step = (attempts as u64)
        .wrapping_add(seed)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let part = u32::try_from((step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 48).unwrap_or(0);
    whole * 3 / 4 + whole / 4 * part / u32::from(u16::MAX)
}

type EventFuture = std::future::Ready<()>;

/// Counts what happens to the connection, and tells who must look for what was lost.
fn watcher(
    stats: Arc<Stats>,
    disturb: watch::Sender<u64>,
) -> impl Fn(Event) -> EventFuture + Send + Sync + 'static {
    let first = std::sync::atomic::AtomicBool::new(true);
    move |event| {
        match &event {
            Event::Connected if first.swap(false, std::sync::atomic::Ordering::Relaxed) => {}
            Event::Connected => {
                stats.reconnects.one();
                disturb.send_modify(|times| *times += 1);
            }
            Event::SlowConsumer(_) => {
                stats.slow_subscriptions.one();
                disturb.send_modify(|times| *times += 1);
            }
            Event::Disconnected => tracing::warn!("the connection to NATS is lost; reconnecting"),
            Event::ServerError(error) => tracing::warn!(%error, "NATS reports an error"),
            _ => {}
        }
        std::future::ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_cap_and_differ_between_processes() {
        assert_eq!(pause(1, 0), Duration::ZERO);
        assert_eq!(pause(1, 1), Duration::ZERO);
        for seed in 0..100 {
            let late = pause(seed, 1_000);
            assert!(late <= limits::RECONNECT_PAUSE_MAX);
            assert!(late >= limits::RECONNECT_PAUSE_MAX * 3 / 4);
            assert!(pause(seed, 3) <= limits::RECONNECT_PAUSE_FIRST * 2);
        }
        assert_ne!(pause(1, 20), pause(2, 20));
    }
}
