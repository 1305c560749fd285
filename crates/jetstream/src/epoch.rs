//! Another epoch for a store on an operator's word: its streams were put back from a backup, and sequence numbers that
//! were given out since will be given out again.

use aip_relay::mailbox::Epoch;

use crate::config::Options;
use crate::meta::{self, Fresh};
use crate::nats::Nats;
use crate::server;
use crate::start::StartError;
use crate::streams::{Names, StreamError, info};

/// Gives the store that `options` describe the epoch of `fresh`, and tells it. Whatever else is written into the store's
/// record at the same time stays. Processes that have the store open keep the epoch that they have found, and are to be
/// stopped before.
///
/// # Errors
/// No server answers or fits, or there is no such store: none is made.
pub async fn renew_epoch(options: Options, fresh: &Fresh) -> Result<Epoch, StartError> {
    let nats = Nats::connect(options).await?;
    server::check(&nats).await?;
    let names = Names::new(&nats.options().prefix);
    if info(&nats, &names.meta()).await?.is_none() {
        return Err(StreamError::Missing(names.meta()).into());
    }
    // Another one for every call, or the second would change nothing.
    let cause = format!("asked for {}", Epoch::from_random(fresh.epoch_bits).as_str());
    Ok(meta::renew(&nats, &names, fresh, &cause).await?.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::start;
    use crate::testing::{fresh, options};

    fn shared(prefix: &str) -> Options {
        options(&aip_engines::Nats::shared().url(), prefix)
    }

    #[tokio::test]
    async fn a_store_has_another_epoch_and_is_the_same_otherwise() {
        let before = start(shared("epoch-renew"), &fresh(1))
            .await
            .expect("opens")
            .record;
        for bits in [2, 3] {
            let told = renew_epoch(shared("epoch-renew"), &fresh(bits))
                .await
                .expect("renewed");
            assert_eq!(told, Epoch::from_random(bits));
            let after = start(shared("epoch-renew"), &fresh(9))
                .await
                .expect("opens")
                .record;
            assert_eq!(after.epoch, told);
            assert_eq!(after.secret, before.secret);
            assert_eq!(after.shards, before.shards);
            assert!(after.complete);
        }
    }

    #[tokio::test]
    async fn of_two_at_the_same_time_one_is_the_last() {
        start(shared("epoch-two"), &fresh(1)).await.expect("opens");
        let [two, three] = [fresh(2), fresh(3)];
        let both = tokio::join!(
            renew_epoch(shared("epoch-two"), &two),
            renew_epoch(shared("epoch-two"), &three)
        );
        let told = [both.0, both.1].map(|told| told.expect("renewed"));
        let found = start(shared("epoch-two"), &fresh(9))
            .await
            .expect("opens")
            .record
            .epoch;
        assert!(told.contains(&found), "{found:?} and {told:?}");
        assert_ne!(found, Epoch::from_random(1));
    }

    #[tokio::test]
    async fn no_store_is_made() {
        let refused = renew_epoch(shared("epoch-none"), &fresh(2)).await;
        assert!(
            matches!(&refused, Err(StartError::Stream(StreamError::Missing(_)))),
            "{refused:?}"
        );
        let again = renew_epoch(shared("epoch-none"), &fresh(2)).await;
        assert!(again.is_err());
    }
}
