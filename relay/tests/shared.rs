//! What processes of one hub share, in one process's memory.

use std::sync::Arc;
use std::time::Duration;

use aip_protocol::clock::{Clock, ManualClock};
use aip_protocol::time::Timestamp;
use aip_relay::dedup::shared::memory::MemoryWindow;
use aip_relay::dedup::shared::suite as window;
use aip_relay::dedup::{Accepted, SharedWindow, Unshared};
use aip_relay::mailbox::Route;
use aip_relay::rate::suite as rates;
use aip_relay::rate::{Rate, SenderBuckets, SenderRates};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_unix_millis(1_796_000_000_000)))
}

/// Buckets in this process.
struct Here(Arc<ManualClock>);

impl rates::Ground for Here {
    async fn buckets(&self, rate: Rate) -> (Arc<dyn SenderBuckets>, Arc<dyn SenderBuckets>) {
        let clock = Arc::<ManualClock>::clone(&self.0);
        let rates = Arc::new(SenderRates::new(rate, clock));
        (Arc::<SenderRates>::clone(&rates), rates)
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time);
    }
}

fn fresh_window() -> window::Context {
    let clock = clock();
    let shared: Arc<dyn SharedWindow> = Arc::new(MemoryWindow::new(Arc::<ManualClock>::clone(&clock)));
    window::Context::new(Arc::clone(&shared), shared, clock, ())
}

/// Makes a test of each function of a suite.
macro_rules! contract {
    ($suite:path as $name:ident on $ground:expr => $($contract:ident),+ $(,)?) => {
        mod $name {
            use $suite as suite;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $contract() {
                    suite::$contract(&$ground).await;
                }
            )+
        }
    };
}

contract! { aip_relay::rate::suite as sender_buckets on crate::Here(crate::clock()) =>
    a_burst_fits_exactly,
    senders_do_not_share_a_bucket,
    a_bucket_fills_again,
    a_pause_saves_up_no_more_than_a_burst,
}

contract! { aip_relay::dedup::shared::suite as shared_window on crate::fresh_window() =>
    an_unknown_key_is_unknown,
    what_one_noted_the_other_recalls,
    a_note_can_be_repeated,
    a_note_ends,
}

#[tokio::test]
async fn who_shares_nothing_recalls_nothing() {
    let accepted = Accepted {
        digest: [1; 32],
        until: clock().now() + Duration::from_mins(20),
        seq: Some(1),
        route: Route::Mailbox,
    };
    Unshared.note([1; 16], accepted);
    assert_eq!(Unshared.recall([1; 16]).await, None);
}
