//! Agents of the benchmark: registered at the hub, and envelopes signed ahead of the measurement.

use aip_protocol::identity::{Keys, OperationDraft};
use aip_protocol::json::{Json, Object};
use aip_protocol::multikey::{OpeningKey, SigningKey};
use aip_protocol::name::{Did, Domain, Handle, Name};
use aip_protocol::signature::{Tag, sign};
use aip_protocol::time::Timestamp;
use anyhow::anyhow;
use bytes::Bytes;
use rand::RngExt;
use rand::rngs::StdRng;

use crate::load::{self, Connection};

/// Bytes of an envelope on the wire, about.
pub(crate) const ENVELOPE_BYTES: usize = 1024;

/// The members of an envelope beside the ciphertext take about this many bytes.
const HEADER_BYTES: usize = 690;

/// An agent with its keys.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Its DID.
    pub(crate) did: Did,
    signing: SigningKey,
    sealing: OpeningKey,
    rotation: SigningKey,
}

impl Agent {
    /// A new agent, not registered yet. All agents may share a signing key, so that a straw man can know it.
    pub(crate) fn new(
        domain: &Domain,
        name: &str,
        signing: SigningKey,
        rng: &mut StdRng,
    ) -> anyhow::Result<Self> {
        let name = Name::parse(name).map_err(|refusal| anyhow!("{refusal}"))?;
        let did = Handle {
            name,
            domain: domain.clone(),
        }
        .did();
        Ok(Self {
            did,
            signing,
            sealing: OpeningKey::generate(rng),
            rotation: SigningKey::generate(rng),
        })
    }

    /// The signed operation 0, as the body of a registration.
    pub(crate) fn registration(&self, now: Timestamp) -> anyhow::Result<Vec<u8>> {
        let keys = Keys {
            signing: vec![self.signing.public().clone()],
            sealing: vec![self.sealing.public().clone()],
            rotation: vec![self.rotation.public().clone()],
        };
        let operation = OperationDraft::genesis(self.did.clone(), now, keys)
            .sign(&self.rotation)
            .map_err(|refusal| anyhow!("{refusal}"))?;
        Ok(operation.json.to_jcs())
    }

    /// A signed envelope with a random body, as large as the benchmark's envelopes are.
    pub(crate) fn envelope(&self, to: &Self, now: Timestamp, rng: &mut StdRng) -> Vec<u8> {
        let id = uuid::Builder::from_random_bytes(rng.random()).into_uuid();
        let body = Object::from_iter([
            ("alg", Json::from("HPKE-0020-0001-0003")),
            ("kid", Json::from(format!("{}#{}", to.did, to.sealing.public()))),
            ("enc", Json::from(base64url(43, rng))),
            ("ct", Json::from(base64url(ENVELOPE_BYTES - HEADER_BYTES, rng))),
        ]);
        let mut envelope = Object::from_iter([
            ("aip", Json::from("1")),
            ("id", Json::from(id.to_string())),
            ("from", Json::from(self.did.as_str())),
            ("to", Json::from(to.did.as_str())),
            ("type", Json::from("aip.message")),
            ("created_at", Json::from(now.to_string())),
            ("encrypted_body", Json::Object(body)),
            (
                "kid",
                Json::from(format!("{}#{}", self.did, self.signing.public())),
            ),
        ]);
        let signature = sign(&self.signing, Tag::Envelope, &Json::Object(envelope.clone()));
        envelope.insert("sig", signature.to_string());
        Json::Object(envelope).to_jcs()
    }

    /// The signature that answers a challenge.
    pub(crate) fn answer(&self, audience: &str, challenge: &str) -> (String, String) {
        let object = aip_protocol::challenge::challenge_object(audience, challenge, &self.did);
        let kid = format!("{}#{}", self.did, self.signing.public());
        (kid, sign(&self.signing, Tag::Challenge, &object).to_string())
    }
}

/// Canonical unpadded base64url: the last character carries no stray bits when it is `A`.
fn base64url(length: usize, rng: &mut StdRng) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let length = if length % 4 == 1 { length + 1 } else { length };
    let mut text: String = (1..length)
        .filter_map(|_| {
            ALPHABET
                .get(rng.random_range(0..64_usize))
                .map(|c| char::from(*c))
        })
        .collect();
    text.push('A');
    text
}

/// The time of this machine.
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_unix_millis(i64::try_from(since.as_millis()).unwrap_or_default())
}

/// Senders and recipients, all registered.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// The agents.
    pub(crate) agents: Vec<Agent>,
    rng: StdRng,
}

impl Crowd {
    /// Registers `count` agents, whose names begin with `prefix`.
    pub(crate) async fn register(
        port: u16,
        domain: &Domain,
        prefix: &str,
        count: usize,
        key: &[u8; 32],
    ) -> anyhow::Result<Self> {
        let mut rng = seeded(prefix);
        let mut connection = Connection::open(port).await?;
        let mut agents = Vec::with_capacity(count);
        for index in 0..count {
            let agent = Agent::new(
                domain,
                &format!("{prefix}{index}"),
                SigningKey::from_seed(*key),
                &mut rng,
            )?;
            let body = agent.registration(now())?;
            connection
                .call(&load::post("/api/v1/agents", "application/json", &body))
                .await?;
            agents.push(agent);
        }
        Ok(Self { agents, rng })
    }

    /// `count` envelopes from the first half of the crowd to the second, each agent in turn.
    pub(crate) fn envelopes(&mut self, count: usize) -> Vec<Vec<u8>> {
        let (senders, recipients) = self.agents.split_at(self.agents.len() / 2);
        let at = now();
        (0..count)
            .filter_map(|n| {
                let from = senders.get(n % senders.len())?;
                let to = recipients.get(n % recipients.len())?;
                Some(from.envelope(to, at, &mut self.rng))
            })
            .collect()
    }

    /// `count` envelopes to agents of another crowd, each agent in turn.
    pub(crate) fn envelopes_between(&mut self, others: &Self, count: usize) -> Vec<Vec<u8>> {
        let at = now();
        (0..count)
            .filter_map(|n| {
                let from = self.agents.get(n % self.agents.len())?;
                let to = others.agents.get(n % others.agents.len())?;
                Some(from.envelope(to, at, &mut self.rng))
            })
            .collect()
    }

    /// `count` envelopes from the first agent to the last.
    pub(crate) fn envelopes_to_last(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.envelopes_to(self.agents.len().saturating_sub(1), count)
    }

    /// `count` envelopes from the first agent to the one of this number.
    pub(crate) fn envelopes_to(&mut self, number: usize, count: usize) -> Vec<Vec<u8>> {
        let at = now();
        match (self.agents.first(), self.agents.get(number)) {
            (Some(from), Some(to)) => (0..count).map(|_| from.envelope(to, at, &mut self.rng)).collect(),
            _ => Vec::new(),
        }
    }
}

/// Envelopes as requests to a path.
pub(crate) fn posts(path: &str, envelopes: &[Vec<u8>]) -> Vec<Bytes> {
    envelopes
        .iter()
        .map(|wire| load::post(path, "application/aip+json", wire))
        .collect()
}

/// A generator that gives other values each run, so that ids never repeat against a kept data folder.
pub(crate) fn seeded(prefix: &str) -> StdRng {
    use rand::SeedableRng;
    let salt = u64::try_from(now().unix_millis()).unwrap_or_default();
    let mixed = prefix.bytes().fold(salt, |all, byte| {
        all.wrapping_mul(1_099_511_628_211) ^ u64::from(byte)
    });
    StdRng::seed_from_u64(mixed)
}
