//! §8: discovery, signed requests, batches, items.

use std::collections::{BTreeMap, HashMap};

use aip_protocol::discovery::HubDocument;
use aip_protocol::error::{ErrorCode, Refusal};
use aip_protocol::http_signature::{Body, SignedRequest, Stamp, Target, content_digest, sign_request};
use aip_protocol::identity::Identity;
use aip_protocol::multikey::{SigningKey, VerifyingKey};
use aip_protocol::name::Domain;
use aip_protocol::peer::{Batch, Item, Known, Received, verify_sender};
use aip_protocol::time::Timestamp;
use serde_json::{Value, json};
use url::Url;

use crate::support::{self, Vector, hex_32, identity, run, text, time};

#[test]
fn discovery() {
    run("discovery", 15, |vector, _| {
        let input = &vector.input;
        let pinned = input["pinned"].as_array().map(|keys| {
            keys.iter()
                .map(|key| VerifyingKey::parse(text(key)).unwrap())
                .collect::<Vec<_>>()
        });
        let domain = Domain::parse(text(&input["domain"])).unwrap();
        let document = HubDocument::from_json(support::json(&input["document"]));
        let keys =
            document.and_then(|document| document.verify(&domain, time(&input["clock"]), pinned.as_deref()));
        if vector.expected["code_source"] == "proposed" {
            let code = keys.unwrap_err().code;
            let ours = [ErrorCode::MemberInvalid, ErrorCode::VersionUnsupported];
            assert!(ours.contains(&code), "{}: {code}", vector.name);
            return;
        }
        vector.expect(keys, |keys, expected| {
            let keys: Vec<&str> = keys.iter().map(VerifyingKey::as_str).collect();
            assert_eq!(json!(keys), expected["keys"], "{}", vector.name);
        });
    });
}

#[test]
fn http_signatures() {
    run("http_signatures", 21, |vector, _| {
        if vector.input.get("seed").is_some() {
            signed(vector);
        } else {
            verified(vector);
        }
    });
}

fn signed(vector: &Vector) {
    let (input, expected) = (&vector.input, &vector.expected);
    let key = SigningKey::from_seed(hex_32(&input["seed"]));
    let target = Target::of_url(text(&input["method"]), &Url::parse(text(&input["url"])).unwrap());
    let content_type = input["content_type"].as_str().unwrap_or_default();
    let body = input["body"].as_str().map(|body| Body {
        content_type,
        bytes: body.as_bytes(),
    });
    let stamp = Stamp {
        created_secs: input["created"].as_i64().unwrap(),
        expires_secs: input["expires"].as_i64().unwrap(),
        nonce: text(&input["nonce"]),
    };
    let headers = sign_request(&key, text(&input["keyid"]), &target, body, stamp);
    let wanted = &expected["headers"];
    assert_eq!(
        headers.signature_input,
        text(&wanted["Signature-Input"]),
        "{}",
        vector.name
    );
    assert_eq!(headers.signature, text(&wanted["Signature"]), "{}", vector.name);
    assert_eq!(
        headers.content_digest.as_deref(),
        wanted.get("Content-Digest").map(text)
    );
    if let Some(body) = body {
        assert_eq!(content_digest(body.bytes), text(&wanted["Content-Digest"]));
    }
    let raw = headers.signature_input.strip_prefix("sig1=").unwrap();
    assert!(text(&expected["signature_base"]).ends_with(&format!("\"@signature-params\": {raw}")));
}

fn verified(vector: &Vector) {
    let input = &vector.input;
    let headers = input["headers"].as_object().unwrap();
    let lowered: Vec<(String, &str)> = headers
        .iter()
        .map(|(name, value)| (name.to_lowercase(), text(value)))
        .collect();
    let fields: Vec<(&str, &str)> = lowered
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let clock = input
        .get("clock")
        .or_else(|| input.get("now"))
        .unwrap()
        .as_i64()
        .unwrap();
    let body = input["body"].as_str().map(str::as_bytes);
    let keyids: Vec<&str> = input["keys"].as_array().unwrap().iter().map(text).collect();
    let target = Target::of_url(text(&input["method"]), &Url::parse(text(&input["url"])).unwrap());
    let result =
        SignedRequest::parse(&fields, body.is_some(), Timestamp::from_unix_secs(clock)).and_then(|request| {
            // What a hub does: the keys of the domain that keyid claims.
            let of_domain = keyids.iter().filter_map(|keyid| keyid.split_once('#'));
            let of_domain = of_domain.filter(|(domain, _)| *domain == request.claimed_domain());
            let keys: Vec<VerifyingKey> = of_domain
                .map(|(_, key)| VerifyingKey::parse(key).unwrap())
                .collect();
            request.verify(&target, &fields, body, &keys)?;
            let seen = input["seen_nonces"].as_array().cloned().unwrap_or_default();
            if seen.contains(&Value::from(request.nonce.as_str())) {
                return Err(Refusal::new(
                    ErrorCode::RequestSignatureInvalid,
                    "this nonce was used",
                ));
            }
            Ok(request)
        });
    vector.expect(result, |request, expected| {
        assert_eq!(request.keyid, text(&expected["keyid"]), "{}", vector.name);
        assert!(
            request.remember_until >= Timestamp::from_unix_secs(clock),
            "{}",
            vector.name
        );
    });
}

#[test]
fn batches() {
    run("batches", 7, |vector, _| {
        let keyid_domain = text(&vector.input["keyid"]).split('#').next().unwrap();
        let batch = Batch::from_json(&support::json(&vector.input["batch"]), keyid_domain);
        vector.expect(batch, |batch, expected| {
            assert_eq!(expected["ok"], true);
            assert_eq!(batch.domain.as_str(), keyid_domain);
        });
    });
}

struct Hub {
    peer: Domain,
    own: Domain,
    now: Timestamp,
    /// `None`: the sender's hub did not answer.
    directory: BTreeMap<String, Option<Identity>>,
    received: Received,
    seen: HashMap<[u8; 16], [u8; 32]>,
}

impl Hub {
    /// One item, from the known to the stored.
    fn judge(&mut self, item: &Value) -> Value {
        let item = Item::from_json(&support::json(item)).unwrap();
        let peer_seq = item.peer_seq;
        let answer = |status: &str, code: Option<ErrorCode>| match code {
            None => json!({"peer_seq": peer_seq, "status": status}),
            Some(code) => json!({"peer_seq": peer_seq, "status": status, "code": code.as_str()}),
        };
        match self.received.known(peer_seq) {
            Known::Refused(code) => return answer("refused", Some(code)),
            Known::Duplicate => return answer("duplicate", None),
            Known::New => {}
        }
        match self.decide(item) {
            Ok(status) => {
                self.received.settle(peer_seq);
                answer(status, None)
            }
            Err(refusal) if refusal.code == ErrorCode::PeerFailed => answer("retry", Some(refusal.code)),
            Err(refusal) => {
                self.received.refuse(peer_seq, refusal.code);
                answer("refused", Some(refusal.code))
            }
        }
    }

    fn decide(&mut self, item: Item) -> Result<&'static str, Refusal> {
        let refuse = |code| Refusal::new(code, "as the test's hub sees it");
        let item = item.admit(&self.peer, &self.own, self.now)?;
        let sender = self.directory.get(item.envelope.from.as_str());
        let sender = sender.ok_or_else(|| refuse(ErrorCode::SenderUnknown))?;
        verify_sender(
            &item,
            sender.as_ref().ok_or_else(|| refuse(ErrorCode::PeerFailed))?,
        )?;
        let recipient = self
            .directory
            .get(item.envelope.to.as_str())
            .and_then(Option::as_ref);
        let recipient = recipient.ok_or_else(|| refuse(ErrorCode::RecipientUnknown))?;
        if recipient.is_deactivated() {
            return Err(refuse(ErrorCode::RecipientDeactivated));
        }
        match self
            .seen
            .insert(item.envelope.dedup_key(), item.envelope.digest())
        {
            None => Ok("stored"),
            Some(digest) if digest == item.envelope.digest() => Ok("duplicate"),
            Some(_) => Err(refuse(ErrorCode::IdReused)),
        }
    }
}

#[test]
fn federation_items() {
    run("federation_items", 16, |vector, file| {
        let known = &vector.input["known"];
        let above = known["above"]
            .as_array()
            .unwrap()
            .iter()
            .map(|seq| seq.as_u64().unwrap());
        let entries = file["directory"].as_object().unwrap().iter();
        let mut hub = Hub {
            peer: Domain::parse(text(&file["peer_domain"])).unwrap(),
            own: Domain::parse(text(&file["own_domain"])).unwrap(),
            now: time(&vector.input["clock"]),
            directory: entries
                .map(|(did, history)| (did.clone(), (!history.is_null()).then(|| identity(history))))
                .collect(),
            received: Received::new(known["floor"].as_u64().unwrap(), above),
            seen: HashMap::new(),
        };
        let items = vector.input["items"].as_array().unwrap();
        let results: Vec<Value> = items.iter().map(|item| hub.judge(item)).collect();
        assert_eq!(
            Value::from(results),
            vector.expected["results"],
            "{}",
            vector.name
        );
        assert_eq!(
            hub.received.acked_through(),
            vector.expected["acked_through"],
            "{}",
            vector.name
        );
    });
}
