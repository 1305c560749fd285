//! Sessions of one agent in several processes: the relay's seam on Redis.

use std::time::Duration;

use aip_relay::mailbox::MailboxId;
use aip_relay::neighbours::{Claim, Entry, Neighbours, Signal, Taken};
use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Cluster;
use crate::letter::News;
use crate::post::Order;

impl Cluster {
    /// Orders something and waits for the answer; `None` when there is none in time.
    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        if !self.shared.link.is_up() {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        let asking = async {
            self.shared.post.send(order(reply)).await.ok()?;
            answer.await.ok()
        };
        // It may wait for the orders before it, and for its own two commands.
        let patience = self.shared.options.answer_timeout * 3;
        timeout(patience, asking).await.ok().flatten()
    }
}

#[async_trait]
impl Neighbours for Cluster {
    fn tell(&self, mailbox: &MailboxId, signal: Signal) {
        self.shared.order(Order::Tell(News::Signal(*mailbox, signal)));
    }

    async fn arrive(&self, mailbox: &MailboxId) {
        let heard = self.shared.wanted.arrive(mailbox);
        // Either way the agent is here; later it is heard.
        drop(timeout(self.shared.options.answer_timeout, heard).await);
    }

    fn leave(&self, mailbox: &MailboxId) {
        self.shared.wanted.leave(mailbox);
        if self.shared.joined().remove(mailbox) {
            self.shared.order(Order::Leave(*mailbox));
        }
    }

    async fn join(&self, mailbox: &MailboxId, share: bool, generation: u64) -> Entry {
        self.shared.joined().insert(*mailbox);
        let order = |reply| Order::Join {
            mailbox: *mailbox,
            share,
            generation,
            reply,
        };
        self.ask(order).await.unwrap_or(Entry::In { generation })
    }

    async fn claim(&self, mailbox: &MailboxId, claims: &[Claim]) -> Vec<Taken> {
        if claims.is_empty() {
            return Vec::new();
        }
        let order = |reply| Order::Claim {
            mailbox: *mailbox,
            claims: claims.to_vec(),
            reply,
        };
        self.ask(order).await.unwrap_or_default()
    }

    fn release(&self, mailbox: &MailboxId, seqs: &[u64], after: Duration) {
        if !seqs.is_empty() {
            self.shared.order(Order::Release {
                mailbox: *mailbox,
                seqs: seqs.to_vec(),
                after,
            });
        }
    }
}
