//! Senders' buckets that all processes take from.

use std::sync::{Arc, LazyLock};

use aip_protocol::clock::Clock;
use aip_relay::rate::{Rate, SenderBuckets, SenderKey, SenderRates};
use async_trait::async_trait;
use redis::Script;

use crate::shared::Shared;

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/take.lua")));

const SECOND_MICROS: f64 = 1_000_000.0;

/// Buckets in Redis, by its clock. While it cannot be asked each process has buckets of its own, which begin full.
#[derive(Debug)]
pub struct SharedRates {
    shared: Arc<Shared>,
    own: SenderRates,
    message_micros: f64,
    burst_micros: f64,
}

impl SharedRates {
    pub(crate) fn new(shared: Arc<Shared>, rate: Rate, clock: Arc<dyn Clock>) -> Self {
        let message_micros = SECOND_MICROS / f64::from(rate.messages_per_sec.get());
        Self {
            shared,
            own: SenderRates::new(rate, clock),
            message_micros,
            burst_micros: message_micros * f64::from(rate.burst_messages.get()),
        }
    }

    /// Microseconds until a message fits; 0 if it was taken. `None`: nobody can be asked.
    async fn ask(&self, sender: &SenderKey) -> Option<u64> {
        let Shared {
            link,
            counters,
            names,
            ..
        } = &*self.shared;
        let bucket = names.bucket(sender);
        let question = |mut connection| async move {
            TAKE.key(bucket)
                .arg(self.message_micros)
                .arg(self.burst_micros)
                .invoke_async::<String>(&mut connection)
                .await
        };
        let answer = link.ask(counters, 1, question).await?;
        let wait = answer.parse::<u64>().ok();
        let wait = wait.filter(|micros| to_float(*micros) <= self.burst_micros + self.message_micros);
        if wait.is_none() {
            counters.bad_values.one();
        }
        wait
    }
}

#[async_trait]
impl SenderBuckets for SharedRates {
    async fn take(&self, sender: &SenderKey) -> Result<(), u64> {
        match self.ask(sender).await {
            Some(0) => Ok(()),
            Some(micros) => Err(micros.div_ceil(1_000_000)),
            None => {
                self.shared.counters.rate_fallbacks.one();
                self.own.take(sender)
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a wait of more than 2^53 us is refused anyhow"
)]
fn to_float(micros: u64) -> f64 {
    micros as f64
}
