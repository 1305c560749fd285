//! Whether the servers can carry a store, and what an operator should know about them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use async_nats::ServerInfo;
use async_nats::jetstream::context::AccountErrorKind;

use crate::config::Options;
use crate::nats::Nats;
use crate::start::StartError;

pub(crate) mod monitoring;

/// The oldest server this room works with: older ones lost or brought back messages in ways it does not mend.
const VERSION_MIN: (u64, u64) = (2, 14);

/// How often the servers make sure that what they confirmed is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before they confirm.
    Always,
    /// From time to time: what was confirmed since can be lost with the power.
    Every(Duration),
    /// Not known: no monitoring address is set, or it did not answer.
    Unknown,
}

/// Something that works, but not as safely as it could; a sentence for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// A short name, for machines.
    pub code: &'static str,
    /// What it means and what to do.
    pub sentence: String,
}

/// What was found about the servers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The version of the server that we are connected to.
    pub version: String,
    /// The name of its cluster; none for a single server.
    pub cluster: Option<String>,
    /// How often it syncs.
    pub sync: Sync,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Bytes that JetStream holds for our account.
    pub storage_bytes: u64,
    /// Bytes that it may hold; `None` means as many as the disk.
    pub storage_bytes_max: Option<u64>,
    /// Streams of our account.
    pub streams: usize,
    /// What could be safer.
    pub warnings: Vec<Warning>,
}

/// Checks the server we are connected to; the others of its cluster are expected to be like it.
pub(crate) async fn check(nats: &Nats) -> Result<Report, StartError> {
    let (options, info) = (
        nats.options(),
        nats.client().try_server_info().unwrap_or_default(),
    );
    check_info(&info, options)?;
    let account = nats
        .jetstream()
        .query_account()
        .await
        .map_err(|error| match error.kind() {
            AccountErrorKind::TimedOut => StartError::Silent,
            _ => StartError::NoJetStream(error.to_string()),
        })?;
    if account.limits.max_bytes_required {
        return Err(StartError::Account(
            "it asks for `max_bytes` on every stream, which would make streams refuse mail they have confirmed".into(),
        ));
    }
    let sync = match &options.monitoring_url {
        Some(url) => monitoring::sync(url).await,
        None => Sync::Unknown,
    };
    let mut report = Report {
        tls: is_encrypted(&info, options),
        version: info.version,
        cluster: info.cluster,
        sync,
        storage_bytes: account.storage,
        storage_bytes_max: account.limits.max_storage.and_then(|max| u64::try_from(max).ok()),
        streams: account.streams,
        warnings: Vec::new(),
    };
    report.warnings = warnings(&report, options);
    Ok(report)
}

fn check_info(info: &ServerInfo, options: &Options) -> Result<(), StartError> {
    let found = version(&info.version);
    if found.is_none_or(|found| found < VERSION_MIN) {
        return Err(StartError::TooOld {
            found: info.version.clone(),
        });
    }
    if !info.jetstream {
        return Err(StartError::NoJetStream(
            "the server was started without it".to_owned(),
        ));
    }
    if options.replicas > 1 && info.cluster.is_none() {
        return Err(StartError::NoCluster {
            replicas: options.replicas,
        });
    }
    let needed = options
        .envelope_bytes_max
        .saturating_add(crate::limits::RECORD_OVERHEAD_BYTES_MAX);
    if info.max_payload < needed {
        return Err(StartError::SmallPayload {
            found: info.max_payload,
            needed,
        });
    }
    Ok(())
}

/// The first two numbers of `2.15.1` or `v2.15.0-dev`.
fn version(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.trim_start_matches('v').split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn is_encrypted(info: &ServerInfo, options: &Options) -> bool {
    let asked = |url: &String| url.starts_with("tls://") || url.starts_with("wss://");
    info.tls_required || options.tls_required || options.urls.iter().all(asked)
}

fn warnings(report: &Report, options: &Options) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, sentence: &str| {
        warnings.push(Warning {
            code,
            sentence: sentence.to_owned(),
        });
    };
    if options.replicas == 1 {
        warn(
            "one_replica",
            "every stream has one copy: mail is lost with that server's disk, and waits while the server is down; \
             set `replicas` to 3 on a cluster of three",
        );
    }
    match report.sync {
        Sync::Always => {}
        Sync::Every(interval) => warn(
            "lazy_sync",
            &format!(
                "the NATS servers write to disk only every {} seconds: a power failure loses mail that was confirmed \
                 before; set `sync_interval: always` in their `jetstream` section",
                interval.as_secs()
            ),
        ),
        Sync::Unknown => warn(
            "unknown_sync",
            "it is not known whether the NATS servers write to disk before they confirm; set their monitoring \
             address to have it checked, and `sync_interval: always` in their `jetstream` section",
        ),
    }
    if !report.tls && options.urls.iter().any(|url| !is_loopback(url)) {
        warn(
            "plain_text",
            "the connection to NATS is not encrypted: who can listen on the network sees who writes to whom; use \
             `tls://` addresses",
        );
    }
    if report
        .storage_bytes_max
        .is_some_and(|max| report.storage_bytes > max / 10 * 8)
    {
        warn(
            "storage_nearly_full",
            "JetStream holds more than 80 percent of what our account may store; beyond, no mail is taken",
        );
    }
    warnings
}

fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = match rest.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => rest.split([':', '/']).next(),
    };
    let host = host.unwrap_or_default();
    host == "localhost"
        || host
            .parse()
            .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
            .is_loopback()
}

#[cfg(test)]
mod tests;
