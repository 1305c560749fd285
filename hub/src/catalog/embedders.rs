//! What finds listings by their meaning: the models that the settings name.

use std::sync::Arc;
use std::time::Duration;

use aip_catalog::Embedder;
use aip_embed::{ApiKey, HttpEmbedder, HttpOptions, LocalOptions, OptionsError};

use crate::config::{MODELS, SearchSettings};

/// The models that a binary holds, by name.
pub type Models = fn(&str, LocalOptions) -> Option<Arc<dyn Embedder>>;

/// What finds listings by their meaning.
#[derive(Debug, Default)]
pub struct Embedders {
    /// What the settings ask for.
    pub wished: Vec<Arc<dyn Embedder>>,
    /// What they may have asked for before: vectors of theirs serve until the others have theirs.
    pub former: Vec<Arc<dyn Embedder>>,
}

/// The embedders that the settings ask for. A model that this binary does not hold is left out, and told.
///
/// # Errors
/// The server of the settings cannot be asked.
pub fn embedders(settings: &SearchSettings, models: Models) -> Result<Embedders, OptionsError> {
    let mut found = Embedders::default();
    let options = LocalOptions {
        threads: settings.model_threads,
    };
    for name in &settings.models {
        if let Some(model) = models(name, options) {
            found.wished.push(model);
        } else {
            tracing::warn!(
                model = %name,
                "This binary does not hold the model {name} of search.models: listings are found without it"
            );
        }
    }
    if !settings.embedder_url.is_empty() {
        found
            .wished
            .push(Arc::new(HttpEmbedder::new(http_options(settings))?));
    }
    let others = MODELS
        .iter()
        .filter(|name| !settings.models.iter().any(|wished| wished == *name));
    found
        .former
        .extend(others.filter_map(|name| models(name, options)));
    Ok(found)
}

fn http_options(settings: &SearchSettings) -> HttpOptions {
    let (url, model) = (settings.embedder_url.as_str(), settings.embedder_model.as_str());
    let mut options = HttpOptions::new(url, model, settings.embedder_dimensions);
    let key = &settings.embedder_key;
    options.key = (!key.is_empty()).then(|| ApiKey::new(key.reveal()));
    options.query_prefix.clone_from(&settings.embedder_query_prefix);
    options
        .passage_prefix
        .clone_from(&settings.embedder_passage_prefix);
    options.timeout = Duration::from_secs(settings.embedder_timeout_secs);
    options
}
