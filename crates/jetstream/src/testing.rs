//! For the tests of this room: a store on a real server, and waiting without guessing.

use std::time::Duration;

use crate::config::Options;
use crate::meta::Fresh;
use crate::start::{Started, start};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Options for a small store under `prefix` at `url`.
pub(crate) fn options(url: &str, prefix: &str) -> Options {
    Options {
        urls: vec![url.to_owned()],
        prefix: prefix.to_owned(),
        streams: 2,
        ..Options::default()
    }
}

/// The chance of a new store.
pub(crate) fn fresh(bits: u64) -> Fresh {
    let [first, ..] = bits.to_le_bytes();
    Fresh {
        epoch_bits: bits,
        secret: [first; 32],
    }
}

/// A store of its own on the server that all tests of this process share.
pub(crate) async fn started(prefix: &str) -> Started {
    started_at(&aip_engines::Nats::shared().url(), prefix).await
}

pub(crate) async fn started_at(url: &str, prefix: &str) -> Started {
    start(options(url, prefix), &fresh(1))
        .await
        .expect("the store opens")
}

/// Returns when `holds`; panics when it does not for long.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(
        tokio::time::timeout(PATIENCE, wait).await.is_ok(),
        "{what}: in vain"
    );
}

/// The DID of someone at `example.org`.
pub(crate) fn did(name: &str) -> aip_protocol::name::Did {
    aip_protocol::name::Did::parse(&format!("did:aip:example.org:{name}")).expect("a DID")
}
