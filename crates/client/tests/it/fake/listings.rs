//! The catalog of the scripted hub: it keeps signed listings and rows of a provider, and finds what is named.

use std::collections::BTreeMap;

use aip_client::protocol::error::Refusal;
use aip_client::protocol::identity::Identity;
use aip_client::protocol::json::Json;
use aip_client::protocol::listing::{Listing, Offer};
use serde_json::{Value, json};

use super::{FakeHub, problem};

/// The key of the only provider.
pub(crate) const PROVIDER_KEY: &str = "pk-secret";

/// One listing.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) version: u64,
    pub(crate) json: Value,
    pub(crate) deleted: bool,
}

/// By the hub's id.
pub(crate) type Listings = BTreeMap<String, Held>;

fn id_of(agent: &str, listing_id: &str) -> String {
    format!("lst_{}_{}", agent.rsplit(':').next().unwrap(), hex(listing_id))
}

fn hex(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    bytes.concat()
}

fn refusal(refusal: &Refusal) -> (u16, Value) {
    let (status, mut value) = problem(refusal.code.status(), refusal.code.as_str());
    value["detail"] = refusal.detail.to_string().into();
    (status, value)
}

impl FakeHub {
    pub(super) fn listing_door(
        &self,
        method: &str,
        parts: &[&str],
        query: &str,
        body: &[u8],
    ) -> Option<(u16, Value)> {
        Some(match (method, parts) {
            ("POST", ["listings"]) => self.publish(None, body),
            ("DELETE", ["listings", id]) => self.publish(Some(id), body),
            ("GET", ["listings", id]) => self.held(id),
            ("GET", ["listings", id, "status"]) => {
                (200, json!({"id": id, "indexed": true, "language": "en"}))
            }
            ("GET", ["agents", name, "listings"]) => self.of_agent(name, query),
            ("POST" | "DELETE", ["ingest", "listings"]) => self.ingest(method, body),
            ("POST", ["search"]) => self.find(body),
            _ => return None,
        })
    }

    fn publish(&self, id: Option<&str>, body: &[u8]) -> (u16, Value) {
        let listing = match Listing::parse(body) {
            Ok(listing) => listing,
            Err(refused) => return refusal(&refused),
        };
        let history = self.state().histories.get(listing.agent.name()).cloned();
        let identity = Identity::replay(history.unwrap_or_default()).unwrap();
        if let Err(refused) = listing.verify(&identity, listing.created_at) {
            return refusal(&refused);
        }
        let own = id_of(listing.agent.as_str(), &listing.listing_id);
        if id.is_some_and(|id| id != own) || id.is_some() != listing.deleted {
            return problem(403, "not_yours");
        }
        let mut state = self.state();
        let json: Value = serde_json::from_slice(body).unwrap();
        let is_new = !state.listings.contains_key(&own);
        if let Some(held) = state.listings.get(&own) {
            if held.json == json {
                return (
                    200,
                    json!({"id": own, "version": held.version, "status": "unchanged"}),
                );
            }
            if held.version >= listing.version {
                let (status, mut conflict) = problem(409, "version_conflict");
                conflict["version"] = held.version.into();
                return (status, conflict);
            }
        }
        let (version, deleted) = (listing.version, listing.deleted);
        state.listings.insert(
            own.clone(),
            Held {
                version,
                json,
                deleted,
            },
        );
        let status = if deleted { "deleted" } else { "stored" };
        (
            if is_new { 201 } else { 200 },
            json!({"id": own, "version": version, "status": status}),
        )
    }

    fn held(&self, id: &str) -> (u16, Value) {
        match self.state().listings.get(id).filter(|held| !held.deleted) {
            Some(held) => (200, held_json(id, held)),
            None => problem(404, "not_found"),
        }
    }

    /// One listing a page, so that paging is used.
    fn of_agent(&self, name: &str, query: &str) -> (u16, Value) {
        let after = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("cursor="))
            .unwrap_or("");
        let state = self.state();
        if !state.histories.contains_key(name) {
            return problem(404, "not_found");
        }
        let prefix = format!("lst_{name}_");
        let mut live = state
            .listings
            .iter()
            .filter(|(id, held)| id.starts_with(&prefix) && !held.deleted);
        let page: Vec<Value> = live
            .by_ref()
            .filter(|(id, _)| id.as_str() > after)
            .take(1)
            .map(|(id, held)| held_json(id, held))
            .collect();
        let next = page.first().map(|held| held["id"].clone());
        (200, json!({"items": page, "next_cursor": next}))
    }

    fn ingest(&self, method: &str, body: &[u8]) -> (u16, Value) {
        let bearer = format!("bearer {PROVIDER_KEY}");
        let is_known = self
            .state()
            .heads
            .last()
            .is_some_and(|head| head.to_lowercase().contains(&bearer));
        if !is_known {
            return problem(401, "token_invalid");
        }
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let rows: Vec<Value> = lines
            .zip(1..)
            .map(|(line, row)| self.ingest_row(method, line, row))
            .collect();
        (200, json!({"rows": rows}))
    }

    fn ingest_row(&self, method: &str, line: &[u8], row: u64) -> Value {
        let json = Json::parse(line).unwrap();
        let listing_id = json.get("listing_id").unwrap().as_str().unwrap().to_owned();
        let id = id_of("shop", &listing_id);
        let mut state = self.state();
        if method == "DELETE" {
            state.listings.remove(&id);
            return json!({"row": row, "listing_id": listing_id, "id": id, "status": "deleted"});
        }
        if listing_id == "refuse-me" {
            return json!({"row": row, "listing_id": listing_id, "status": "refused", "code": "member_invalid", "detail": "as scripted"});
        }
        Offer::from_json(&json).unwrap();
        let mut value = Value::from(json);
        value["agent"] = format!("did:aip:{}:shop", self.domain.replace(':', "%3A")).into();
        let held = state.listings.get(&id).cloned();
        let is_same = held.as_ref().is_some_and(|held| held.json == value);
        let version = held.map_or(1, |held| held.version + u64::from(!is_same));
        state.listings.insert(
            id.clone(),
            Held {
                version,
                json: value,
                deleted: false,
            },
        );
        let status = if is_same { "unchanged" } else { "stored" };
        json!({"row": row, "listing_id": listing_id, "id": id, "version": version, "status": status})
    }

    /// What has the text in its name, two a page, by id.
    fn find(&self, body: &[u8]) -> (u16, Value) {
        let body: Value = serde_json::from_slice(body).unwrap();
        let (text, from) = (
            body["q"].as_str().unwrap(),
            body["cursor"].as_str().unwrap_or("0"),
        );
        let from: usize = from.parse().unwrap();
        let state = self.state();
        let has_text = |held: &&Held| !held.deleted && held.json["name"].as_str().unwrap().contains(text);
        let found: Vec<(&String, &Held)> = state.listings.iter().filter(|(_, held)| has_text(held)).collect();
        let results: Vec<Value> = found
            .iter()
            .zip(1..)
            .skip(from)
            .take(2)
            .map(|((id, held), rank)| result(id, held, rank))
            .collect();
        let next = (from + 2 < found.len()).then(|| (from + 2).to_string());
        (
            200,
            json!({"query": text, "results": results, "next_cursor": next, "took_ms": 1, "degraded": ["semantic"]}),
        )
    }
}

fn held_json(id: &str, held: &Held) -> Value {
    json!({"id": id, "version": held.version, "origin": "signed", "flags": [], "listing": held.json,
        "updated_at": held.json.get("created_at").cloned().unwrap_or_else(|| "2026-11-29T20:15:30.000Z".into())})
}

fn result(id: &str, held: &Held, rank: u32) -> Value {
    let agent = held.json["agent"].as_str().unwrap();
    let (domain, name) = agent.strip_prefix("did:aip:").unwrap().rsplit_once(':').unwrap();
    let handle = format!("{name}%23{}", domain.replace("%3A", ":"));
    json!({
        "id": id, "kind": held.json["kind"], "name": held.json["name"], "description": held.json["description"],
        "price_text": held.json["price"], "currency": held.json["currency"], "available": held.json["available"],
        "relevance_score": 0.5, "trust_score": 0.25, "final_score": 0.016, "ranks": {"fts": rank},
        "agent": {"handle": handle, "did": agent, "name": name, "endpoint": null}, "source_hub": domain,
    })
}
