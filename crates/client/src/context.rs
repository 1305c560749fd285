//! What commands share: the key file, the hub, the client made of both.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use aip_client::market::Purses;
use aip_client::protocol::name::Did;
use aip_client::{Client, ClientBuilder, KeyFile, KeyFileError, inbox::FileInbox};
use zeroize::Zeroizing;

use crate::cli::Global;
use crate::failure::Failure;
use crate::output::Output;

/// One run of the command.
#[derive(Debug)]
pub(crate) struct Context {
    global: Global,
    pub(crate) output: Output,
}

impl Context {
    pub(crate) fn new(global: Global, output: Output) -> Self {
        Self { global, output }
    }

    /// The key file that was named, or the usual one.
    pub(crate) fn key_path(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.global.key {
            return Ok(path.clone());
        }
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.ok_or_else(|| Failure::Usage("name a key file with --key or AIP_KEY".to_owned()))?;
        Ok(home.join(".config/aip/agent.key"))
    }

    /// The key file, with its passphrase if it is sealed.
    pub(crate) fn key_file(&self) -> Result<KeyFile, Failure> {
        let file = KeyFile::at(self.key_path()?);
        if file.exists() && file.is_sealed()? {
            let passphrase = passphrase(&format!("Passphrase of {}: ", file.path().display()))?;
            return Ok(file.with_passphrase(passphrase.as_str()));
        }
        Ok(file)
    }

    /// The inbox beside the key file.
    pub(crate) fn inbox(&self) -> Result<FileInbox, Failure> {
        Ok(FileInbox::open(
            KeyFile::at(self.key_path()?).state_folder().join("inbox"),
        )?)
    }

    /// A client with keys. The hub is the one that was named, or the one that the keys know.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        self.client_with(None)
    }

    /// The same; messages are offered to a hub that does not answer for this long.
    pub(crate) fn client_with(&self, send_window: Option<Duration>) -> Result<Client, Failure> {
        let mut builder = self.builder()?;
        if let Some(window) = send_window {
            builder = builder.send_window(window);
        }
        Ok(builder.build()?)
    }

    /// What a client with keys is made of.
    pub(crate) fn builder(&self) -> Result<ClientBuilder, Failure> {
        self.builder_of(self.key_file()?)
    }

    /// Who the agent was before it moved: clients of the hubs that still may have mail for it, and what was processed
    /// there.
    pub(crate) fn former(&self, file: &KeyFile) -> Result<Vec<(ClientBuilder, FileInbox)>, Failure> {
        let mut clients = Vec::new();
        for former in file.former()? {
            let hub = former.hub()?.ok_or_else(no_hub)?;
            let inbox = FileInbox::open(former.state_folder().join("inbox"))?;
            let builder = Client::builder(hub).key_file(former)?;
            let builder = builder.state_folder(file.state_folder());
            clients.push((builder.allow_http(self.global.allow_http), inbox));
        }
        Ok(clients)
    }

    /// The same for keys that were opened already.
    pub(crate) fn builder_of(&self, file: KeyFile) -> Result<ClientBuilder, Failure> {
        // Read before the hub is looked for: without keys there is nothing to do, whatever the hub.
        let written = file.hub()?;
        let hub = self.global.hub.clone().or(written).ok_or_else(no_hub)?;
        let builder = Client::builder(hub).key_file(file)?;
        Ok(builder.allow_http(self.global.allow_http))
    }

    /// A client that may have no keys yet: for looking up, and for registering.
    pub(crate) fn client_without_keys(&self, file: Option<KeyFile>) -> Result<Client, Failure> {
        Ok(self.builder_without_keys(file)?.build()?)
    }

    /// A client without keys that asks a hub that does not answer for this long.
    pub(crate) fn client_to_read(&self, send_window: Duration) -> Result<Client, Failure> {
        let builder = self.builder_without_keys(None)?;
        Ok(builder.send_window(send_window).build()?)
    }

    fn builder_without_keys(&self, file: Option<KeyFile>) -> Result<ClientBuilder, Failure> {
        let hub = self.hub_url().ok_or_else(no_hub)?;
        let builder = Client::builder(hub).allow_http(self.global.allow_http);
        Ok(match file {
            Some(file) => builder.key_file(file)?,
            None => builder.state_folder(KeyFile::at(self.key_path()?).state_folder()),
        })
    }

    /// What we pay from at the hub of this client, kept beside the key file.
    pub(crate) fn purses(&self, client: &Client) -> Result<Purses, Failure> {
        let folder = KeyFile::at(self.key_path()?).state_folder();
        Ok(Purses::at(folder, client.hub_url()))
    }

    /// What to say beside "no purse is kept": where the key file is not what was meant, neither is what lies beside it.
    pub(crate) fn key_file_doubt(&self) -> String {
        let Ok(path) = self.key_path() else {
            return String::new();
        };
        match KeyFile::at(&path).did() {
            Ok(_) => String::new(),
            Err(KeyFileError::Missing(_)) => format!(" (there is no key file {})", path.display()),
            Err(error) => format!(" ({error})"),
        }
    }

    /// Who we are, where a key file says it in the clear.
    pub(crate) fn did(&self) -> Option<Did> {
        KeyFile::at(self.key_path().ok()?).did().ok()
    }

    /// The hub that was named, or that of an existing key file, where it is written in the clear.
    pub(crate) fn hub_url(&self) -> Option<String> {
        let known = || KeyFile::at(self.key_path().ok()?).hub().ok().flatten();
        self.global.hub.clone().or_else(known)
    }
}

/// Keys are never overwritten: a file that is to be written must not be there. `instead` says what to do.
pub(crate) fn refuse_existing(file: &KeyFile, instead: &str) -> Result<(), Failure> {
    if !file.exists() {
        return Ok(());
    }
    let path = file.path().display();
    let whose = file
        .did()
        .map(|did| format!(" and holds the keys of {}", did.handle()));
    let whose = whose.unwrap_or_default();
    Err(Failure::Other(format!(
        "{path} exists already{whose}; keys are never overwritten: {instead}, or move this one away"
    )))
}

/// From the environment, or from whoever sits there.
pub(crate) fn passphrase(prompt: &str) -> Result<Zeroizing<String>, Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the command line reads its own environment, and only here"
    )]
    let given = std::env::var("AIP_PASSPHRASE")
        .ok()
        .filter(|given| !given.is_empty());
    match given {
        Some(given) => Ok(Zeroizing::new(given)),
        None if std::io::stdin().is_terminal() => Ok(Zeroizing::new(rpassword::prompt_password(prompt)?)),
        None => Err(Failure::Usage(
            "the passphrase is needed: set AIP_PASSPHRASE".to_owned(),
        )),
    }
}

/// A passphrase for something that is being written: asked for twice.
pub(crate) fn new_passphrase() -> Result<Zeroizing<String>, Failure> {
    let first = passphrase("New passphrase: ")?;
    let second = passphrase("Once more: ")?;
    if first != second {
        return Err(Failure::Usage("the two passphrases differ".to_owned()));
    }
    if first.is_empty() {
        return Err(Failure::Usage("an empty passphrase protects nothing".to_owned()));
    }
    Ok(first)
}

fn no_hub() -> Failure {
    Failure::Usage("which hub? Give --hub URL or set AIP_HUB".to_owned())
}
