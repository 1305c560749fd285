//! What takes long in the field: streams that forget, stores that nobody looks after.

use std::time::Duration;

use aip_jetstream::{Fresh, JetStreamMailboxes};
use aip_relay::mailbox::{AppendOutcome, Mailboxes, Upkeep};
use async_nats::jetstream::stream::Config;

use crate::kit::{eventually, mail_at, now, pending_seqs, seq_of, shared, stored, stream, two};
use crate::stores::{Forgetful, open_forgetful, parts};

/// Lets the streams of mailboxes forget ids after so long.
async fn forget_ids_after(options: &aip_jetstream::Options, window: Duration) {
    let info = stream(options).await.cached_info().clone();
    let client = async_nats::connect(options.urls.as_slice()).await.unwrap();
    let config = Config {
        duplicate_window: window,
        ..info.config
    };
    let context = async_nats::jetstream::new(client);
    context.update_stream(config).await.unwrap();
}

/// An id that is used again while the stream still knows its first use is accepted once, also by a process that asks
/// after the stream has forgotten the first use.
#[tokio::test]
async fn a_reused_id_is_accepted_once_when_the_stream_forgets() {
    let options = shared("reuse");
    let [one, other] = two(options.clone()).await;
    let fresh = open_forgetful(options.clone()).await;
    assert_eq!(one.append(mail_at(1, 0)).await.unwrap(), stored(1));
    // Its time is over by the hub's clock, not by the stream's.
    assert_eq!(one.append(mail_at(1, 1_000)).await.unwrap(), stored(2));
    assert_eq!(seq_of(other.append(mail_at(1, 1_100)).await.unwrap()), 2);
    // That the stream has forgotten shows in another mailbox, where nothing was used again. A change of the window starts the
    // server's timer, which now and then is not heard under load: so it is changed until it was.
    let mut probe = mail_at(2, 0);
    probe.recipient = aip_relay::mailbox::suite::did("carol");
    other.append(probe.clone()).await.unwrap();
    let mut window = Duration::from_millis(100);
    eventually("the stream forgets", async || {
        window += Duration::from_millis(1);
        forget_ids_after(&options, window).await;
        tokio::time::sleep(2 * window).await;
        let outcome = other.append(probe.clone()).await.unwrap();
        matches!(outcome, AppendOutcome::Stored { .. })
    })
    .await;
    for store in [&one, &other] {
        let again = store.append(mail_at(1, 1_200)).await.unwrap();
        assert!(
            matches!(again, AppendOutcome::Duplicate { seq: Some(2), .. }),
            "{again:?}"
        );
    }
    assert_eq!(seq_of(fresh.append(mail_at(1, 1_300)).await.unwrap()), 2);
    assert_eq!(pending_seqs(&fresh).await, [1, 2]);
    // After that one's time the id is free once more.
    assert_eq!(fresh.append(mail_at(1, 2_500)).await.unwrap(), stored(3));
    assert_eq!(seq_of(one.append(mail_at(1, 2_600)).await.unwrap()), 3);
}

/// A store that nobody has swept for longer than its streams keep what is not swept has a new epoch, the same one for
/// all processes that come then; one that was looked after has not.
#[tokio::test]
async fn a_neglected_store_has_a_new_epoch() {
    let options = shared("neglect");
    let open = async |days: u64, bits: u64| {
        let mut parts = parts(std::sync::Arc::new(Forgetful));
        parts.fresh = Fresh {
            epoch_bits: bits,
            secret: [7; 32],
        };
        let at = now() + Duration::from_hours(24 * days);
        JetStreamMailboxes::open(options.clone(), parts, at)
            .await
            .unwrap()
    };
    let first = open(0, 1).await;
    first.append(mail_at(1, 0)).await.unwrap();
    let epoch = first.epoch();
    assert_eq!(open(20, 2).await.epoch(), epoch, "20 days are no harm");
    assert_eq!(open(45, 3).await.epoch(), epoch, "somebody was here on day 20");
    let (one, other) = tokio::join!(open(90, 4), open(90, 5));
    assert_ne!(one.epoch(), epoch);
    assert_eq!(one.epoch(), other.epoch());
    assert_eq!(open(91, 6).await.epoch(), one.epoch());
    assert_eq!(pending_seqs(&one).await, [1], "the mail is still there");
}
