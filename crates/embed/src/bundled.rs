//! The files of the two models, inside the binary: 27 MB and 24 MB, touched only when a model is used.

use crate::model::files::{ModelFiles, Part};

macro_rules! file {
    ($path:literal) => {
        Part::from(include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/", $path)).as_slice())
    };
}

/// The files of [`LocalEmbedder::e5`](crate::LocalEmbedder::e5).
pub fn e5() -> ModelFiles {
    ModelFiles {
        model: file!("multilingual-e5-small-q4-67k/model.safetensors"),
        tokenizer: file!("multilingual-e5-small-q4-67k/tokenizer.json"),
    }
}

/// The files of [`LocalEmbedder::universal`](crate::LocalEmbedder::universal).
pub fn universal() -> ModelFiles {
    ModelFiles {
        model: file!("use-multilingual-v3-84k/model.safetensors.zst"),
        tokenizer: file!("use-multilingual-v3-84k/tokenizer.json"),
    }
}
