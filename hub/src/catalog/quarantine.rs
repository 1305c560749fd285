//! Listings that wait until the operator has looked at them: found by nobody and sold to nobody, and shown by their address to
//! whoever has it, as their agent must see them.

use aip_catalog::Catalog;
use aip_registry::StoreError;
use aip_registry::listings::{Listings, StoredListing, Verdict};

use super::limits::SUSPECTS_PAGE;

/// Which listings wait.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    flags: Vec<String>,
}

/// Whether a listing is kept from those who search and buy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It is not.
    No,
    /// It waits for the operator.
    Quarantined,
    /// The operator said no.
    Rejected,
}

impl Held {
    /// As it is told; `None`: it is not held.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Quarantined => Some("quarantined"),
            Self::Rejected => Some("rejected"),
        }
    }

    /// Whether it is kept from those who search and buy.
    pub fn is_held(self) -> bool {
        self != Self::No
    }
}

impl Quarantine {
    /// Listings with any of these flags wait.
    pub fn new(flags: &[String]) -> Self {
        Self {
            flags: flags.to_vec(),
        }
    }

    /// How a listing stands.
    pub fn of(&self, stored: &StoredListing) -> Held {
        match stored.trail.review.map(|review| review.verdict) {
            Some(Verdict::Rejected) => Held::Rejected,
            None if stored.flags.iter().any(|flag| self.flags.contains(flag)) => Held::Quarantined,
            Some(Verdict::Released) | None => Held::No,
        }
    }
}

/// Has the catalog look anew at listings that it holds and should not, or should and does not, since the settings are others
/// than when it read them. Says how many.
///
/// # Errors
/// The store failed; the rest is as it was.
pub async fn reconcile(
    listings: &dyn Listings,
    catalog: &Catalog,
    quarantine: &Quarantine,
) -> Result<u64, StoreError> {
    let (mut after, mut looked_at) = (None, 0);
    loop {
        let page = listings.suspects(after.as_deref(), SUSPECTS_PAGE).await?;
        for stored in &page {
            let is_indexed = catalog.state(&stored.id).await.indexed;
            if is_indexed == quarantine.of(stored).is_held() {
                listings.review(&stored.id, None, None).await?;
                looked_at += 1;
            }
        }
        let Some(last) = page.into_iter().next_back() else {
            return Ok(looked_at);
        };
        after = Some(last.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aip_protocol::name::Did;
    use aip_protocol::time::Timestamp;
    use aip_registry::listings::{Origin, Review, Trail};

    fn listing(flags: &[&str], verdict: Option<Verdict>) -> StoredListing {
        let review = verdict.map(|verdict| Review {
            verdict,
            texts: [0; 32],
        });
        StoredListing {
            id: "lst_x".to_owned(),
            number: 1,
            agent: Did::parse("did:aip:hub.example:shop").unwrap(),
            listing_id: "x".to_owned(),
            version: 1,
            deleted: false,
            json: Vec::new(),
            digest: [0; 32],
            origin: Origin::Signed,
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            change_seq: 1,
            stored_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            trail: Trail {
                review,
                ..Trail::default()
            },
        }
    }

    #[test]
    fn what_is_flagged_waits_where_the_settings_say_so_until_it_is_judged() {
        let odd = ["injection_suspected", "invisible_characters"];
        let strict = Quarantine::new(&["invisible_characters".to_owned()]);
        assert_eq!(strict.of(&listing(&odd, None)), Held::Quarantined);
        assert_eq!(strict.of(&listing(&["injection_suspected"], None)), Held::No);
        assert_eq!(strict.of(&listing(&odd, Some(Verdict::Released))), Held::No);
        let open = Quarantine::default();
        assert_eq!(open.of(&listing(&odd, None)), Held::No);
        assert_eq!(open.of(&listing(&[], Some(Verdict::Rejected))), Held::Rejected);
    }
}
