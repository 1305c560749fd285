//! Whether the process lives, and whether it takes work.

use crate::routes::Endpoint;

pub mod live;
pub mod ready;

/// The endpoints of this resource, on both listeners.
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::at("/health/live").get(live::live),
        Endpoint::at("/health/ready").get(ready::ready),
    ]
}
