//! The monitoring endpoint of a NATS server: plain HTTP on an address that the operator gave.

use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Sync;
use crate::limits;

/// The general page, as far as it is read.
#[derive(Deserialize)]
struct Varz {
    #[serde(default)]
    jetstream: JetStream,
}

#[derive(Default, Deserialize)]
struct JetStream {
    #[serde(default)]
    config: Config,
}

#[derive(Default, Deserialize)]
struct Config {
    /// Nanoseconds.
    #[serde(default)]
    sync_interval: u64,
    #[serde(default)]
    sync_always: bool,
}

/// How often the server behind `url` syncs.
pub(crate) async fn sync(url: &str) -> Sync {
    let body = timeout(limits::READ_TIMEOUT, page(url, "/varz"))
        .await
        .ok()
        .flatten();
    let Some(body) = body else {
        tracing::warn!("the monitoring endpoint of NATS does not answer");
        return Sync::Unknown;
    };
    read(&body)
}

fn read(body: &[u8]) -> Sync {
    match serde_json::from_slice(body) {
        Ok(Varz { jetstream }) if jetstream.config.sync_always => Sync::Always,
        Ok(Varz { jetstream }) if jetstream.config.sync_interval > 0 => {
            Sync::Every(Duration::from_nanos(jetstream.config.sync_interval))
        }
        _ => Sync::Unknown,
    }
}

/// One page over HTTP/1.0: the body ends with the connection.
async fn page(url: &str, path: &str) -> Option<Vec<u8>> {
    let address = url.strip_prefix("http://")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream
        .take(limits::MONITORING_BYTES_MAX)
        .read_to_end(&mut answer)
        .await
        .ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let ok = answer.split(|byte| *byte == b' ').nth(1)? == b"200";
    ok.then(|| answer.split_off(end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_read_from_the_general_page() {
        let every = br#"{"jetstream":{"config":{"sync_interval":120000000000}}}"#;
        assert_eq!(read(every), Sync::Every(Duration::from_mins(2)));
        let always = br#"{"jetstream":{"config":{"sync_interval":120000000000,"sync_always":true}}}"#;
        assert_eq!(read(always), Sync::Always);
        assert_eq!(read(b"{}"), Sync::Unknown);
        assert_eq!(read(b"<html>"), Sync::Unknown);
    }
}
