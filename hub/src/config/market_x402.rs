//! The section about payments on a chain.

use super::Secret;
use super::section::section;

section! {
    /// Payments on a chain (x402 version 2): buyers pay providers directly, past this hub, which takes no part of it. The hub has
    /// no key on any chain; a facilitator makes the payments. Providers that want to be paid so name `payout_address` in the
    /// attributes of their listings.
    pub struct X402Settings {
        /// Whether such payments are taken.
        pub enabled: bool = false;
        /// Who makes them: the address of a facilitator, to which `/verify` and `/settle` are added. `local` is a chain of its own in
        /// memory, on which everybody has 100 dollars that are worth nothing: in development only, with the network `eip155:31337`.
        pub facilitator: String = String::new();
        /// What the facilitator is shown as a bearer token, where it asks for one. From the environment, not in a file.
        pub facilitator_token: Secret = Secret::default();
        /// Time that a facilitator has for one answer, in seconds.
        pub facilitator_timeout_secs: u64 = 20, in 1..=60;
        /// The chain: `eip155:` and its number.
        pub network: String = "eip155:84532".to_owned();
        /// The address of the token, one of which is worth one dollar. The default is USDC on Base's test network.
        pub asset: String = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".to_owned();
        /// What the token calls itself in what is signed (EIP-712).
        pub asset_name: String = "USDC".to_owned();
        /// Its version there.
        pub asset_version: String = "2".to_owned();
        /// Digits after the point of one of it.
        pub asset_decimals: u8 = 6, in 6..=18;
    }
}
