//! What is remembered of the earlier versions of a listing, and what an operator decided about it. It is kept beside the
//! listing, which its agent signed, and outlives its deletion.

use aip_protocol::json::Json;
use aip_protocol::listing::{Offer, Wording};
use aip_protocol::time::Timestamp;

use super::{NewListing, StoredListing};

/// What is known of a listing beside what it says now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trail {
    /// The last time that its description became another one.
    pub description: Option<Rewording>,
    /// The last time that its schemas became others.
    pub schemas: Option<Rewording>,
    /// Of a tombstone: what it said, so that who deletes and publishes again is seen to have changed it.
    pub last: Option<Said>,
    /// What the operator decided.
    pub review: Option<Review>,
}

/// Something became another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewording {
    /// When that was stored.
    pub at: Timestamp,
    /// SHA-256 of what it was, as in [`Wording`].
    pub before: [u8; 32],
}

/// Hashes of what was said, as in [`Wording`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// Of the description.
    pub description: [u8; 32],
    /// Of the schemas.
    pub schemas: [u8; 32],
}

/// What an operator decided about a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Review {
    /// What.
    pub verdict: Verdict,
    /// Which words were looked at ([`Wording::texts`]). Other words of a listing that was released are to be looked at again.
    pub texts: [u8; 32],
}

/// How an operator decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is good as it is, whatever its flags say.
    Released,
    /// It is not to be found, in this version and in every further one, until it is released.
    Rejected,
}

impl Verdict {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Rejected => "rejected",
        }
    }

    /// The verdict that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Released, Self::Rejected]
            .into_iter()
            .find(|verdict| verdict.as_str() == text)
    }
}

/// What became of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewed {
    /// The listing as it stands now.
    Done(Box<StoredListing>),
    /// There is no such listing, or it was deleted.
    Unknown,
    /// It has another version than the one that was looked at.
    OtherVersion {
        /// That one.
        version: u64,
    },
}

/// The hashes of what a listing says; `None` where its text is none.
pub(crate) fn wording(json: &[u8]) -> Option<Wording> {
    let offer = Offer::from_json(&Json::parse(json).ok()?).ok()?;
    Some(offer.wording())
}

impl Trail {
    /// What is known after `new` took the place of `stored`.
    pub(super) fn after(stored: Option<&StoredListing>, new: &NewListing, now: Timestamp) -> Self {
        let Some(stored) = stored else {
            return Self::default();
        };
        let before = &stored.trail;
        let was = if stored.deleted {
            before.last
        } else {
            wording(&stored.json).map(Said::from)
        };
        if new.deleted {
            return Self {
                last: was,
                ..before.clone()
            };
        }
        let Some(is) = wording(&new.json) else {
            return Self {
                last: None,
                ..before.clone()
            };
        };
        let reworded = |was: Option<[u8; 32]>, is: [u8; 32], before: Option<Rewording>| {
            let changed = was.filter(|was| *was != is);
            changed.map_or(before, |before| Some(Rewording { at: now, before }))
        };
        let holds = |review: &Review| review.verdict == Verdict::Rejected || review.texts == is.texts;
        Self {
            description: reworded(was.map(|was| was.description), is.description, before.description),
            schemas: reworded(was.map(|was| was.schemas), is.schemas, before.schemas),
            last: None,
            review: before.review.filter(holds),
        }
    }
}

impl StoredListing {
    /// Has the operator's verdict about what it says; says whether it says anything.
    pub(crate) fn judge(&mut self, verdict: Verdict) -> bool {
        let Some(Wording { texts, .. }) = wording(&self.json) else {
            return false;
        };
        self.trail.review = Some(Review { verdict, texts });
        true
    }
}

impl From<Wording> for Said {
    fn from(wording: Wording) -> Self {
        let Wording {
            description, schemas, ..
        } = wording;
        Self { description, schemas }
    }
}

#[cfg(test)]
mod tests;
