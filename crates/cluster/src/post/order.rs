//! What can be ordered, how it is asked for, and what becomes of the answer.

use std::time::Duration;

use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::{Claim, Entry, Signal, Taken};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::oneshot;

use super::answers::{to_entry, to_taken};
use super::{Reply, commands};
use crate::letter::News;
use crate::shared::Shared;

/// Something to be done in Redis.
#[derive(Debug)]
pub(crate) enum Order {
    /// Tell the other processes.
    Tell(News),
    /// A session begins, or is told of again under its generation.
    Join {
        mailbox: MailboxId,
        share: bool,
        generation: u64,
        reply: oneshot::Sender<Entry>,
    },
    /// The agent is no longer here.
    Leave(MailboxId),
    /// These agents still are.
    Renew(Vec<MailboxId>),
    /// Keep messages from other processes.
    Claim {
        mailbox: MailboxId,
        claims: Vec<Claim>,
        reply: oneshot::Sender<Vec<Taken>>,
    },
    /// No longer, or not much longer.
    Release {
        mailbox: MailboxId,
        seqs: Vec<u64>,
        after: Duration,
    },
    /// Remember a value.
    Put {
        name: String,
        value: Vec<u8>,
        life: Duration,
    },
}

impl Order {
    /// It cannot be carried out. Who waits for an answer goes on alone: the line is dropped.
    pub(crate) fn give_up(self, shared: &Shared) {
        if matches!(self, Self::Tell(_) | Self::Release { .. }) {
            shared.counters.signals_dropped.one();
        }
    }

    /// Puts the order's commands into a pipeline; says how many they are.
    pub(super) fn write(&self, shared: &Shared, pipeline: &mut Pipeline) -> usize {
        let before = pipeline.len();
        match self {
            Self::Tell(news) => add(pipeline, commands::publish(shared, news.clone())),
            Self::Join {
                mailbox,
                share,
                generation,
                ..
            } => add(pipeline, [commands::join(shared, mailbox, *share, *generation)]),
            Self::Leave(mailbox) => add(pipeline, [commands::leave(shared, mailbox)]),
            Self::Renew(mailboxes) => {
                let renewals = mailboxes.iter().map(|mailbox| commands::renew(shared, mailbox));
                add(pipeline, renewals);
            }
            Self::Claim { mailbox, claims, .. } => add(pipeline, [commands::claim(shared, mailbox, claims)]),
            Self::Release { mailbox, seqs, after } => {
                add(pipeline, [commands::release(shared, mailbox, seqs, *after)]);
                if after.is_zero() {
                    let told = Signal::Released { seqs: seqs.clone() };
                    add(pipeline, commands::publish(shared, News::Signal(*mailbox, told)));
                }
            }
            Self::Put { name, value, life } => add(pipeline, [commands::put(name, value, *life)]),
        }
        pipeline.len() - before
    }

    /// Passes the answer on; returns what is to be told because of it.
    pub(super) fn finish(self, shared: &Shared, answers: &[RedisResult<Value>]) -> Option<(News, Reply)> {
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        shared.counters.failures.add(failed);
        match self {
            Self::Tell(_) if answers.is_empty() || failed > 0 => shared.counters.signals_dropped.one(),
            Self::Tell(_) => shared.counters.signals_sent.one(),
            Self::Release { after, .. } if after.is_zero() => shared.counters.signals_sent.one(),
            Self::Claim { claims, reply, .. } => {
                let taken = answers.first().and_then(|answer| to_taken(&claims, answer));
                // Who asked may have gone.
                _ = reply.send(or_bad(shared, taken).unwrap_or_default());
            }
            Self::Join {
                mailbox,
                share,
                reply,
                ..
            } => {
                let entry = answers.first().and_then(to_entry);
                match or_bad(shared, entry)? {
                    Entry::In { generation } => {
                        let told = Signal::Joined { generation, share };
                        return Some((News::Signal(mailbox, told), Reply { generation, reply }));
                    }
                    wait @ Entry::Wait(_) => _ = reply.send(wait),
                }
            }
            Self::Leave(_) | Self::Renew(_) | Self::Release { .. } | Self::Put { .. } => {}
        }
        None
    }
}

fn or_bad<T>(shared: &Shared, value: Option<T>) -> Option<T> {
    if value.is_none() {
        shared.counters.bad_values.one();
    }
    value
}

fn add(pipeline: &mut Pipeline, commands: impl IntoIterator<Item = Cmd>) {
    for command in commands {
        pipeline.add_command(command);
    }
}
