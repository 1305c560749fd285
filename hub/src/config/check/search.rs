//! What is wrong with the settings of the catalog.

use url::Url;

use super::super::Settings;
use super::super::search::MODELS;
use crate::catalog::FLAGS;

impl Settings {
    pub(super) fn check_search(&self, found: &mut Vec<String>) {
        let search = &self.search;
        for name in search
            .models
            .iter()
            .filter(|name| !MODELS.contains(&name.as_str()))
        {
            found.push(format!(
                "`search.models` holds {name:?}, which is in no release: use {}",
                MODELS.join(", ")
            ));
        }
        for flag in search
            .quarantine
            .iter()
            .filter(|flag| !FLAGS.contains(&flag.as_str()))
        {
            found.push(format!(
                "`search.quarantine` holds {flag:?}, which is no flag: use {}",
                FLAGS.join(", ")
            ));
        }
        if search.embedder_url.is_empty() {
            return;
        }
        let plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        if !Url::parse(&search.embedder_url).is_ok_and(|url| plain(&url)) {
            found.push(
                "`search.embedder_url` must be an http or https address without user, password and query: the key \
                 goes into `search.embedder_key`"
                    .to_owned(),
            );
        }
        if search.embedder_model.is_empty() {
            found.push(
                "`search.embedder_model` is empty: name the model as the server of `search.embedder_url` calls it"
                    .to_owned(),
            );
        }
    }
}
