//! Where the files of a model are: in memory or on the disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use aip_catalog::EmbedError;
use bytes::Bytes;

use super::broken;
use crate::limits::MODEL_BYTES_MAX;

/// One file of a model. It is read when the model is used for the first time.
#[derive(Clone)]
pub enum Part {
    /// Its content.
    Bytes(Bytes),
    /// Where it is.
    Path(PathBuf),
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Path(path) => path.fmt(f),
        }
    }
}

impl From<&'static [u8]> for Part {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Bytes(Bytes::from_static(bytes))
    }
}

impl From<Cow<'static, [u8]>> for Part {
    fn from(bytes: Cow<'static, [u8]>) -> Self {
        Self::Bytes(match bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => Bytes::from(bytes),
        })
    }
}

impl Part {
    /// The content.
    pub(crate) fn read(&self) -> Result<Bytes, EmbedError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Path(path) => read_file(path),
        }
    }
}

fn read_file(path: &Path) -> Result<Bytes, EmbedError> {
    let told = |error: std::io::Error| broken(format_args!("{}: {error}", path.display()));
    let bytes = std::fs::metadata(path).map_err(told)?.len();
    if usize::try_from(bytes).map_or(true, |bytes| bytes > MODEL_BYTES_MAX) {
        return Err(broken(format_args!(
            "{} is longer than {MODEL_BYTES_MAX} bytes",
            path.display()
        )));
    }
    std::fs::read(path).map(Bytes::from).map_err(told)
}

/// The files of one model.
#[derive(Debug, Clone)]
pub struct ModelFiles {
    /// The weights: safetensors, possibly packed with zstd.
    pub model: Part,
    /// The pieces: `tokenizer.json`.
    pub tokenizer: Part,
}

impl ModelFiles {
    /// The files in a folder: `tokenizer.json` and `model.safetensors` or `model.safetensors.zst`.
    pub fn in_dir(dir: &Path) -> Self {
        let plain = dir.join("model.safetensors");
        let model = if plain.exists() {
            plain
        } else {
            dir.join("model.safetensors.zst")
        };
        Self {
            model: Part::Path(model),
            tokenizer: Part::Path(dir.join("tokenizer.json")),
        }
    }
}
