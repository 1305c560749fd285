//! Which hosts may keep connections open between requests: the pool bounds them for each host, this bounds the hosts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use url::Url;

use crate::limits::{IDLE_HOSTS_MAX, IDLE_TIMEOUT};

/// The hosts that were called within the time that an idle connection lives.
#[derive(Debug, Default)]
pub(super) struct KeptHosts(Mutex<HashMap<String, Instant>>);

impl KeptHosts {
    /// Whether a connection to the host of this URL may stay open after a request that ends by `ends_by`. If so, the host
    /// has its place for as long as that takes.
    pub(super) fn keep(&self, url: &Url, now: Instant, ends_by: Instant) -> bool {
        let host = format!("{}//{}", url.scheme(), url.authority());
        let until = ends_by + IDLE_TIMEOUT;
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = hosts.get_mut(&host) {
            *kept = until.max(*kept);
            return true;
        }
        if hosts.len() >= IDLE_HOSTS_MAX {
            hosts.retain(|_, until| *until > now);
        }
        let has_room = hosts.len() < IDLE_HOSTS_MAX;
        if has_room {
            hosts.insert(host, until);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn url(number: usize) -> Url {
        Url::parse(&format!("https://hub{number}.example/federation/v1/messages")).unwrap()
    }

    #[tokio::test]
    async fn so_many_hosts_keep_connections_and_no_more() {
        let (hosts, now) = (KeptHosts::default(), Instant::now());
        let ends_by = now + Duration::from_secs(5);
        for number in 0..IDLE_HOSTS_MAX {
            assert!(hosts.keep(&url(number), now, ends_by), "{number}");
        }
        assert!(!hosts.keep(&url(IDLE_HOSTS_MAX), now, ends_by));
        assert!(hosts.keep(&url(0), now, ends_by), "one that is among them stays");
        let idle_over = ends_by + IDLE_TIMEOUT;
        assert!(!hosts.keep(
            &url(IDLE_HOSTS_MAX),
            idle_over - Duration::from_millis(1),
            idle_over
        ));
        assert!(
            hosts.keep(&url(IDLE_HOSTS_MAX), idle_over, idle_over),
            "places become free"
        );
    }

    #[tokio::test]
    async fn ports_and_schemes_have_connections_of_their_own() {
        let (hosts, now) = (KeptHosts::default(), Instant::now());
        for text in [
            "https://a.example/",
            "https://a.example:8443/",
            "http://a.example/",
            "https://a.example/other",
        ] {
            hosts.keep(&Url::parse(text).unwrap(), now, now);
        }
        assert_eq!(hosts.0.lock().unwrap().len(), 3);
    }
}
