//! How a test's hubs sign what they ask.

use std::net::IpAddr;

use aip_protocol::clock::Clock as _;
use aip_protocol::http_signature::{Body, Stamp, Target, sign_request};
use aip_protocol::multikey::SigningKey;

use super::{HOME, Incoming, World};
use crate::testsuite::FakeHub;

/// How a request is signed; honest, until a test changes it.
#[derive(Clone)]
pub(super) struct Signing {
    pub(super) key: SigningKey,
    pub(super) keyid: String,
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// Later than the receiving hub's clock, in seconds.
    pub(super) later_secs: i64,
    pub(super) life_secs: i64,
    pub(super) nonce: Option<String>,
    pub(super) from: Option<IpAddr>,
}

impl Signing {
    pub(super) fn of(hub: &FakeHub) -> Self {
        Self {
            key: hub.key.clone(),
            keyid: hub.kid(),
            authority: "hub.own.example".to_owned(),
            path: "/federation/v1/messages".to_owned(),
            query: None,
            later_secs: 0,
            life_secs: 60,
            nonce: None,
            from: Some(HOME.parse().unwrap()),
        }
    }

    pub(super) fn get(hub: &FakeHub, path: &str, query: &str) -> Self {
        Self {
            path: path.to_owned(),
            query: Some(query.to_owned()),
            ..Self::of(hub)
        }
    }

    fn target(&self, method: &str) -> Target {
        Target::new(method, &self.authority, &self.path, self.query.as_deref())
    }

    pub(super) fn push(&self, world: &World, body: &[u8]) -> Incoming {
        self.sign(world, "POST", Some(body))
    }

    pub(super) fn ask(&self, world: &World) -> Incoming {
        self.sign(world, "GET", None)
    }

    /// The signed request as it comes in at the true address, whatever was signed.
    fn sign(&self, world: &World, method: &str, bytes: Option<&[u8]>) -> Incoming {
        let created_secs = world.clock.now().unix_millis().div_euclid(1_000) + self.later_secs;
        let nonce = self.nonce.clone().unwrap_or_else(|| world.nonce());
        let stamp = Stamp {
            created_secs,
            expires_secs: created_secs + self.life_secs,
            nonce: &nonce,
        };
        let body = bytes.map(|bytes| Body {
            content_type: "application/json",
            bytes,
        });
        let target = self.target(method);
        let signed = sign_request(&self.key, &self.keyid, &target, body, stamp);
        let mut fields = vec![
            ("signature-input".to_owned(), signed.signature_input),
            ("signature".to_owned(), signed.signature),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        fields.extend(
            signed
                .content_digest
                .map(|digest| ("content-digest".to_owned(), digest)),
        );
        Incoming {
            target: Target {
                authority: "hub.own.example".to_owned(),
                ..target
            },
            fields,
            address: self.from,
        }
    }
}
