//! Moving to another hub: a new identity there, and two histories that point at each other
//! (`docs/protocol/federation.md`, Moves).
//!
//! The order makes every interruption harmless: the new keys are written down, the new identity is registered and found
//! where everybody looks, the old history points at it, and only then do the new keys take the place of the old ones, which are kept beside them: mail
//! that was under way is sealed for them and lies in the old mailbox. Each step looks first whether it is done, so the
//! same call again goes on where it stopped.

use std::path::{Path, PathBuf};

use aip_protocol::identity::{Identity, Keys, OperationDraft};
use aip_protocol::name::{Did, Domain, Handle, Name};

use super::follow::{MOVED_FROM, MOVED_TO, moved_from, moved_to};
use super::lookup::is_unknown_agent;
use super::{Client, blocking};
use crate::error::{Error, Result};
use crate::files;
use crate::identities::Freshness;
use crate::inbox::FileInbox;
use crate::keys::{AgentKeys, KeyFile, Pending};

/// How an agent moves. The default: under the same name, to an open hub.
#[derive(Debug, Clone, Default)]
pub struct Move {
    /// Another name at the new hub.
    pub name: Option<String>,
    /// What a hub with invites asks for.
    pub invite: Option<String>,
}

/// An agent that has moved.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Moved {
    /// Who it was.
    pub from: Did,
    /// Who it is.
    pub to: Did,
    /// Its client at the new hub, with the same key file.
    pub client: Client,
}

impl Client {
    /// Moves the agent to the hub at this URL, with the rotation key alone: it signs the new identity and the word in the
    /// old history that names it. The key file holds the new keys then; the old ones lie in [`KeyFile::former`], and the
    /// old mailbox can be emptied with them. No other listener may use the inbox beside the key file meanwhile. This client
    /// stays who it was, without a file to write to: what changes the old identity afterwards is for a client of the old keys.
    ///
    /// Calling it again after an error or a crash, in this process or the next, finishes the same move.
    ///
    /// # Errors
    /// [`Error::CannotMove`] where it makes no sense, such as to a hub that its domain does not lead to; the refusals of
    /// [`Client::register`] at the new hub and of [`Client::edit_identity`] at the old one.
    pub async fn move_to(&self, hub_url: &str, options: Move) -> Result<Moved> {
        let file = self.0.key_file.clone();
        let file = file.ok_or_else(|| cannot("the keys are in memory only; a move needs a key file"))?;
        self.finish_change().await?;
        let door = self.beside(hub_url, None)?;
        let domain = Domain::parse(&door.hub().await?.domain)?;
        let keys = self.keys()?;
        let name = Name::parse(options.name.as_deref().unwrap_or_else(|| keys.did().name()))?;
        let to = Handle { name, domain }.did();
        if *keys.did() == to && moving_file(&file).exists() {
            // The last step of all was left.
            let history = door.history(to.as_str()).await?;
            let from = history.first().and_then(moved_from);
            let from = from.ok_or_else(|| cannot("the new identity does not say where it came from"))?;
            return self.settled(&file, hub_url, (from, to));
        }
        let identity = self.look_up(keys.did(), Freshness::Asked).await?;
        check_sense(&keys, &identity, &to)?;
        // Now, and not after the last word in the old history: a move that a listener holds up has not begun.
        let inbox = file.state_folder().join("inbox");
        blocking(move || check_unused(&inbox)).await??;
        let new = self.prepare(&file, hub_url, (&keys, &identity), &to).await?;
        self.found_anew(&new, options.invite.as_deref()).await?;
        self.check_findable(&identity, &to).await?;
        if moved_to(&identity).is_none() {
            self.edit_identity(|draft| drop(draft.extra.insert(MOVED_TO, to.as_str())))
                .await?;
        }
        self.exchange(&file, &*new.keys()?).await?;
        self.settled(&file, hub_url, (keys.did().clone(), to))
    }

    /// A client like this one, with other keys or none.
    fn beside(&self, hub_url: &str, file: Option<KeyFile>) -> Result<Self> {
        let mut builder = Self::builder(hub_url)
            .allow_http(self.0.allow_http)
            .clock(std::sync::Arc::clone(&self.0.clock))
            .entropy(self.0.entropy.clone())
            .backoff(self.0.backoff)
            .send_window(self.0.send_window)
            .answer_receipts(self.0.answers_receipts);
        if let Some(own) = &self.0.key_file {
            builder = builder.state_folder(own.state_folder());
        }
        if let Some(file) = file {
            builder = builder.key_file(file)?;
        }
        builder.build()
    }

    /// The new keys, written down with the operation that they begin with: those of a move that was interrupted, or fresh
    /// ones.
    async fn prepare(
        &self,
        file: &KeyFile,
        hub_url: &str,
        (old, identity): (&AgentKeys, &Identity),
        to: &Did,
    ) -> Result<Self> {
        let moving = moving_file(file);
        if moving.exists() {
            let begun = moving.did()?;
            if begun != *to {
                return Err(cannot(format!(
                    "a move to {} has begun; finish that one, or remove {}",
                    begun.handle(),
                    moving.path().display()
                )));
            }
            let new = self.beside(hub_url, Some(moving.clone()))?;
            let is_usable = new.keys()?.has_unfinished_change() || self.is_founded(&new).await?;
            if is_usable {
                return Ok(new);
            }
            // A hub refused it, and the crash came before it was removed.
            remove(moving.path())?;
        }
        let saved = self.new_keys(hub_url, (old, identity), to)?;
        let (entropy, created) = (self.entropy().clone(), moving.clone());
        blocking(move || created.create(&saved, &entropy)).await??;
        self.beside(hub_url, Some(moving))
    }

    /// Fresh keys for messages; the rotation key is the one that the old history lists, which is the proof.
    fn new_keys(
        &self,
        hub_url: &str,
        (old, identity): (&AgentKeys, &Identity),
        to: &Did,
    ) -> Result<AgentKeys> {
        let mut keys = AgentKeys::generate(to.clone(), self.entropy()).at_hub(hub_url);
        keys.rotation = old.rotation.clone();
        let fresh = keys.current().ok_or(Error::NoKeys)?;
        let lists = Keys {
            signing: vec![fresh.signing.public().clone()],
            sealing: vec![fresh.opening.public().clone()],
            rotation: vec![fresh.rotation.public().clone()],
        };
        let head = identity.head();
        let mut draft = OperationDraft::genesis(to.clone(), self.now(), lists);
        draft.route_mode = head.route_mode;
        draft.endpoint.clone_from(&head.endpoint);
        draft.profile = head.profile.clone();
        draft.extra.insert(MOVED_FROM, old.did().as_str());
        let operation = draft.sign(&fresh.rotation)?;
        keys.pending = Some(Pending { operation, fresh });
        Ok(keys)
    }

    /// Whether the new hub knows the new identity under these very keys.
    async fn is_founded(&self, new: &Self) -> Result<bool> {
        let keys = new.keys()?;
        match new.look_up(keys.did(), Freshness::Asked).await {
            Ok(identity) => Ok(identity.current_signing(&keys.kid()).is_some()),
            Err(error) if is_unknown_agent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Registers at the new hub. What it refuses for good is forgotten: the agent has not moved.
    async fn found_anew(&self, new: &Self, invite: Option<&str>) -> Result<()> {
        let outcome = {
            let _one_at_a_time = new.0.changing.lock().await;
            new.finish(invite).await
        };
        if let Err(Error::Refused(problem)) = &outcome
            && problem.is_of_hub()
            && !problem.is_transient()
            && let Some(file) = &new.0.key_file
        {
            remove(file.path())?;
        }
        outcome.map(drop)
    }

    /// Others look an agent up by its domain. Where that does not lead to the new identity, whatever the new hub says of
    /// itself, the old history must not point there.
    async fn check_findable(&self, old: &Identity, to: &Did) -> Result<()> {
        let is_found = match self.is_confirmed(old, to).await {
            Err(error) if is_unknown_agent(&error) => false,
            outcome => outcome?,
        };
        let nobody = || {
            let (handle, domain) = (to.handle(), to.domain());
            cannot(format!(
                "{} does not lead to that hub: nobody would find {handle} there",
                domain.as_str()
            ))
        };
        is_found.then_some(()).ok_or_else(nobody)
    }

    /// The old keys and the old inbox go aside, the new keys take their place.
    async fn exchange(&self, file: &KeyFile, new: &AgentKeys) -> Result<()> {
        let old = AgentKeys::clone(&*self.keys()?).at_hub(self.hub_url());
        let (file, new, entropy) = (file.clone(), new.clone(), self.entropy().clone());
        blocking(move || -> Result<()> {
            let former = file.former_of(old.did());
            former.save(&old, &entropy)?;
            keep_inbox(
                &file.state_folder().join("inbox"),
                &former.state_folder().join("inbox"),
            )?;
            Ok(file.save(&new, &entropy)?)
        })
        .await?
    }

    /// Nothing is left to do, so nothing is asked of anybody: what failed after this could not be finished any more.
    fn settled(&self, file: &KeyFile, hub_url: &str, (from, to): (Did, Did)) -> Result<Moved> {
        let client = self.beside(hub_url, Some(file.clone()))?;
        remove(moving_file(file).path())?;
        Ok(Moved { from, to, client })
    }
}

fn check_sense(keys: &AgentKeys, identity: &Identity, to: &Did) -> Result<()> {
    let handle = keys.did().handle();
    if to.domain() == keys.did().domain() {
        return Err(cannot(format!("{handle} lives at that hub already")));
    }
    if identity.is_deactivated() {
        return Err(cannot(format!("{handle} has ended")));
    }
    if let Some(other) = moved_to(identity).filter(|other| other != to) {
        return Err(cannot(format!("{handle} has moved to {} before", other.handle())));
    }
    if !identity.head().keys.rotation.contains(keys.rotation.public()) {
        return Err(cannot(format!(
            "the identity of {handle} does not list this rotation key; the machine that rotated it has the one that can move it"
        )));
    }
    Ok(())
}

fn cannot(why: impl Into<String>) -> Error {
    Error::CannotMove(why.into())
}

/// The keys of a move that is not finished.
fn moving_file(file: &KeyFile) -> KeyFile {
    file.elsewhere(file.state_folder().join("moving.key"))
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// The lock tells a listener that runs.
fn check_unused(inbox: &Path) -> Result<()> {
    if inbox.exists() {
        drop(FileInbox::open(inbox)?);
    }
    Ok(())
}

/// What was processed of the old mailbox is known where the old mailbox is emptied.
fn keep_inbox(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() || to.exists() {
        return Ok(());
    }
    check_unused(from)?;
    files::create_private_folder(&folder_of(to)).map_err(Error::file(to))?;
    std::fs::rename(from, to).map_err(Error::file(from))?;
    files::sync_folder_of(to).map_err(Error::file(to))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path)(error)),
        _ => Ok(()),
    }
}
