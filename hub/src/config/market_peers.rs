//! The section about other hubs that sell.

use std::path::PathBuf;

use super::section::section;

section! {
    /// Other hubs whose capabilities are found and called here, where there is a market (docs/protocol/market.md). Who they
    /// are is decided with `aip-hub market peers`. What leaves the hub also obeys `[egress]`.
    pub struct MarketPeerSettings {
        /// Whether this hub asks others for what they sell, and lets them announce themselves. Otherwise what those sell
        /// that were let in before is sold until it ends, within 6 hours; `aip-hub market peers block` ends it at once.
        pub enabled: bool = true;
        /// Addresses of hubs that sell here (`https://hub.example.org`), as if they were approved one by one. One that was
        /// blocked stays blocked.
        pub seeds: Vec<String> = Vec::new();
        /// Whether anybody may name a hub. It then waits for the operator: it is looked at, and nothing of it is found or sold.
        pub open: bool = true;
        /// Time between two looks at what a hub sells, in seconds.
        pub crawl_interval_secs: u64 = 3_600, in 60..=7_200;
        /// Whether this hub tells those that sell here when it sells something else than before.
        pub announce: bool = true;
        /// What is added to the price of what other hubs sell, in hundredths of a percent.
        pub routing_fee_bps: u16 = 0, in 0..=1_000;
        /// A file, mode 0600, with the keys of this hub's accounts at hubs that it resells: an address and a key in each line.
        /// It is read again when it changes. Empty: none.
        pub keys_file: PathBuf = PathBuf::new();
    }
}
