//! The client against a hub that is scripted in this process: what it sends, what it survives, what it never does twice.
//! The same library against the real hub is tested in the workspace's own tests.

#[cfg(test)]
mod aip;
#[cfg(test)]
mod catalog;
#[cfg(test)]
mod command;
#[cfg(test)]
mod exec;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod followed;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod listings;
#[cfg(test)]
mod login;
#[cfg(test)]
mod market;
#[cfg(test)]
mod moves;
#[cfg(test)]
mod offers;
#[cfg(test)]
mod receipts;
#[cfg(test)]
mod receive;
#[cfg(test)]
mod restarts;
#[cfg(test)]
mod routed;
#[cfg(test)]
mod send;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod support;
#[cfg(test)]
mod words;
