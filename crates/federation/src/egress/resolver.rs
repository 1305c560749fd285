//! Names to addresses: the seam, the operating system's resolver, and the guard that reqwest gets,
//! which lets through checked addresses only.

use std::error::Error;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolving};
use tokio::sync::Semaphore;

use super::{EgressError, Policy};
use crate::limits::{ADDRESSES_MAX, LOOKUPS_MAX};

/// Looks names up.
#[async_trait]
pub trait Resolve: Send + Sync + Debug {
    /// Every address of `host`; none is an empty list.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's resolver.
#[derive(Debug)]
pub struct SystemResolver {
    slots: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let host = host.to_owned();
        // The slot goes with the thread: a caller that gave up does not free it early.
        let lookup = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let found = (host.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        lookup.await.map_err(io::Error::other)?
    }
}

/// Looks a name up and refuses it as a whole when one of its addresses may not be called, so that a
/// name server cannot mix a private address in among public ones.
async fn checked_addresses(
    resolver: &dyn Resolve,
    policy: &Policy,
    host: &str,
) -> Result<Vec<IpAddr>, EgressError> {
    let found = match resolver.addresses(host).await {
        Ok(found) if found.is_empty() => return Err(EgressError::NameUnresolved(None)),
        Ok(found) => found,
        Err(error) => return Err(EgressError::NameUnresolved(Some(error))),
    };
    if found.len() > ADDRESSES_MAX {
        return Err(EgressError::AddressesTooMany);
    }
    for &address in &found {
        policy.check_address(address)?;
    }
    Ok(found)
}

/// The resolver inside the HTTP client. What it returns is what is connected to: there is no second
/// look-up in which a name server could answer differently.
pub(super) struct GuardedResolver {
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) policy: Arc<Policy>,
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.resolver);
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let found = checked_addresses(resolver.as_ref(), &policy, name.as_str()).await;
            let found = found.map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)?;
            // Port 0 means the URL's own.
            let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
