//! A hub that was put together: its regular work, and its end.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Data;
use aip_protocol::clock::Clock;
use aip_protocol::time::Timestamp;
use aip_registry::Registry;
use aip_registry::listings::Listings;
use aip_relay::mailbox::{MailboxStore, Status};
use aip_relay::presence::{CloseReason, Presence};

use crate::agent;
use crate::app::App;
use crate::catalog::{Quarantine, reconcile};
use crate::lifecycle::Lifecycle;
use crate::limits::{
    FORGET_EVERY_SECS, FORGET_LISTINGS_MAX, LISTING_AGE_DAYS, LISTING_AHEAD_SECS, LOOK_ANEW_PAUSE,
};
use crate::market::MarketRoom;
use crate::market::limits::SWEEP_INTERVAL;

/// The code of a message that was dropped at its end (spec §5), in the frame to its sender.
const EXPIRED_CODE: &str = "expired";

/// A hub.
#[derive(Debug)]
pub struct Hub {
    /// The state that both listeners share.
    pub app: Data<App>,
    /// Where the process stands.
    pub life: Lifecycle,
    /// The market, also where it is switched off.
    pub(super) market: Arc<MarketRoom>,
}

impl Hub {
    /// Starts the sweep of what has expired: messages, dead letters, statuses, dedup records, tokens, challenges.
    pub fn sweep_regularly(&self) {
        let every = Duration::from_secs(self.app.settings.relay.sweep_interval_secs);
        let sweeper = Arc::new(Sweeper {
            clock: self.app.clock.clone(),
            registry: self.app.registry.clone(),
            mailboxes: self.app.store.clone(),
            presence: self.app.presence.clone(),
            life: self.life.clone(),
        });
        self.life.spawn_every(every, move || {
            let sweeper = sweeper.clone();
            async move { sweeper.sweep().await }
        });
    }

    /// Starts what follows the listings into the catalog, and forgets those that were deleted long ago.
    pub fn follow_listings(&self) {
        let (catalog, closing) = (self.app.catalog.clone(), self.life.closing());
        self.life.spawn(async move { catalog.run(closing).await });
        let (app, closing) = (self.app.clone(), self.life.closing());
        self.life.spawn(async move {
            tokio::select! {
                () = closing => {}
                () = look_anew(&app) => {}
            }
        });
        let (listings, clock) = (self.app.listings.clone(), self.app.clock.clone());
        self.life
            .spawn_every(Duration::from_secs(FORGET_EVERY_SECS), move || {
                let (listings, clock) = (listings.clone(), clock.clone());
                async move { forget_deleted(&*listings, clock.now()).await }
            });
    }

    /// Starts what follows the listings into the market, where there is one, and its housekeeping in any case: of a market that
    /// was switched off, what is held and what is in channels whose time is over goes back, too.
    pub fn keep_market(&self) {
        if let Some(room) = &self.app.market {
            let (shelf, closing) = (room.shelf.clone(), self.life.closing());
            self.life.spawn(async move {
                tokio::select! {
                    () = closing => {}
                    () = shelf.follow() => {}
                }
            });
            let (peers, closing) = (room.peers.clone(), self.life.closing());
            self.life.spawn(async move {
                tokio::select! {
                    () = closing => {}
                    () = peers.run() => {}
                }
            });
        }
        let room = self.market.clone();
        self.life.spawn_every(SWEEP_INTERVAL, move || {
            let room = room.clone();
            async move { room.sweep().await }
        });
    }

    /// Starts sending to hubs of other domains.
    pub fn federate(&self) {
        if let Some(federation) = self.app.federation.clone() {
            let stop = self.life.closing_token();
            self.life.spawn(async move { federation.run(stop).await });
        }
    }

    /// Gives the hub's own agent its identity and lets it read its mailbox. Where that fails, it goes on trying.
    pub async fn start_agent(&self) {
        if let Err(error) = self.app.agent.establish().await {
            tracing::error!("The hub's own agent has no identity yet: {error}");
        }
        self.life
            .spawn(agent::run(self.app.clone(), self.life.closing_token()));
    }

    /// From here on the hub is not ready; sockets get their close frame, waits return what they have.
    pub fn begin_to_close(&self) {
        self.app.serving.drain();
        self.life.close();
        self.app.presence.close_all(CloseReason::GoingAway);
    }

    /// Waits for what was begun, then closes the stores; after [`Lifecycle::hurry`] without waiting. The listeners
    /// have stopped by now.
    pub async fn close(self) {
        let life = &self.life;
        let begun = async {
            life.drained().await;
            self.app.relay.drained().await;
            if let Some(room) = &self.app.market {
                room.engine.drained().await;
            }
        };
        tokio::select! {
            () = begun => {}
            () = life.hurried() => tracing::warn!(tasks = life.tasks(), "Some tasks did not end in time"),
        }
        if let Some(stores) = &self.app.stores {
            stores.close().await;
        }
        if let Some(cluster) = &self.app.cluster {
            cluster.close().await;
        }
    }
}

/// The settings may hold back other listings than those of the run before.
async fn look_anew(app: &App) {
    while !app.catalog.stats().is_caught_up {
        tokio::time::sleep(LOOK_ANEW_PAUSE).await;
    }
    let quarantine = Quarantine::new(&app.settings.search.quarantine);
    match reconcile(&*app.listings, &app.catalog, &quarantine).await {
        Ok(0) => {}
        Ok(count) => {
            app.listings_changed();
            tracing::info!(count, "{count} suspect listings are looked at anew");
        }
        Err(error) => {
            tracing::warn!(%error, "Suspect listings were not looked at anew; the next start does it");
        }
    }
}

/// In bounded steps; what is left waits for the next round.
async fn forget_deleted(listings: &dyn Listings, now: Timestamp) {
    // A version that was dated ahead of its time is taken for so much longer.
    let taken_millis = i64::from(LISTING_AGE_DAYS) * 86_400_000 + i64::from(LISTING_AHEAD_SECS) * 1_000;
    let before = Timestamp::from_unix_millis(now.unix_millis() - taken_millis);
    loop {
        match listings.forget_deleted(before, FORGET_LISTINGS_MAX).await {
            Ok(count) if count < u64::from(FORGET_LISTINGS_MAX) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "Deleted listings were not forgotten; the next round tries again");
                return;
            }
        }
    }
}

/// What the regular sweep works on.
struct Sweeper {
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    mailboxes: Arc<dyn MailboxStore>,
    presence: Arc<Presence>,
    life: Lifecycle,
}

impl Sweeper {
    async fn sweep(&self) {
        self.sweep_mailboxes().await;
        if let Err(error) = self.registry.sweep().await {
            tracing::warn!(%error, "Old tokens were not swept; the next sweep tries again");
        }
    }

    /// In bounded steps, so that a long backlog does not keep the writer from what is new.
    async fn sweep_mailboxes(&self) {
        while !self.life.is_closing() {
            let now = self.clock.now();
            match self.mailboxes.sweep(now).await {
                Ok(swept) => {
                    self.presence
                        .statuses(swept.expired, Status::Expired, Some(EXPIRED_CODE), now);
                    if !swept.more {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "The mailboxes were not swept; the next sweep tries again");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHub;
    use actix_web::test::TestRequest;
    use aip_market::money::Usd;
    use aip_market::store::{ChannelStatus, Funding, NewChannel};
    use aip_registry::listings::listing_id;
    use serde_json::json;

    #[actix_web::test]
    async fn a_market_that_is_switched_off_gives_back_what_is_over() {
        let hub = TestHub::with(|settings| settings.market.enabled = false);
        assert!(hub.hub.app.market.is_none());
        let (id, secret) = hub.hub.market.engine.draw_channel();
        let new = NewChannel {
            id: id.clone(),
            secret_hash: secret.hash(),
            funding: Funding::Demo,
            deposit: Usd::from_micros(1_000_000).unwrap(),
            expires_at: hub.clock.now() + Duration::from_mins(1),
        };
        let store = hub.hub.market.store();
        store.open_channel(new, hub.clock.now()).await.unwrap();
        hub.clock.advance(Duration::from_secs(61));
        hub.hub.keep_market();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        while store.channel(&id).await.unwrap().unwrap().status != ChannelStatus::Expired {
            assert!(tokio::time::Instant::now() < deadline, "nothing is swept");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[actix_web::test]
    async fn a_deletion_is_remembered_while_an_old_version_would_be_taken() {
        let hub = TestHub::new();
        let shop = hub.registered("shop").await;
        let ahead_millis = i64::from(LISTING_AHEAD_SECS) * 1_000;
        let ahead = Timestamp::from_unix_millis(hub.clock.now().unix_millis() + ahead_millis);
        let first = hub.listing(&shop, "x", 1, |listing| {
            listing["created_at"] = json!(ahead.to_string());
        });
        assert_eq!(hub.publish(&first).await.status, 201);
        let gone = hub.listing(&shop, "x", 2, |listing| listing["deleted"] = json!(true));
        let request = TestRequest::delete()
            .uri(&format!("/api/v1/listings/{}", listing_id(&shop.did, "x")))
            .insert_header(("content-type", "application/json"));
        assert_eq!(hub.ask(request.set_payload(gone.to_string())).await.status, 200);
        let days = u64::from(LISTING_AGE_DAYS);
        hub.clock.advance(Duration::from_secs(days * 86_400 + 1));
        forget_deleted(&*hub.hub.app.listings, hub.clock.now()).await;
        assert_eq!(hub.publish(&first).await.code(), "version_conflict");
    }
}
