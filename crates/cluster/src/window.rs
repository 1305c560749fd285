//! What the processes remember together of accepted envelopes.

use std::time::Duration;

use aip_protocol::time::Timestamp;
use aip_relay::dedup::{Accepted, SharedWindow};
use aip_relay::mailbox::Route;
use async_trait::async_trait;
use redis::cmd;

use crate::Cluster;
use crate::names::{Names, SEAL_BYTES};
use crate::post::Order;
use crate::shared::Shared;

/// The first byte of a value; another layout gets another number.
const VERSION: u8 = 1;
const CONTENT_BYTES: usize = 1 + 32 + 8 + 1 + 1 + 8;

#[async_trait]
impl SharedWindow for Cluster {
    async fn recall(&self, key: [u8; 16]) -> Option<Accepted> {
        let Shared {
            link,
            counters,
            names,
            clock,
            ..
        } = &*self.shared;
        let name = names.accepted(&key);
        let mut get = cmd("GET");
        get.arg(&name);
        let question =
            |mut connection| async move { get.query_async::<Option<Vec<u8>>>(&mut connection).await };
        let Some(value) = link.ask(counters, 1, question).await else {
            counters.unanswered.one();
            return None;
        };
        let accepted = read(names, &name, &value?);
        if accepted.is_none() {
            counters.bad_values.one();
        }
        accepted.filter(|accepted| clock.now() <= accepted.until)
    }

    fn note(&self, key: [u8; 16], accepted: Accepted) {
        let left = accepted.until.millis_since(self.shared.clock.now());
        let Ok(left) = u64::try_from(left) else { return };
        let name = self.shared.names.accepted(&key);
        let value = write(&self.shared.names, &name, &accepted);
        // The end is inclusive.
        let life = Duration::from_millis(left.saturating_add(1));
        self.shared.order(Order::Put { name, value, life });
    }
}

fn write(names: &Names, name: &str, accepted: &Accepted) -> Vec<u8> {
    let mut content = Vec::with_capacity(CONTENT_BYTES);
    content.push(VERSION);
    content.extend(accepted.digest);
    content.extend(accepted.until.unix_millis().to_be_bytes());
    content.push(match accepted.route {
        Route::Mailbox => 0,
        Route::Direct => 1,
        Route::Peer => 2,
    });
    content.push(accepted.seq.is_some().into());
    content.extend(accepted.seq.unwrap_or_default().to_be_bytes());
    let mut value = names.seal(name, &content).to_vec();
    value.extend(content);
    value
}

fn read(names: &Names, name: &str, value: &[u8]) -> Option<Accepted> {
    let (seal, content) = value.split_at_checked(SEAL_BYTES)?;
    if content.len() != CONTENT_BYTES || !names.is_sealed(name, content, seal) {
        return None;
    }
    let (version, rest) = content.split_first()?;
    let (digest, rest) = rest.split_first_chunk::<32>()?;
    let (until, rest) = rest.split_first_chunk::<8>()?;
    let (flags, rest) = rest.split_first_chunk::<2>()?;
    let (seq, _) = rest.split_first_chunk::<8>()?;
    let [route, has_seq] = flags;
    Some(Accepted {
        digest: *digest,
        until: Timestamp::from_unix_millis(i64::from_be_bytes(*until)),
        seq: match has_seq {
            0 => None,
            1 => Some(u64::from_be_bytes(*seq)),
            _ => return None,
        },
        route: match route {
            0 => Route::Mailbox,
            1 => Route::Direct,
            2 => Route::Peer,
            _ => return None,
        },
    })
    .filter(|_| *version == VERSION)
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    #[test]
    fn a_value_comes_out_as_it_went_in_and_nothing_else_does() {
        let names = Names::new("aip", Zeroizing::new([1; 32]));
        let accepted = Accepted {
            digest: [9; 32],
            until: Timestamp::from_unix_millis(1_796_000_000_123),
            seq: Some(u64::MAX),
            route: Route::Mailbox,
        };
        let direct = Accepted {
            seq: None,
            route: Route::Direct,
            ..accepted
        };
        let queued = Accepted {
            route: Route::Peer,
            ..accepted
        };
        for accepted in [accepted, direct, queued] {
            let value = write(&names, "name", &accepted);
            assert_eq!(read(&names, "name", &value), Some(accepted));
            assert_eq!(read(&names, "other", &value), None);
            for at in 0..value.len() {
                let mut changed = value.clone();
                changed[at] ^= 1;
                assert_eq!(read(&names, "name", &changed), None, "byte {at}");
                assert_eq!(read(&names, "name", &value[..at]), None, "{at} bytes");
            }
            let longer = [value.as_slice(), &[0]].concat();
            assert_eq!(read(&names, "name", &longer), None);
        }
    }
}
