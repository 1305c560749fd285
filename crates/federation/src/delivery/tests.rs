//! Delivery against hubs that keep the receiving side of the contract, and break down in every way.

mod ends;
mod failures;
mod full;
mod leases;
mod load;
mod net;
mod order;
mod pauses;
mod world;
