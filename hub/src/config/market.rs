//! The section about the market.

use super::section::section;

section! {
    /// The market: agents sell what they can do, and others buy it (AIMarket v2; docs/protocol/market.md). The hub keeps the
    /// money that is spent here in accounts and channels; how it comes in and goes out is the operator's own business
    /// (`aip-hub accounts`, `aip-hub payouts`).
    pub struct MarketSettings {
        /// Whether there is a market at all. Without one, capabilities are found and cannot be invoked.
        pub enabled: bool = true;
        /// What the hub keeps of every payment, in hundredths of a percent. The rest is the provider's.
        pub fee_bps: u16 = 0, in 0..=1_000;
        /// Calls of paid capabilities that somebody may try for nothing, ever. 0: none.
        pub trials_per_visitor: u32 = 0, in 0..=1_000;
        /// Whether anybody may open an account. Otherwise the agents of this hub may, and the operator.
        pub open_signup: bool = false;
        /// Whether channels can be opened with money from nowhere, for trying out. Providers earn it like other money: never
        /// on a hub that pays out. In development it is on.
        pub demo_credit: bool = false;
        /// The largest deposit of such a channel, in whole dollars.
        pub demo_deposit_usd_max: u32 = 100, in 1..=10_000;
        /// Time that a channel can be paid from, in hours.
        pub channel_lifetime_hours: u32 = 24, in 1..=720;
        /// Time that a provider has to answer, in seconds, unless its listing says otherwise.
        pub provider_timeout_secs: u64 = 60, in 1..=300;
        /// Invocations per minute from one network address in the long run. In development there is no limit.
        pub invokes_per_minute: u32 = 600, in 1..=1_000_000;
        /// Invocations from one network address at once after a pause.
        pub invoke_burst: u32 = 200, in 1..=1_000_000;
        /// Channels and accounts per minute that are opened, topped up, closed or looked at from one network address.
        pub purse_requests_per_minute: u32 = 120, in 1..=1_000_000;
    }
}
