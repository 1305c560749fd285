//! A look at a Redis before it is used, for an operator.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisResult, cmd};
use tokio::time::timeout;

use crate::limits::{LOOK_TIMEOUT, REDIS_VERSION_MIN};
use crate::options::{ConnectError, Options};

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What the server says it is.
    pub version: String,
    /// What it throws away when its memory is full, as it says.
    pub eviction_policy: String,
    /// What an operator should know, a sentence each.
    pub warnings: Vec<String>,
}

/// Why nothing was seen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The URL.
    #[error(transparent)]
    Url(#[from] ConnectError),
    /// No answer in time.
    #[error("Redis does not answer within {0:?}")]
    Silent(Duration),
    /// Redis, or the way to it, says no.
    #[error("Redis cannot be used: {0}")]
    Redis(#[from] redis::RedisError),
    /// Too old.
    #[error("Redis {found} is too old: {} or newer is needed", at_least())]
    Version {
        /// What it says it is.
        found: String,
    },
}

fn at_least() -> String {
    let (major, minor) = REDIS_VERSION_MIN;
    format!("{major}.{minor}")
}

/// Connects, asks what is there, and tries what this room needs.
///
/// # Errors
/// Why it cannot be used.
pub async fn probe(options: &Options) -> Result<Probe, ProbeError> {
    let limit = options.connect_timeout + LOOK_TIMEOUT;
    timeout(limit, look(options))
        .await
        .unwrap_or(Err(ProbeError::Silent(limit)))
}

async fn look(options: &Options) -> Result<Probe, ProbeError> {
    let client = options.client()?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(options.connect_timeout))
        .set_response_timeout(Some(LOOK_TIMEOUT));
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let server: String = cmd("INFO").arg("server").query_async(&mut connection).await?;
    let version = field(&server, "redis_version").unwrap_or("unknown").to_owned();
    if !is_new_enough(&version) {
        return Err(ProbeError::Version { found: version });
    }
    attempt(options, &mut connection).await?;
    let memory: RedisResult<String> = cmd("INFO").arg("memory").query_async(&mut connection).await;
    let memory = memory.unwrap_or_default();
    let eviction_policy = field(&memory, "maxmemory_policy").unwrap_or("unknown").to_owned();
    let warnings = warnings(options, &eviction_policy, field(&memory, "maxmemory"));
    Ok(Probe {
        version,
        eviction_policy,
        warnings,
    })
}

/// Scripts, keys that end, and channels: what an access list may forbid.
async fn attempt(options: &Options, connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let name = format!("{}:probe", options.prefix);
    let script = "redis.call('TIME') redis.call('SET', KEYS[1], '1', 'PX', '1000') return 0";
    let mut eval = cmd("EVAL");
    eval.arg(script).arg(1).arg(&name);
    eval.exec_async(connection).await?;
    cmd("PUBLISH").arg(&name).arg("").exec_async(connection).await
}

fn warnings(options: &Options, policy: &str, limit: Option<&str>) -> Vec<String> {
    let mut warnings = Vec::new();
    let has_limit = limit.is_some_and(|bytes| bytes != "0");
    if policy != "noeviction" && has_limit {
        warnings.push(format!(
            "Redis throws keys away when its memory is full (maxmemory-policy {policy}): rate limits and spent \
             challenges are forgotten then. No message is at risk. Set noeviction, and watch its memory."
        ));
    }
    if !has_limit {
        warnings.push(
            "Redis has no memory limit: set maxmemory, so that it cannot take the machine's.".to_owned(),
        );
    }
    if !options.url.starts_with("rediss://") && !options.url.starts_with("redis+unix:") {
        warnings.push(
            "The way to Redis is not encrypted: use rediss:// unless it is on this machine or in a private network."
                .to_owned(),
        );
    }
    warnings
}

/// The value of a line `name:value`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim())
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) >= REDIS_VERSION_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        for good in ["6.2.0", "6.10.1", "7.0.15", "10.0.0", "7.2.4-beta"] {
            assert!(is_new_enough(good), "{good}");
        }
        for bad in ["6.0.16", "5.9.9", "6", "", "unknown", "x.y.z"] {
            assert!(!is_new_enough(bad), "{bad}");
        }
    }

    #[test]
    fn fields_are_whole_names() {
        let info = "# Memory\r\nmaxmemory_human:0B\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";
        assert_eq!(field(info, "maxmemory"), Some("0"));
        assert_eq!(field(info, "maxmemory_policy"), Some("noeviction"));
        assert_eq!(field(info, "memory"), None);
    }
}
