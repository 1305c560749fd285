//! What has gone wrong in AIMarket's implementations with signatures, each as a test of its own. The numbers are those of the
//! table in `tests/it/market/pitfalls.rs`.

#[cfg(test)]
mod documents;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod support;
#[cfg(test)]
mod texts;
