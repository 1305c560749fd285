//! The pause of the running hub, renewed for as long as the move needs it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::super::operator::Operator;
use crate::routes::admin::PAUSE_PATH;

/// After so long without a renewal the hub goes on, in seconds.
const LEASE_SECS: u64 = 20;
/// Between two renewals.
const RENEWAL: Duration = Duration::from_secs(4);

/// A pause that holds, or a hub that does not run and so changes nothing.
#[derive(Debug)]
pub(super) enum Lease {
    /// Nobody runs; the data folder is locked.
    NotNeeded,
    /// The hub stands still.
    Held {
        /// The hub.
        operator: Arc<Operator>,
        /// Which pause it is.
        number: u64,
    },
}

impl Lease {
    /// Begins a pause.
    pub(super) async fn take(operator: Arc<Operator>) -> anyhow::Result<Self> {
        let body = json!({ "lease_secs": LEASE_SECS });
        let answer = operator.call(Method::PUT, PAUSE_PATH, &body).await?;
        let number = answer.get("pause").and_then(Value::as_u64);
        Ok(Self::Held {
            number: number.context("the hub does not say which pause it began")?,
            operator,
        })
    }

    /// Carries out `work` while the pause is renewed; gives it up when the pause has ended, since the hub may have
    /// changed something since.
    pub(super) async fn while_held<T>(
        &self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        tokio::select! {
            done = work => done,
            ended = self.renew_for_ever() => match ended {
                Ok(never) => match never {},
                Err(error) => bail!("the hub does not stand still any more ({error:#}); begin again"),
            },
        }
    }

    async fn renew_for_ever(&self) -> anyhow::Result<std::convert::Infallible> {
        loop {
            sleep(RENEWAL).await;
            self.hold(json!(LEASE_SECS)).await?;
        }
    }

    /// Lets the hub stand still until it is stopped; fails if the pause has ended meanwhile.
    pub(super) async fn for_good(&self) -> anyhow::Result<()> {
        self.hold(Value::Null).await
    }

    async fn hold(&self, lease_secs: Value) -> anyhow::Result<()> {
        let Self::Held { operator, number } = self else {
            return Ok(());
        };
        let body = json!({ "lease_secs": lease_secs, "renews": number });
        operator.call(Method::PUT, PAUSE_PATH, &body).await.map(drop)
    }
}
