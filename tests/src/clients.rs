//! Agents of a test: a client with a key file of its own, beside the hub's data.

use std::path::PathBuf;
use std::time::Duration;

use aip_client::{Backoff, Client, ClientBuilder, KeyFile, Registration, Result};

use crate::TestHub;

/// Short pauses: the hub of a test is away for a moment only.
pub const QUICK: Backoff = Backoff {
    base: Duration::from_millis(20),
    cap: Duration::from_millis(200),
};

/// Where an agent keeps its things.
#[must_use]
pub fn folder(hub: &TestHub, name: &str) -> PathBuf {
    hub.folder().join("agents").join(name)
}

/// The client of an agent, registered or not, for the test to change.
///
/// # Errors
/// A key file that cannot be used.
pub fn builder(hub: &TestHub, name: &str) -> Result<ClientBuilder> {
    let file = KeyFile::at(folder(hub, name).join("agent.key"));
    Ok(Client::builder(hub.url()).key_file(file)?.backoff(QUICK))
}

/// Registers an agent.
///
/// # Errors
/// What the hub or the disk says.
pub async fn agent(hub: &TestHub, name: &str) -> Result<Client> {
    let folder = folder(hub, name);
    std::fs::create_dir_all(&folder).map_err(|source| aip_client::Error::File { path: folder, source })?;
    let client = builder(hub, name)?.build()?;
    client.register(name, Registration::default()).await?;
    Ok(client)
}

/// `name#domain`.
#[must_use]
pub fn handle(hub: &TestHub, name: &str) -> String {
    format!("{name}#{}", hub.domain())
}
