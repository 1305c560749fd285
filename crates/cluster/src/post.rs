//! What is sent to Redis in the order in which it was asked for, many orders in one go: signals, sessions, claims.

use std::sync::Arc;
use std::time::Duration;

use aip_relay::limits::{NAK_SECS_MAX, TAKEOVER_PAUSE_MILLIS};
use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::{Claim, Entry, Signal, Taken};
use redis::{Cmd, Pipeline, RedisResult, Value, cmd, from_redis_value, pipe};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::letter::{self, News};
use crate::limits::{AT_LIFE, GENERATION_AHEAD_MAX, LIFE_MAX, POST_BATCH_MAX};
use crate::shared::Shared;

const JOIN: &str = include_str!("scripts/join.lua");
const LEAVE: &str = include_str!("scripts/leave.lua");
const CLAIM: &str = include_str!("scripts/claim.lua");
const RELEASE: &str = include_str!("scripts/release.lua");

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
    /// It cannot be carried out; who waits goes on alone.
    pub(crate) fn give_up(self, shared: &Shared) {
        match self {
            Self::Tell(_) | Self::Release { .. } => shared.counters.signals_dropped.one(),
            // Dropping the line tells whoever waits.
            Self::Join { .. } | Self::Claim { .. } => {}
            Self::Leave(_) | Self::Renew(_) | Self::Put { .. } => {}
        }
    }

    /// Puts the order's commands into a pipeline; says how many they are.
    fn write(&self, shared: &Shared, pipeline: &mut Pipeline) -> usize {
        let before = pipeline.len();
        match self {
            Self::Tell(news) => {
                if let Some(command) = publish(shared, news.clone()) {
                    pipeline.add_command(command);
                }
            }
            Self::Join {
                mailbox,
                share,
                generation,
                ..
            } => drop(pipeline.add_command(join(shared, mailbox, *share, *generation))),
            Self::Leave(mailbox) => {
                let mut leave = eval(LEAVE, [shared.names.at(mailbox)]);
                leave.arg(shared.own_name());
                pipeline.add_command(leave);
            }
            Self::Renew(mailboxes) => {
                for mailbox in mailboxes {
                    let name = shared.names.at(mailbox);
                    pipeline.cmd("PEXPIRE").arg(name).arg(millis(AT_LIFE));
                }
            }
            Self::Claim { mailbox, claims, .. } => {
                let keys = claims.iter().map(|claim| shared.names.claim(mailbox, claim.seq));
                let mut claim = eval(CLAIM, keys);
                claim.arg(shared.own_name());
                claims
                    .iter()
                    .for_each(|each| _ = claim.arg(millis(each.hold).max(1)));
                pipeline.add_command(claim);
            }
            Self::Release { mailbox, seqs, after } => {
                let keys = seqs.iter().map(|seq| shared.names.claim(mailbox, *seq));
                let mut release = eval(RELEASE, keys);
                release.arg(shared.own_name()).arg(millis(*after));
                pipeline.add_command(release);
                let told = News::Signal(*mailbox, Signal::Released { seqs: seqs.clone() });
                if let Some(command) = publish(shared, told).filter(|_| after.is_zero()) {
                    pipeline.add_command(command);
                }
            }
            Self::Put { name, value, life } => {
                let life = millis((*life).min(LIFE_MAX)).max(1);
                pipeline
                    .cmd("SET")
                    .arg(name)
                    .arg(value.as_slice())
                    .arg("PX")
                    .arg(life);
            }
        }
        pipeline.len() - before
    }

    /// Passes the answer on; returns what is to be told because of it.
    fn finish(self, shared: &Shared, answers: &[RedisResult<Value>]) -> Option<(News, Reply)> {
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

/// A session that is let in once the others have been told.
struct Reply {
    generation: u64,
    reply: oneshot::Sender<Entry>,
}

/// Carries orders out until it is stopped; what was ordered before that is carried out still.
pub(crate) async fn run(shared: Arc<Shared>, mut orders: mpsc::Receiver<Order>, stop: CancellationToken) {
    let mut batch = Vec::with_capacity(POST_BATCH_MAX);
    loop {
        tokio::select! {
            biased;
            count = orders.recv_many(&mut batch, POST_BATCH_MAX) => {
                if count == 0 {
                    return;
                }
            }
            () = stop.cancelled() => return,
        }
        carry_out(&shared, std::mem::take(&mut batch)).await;
    }
}

async fn carry_out(shared: &Shared, orders: Vec<Order>) {
    let mut pipeline = pipe();
    let orders: Vec<_> = orders
        .into_iter()
        .map(|order| {
            let commands = order.write(shared, &mut pipeline);
            (order, commands)
        })
        .collect();
    let Some(answers) = send(shared, pipeline).await else {
        orders.into_iter().for_each(|(order, _)| order.give_up(shared));
        return;
    };
    let mut answers = answers.as_slice();
    let mut joined = Vec::new();
    for (order, commands) in orders {
        let (own, rest) = answers
            .split_at_checked(commands)
            .unwrap_or((answers, Default::default()));
        answers = rest;
        joined.extend(order.finish(shared, own));
    }
    if !joined.is_empty() {
        tell_of(shared, joined).await;
    }
}

/// Tells of sessions in the order of their generations, and lets them in.
async fn tell_of(shared: &Shared, joined: Vec<(News, Reply)>) {
    let mut pipeline = pipe();
    for (news, _) in &joined {
        if let Some(command) = publish(shared, news.clone()) {
            pipeline.add_command(command);
        }
    }
    let is_told = send(shared, pipeline).await.is_some();
    let count = if is_told {
        &shared.counters.signals_sent
    } else {
        &shared.counters.signals_dropped
    };
    count.add(joined.len());
    for (_, Reply { generation, reply }) in joined {
        // Who asked may have gone.
        _ = reply.send(Entry::In { generation });
    }
}

async fn send(shared: &Shared, mut pipeline: Pipeline) -> Option<Vec<RedisResult<Value>>> {
    if pipeline.is_empty() {
        return Some(Vec::new());
    }
    pipeline.ignore_errors();
    let commands = pipeline.len();
    let question = |mut connection| async move { pipeline.query_async(&mut connection).await };
    shared.link.ask(&shared.counters, commands, question).await
}

fn publish(shared: &Shared, news: News) -> Option<Cmd> {
    let channel = match &news {
        News::Signal(mailbox, _) => shared.names.channel(mailbox),
        News::Changed(_) => shared.names.news_channel(),
    };
    let letter = letter::write(&shared.names, &channel, shared.process, news)?;
    let mut command = cmd("PUBLISH");
    command.arg(channel).arg(letter);
    Some(command)
}

fn join(shared: &Shared, mailbox: &MailboxId, share: bool, generation: u64) -> Cmd {
    let mut join = eval(JOIN, [shared.names.at(mailbox), shared.names.turn(mailbox)]);
    join.arg(shared.own_name())
        .arg(u8::from(share))
        .arg(generation)
        .arg(millis(AT_LIFE))
        .arg(TAKEOVER_PAUSE_MILLIS)
        .arg(u64::try_from(GENERATION_AHEAD_MAX.as_micros()).unwrap_or(u64::MAX));
    join
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

fn or_bad<T>(shared: &Shared, value: Option<T>) -> Option<T> {
    if value.is_none() {
        shared.counters.bad_values.one();
    }
    value
}

fn to_entry(answer: &RedisResult<Value>) -> Option<Entry> {
    let value = answer.as_ref().ok()?.clone();
    // The library reads a negative number as a large one unless it may be negative.
    let (generation, pause_millis) = from_redis_value::<(String, i64)>(value).ok()?;
    let pause_millis = u64::try_from(pause_millis).ok()?;
    if pause_millis > 0 {
        let pause = Duration::from_millis(pause_millis.min(TAKEOVER_PAUSE_MILLIS));
        return Some(Entry::Wait(pause));
    }
    let generation = generation.parse().ok().filter(|generation| *generation > 0)?;
    Some(Entry::In { generation })
}

fn to_taken(claims: &[Claim], answer: &RedisResult<Value>) -> Option<Vec<Taken>> {
    let value = answer.as_ref().ok()?.clone();
    let numbers = from_redis_value::<Vec<i64>>(value).ok()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    let hold_max = Duration::from_secs(NAK_SECS_MAX);
    let taken = pairs.iter().map(|[index, rest_millis]| {
        let claim = claims.get(usize::try_from(*index).ok()?.checked_sub(1)?)?;
        let hold = Duration::from_millis(u64::try_from(*rest_millis).ok()?);
        Some(Taken {
            seq: claim.seq,
            hold: hold.min(hold_max),
        })
    });
    taken.collect::<Option<_>>().filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(numbers: &[i64]) -> RedisResult<Value> {
        Ok(Value::Array(
            numbers.iter().map(|number| Value::Int(*number)).collect(),
        ))
    }

    #[test]
    fn answers_about_claims_are_read_strictly() {
        let hold = Duration::from_secs(30);
        let claims = [Claim { seq: 7, hold }, Claim { seq: 9, hold }];
        let taken = |numbers: &[i64]| to_taken(&claims, &value(numbers));
        assert_eq!(taken(&[]), Some(vec![]));
        let nine = Taken {
            seq: 9,
            hold: Duration::from_millis(250),
        };
        assert_eq!(taken(&[2, 250]), Some(vec![nine]));
        let bounded = taken(&[1, i64::MAX]).unwrap();
        assert_eq!(bounded[0].hold, Duration::from_hours(1));
        for bad in [&[1][..], &[0, 5], &[3, 5], &[-1, 5], &[1, -5]] {
            assert_eq!(taken(bad), None, "{bad:?}");
        }
        assert_eq!(to_taken(&claims, &Ok(Value::Nil)).unwrap_or_default(), []);
    }

    #[test]
    fn answers_about_sessions_are_read_strictly() {
        let entry = |generation: &str, pause| {
            let generation = Value::BulkString(generation.as_bytes().to_vec());
            to_entry(&Ok(Value::Array(vec![generation, Value::Int(pause)])))
        };
        assert_eq!(entry("17", 0), Some(Entry::In { generation: 17 }));
        let second = Duration::from_secs(1);
        assert_eq!(entry("0", 600_000), Some(Entry::Wait(second)));
        for (generation, pause) in [("0", 0), ("-1", 0), ("1e3", 0), ("", 0), ("x", 0), ("1", -1)] {
            assert_eq!(entry(generation, pause), None, "{generation} {pause}");
        }
        assert_eq!(to_entry(&Ok(Value::Okay)), None);
    }
}
