//! What is sent to Redis in the order in which it was asked for, many orders in one go: signals, sessions, claims.

use std::sync::Arc;

use aip_relay::neighbours::Entry;
use redis::{Pipeline, RedisResult, Value, pipe};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use self::order::Order;
use crate::letter::News;
use crate::limits::POST_BATCH_MAX;
use crate::shared::Shared;

mod answers;
mod commands;
mod order;

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
        for (order, _) in orders {
            order.give_up(shared);
        }
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
        if let Some(command) = commands::publish(shared, news.clone()) {
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
