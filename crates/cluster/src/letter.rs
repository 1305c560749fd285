//! Signals as bytes: a seal, then JSON. What does not come out whole is nobody's signal.

use aip_protocol::name::Did;
use aip_protocol::time::Timestamp;
use aip_relay::mailbox::{MailboxId, Status};
use aip_relay::neighbours::Signal;
use aip_relay::presence::{CloseReason, StatusUpdate};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::{LETTER_BYTES_MAX, LETTER_CODE_BYTES_MAX, LETTER_SEQS_MAX};
use crate::names::{Names, SEAL_BYTES};

/// What processes tell each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// About a connected agent.
    Signal(MailboxId, Signal),
    /// About who exists: this agent was changed.
    Changed(Did),
}

/// Who tells what.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Letter {
    from: u64,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum What {
    Offered {
        to: String,
        seq: u64,
    },
    Settled {
        to: String,
        upto: u64,
        also: Vec<u64>,
        floor: u64,
    },
    Buried {
        to: String,
        seq: u64,
    },
    Released {
        to: String,
        seqs: Vec<u64>,
    },
    Status {
        to: String,
        id: String,
        recipient: String,
        status: String,
        code: Option<String>,
        at_millis: i64,
    },
    Close {
        to: String,
        reason: Reason,
    },
    Joined {
        to: String,
        generation: u64,
        share: bool,
    },
    Changed {
        did: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Replaced,
    Unauthenticated,
    GoingAway,
}

/// The bytes of `news` of the process `from`, for `channel`; `None` if it is too long.
pub(crate) fn write(names: &Names, channel: &str, from: u64, news: News) -> Option<Vec<u8>> {
    let what = match news {
        News::Signal(mailbox, signal) => of_signal(hex::encode(mailbox.as_bytes()), signal),
        News::Changed(did) => What::Changed { did: did.to_string() },
    };
    let json = serde_json::to_vec(&Letter { from, what }).ok()?;
    let mut bytes = names.seal(channel, &json).to_vec();
    bytes.extend(json);
    (bytes.len() <= LETTER_BYTES_MAX).then_some(bytes)
}

/// What [`write`] wrote for `channel`: who told, and what. `None` for anything else.
pub(crate) fn read(names: &Names, channel: &str, bytes: &[u8]) -> Option<(u64, News)> {
    if bytes.len() > LETTER_BYTES_MAX {
        return None;
    }
    let (seal, json) = bytes.split_at_checked(SEAL_BYTES)?;
    if !names.is_sealed(channel, json, seal) {
        return None;
    }
    let Letter { from, what } = serde_json::from_slice(json).ok()?;
    let news = to_news(what)?;
    let is_its_place = match &news {
        News::Signal(mailbox, _) => names.channel(mailbox) == channel,
        News::Changed(_) => names.news_channel() == channel,
    };
    is_its_place.then_some((from, news))
}

fn of_signal(to: String, signal: Signal) -> What {
    match signal {
        Signal::Offered { seq } => What::Offered { to, seq },
        Signal::Settled { upto, also, floor } => What::Settled {
            to,
            upto,
            also,
            floor,
        },
        Signal::Buried { seq } => What::Buried { to, seq },
        Signal::Released { seqs } => What::Released { to, seqs },
        Signal::Status(update) => What::Status {
            to,
            id: update.id.to_string(),
            recipient: update.to.to_string(),
            status: update.status.as_str().to_owned(),
            code: update.code,
            at_millis: update.at.unix_millis(),
        },
        Signal::Close(reason) => What::Close {
            to,
            reason: match reason {
                CloseReason::Replaced => Reason::Replaced,
                CloseReason::Unauthenticated => Reason::Unauthenticated,
                CloseReason::GoingAway => Reason::GoingAway,
            },
        },
        Signal::Joined { generation, share } => What::Joined {
            to,
            generation,
            share,
        },
    }
}

fn to_news(what: What) -> Option<News> {
    let (to, signal) = match what {
        What::Offered { to, seq } => (to, Signal::Offered { seq }),
        What::Settled {
            to,
            upto,
            also,
            floor,
        } => (
            to,
            Signal::Settled {
                upto,
                also: bounded(also)?,
                floor,
            },
        ),
        What::Buried { to, seq } => (to, Signal::Buried { seq }),
        What::Released { to, seqs } => (to, Signal::Released { seqs: bounded(seqs)? }),
        What::Status {
            to,
            id,
            recipient,
            status,
            code,
            at_millis,
        } => {
            let update = StatusUpdate {
                id: Uuid::try_parse(&id).ok()?,
                to: Did::parse(&recipient).ok()?,
                status: Status::ALL.into_iter().find(|known| known.as_str() == status)?,
                code: short(code)?,
                at: Timestamp::from_unix_millis(at_millis),
            };
            (to, Signal::Status(update))
        }
        What::Close { to, reason } => {
            let reason = match reason {
                Reason::Replaced => CloseReason::Replaced,
                Reason::Unauthenticated => CloseReason::Unauthenticated,
                Reason::GoingAway => CloseReason::GoingAway,
            };
            (to, Signal::Close(reason))
        }
        What::Joined {
            to,
            generation,
            share,
        } => (to, Signal::Joined { generation, share }),
        What::Changed { did } => return Did::parse(&did).ok().map(News::Changed),
    };
    let mut mailbox = [0; 16];
    hex::decode_to_slice(to, &mut mailbox).ok()?;
    Some(News::Signal(MailboxId::from_bytes(mailbox), signal))
}

fn bounded(seqs: Vec<u64>) -> Option<Vec<u64>> {
    (seqs.len() <= LETTER_SEQS_MAX).then_some(seqs)
}

/// `Some(None)` where there is no code.
#[expect(clippy::option_option, reason = "too long is something else than none")]
fn short(code: Option<String>) -> Option<Option<String>> {
    code.as_ref()
        .is_none_or(|code| code.len() <= LETTER_CODE_BYTES_MAX)
        .then_some(code)
}

#[cfg(test)]
mod tests;
