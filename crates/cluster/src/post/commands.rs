//! The commands and scripts that orders consist of.

use std::time::Duration;

use aip_relay::limits::TAKEOVER_PAUSE_MILLIS;
use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::Claim;
use redis::{Cmd, cmd};

use crate::letter::{self, News};
use crate::limits::{AT_LIFE, GENERATION_AHEAD_MAX, LIFE_MAX};
use crate::shared::Shared;

const JOIN: &str = include_str!("../scripts/join.lua");
const LEAVE: &str = include_str!("../scripts/leave.lua");
const CLAIM: &str = include_str!("../scripts/claim.lua");
const RELEASE: &str = include_str!("../scripts/release.lua");

/// Tells the other processes; `None` when it is too long to be told.
pub(super) fn publish(shared: &Shared, news: News) -> Option<Cmd> {
    let channel = match &news {
        News::Signal(mailbox, _) => shared.names.channel(mailbox),
        News::Changed(_) => shared.names.news_channel(),
    };
    let letter = letter::write(&shared.names, &channel, shared.process, news)?;
    let mut command = cmd("PUBLISH");
    command.arg(channel).arg(letter);
    Some(command)
}

pub(super) fn join(shared: &Shared, mailbox: &MailboxId, share: bool, generation: u64) -> Cmd {
    let mut join = eval(JOIN, [shared.names.at(mailbox), shared.names.turn(mailbox)]);
    join.arg(shared.own_name())
        .arg(u8::from(share))
        .arg(generation)
        .arg(millis(AT_LIFE))
        .arg(TAKEOVER_PAUSE_MILLIS)
        .arg(u64::try_from(GENERATION_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX));
    join
}

pub(super) fn leave(shared: &Shared, mailbox: &MailboxId) -> Cmd {
    let mut leave = eval(LEAVE, [shared.names.at(mailbox)]);
    leave.arg(shared.own_name());
    leave
}

pub(super) fn renew(shared: &Shared, mailbox: &MailboxId) -> Cmd {
    let mut renew = cmd("PEXPIRE");
    renew.arg(shared.names.at(mailbox)).arg(millis(AT_LIFE));
    renew
}

pub(super) fn claim(shared: &Shared, mailbox: &MailboxId, claims: &[Claim]) -> Cmd {
    let keys = claims.iter().map(|claim| shared.names.claim(mailbox, claim.seq));
    let mut command = eval(CLAIM, keys);
    command.arg(shared.own_name());
    for claim in claims {
        command.arg(millis(claim.hold).max(1));
    }
    command
}

pub(super) fn release(shared: &Shared, mailbox: &MailboxId, seqs: &[u64], after: Duration) -> Cmd {
    let keys = seqs.iter().map(|seq| shared.names.claim(mailbox, *seq));
    let mut release = eval(RELEASE, keys);
    release.arg(shared.own_name()).arg(millis(after));
    release
}

pub(super) fn put(name: &str, value: &[u8], life: Duration) -> Cmd {
    let life = millis(life.min(LIFE_MAX)).max(1);
    let mut put = cmd("SET");
    put.arg(name).arg(value).arg("PX").arg(life);
    put
}

/// Redis keeps scripts by their hash; their text is short, and so is never missing.
fn eval(script: &str, keys: impl IntoIterator<Item = String>) -> Cmd {
    let keys: Vec<_> = keys.into_iter().collect();
    let mut command = cmd("EVAL");
    command.arg(script).arg(keys.len()).arg(keys);
    command
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
