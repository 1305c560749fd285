//! Which server is asked, and how.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::limits::{
    HTTP_BATCH_TEXTS_MAX, HTTP_DIMENSIONS_MAX, HTTP_TEXT_BYTES_MAX, MODEL_NAME_BYTES_MAX, PREFIX_BYTES_MAX,
};

/// A key for a server. Wiped when dropped, redacted in `Debug`.
#[derive(Clone)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// A key as the server's operator gave it.
    pub fn new(key: impl Into<String>) -> Self {
        Self(Zeroizing::new(key.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

/// Which server is asked, and how.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// `http` or `https`, with or without `/v1` at its end: `http://127.0.0.1:11434`, `https://api.openai.com/v1`. No
    /// password, query or fragment.
    pub base: String,
    /// What the server calls the model.
    pub model: String,
    /// Sent as a bearer token.
    pub key: Option<ApiKey>,
    /// Numbers in each vector; another number is an error.
    pub dimensions: usize,
    /// Whether the server is told the dimensions. Some models can give fewer than they have; other servers refuse the member.
    pub ask_dimensions: bool,
    /// Put before a query, where the model wants that: `query: `.
    pub query_prefix: String,
    /// Put before a passage: `passage: `.
    pub passage_prefix: String,
    /// Texts in one request, from 1 to [`HTTP_BATCH_TEXTS_MAX`].
    pub batch_texts: usize,
    /// Bytes of a text that are sent, from 64 to [`HTTP_TEXT_BYTES_MAX`]; about four for a piece of the model.
    pub text_bytes_max: usize,
    /// How long one request may take, all of it.
    pub timeout: Duration,
    /// Memory for vectors that may be asked for again.
    pub cache_bytes_max: u64,
}

impl HttpOptions {
    /// For a server and its model; everything else as it suits most.
    pub fn new(base: impl Into<String>, model: impl Into<String>, dimensions: usize) -> Self {
        Self {
            base: base.into(),
            model: model.into(),
            key: None,
            dimensions,
            ask_dimensions: false,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            batch_texts: 32,
            text_bytes_max: 8 * 1024,
            timeout: Duration::from_secs(30),
            cache_bytes_max: 16 * 1024 * 1024,
        }
    }

    /// Names what decides about the vectors: the model, the dimensions and the prefixes. The address does not.
    pub(super) fn id(&self) -> String {
        let name = self.model.chars().map(|c| match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9' | '.' | '_' | '-') => c,
            _ => '-',
        });
        let name: String = name.take(40).collect();
        let mut hash = Sha256::new();
        for part in [&self.model, &self.query_prefix, &self.passage_prefix] {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        let [a, b, c, d, ..] = hash.finalize().0;
        let mark = u32::from_be_bytes([a, b, c, d]);
        format!("http-{name}-{}-{mark:08x}", self.dimensions)
    }

    /// Where the embeddings are.
    pub(super) fn url(&self) -> Result<Url, OptionsError> {
        let mut url = Url::parse(&self.base).map_err(|error| OptionsError::Base(error.to_string()))?;
        let reason = if !matches!(url.scheme(), "http" | "https") {
            "it is neither http nor https"
        } else if !url.username().is_empty() || url.password().is_some() {
            "it has a name or a password in it; the key is an option of its own"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it has a query or a fragment"
        } else {
            let path = url.path().trim_end_matches('/');
            let path = path.strip_suffix("/v1").unwrap_or(path);
            let path = format!("{path}/v1/embeddings");
            url.set_path(&path);
            return Ok(url);
        };
        Err(OptionsError::Base(reason.to_owned()))
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let bounds = [
            ("model", self.model.len(), 1, MODEL_NAME_BYTES_MAX),
            ("dimensions", self.dimensions, 1, HTTP_DIMENSIONS_MAX),
            ("query_prefix", self.query_prefix.len(), 0, PREFIX_BYTES_MAX),
            ("passage_prefix", self.passage_prefix.len(), 0, PREFIX_BYTES_MAX),
            ("batch_texts", self.batch_texts, 1, HTTP_BATCH_TEXTS_MAX),
            ("text_bytes_max", self.text_bytes_max, 64, HTTP_TEXT_BYTES_MAX),
        ];
        for (option, value, min, max) in bounds {
            if !(min..=max).contains(&value) {
                return Err(OptionsError::OutOfBounds {
                    option,
                    value,
                    min,
                    max,
                });
            }
        }
        Ok(())
    }
}

/// An option that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The address.
    #[error("the address of the embedding server cannot be used: {0}")]
    Base(String),
    /// A number or the length of a text.
    #[error("{option} of the embedding server is {value}, not from {min} to {max}")]
    OutOfBounds {
        /// Its name.
        option: &'static str,
        /// What it is.
        value: usize,
        /// The least it may be.
        min: usize,
        /// The most it may be.
        max: usize,
    },
    /// The key has characters that no header can carry.
    #[error("the key of the embedding server has characters that cannot be sent")]
    Key,
    /// The HTTP client cannot be set up.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}
