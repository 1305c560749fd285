//! What the processes of a hub share on Redis, reached as the settings say.

use std::sync::Arc;
use std::time::Duration;

use aip_cluster::{Cluster, ConnectError, Options};
use aip_protocol::clock::Clock;
use aip_protocol::multikey::SigningKey;
use rand::rngs::SysRng;
use rand_core::{Rng as _, UnwrapErr};

use crate::config::Settings;
use crate::hub_key;

/// Takes part, where the settings name a Redis. One that is away is no error.
///
/// # Errors
/// The address is none.
pub async fn connect(
    settings: &Settings,
    key: &SigningKey,
    clock: Arc<dyn Clock>,
) -> Result<Option<Arc<Cluster>>, ConnectError> {
    let Some(options) = options(settings, key) else {
        return Ok(None);
    };
    let mut rng = UnwrapErr(SysRng);
    let process = rng.next_u64();
    Cluster::connect(options, process, clock, Box::new(rng))
        .await
        .map(Some)
}

/// What an operator should know about Redis, a sentence each; nothing where none is named.
pub async fn warnings(settings: &Settings, key: &SigningKey) -> Vec<String> {
    let Some(options) = options(settings, key) else {
        return Vec::new();
    };
    match aip_cluster::probe(&options).await {
        Ok(probe) => probe.warnings,
        Err(error) => vec![format!(
            "{error}: until it can, each process decides alone; no message is at risk"
        )],
    }
}

/// How Redis is reached; `None` where the settings name none.
pub fn options(settings: &Settings, key: &SigningKey) -> Option<Options> {
    let (url, redis) = (&settings.engines.shared_url, &settings.redis);
    (!url.is_empty()).then(|| Options {
        url: url.reveal().to_owned().into(),
        secret: hub_key::shared_secret(key).into(),
        prefix: redis.prefix.clone(),
        connect_timeout: Duration::from_millis(redis.connect_timeout_millis),
        answer_timeout: Duration::from_millis(redis.answer_timeout_millis),
    })
}
