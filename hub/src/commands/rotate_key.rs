//! `aip-hub rotate-key`: a new signing key for the hub, which the one before it vouches for.
//!
//! Peers have pinned the hub's key. They take another one only when the discovery document is signed by a pinned key too, so the
//! old key stays beside the new one and vouches for it until the operator deletes it, or rotates again.

use std::path::Path;
use std::process::ExitCode;

use aip_protocol::identity::{EndpointPolicy, Operation};
use aip_protocol::multikey::SigningKey;
use aip_protocol::name::{HUB_NAME, Name};
use aip_registry::{Directory as _, Fact, SqlStore};
use anyhow::{Context as _, bail};
use rand::rngs::SysRng;
use rand_core::UnwrapErr;

use super::operator::block_on;
use super::output;
use super::source::Source;
use crate::agent::AgentKeys;
use crate::config::Settings;
use crate::datadir::{self, DataDir};
use crate::{hub_key, stores};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (settings, folder) = args.source.hub()?;
    // Of a hub that runs, another key would be in memory than in the file.
    let _lock = folder
        .lock()
        .context("stop the hub first, all of its processes")?;
    let file = hub_key::file(&settings, &folder);
    let (old, new) = block_on(carry_out(&settings, &folder, &file))?;
    output::line(&format!(
        "the hub signs with {} from its next start on",
        new.public()
    ))?;
    say_what_is_next(&file, &old, &settings);
    Ok(ExitCode::SUCCESS)
}

async fn carry_out(
    settings: &Settings,
    folder: &DataDir,
    file: &Path,
) -> anyhow::Result<(SigningKey, SigningKey)> {
    let is_here = settings.engines.registry_url.is_empty();
    if is_here && !folder.registry().exists() {
        bail!("the hub was never started: nobody knows its key yet, and there is nothing to rotate");
    }
    let registry = stores::open_registry(settings, folder).await?;
    let rotated = rotate(&registry, file).await;
    registry.close().await;
    rotated
}

/// From the hub's key to a new one; both. A rotation that broke off before the registry knew of it is brought to its end
/// instead: its key is in the file already, and another one would put the key that vouches for it aside.
async fn rotate(registry: &SqlStore, file: &Path) -> anyhow::Result<(SigningKey, SigningKey)> {
    let key = datadir::read_key(file)?;
    let former = hub_key::previous(file)?.filter(|former| former.public() != key.public());
    // The processes of a hub compare their key with what the registry says.
    let claimed = registry.fact(Fact::HubKey).await?;
    if let Some(former) = former {
        if claimed.as_deref() == Some(former.public().as_str()) {
            let public = key.public().as_str();
            registry.replace_fact(Fact::HubKey, public).await?;
            return Ok((former, key));
        }
        if is_agent_at(registry, &former).await? {
            bail!(
                "the hub has not started since its key was last rotated: start it once, so that its own agent takes the \
                 key, and rotate again then"
            );
        }
    }
    let is_shared = claimed.is_some();
    if let Some(public) = claimed {
        hub_key::compare(&key, public, file)?;
    }
    let new = SigningKey::generate(&mut UnwrapErr(SysRng));
    let old = hub_key::rotate(file, &new)?;
    if is_shared {
        registry
            .replace_fact(Fact::HubKey, new.public().as_str())
            .await
            .context("the new key is in its file, and the registry does not know of it: run this again")?;
    }
    Ok((old, new))
}

/// Whether the hub's own agent has the keys that belong to this one.
async fn is_agent_at(registry: &SqlStore, key: &SigningKey) -> anyhow::Result<bool> {
    let agent = registry.get(&Name::parse(HUB_NAME)?).await?;
    let Some(newest) = agent.and_then(|mut agent| agent.operations.pop()) else {
        return Ok(false);
    };
    let newest = Operation::parse(newest.as_bytes(), EndpointPolicy::default())?;
    Ok(!newest.deactivated && newest.keys == AgentKeys::derive(key).public())
}

fn say_what_is_next(file: &Path, old: &SigningKey, settings: &Settings) {
    let previous = hub_key::previous_file(file);
    output::note(&format!(
        "The key before it, {}, lies in {} and vouches for the new one. Keep it for as long as a peer may not have looked, a \
         month say. If it may be in wrong hands, delete it as soon as the hub has started with it there, which its own agent \
         needs once, and tell the operators of your peers to repin.",
        old.public(),
        previous.display()
    ));
    if !settings.engines.registry_url.is_empty() {
        output::note(&format!(
            "Copy {} and {} to the other processes of the hub before they start.",
            file.display(),
            previous.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use aip_protocol::name::Domain;

    use super::*;

    #[actix_web::test]
    async fn a_rotation_that_broke_off_can_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::parse("hub.example").unwrap();
        let registry = SqlStore::open_sqlite(&folder.path().join("db"), &domain)
            .await
            .unwrap();
        let claimed = async || registry.fact(Fact::HubKey).await.unwrap().unwrap();
        let file = folder.path().join("hub.key");
        let [first, second, other] = [1, 2, 3].map(|byte| SigningKey::from_seed([byte; 32]));
        datadir::write_private(&file, &datadir::key_text(&first)).unwrap();
        let public = first.public().as_str();
        registry.claim_fact(Fact::HubKey, public).await.unwrap();

        // Both files were written, and the registry was not told.
        hub_key::rotate(&file, &second).unwrap();
        let (old, new) = rotate(&registry, &file).await.unwrap();
        assert_eq!((old.public(), new.public()), (first.public(), second.public()));
        assert_eq!(claimed().await, second.public().as_str());
        let kept = hub_key::previous(&file).unwrap().unwrap();
        assert_eq!(kept.public(), first.public(), "it vouches for the new one");

        // The first of the two files was written.
        let text = datadir::key_text(&second);
        datadir::replace_private(&hub_key::previous_file(&file), &text).unwrap();
        let (old, new) = rotate(&registry, &file).await.unwrap();
        assert_eq!(old.public(), second.public());
        assert_eq!(claimed().await, new.public().as_str());

        // A process with another key does not speak for the hub.
        datadir::replace_private(&file, &datadir::key_text(&other)).unwrap();
        let refused = rotate(&registry, &file).await.unwrap_err();
        assert!(refused.to_string().contains("another key"), "{refused}");
        registry.close().await;
    }
}
