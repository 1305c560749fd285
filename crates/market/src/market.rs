//! The market of one process: what it is made of, its purses and its housekeeping.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aip_protocol::clock::Clock;
use aip_protocol::market::receipt::{self, NonceKind};
use aip_protocol::multikey::SigningKey;
use rand_core::CryptoRng;
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::board::Board;
use crate::credential::{API_KEY_PREFIX, CHANNEL_SECRET_PREFIX, Secret};
use crate::crowd::Crowd;
use crate::facilitator::{PaymentCounts, X402};
use crate::limits::{
    ANSWERS_KEPT, FOLLOWERS_MAX, PAGE_MAX, SWEEP_ROWS, UNDER_WAY_ELSEWHERE_MAX, UNDER_WAY_MAX,
};
use crate::money::Usd;
use crate::offer::Offers;
use crate::peers::PeerBook;
use crate::provider::Providers;
use crate::refusal::{MarketCode, MarketError, MarketRefusal};
use crate::routing::PeerHubs;
use crate::store::{Account, AccountId, ApiKey, Channel, ChannelId, KeyId, MarketStore, NewKey, StoreError};

/// What the operator decides.
#[derive(Debug, Clone)]
pub struct MarketConfig {
    /// The hub's domain, which search answers as `source_hub`.
    pub domain: String,
    /// Where the hub is reached, without a slash at the end: `https://hub.example`.
    pub base_url: String,
    /// Free calls of paid capabilities that one visitor has; 0: there are none.
    pub trials_per_visitor: u32,
    /// The hub's part of every price, in hundredths of a percent.
    pub fee_bps: u16,
    /// What is added to the price of what other hubs sell, in hundredths of a percent.
    pub routing_fee_bps: u16,
    /// How long a provider may take whose listing does not say.
    pub provider_timeout: Duration,
    /// Whether anybody may make an account; told to who does not pay.
    pub open_signup: bool,
    /// Whether channels are opened with money from nowhere; told to who does not pay.
    pub demo_credit: bool,
    /// Which process this is: the same at every start of a hub that is one process, so that it finds what it lost; another for
    /// every process of a cluster.
    pub holder: Uuid,
}

/// What the market is put together from.
#[derive(Debug, Clone)]
pub struct Seams {
    /// What is kept.
    pub store: Arc<dyn MarketStore>,
    /// What is sold.
    pub offers: Arc<dyn Offers>,
    /// Who does the work.
    pub providers: Arc<dyn Providers>,
    /// Which other hubs sell.
    pub peers: Arc<dyn PeerBook>,
    /// Calls them.
    pub hubs: Arc<dyn PeerHubs>,
    /// Has payments made on a chain; `None`: none are taken.
    pub x402: Option<Arc<X402>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Signs receipts.
    pub key: SigningKey,
}

/// The market of one process.
pub struct Market {
    pub(crate) config: MarketConfig,
    pub(crate) seams: Seams,
    pub(crate) tasks: TaskTracker,
    /// One permit for each invocation that is under way.
    pub(crate) slots: Arc<Semaphore>,
    /// One more for each of them that another hub does.
    pub(crate) routed_slots: Arc<Semaphore>,
    /// Whose they are.
    pub(crate) crowd: Crowd,
    /// Where those who follow calls find them.
    pub(crate) board: Board,
    /// One permit for each stream of events.
    pub(crate) followers: Arc<Semaphore>,
    /// What became of payments on a chain.
    pub(crate) payments: PaymentCounts,
    /// Whether payments of lost processes are being taken up.
    pub(crate) resuming: AtomicBool,
    rng: Mutex<Box<dyn CryptoRng + Send>>,
}

/// What one round of housekeeping did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Invocations that were given up; their charges went back.
    pub abandoned: u64,
    /// Channels whose time was over; what was left went back.
    pub expired: u64,
    /// Answers that were forgotten.
    pub forgotten: u64,
}

impl fmt::Debug for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Market")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Market {
    /// Puts the market together.
    pub fn new(config: MarketConfig, seams: Seams, rng: Box<dyn CryptoRng + Send>) -> Arc<Self> {
        Arc::new(Self {
            config,
            seams,
            tasks: TaskTracker::new(),
            slots: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
            routed_slots: Arc::new(Semaphore::new(UNDER_WAY_ELSEWHERE_MAX)),
            crowd: Crowd::default(),
            board: Board::default(),
            followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
            payments: PaymentCounts::default(),
            resuming: AtomicBool::new(false),
            rng: Mutex::new(rng),
        })
    }

    /// What the operator decided.
    pub fn config(&self) -> &MarketConfig {
        &self.config
    }

    /// What is kept.
    pub fn store(&self) -> &Arc<dyn MarketStore> {
        &self.seams.store
    }

    /// What became of payments on a chain, in this process.
    pub fn payments(&self) -> &PaymentCounts {
        &self.payments
    }

    /// Invocations that are under way here.
    pub fn under_way(&self) -> usize {
        UNDER_WAY_MAX.saturating_sub(self.slots.available_permits())
    }

    /// Streams of events that are open here.
    pub fn streams(&self) -> usize {
        FOLLOWERS_MAX.saturating_sub(self.followers.available_permits())
    }

    /// The account that this key spends from.
    ///
    /// # Errors
    /// `invalid_api_key` for what is no key or was revoked, and for an account that the operator closed.
    pub async fn account_of_key(&self, shown: &str) -> Result<(ApiKey, Account), MarketError> {
        let unknown = || {
            MarketRefusal::new(
                MarketCode::KeyInvalid,
                "X-API-Key is no key of an account on this hub.",
            )
        };
        let secret = Secret::shown(API_KEY_PREFIX, shown).ok_or_else(unknown)?;
        let found = self.seams.store.key(&secret.hash()).await?;
        let (key, account) = found.ok_or_else(unknown)?;
        if account.suspended {
            let detail = "The operator of this hub has closed the account of this key.";
            return Err(MarketRefusal::new(MarketCode::KeyInvalid, detail).into());
        }
        Ok((key, account))
    }

    /// The channel, if this is its secret; it may have ended.
    ///
    /// # Errors
    /// `channel_secret_required`; `channel_not_found`, the same for a channel that is not there and for another secret. Whoever
    /// pays with it is told `payment_failed` instead.
    pub async fn channel_of_secret(&self, id: &str, shown: Option<&str>) -> Result<Channel, MarketError> {
        let shown = shown.ok_or_else(|| {
            let detail = "A channel is opened by its secret, in X-Payment-Channel-Secret.";
            MarketRefusal::new(MarketCode::ChannelSecretRequired, detail)
        })?;
        let unknown = || {
            let detail = "There is no channel with this id and this secret.";
            MarketRefusal::new(MarketCode::ChannelUnknown, detail)
        };
        let secret = Secret::shown(CHANNEL_SECRET_PREFIX, shown).ok_or_else(unknown)?;
        let channel = self.seams.store.channel(&ChannelId(id.to_owned())).await?;
        let channel = channel.ok_or_else(unknown)?;
        if bool::from(channel.secret_hash.ct_eq(&secret.hash())) {
            Ok(channel)
        } else {
            Err(unknown().into())
        }
    }

    /// The id of a new account.
    pub fn draw_account(&self) -> AccountId {
        AccountId(format!("acct_{}", self.draw_uuid().simple()))
    }

    /// A new key, and its secret for its holder.
    pub fn draw_key(&self, label: String, budget: Option<Usd>) -> (NewKey, Secret) {
        let secret = self.with_rng(|rng| Secret::draw(API_KEY_PREFIX, rng));
        let number = self.with_rng(|rng| rng.next_u64());
        let key = NewKey {
            id: KeyId(format!("key_{number:016x}")),
            hash: secret.hash(),
            label,
            budget,
        };
        (key, secret)
    }

    /// The id of a new channel, and its secret for its holder.
    pub fn draw_channel(&self) -> (ChannelId, Secret) {
        let id = ChannelId(format!("ch_{}", self.draw_uuid().simple()));
        (id, self.with_rng(|rng| Secret::draw(CHANNEL_SECRET_PREFIX, rng)))
    }

    /// The same for whoever asks again with this key: `payer` says who pays, so that nobody meets a channel of somebody else.
    pub fn derive_channel(&self, payer: &str, key: &str, deposit: Usd) -> (ChannelId, Secret) {
        let (id, secret) = Secret::of_channel(&self.seams.key, payer, key, deposit.micros());
        (ChannelId(format!("ch_{id}")), secret)
    }

    /// Gives up what an earlier process of this name left under way, before the doors open. Of no use to a cluster, whose
    /// processes have names of their own: there [`Self::sweep`] does it, later. How many.
    pub async fn recover(self: &Arc<Self>) -> Result<u64, StoreError> {
        self.look_for_facilitator();
        self.resume_beside(Some(self.config.holder));
        self.abandon(Some(self.config.holder)).await
    }

    /// One round of housekeeping; it is due every half a minute. Every process may do it.
    pub async fn sweep(self: &Arc<Self>) -> Result<Swept, StoreError> {
        self.resume_beside(None);
        let Seams { store, clock, .. } = &self.seams;
        self.board.clear(clock.now());
        let mut swept = Swept {
            abandoned: self.abandon(None).await?,
            ..Swept::default()
        };
        loop {
            let ended = store.expire_channels(clock.now(), SWEEP_ROWS).await?.len() as u64;
            swept.expired += ended;
            if ended < u64::from(SWEEP_ROWS) {
                break;
            }
        }
        let old = clock.now() - ANSWERS_KEPT;
        loop {
            let forgotten = store.forget_answers(old, PAGE_MAX).await?;
            swept.forgotten += forgotten;
            if forgotten < u64::from(PAGE_MAX) {
                return Ok(swept);
            }
        }
    }

    /// Waits until every invocation that was begun has ended; for a shutdown, after the doors are closed.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn abandon(&self, holder: Option<Uuid>) -> Result<u64, StoreError> {
        let Seams { store, clock, .. } = &self.seams;
        let mut count = 0;
        loop {
            let ended = store.abandon(holder, SWEEP_ROWS, clock.now()).await?.len() as u64;
            count += ended;
            if ended < u64::from(SWEEP_ROWS) {
                return Ok(count);
            }
        }
    }

    pub(crate) fn draw_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.with_rng(|rng| rng.fill_bytes(&mut bytes));
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    pub(crate) fn draw_nonce(&self) -> String {
        self.with_rng(|mut rng| receipt::nonce(NonceKind::Receipt, &mut rng))
    }

    fn with_rng<T>(&self, draw: impl FnOnce(&mut (dyn CryptoRng + Send)) -> T) -> T {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        draw(&mut **rng)
    }
}
