//! Where purses lie: a folder for each hub, and in it a file of its owner alone for each secret. What opens a purse at one
//! hub is never shown to another.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use zeroize::Zeroizing;

use super::job::JobKey;
use super::secret::{ApiKey, ChannelKey};
use crate::error::{Error, Result};
use crate::files;
use crate::limits::{CHANNELS_KEPT_MAX, JOBS_KEPT_MAX, PURSE_FILE_BYTES_MAX};
use crate::wire::encoded;

const ACCOUNT: &str = "account";
const CHANNELS: &str = "channels";
const JOBS: &str = "jobs";

/// The purses of an agent at one hub, on disk.
#[derive(Debug, Clone)]
pub struct Purses {
    folder: PathBuf,
}

impl Purses {
    /// Those for the hub at `hub_url` ([`crate::Client::hub_url`]), below a folder of the agent's own, such as
    /// [`crate::KeyFile::state_folder`].
    pub fn at(folder: impl Into<PathBuf>, hub_url: &str) -> Self {
        let folder = folder.into().join("purses").join(encoded(hub_url));
        Self { folder }
    }

    /// Where the account's key lies.
    pub fn account_path(&self) -> PathBuf {
        self.folder.join(ACCOUNT)
    }

    /// Where the secret of a channel lies.
    pub fn channel_path(&self, id: &str) -> PathBuf {
        self.folder.join(CHANNELS).join(encoded(id))
    }

    /// The account's key, if one is kept.
    ///
    /// # Errors
    /// The file cannot be read, or holds none.
    pub fn account(&self) -> Result<Option<ApiKey>> {
        let text = read(&self.account_path())?;
        text.map(|text| ApiKey::new(&text)).transpose()
    }

    /// Keeps the account's key, in place of one that is kept.
    ///
    /// # Errors
    /// It could not be written.
    pub fn keep_account(&self, key: &ApiKey) -> Result<()> {
        write(&self.account_path(), key.reveal())
    }

    /// A channel, if its secret is kept.
    ///
    /// # Errors
    /// The file cannot be read, or holds none.
    pub fn channel(&self, id: &str) -> Result<Option<ChannelKey>> {
        let text = read(&self.channel_path(id))?;
        text.map(|text| ChannelKey::new(id, &text)).transpose()
    }

    /// The channels whose secrets are kept, by their ids.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn channels(&self) -> Result<Vec<ChannelKey>> {
        let mut names = names(&self.folder.join(CHANNELS), CHANNELS_KEPT_MAX * 2)?;
        names.sort_unstable();
        let mut channels = Vec::with_capacity(names.len());
        for id in names {
            channels.extend(self.channel(&id)?);
        }
        Ok(channels)
    }

    /// Keeps the secret of a channel.
    ///
    /// # Errors
    /// It could not be written, or [`CHANNELS_KEPT_MAX`] are kept.
    pub fn keep_channel(&self, key: &ChannelKey) -> Result<()> {
        self.require_room()?;
        write(&self.channel_path(key.id()), key.reveal())
    }

    /// Whether another channel can be kept; to be asked before one is opened.
    ///
    /// # Errors
    /// [`CHANNELS_KEPT_MAX`] are kept, or the folder cannot be read.
    pub fn require_room(&self) -> Result<()> {
        if self.channels()?.len() < CHANNELS_KEPT_MAX {
            return Ok(());
        }
        let folder = self.folder.join(CHANNELS);
        let why = format!("{CHANNELS_KEPT_MAX} channels are kept here; close one first");
        Err(Error::file(folder)(io::Error::other(why)))
    }

    /// Forgets the secret of a channel, which has ended.
    ///
    /// # Errors
    /// The file is there and cannot be removed.
    pub fn forget_channel(&self, id: &str) -> Result<()> {
        let path = self.channel_path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file(path)(error)),
            _ => Ok(()),
        }
    }

    /// Where the secret of a job lies.
    pub fn job_path(&self, id: &str) -> PathBuf {
        self.folder.join(JOBS).join(encoded(id))
    }

    /// A job, if its secret is kept.
    ///
    /// # Errors
    /// The file cannot be read, or holds none.
    pub fn job(&self, id: &str) -> Result<Option<JobKey>> {
        let text = read(&self.job_path(id))?;
        text.map(|text| JobKey::new(id, &text)).transpose()
    }

    /// The jobs whose secrets are kept, the newest first.
    ///
    /// # Errors
    /// The folder or a file cannot be read.
    pub fn jobs(&self) -> Result<Vec<JobKey>> {
        let mut jobs = Vec::new();
        for (_, id) in self.job_ages()?.into_iter().rev() {
            jobs.extend(self.job(&id)?);
        }
        Ok(jobs)
    }

    /// Keeps the secret of a job. Where [`JOBS_KEPT_MAX`] are kept the oldest is forgotten: hubs keep no answer for ever.
    ///
    /// # Errors
    /// It could not be written.
    pub fn keep_job(&self, key: &JobKey) -> Result<()> {
        let ages = self.job_ages()?;
        let too_many = (ages.len() + 1).saturating_sub(JOBS_KEPT_MAX);
        for (_, id) in ages.into_iter().take(too_many) {
            self.forget_job(&id)?;
        }
        write(&self.job_path(key.id()), key.reveal())
    }

    /// Forgets the secret of a job.
    ///
    /// # Errors
    /// The file is there and cannot be removed.
    pub fn forget_job(&self, id: &str) -> Result<()> {
        let path = self.job_path(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::file(path)(error)),
            _ => Ok(()),
        }
    }

    /// When each was written down, the oldest first. The names are as they are written: ids are plain.
    fn job_ages(&self) -> Result<Vec<(Option<SystemTime>, String)>> {
        let names = names(&self.folder.join(JOBS), JOBS_KEPT_MAX * 2)?;
        let ages = names.into_iter().map(|id| {
            let found = fs::metadata(self.job_path(&id));
            (found.and_then(|found| found.modified()).ok(), id)
        });
        let mut ages: Vec<_> = ages.collect();
        ages.sort_unstable();
        Ok(ages)
    }
}

/// The names of files in a folder, which may not be there.
fn names(folder: &Path, count_max: usize) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries.take(count_max) {
        let name = entry.map_err(Error::file(folder))?.file_name();
        names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    Ok(names)
}

fn read(path: &Path) -> Result<Option<Zeroizing<String>>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::file(path)(error)),
    };
    let mut text = Zeroizing::new(String::new());
    let read = file.take(PURSE_FILE_BYTES_MAX).read_to_string(&mut text);
    read.map_err(Error::file(path))?;
    Ok(Some(text))
}

fn write(path: &Path, secret: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    files::create_private_folder(folder).map_err(Error::file(folder))?;
    let line = Zeroizing::new(format!("{secret}\n"));
    files::write_atomic(path, line.as_bytes()).map_err(Error::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_lie_in_files_of_their_owner_and_stay_at_their_hub() {
        let folder = tempfile::tempdir().unwrap();
        let here = Purses::at(folder.path(), "https://hub.example");
        assert_eq!(
            (here.account().unwrap(), here.channels().unwrap().len()),
            (None, 0)
        );
        let (key, one) = (
            ApiKey::new("aimk_x").unwrap(),
            ChannelKey::new("ch_1", "s1").unwrap(),
        );
        here.keep_account(&key).unwrap();
        here.keep_channel(&one).unwrap();
        here.keep_channel(&ChannelKey::new("ch_2", "s2").unwrap())
            .unwrap();
        assert_eq!(here.account().unwrap(), Some(key));
        assert_eq!(here.channel("ch_1").unwrap(), Some(one));
        let ids: Vec<String> = here
            .channels()
            .unwrap()
            .iter()
            .map(|key| key.id().to_owned())
            .collect();
        assert_eq!(ids, ["ch_1", "ch_2"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(here.account_path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let elsewhere = Purses::at(folder.path(), "https://other.example");
        assert_eq!(
            (elsewhere.account().unwrap(), elsewhere.channel("ch_1").unwrap()),
            (None, None)
        );
        here.forget_channel("ch_1").unwrap();
        here.forget_channel("ch_1").unwrap();
        assert_eq!(here.channel("ch_1").unwrap(), None);
    }

    #[test]
    fn jobs_are_kept_and_the_oldest_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let purses = Purses::at(folder.path(), "https://hub.example");
        assert!(purses.jobs().unwrap().is_empty());
        for number in 0..=JOBS_KEPT_MAX {
            let key = JobKey::new(&format!("j{number:03}"), "aimj_s").unwrap();
            purses.keep_job(&key).unwrap();
            // Ages are those of files, whose clock may be coarse.
            let age = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            let file = fs::File::options().write(true).open(purses.job_path(key.id()));
            file.unwrap().set_modified(age).unwrap();
        }
        let jobs = purses.jobs().unwrap();
        assert_eq!((jobs.len(), jobs[0].id()), (JOBS_KEPT_MAX, "j256"));
        assert_eq!(purses.job("j000").unwrap(), None);
        assert_eq!(purses.job("j001").unwrap().unwrap().reveal(), "aimj_s");
        purses.forget_job("j001").unwrap();
        purses.forget_job("j001").unwrap();
        assert_eq!(purses.job("j001").unwrap(), None);
    }

    #[test]
    fn so_many_channels_are_kept_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let purses = Purses::at(folder.path(), "https://hub.example");
        for number in 0..CHANNELS_KEPT_MAX {
            purses
                .keep_channel(&ChannelKey::new(&format!("ch_{number}"), "s").unwrap())
                .unwrap();
        }
        assert!(purses.require_room().is_err());
        assert!(
            purses
                .keep_channel(&ChannelKey::new("ch_x", "s").unwrap())
                .is_err()
        );
    }
}
