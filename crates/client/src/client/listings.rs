//! Publishing what the agent offers, and looking at what agents offer (spec §9).

use std::collections::HashMap;

use aip_protocol::error::ErrorCode;
use aip_protocol::identity::Identity;
use aip_protocol::listing::{Listing, ListingDraft, Offer};
use aip_protocol::name::Did;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::Client;
use super::lookup::is_unknown_agent;
use super::send::is_stale_key;
use crate::error::{Error, Result};
use crate::identities::Freshness;
use crate::limits::{LISTINGS_PAGE, LISTINGS_PAGES_MAX, PUBLISH_AT_ONCE};
use crate::listing::{HeldAnswer, HeldListing, HeldPage, ListingPage, ListingStatus, Proof, Published};
use crate::message::parse_agent;
use crate::transport::{Answer, Request, Transport};
use crate::wire::{cursor_text, encoded};

const PUBLISHING: &str = "publishing a listing";
const DELETING: &str = "deleting a listing";
const LISTING: &str = "asking for listings";
const LISTINGS: &str = "/api/v1/listings";

/// How often a listing is signed again: for a key that was replaced, and for a version that the hub has passed.
const SIGNINGS_MAX: u32 = 3;

impl Client {
    /// Signs an offer and gives it to the hub: the same bytes until the hub has said yes or no, like a message. When this
    /// returns `Ok`, the hub holds the listing durably.
    ///
    /// Its version is the time in milliseconds since 1970, or one more than the version that the hub holds, whichever is
    /// higher: two machines with the same keys need not agree on anything, and a clock that was ahead does no lasting harm.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an offer that no hub would take, [`Error::Refused`] when the hub said no, the last error of the
    /// line when it never answered.
    pub async fn publish_listing(&self, offer: &Offer) -> Result<Published> {
        let mut version = self.version_now();
        let mut signings = 1;
        loop {
            let keys = self.keys()?;
            let draft = ListingDraft::new(keys.did().clone(), version, self.now(), offer.clone());
            let listing = draft.sign(&keys.signing)?;
            match self.submit_listing(&listing).await {
                Err(error) if signings == SIGNINGS_MAX => return Err(error),
                Err(error) if is_stale_key(&error) => self.refresh_own_keys().await?,
                Err(error) => version = version_after(&error, version).ok_or(error)?,
                Ok(published) => return Ok(published),
            }
            signings += 1;
        }
    }

    /// Gives a signed listing to the hub: the same bytes, as often as it takes. To survive a crash as well, write
    /// [`Listing::json`] down first.
    pub async fn submit_listing(&self, listing: &Listing) -> Result<Published> {
        let body = listing.json.to_jcs();
        self.call_patiently(|| Request::post(PUBLISHING, LISTINGS, body.clone()))
            .await?
            .json()
    }

    /// Publishes many offers, a few at a time; each has its own result, in order. What the hub holds already, word for word,
    /// is not sent again: its status is `unchanged`. So, after an error, the whole may be published again.
    ///
    /// # Errors
    /// What a hub refuses stands in its place. The call itself fails where the agent's listings cannot be read, and where
    /// the hub does not answer any more.
    pub async fn publish_listings(&self, offers: &[Offer]) -> Result<Vec<Result<Published>>> {
        let held = self.listings_by_id(self.keys()?.did()).await?;
        let publish = |offer| self.publish_changed(offer, &held);
        let mut publishing = stream::iter(offers).map(publish).buffered(PUBLISH_AT_ONCE);
        let mut results = Vec::with_capacity(offers.len());
        while let Some(result) = publishing.next().await {
            match result {
                Err(error) if error.is_transient() => return Err(error),
                result => results.push(result),
            }
        }
        Ok(results)
    }

    async fn publish_changed(&self, offer: &Offer, held: &HashMap<String, HeldListing>) -> Result<Published> {
        match held.get(&offer.listing_id) {
            // What a provider handed in is signed all the same: a signature says more.
            Some(held) if held.offer == *offer && held.proof != Proof::Ingested => Ok(Published {
                id: held.id.clone(),
                version: held.version,
                status: "unchanged".to_owned(),
                held: held.held.clone(),
                flags: held.flags.clone(),
            }),
            _ => self.publish_listing(offer).await,
        }
    }

    /// Takes a listing of this agent away. `id` is the hub's, or the `listing_id` that the agent gave it.
    ///
    /// # Errors
    /// `not_found` when the hub has no such listing, `not_yours` when it is another agent's.
    pub async fn delete_listing(&self, id: &str) -> Result<Published> {
        let held = self.find_listing(id, Some(self.keys()?.did())).await?;
        let path = format!("{LISTINGS}/{}", encoded(&held.id));
        let mut version = self.version_now().max(held.version.saturating_add(1));
        let mut signings = 1;
        loop {
            let keys = self.keys()?;
            let (kind, own) = (held.offer.kind, held.offer.listing_id.as_str());
            let draft = ListingDraft::deletion(keys.did().clone(), version, self.now(), kind, own);
            let body = draft.sign(&keys.signing)?.json.to_jcs();
            let delete = || Request::delete(DELETING, path.clone(), body.clone());
            match self.call_patiently(delete).await {
                Err(error) if signings == SIGNINGS_MAX => return Err(error),
                Err(error) if is_stale_key(&error) => self.refresh_own_keys().await?,
                Err(error) => version = version_after(&error, version).ok_or(error)?,
                Ok(answer) => return answer.json(),
            }
            signings += 1;
        }
    }

    /// A listing by the hub's id, its signature checked against its agent's identity.
    ///
    /// # Errors
    /// `not_found`; a signature that is not good is [`Proof::Broken`].
    pub async fn get_listing(&self, id: &str) -> Result<HeldListing> {
        let path = format!("{LISTINGS}/{}", encoded(id));
        let answer = self
            .call_patiently(|| Request::get(LISTING, path.clone()))
            .await?;
        let mut held = read(answer.json()?)?;
        if held.proof == Proof::Unchecked {
            held.proof = self.prove(&held).await?;
        }
        Ok(held)
    }

    /// A listing by the hub's id, or by the `listing_id` that `agent` gave it.
    pub async fn find_listing(&self, id: &str, agent: Option<&Did>) -> Result<HeldListing> {
        let error = match self.get_listing(id).await {
            Err(error) if error.is_code(ErrorCode::NotFound) => error,
            outcome => return outcome,
        };
        let Some(agent) = agent else {
            return Err(error);
        };
        let held = self.listings_by_id(agent).await?.remove(id).ok_or(error)?;
        self.get_listing(&held.id).await
    }

    /// Why the hub finds a listing, or does not: the state of its index, flags, language.
    pub async fn listing_status(&self, id: &str) -> Result<ListingStatus> {
        let path = format!("{LISTINGS}/{}/status", encoded(id));
        let request = || Request::get("asking for the status of a listing", path.clone());
        self.call_patiently(request).await?.json()
    }

    /// One page of what an agent offers, at its own hub. Signatures are not checked here.
    pub async fn listings_of(&self, agent: &str, cursor: Option<&str>) -> Result<ListingPage> {
        let did = parse_agent(agent)?;
        let hub = self.hub_of(&did).await?;
        self.listing_page(&did, &hub, cursor).await
    }

    async fn listing_page(&self, did: &Did, hub: &Transport, cursor: Option<&str>) -> Result<ListingPage> {
        let mut path = format!(
            "/api/v1/agents/{}/listings?limit={LISTINGS_PAGE}",
            encoded(did.name())
        );
        if let Some(cursor) = cursor {
            path.push_str("&cursor=");
            path.push_str(&encoded(cursor));
        }
        let answer = self
            .call_hub_patiently(hub, || Request::get(LISTING, path.clone()))
            .await?;
        let HeldPage { items, next_cursor } = answer.json()?;
        Ok(ListingPage {
            items: items.into_iter().map(read).collect::<Result<_>>()?,
            next_cursor: next_cursor.as_ref().and_then(cursor_text),
        })
    }

    /// What an agent offers, by `listing_id`.
    async fn listings_by_id(&self, agent: &Did) -> Result<HashMap<String, HeldListing>> {
        let hub = self.hub_of(agent).await?;
        let (mut held, mut cursor) = (HashMap::new(), None);
        for _ in 0..LISTINGS_PAGES_MAX {
            let page = self.listing_page(agent, &hub, cursor.as_deref()).await?;
            held.extend(
                page.items
                    .into_iter()
                    .map(|item| (item.offer.listing_id.clone(), item)),
            );
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(held);
            }
        }
        Err(Error::answer(LISTING, "it does not end"))
    }

    /// The agent may have changed its keys since its identity was last looked at, so a signature that does not check is
    /// checked once more against a fresh look.
    async fn prove(&self, held: &HeldListing) -> Result<Proof> {
        let listing = match Listing::from_json(held.json.clone()) {
            Ok(listing) => listing,
            Err(refusal) => return Ok(Proof::Broken(refusal.detail.into_owned())),
        };
        let accepted_at = held.updated_at.unwrap_or_else(|| self.now());
        let check = |agent: &Identity| listing.verify_accepted(agent, accepted_at);
        let remembered = self.look_up(&held.agent, Freshness::Remembered).await;
        let agent = match remembered {
            Ok(agent) if check(&agent).is_ok() => return Ok(Proof::Signed),
            Ok(_) => self.look_up(&held.agent, Freshness::Asked).await?,
            Err(error) if is_unknown_agent(&error) => return Ok(Proof::Broken(error.to_string())),
            Err(error) => return Err(error),
        };
        Ok(match check(&agent) {
            Ok(()) => Proof::Signed,
            Err(refusal) => Proof::Broken(refusal.detail.into_owned()),
        })
    }

    fn version_now(&self) -> u64 {
        u64::try_from(self.now().unix_millis()).unwrap_or_default()
    }

    /// Sends a request that may be sent twice, again and again until the hub has said yes or no or the window is over.
    pub(super) async fn call_patiently(&self, request: impl Fn() -> Request) -> Result<Answer> {
        self.call_hub_patiently(self.transport(), request).await
    }

    async fn call_hub_patiently(&self, hub: &Transport, request: impl Fn() -> Request) -> Result<Answer> {
        let ends_at = self.now() + self.0.send_window;
        let mut failures = 0;
        loop {
            let error = match hub.call(request()).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_transient() => error,
                Err(error) => return Err(error),
            };
            failures += 1;
            if !self.pause(failures, &error, ends_at).await {
                return Err(error);
            }
        }
    }
}

fn read(answer: HeldAnswer) -> Result<HeldListing> {
    answer.read().map_err(|refusal| Error::answer(LISTING, refusal))
}

/// The version to send instead, where the hub has passed this one.
fn version_after(error: &Error, version: u64) -> Option<u64> {
    let problem = error
        .problem()
        .filter(|_| error.is_code(ErrorCode::VersionConflict))?;
    let held = problem.members.get("version").and_then(Value::as_u64)?;
    held.max(version).checked_add(1)
}
