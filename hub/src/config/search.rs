//! The section about what agents offer, and how it is found.

use std::path::PathBuf;

use aip_protocol::fusion::Fusion;

use super::section::section;
use super::value::Secret;

/// The models that a release can hold.
pub const MODELS: &[&str] = &["use-multilingual-v3-84k", "multilingual-e5-small-q4-67k"];

section! {
    /// What agents offer, and how it is found (spec §9). Listings lie in the registry; the index is made from them.
    pub struct SearchSettings {
        /// The folder of the index. Empty: `search` in the data folder. It can be deleted while the hub is stopped: the
        /// next start makes it anew from the registry.
        pub index_dir: PathBuf = PathBuf::new();
        /// The models of this release that find listings by their meaning, on the processor:
        /// `use-multilingual-v3-84k`, `multilingual-e5-small-q4-67k`. Empty: none of them.
        pub models: Vec<String> = MODELS.iter().map(|&name| name.to_owned()).collect();
        /// Threads of each of them.
        pub model_threads: usize = 1, in 1..=64;
        /// A server of embeddings with the API that Ollama, TEI, vLLM and clouds have (`http://127.0.0.1:11434`). It gets
        /// to see the text of listings and queries. Empty: none.
        pub embedder_url: String = String::new();
        /// The model, as that server calls it.
        pub embedder_model: String = String::new();
        /// What that model wants before a query, such as `query: `.
        pub embedder_query_prefix: String = String::new();
        /// What it wants before what is to be found, such as `passage: `.
        pub embedder_passage_prefix: String = String::new();
        /// The key for that server. Empty: none. Better set by `AIP_HUB__SEARCH__EMBEDDER_KEY` than in a file.
        pub embedder_key: Secret = Secret::default();
        /// Numbers in each of its vectors.
        pub embedder_dimensions: usize = 768, in 1..=8_192;
        /// Time that one request to it may take, in seconds.
        pub embedder_timeout_secs: u64 = 30, in 1..=600;
        /// Time that a search waits for the meaning of its text, in milliseconds; then it is answered without.
        pub embed_timeout_millis: u64 = 1_000, in 10..=60_000;
        /// Places of each list, by text and by meaning, that are fused.
        pub depth: u32 = 200, in 200..=10_000;
        /// k of the formula that fuses them: how slowly a place loses weight. Another one than 60 is told in answers.
        pub fusion_k: u32 = 60, in 1..=1_000;
        /// How much full trust adds to a score, in percent. Another number than 30 is told in answers.
        pub trust_weight_percent: u32 = 30, in 0..=1_000;
        /// Listings of one agent.
        pub listings_per_agent_max: u32 = 10_000, in 1..=10_000_000;
        /// Flags with which a listing waits until the operator has looked at it (`aip-hub catalog quarantine`): it is found
        /// and sold only then. `control_characters`, `direction_controls`, `injection_suspected`, `invisible_characters`.
        /// Empty: flags are told, and hold nothing up.
        pub quarantine: Vec<String> = Vec::new();
        /// Whether a shop can get an agent, and a key to hand in what it sells, without keys of its own
        /// (`POST /api/v1/ingest/register`). Who may register here at all, `hub.registration` says.
        pub ingest_registration: bool = true;
        /// Listings in one request of a provider.
        pub ingest_rows_max: u32 = 10_000, in 1..=1_000_000;
        /// Bytes in one request of a provider.
        pub ingest_bytes_max: usize = 64 * 1024 * 1024, in 65_536..=4 * 1024 * 1024 * 1024;
    }
}

impl SearchSettings {
    /// The numbers of the formula (spec §9).
    pub fn fusion(&self) -> Fusion {
        Fusion {
            k: f64::from(self.fusion_k),
            trust_weight: f64::from(self.trust_weight_percent) / 100.0,
        }
    }
}
