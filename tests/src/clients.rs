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

/// Where the agents of a test are at home: one process, or the door of a hub of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// What their clients connect to.
    pub url: String,
    /// The domain of their handles.
    pub domain: String,
    /// Where they keep their things.
    pub folder: PathBuf,
}

impl From<&TestHub> for Home {
    fn from(hub: &TestHub) -> Self {
        Self {
            url: hub.url().to_owned(),
            domain: hub.domain(),
            folder: hub.folder().join("agents"),
        }
    }
}

impl From<&Self> for Home {
    fn from(home: &Self) -> Self {
        home.clone()
    }
}

/// Where an agent keeps its things.
#[must_use]
pub fn folder(home: impl Into<Home>, name: &str) -> PathBuf {
    home.into().folder.join(name)
}

/// The client of an agent, registered or not, for the test to change.
///
/// # Errors
/// A key file that cannot be used.
pub fn builder(home: impl Into<Home>, name: &str) -> Result<ClientBuilder> {
    let Home { url, folder, .. } = home.into();
    let file = KeyFile::at(folder.join(name).join("agent.key"));
    // Not every hub of a test is on the loopback interface.
    Ok(Client::builder(url)
        .allow_http(true)
        .key_file(file)?
        .backoff(QUICK))
}

/// Registers an agent.
///
/// # Errors
/// What the hub or the disk says.
pub async fn agent(home: impl Into<Home>, name: &str) -> Result<Client> {
    let home = home.into();
    let folder = folder(&home, name);
    std::fs::create_dir_all(&folder).map_err(|source| aip_client::Error::File { path: folder, source })?;
    let client = builder(&home, name)?.build()?;
    client.register(name, Registration::default()).await?;
    Ok(client)
}

/// `name#domain`.
#[must_use]
pub fn handle(home: impl Into<Home>, name: &str) -> String {
    format!("{name}#{}", home.into().domain)
}
