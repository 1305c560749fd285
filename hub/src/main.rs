//! The server's command line. Everything is in the library, where tests reach it, but the models: they would make every
//! test binary larger by 50 MB.

use std::process::ExitCode;
use std::sync::Arc;

use aip_catalog::Embedder;
use aip_embed::{LocalEmbedder, LocalOptions, bundled};

fn main() -> ExitCode {
    aip_hub::commands::main(model)
}

/// The model with this name, if this binary holds it. It is read when it is first used.
fn model(name: &str, options: LocalOptions) -> Option<Arc<dyn Embedder>> {
    match name {
        "multilingual-e5-small-q4-67k" => Some(Arc::new(LocalEmbedder::e5(bundled::e5(), options))),
        "use-multilingual-v3-84k" => Some(Arc::new(LocalEmbedder::universal(bundled::universal(), options))),
        _ => None,
    }
}
