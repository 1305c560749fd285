//! The market of the hub (`docs/protocol/market.md`): calling capabilities, channels, accounts, receipts.

mod accounts;
mod channels;
mod invoke;
mod jobs;
mod receipts;

/// Where the market of a hub is.
const MARKET: &str = "/ai-market/v2";

/// The header of an account's key.
const API_KEY: &str = "X-API-Key";
