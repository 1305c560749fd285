//! A mailbox in memory: sequence numbers, attempts, acknowledgements.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    generation: u32,
    messages: Vec<Stored>,
    settled: BTreeSet<u64>,
}

#[derive(Debug)]
struct Stored {
    envelope: Box<RawValue>,
    id: String,
    attempts: u32,
}

impl Mailbox {
    pub(crate) fn epoch(&self) -> String {
        format!("epoch-{}", self.generation)
    }

    pub(crate) fn append(&mut self, wire: &[u8]) {
        let envelope: Box<RawValue> = serde_json::from_slice(wire).unwrap();
        let id = serde_json::from_str::<Value>(envelope.get()).unwrap()["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.messages.push(Stored {
            envelope,
            id,
            attempts: 0,
        });
    }

    /// Everything is open again, in the opposite order and under a new epoch.
    pub(crate) fn restore(&mut self) {
        self.generation += 1;
        self.settled.clear();
        self.messages.reverse();
        for message in &mut self.messages {
            message.attempts = 0;
        }
    }

    /// Everything is open again, in the same epoch.
    pub(crate) fn lose_acks(&mut self) {
        self.settled.clear();
    }

    /// Loses the newest messages, as a backup from before them does.
    pub(crate) fn forget_newest(&mut self, count: usize) {
        self.messages.truncate(self.messages.len() - count);
    }

    pub(crate) fn seq_of(&self, id: &str) -> Option<u64> {
        let index = self.messages.iter().position(|message| message.id == id)?;
        Some(index as u64 + 1)
    }

    pub(crate) fn floor(&self) -> u64 {
        let open = (1..=self.messages.len() as u64).find(|seq| !self.settled.contains(seq));
        open.map_or(self.messages.len() as u64, |seq| seq - 1)
    }

    pub(crate) fn pending(&self) -> usize {
        self.messages.len() - self.settled.len()
    }

    pub(crate) fn ack(&mut self, upto: u64, also: &[u64]) {
        self.settled.extend((1..=upto).chain(also.iter().copied()));
    }

    /// The first open message that is not among those given; it counts as an attempt.
    pub(crate) fn offer(&mut self, but: &BTreeSet<u64>) -> Option<(u64, Value)> {
        let seq =
            (1..=self.messages.len() as u64).find(|seq| !self.settled.contains(seq) && !but.contains(seq))?;
        Some((seq, self.item(seq)))
    }

    fn item(&mut self, seq: u64) -> Value {
        let epoch = self.epoch();
        let message = &mut self.messages[usize::try_from(seq).unwrap() - 1];
        message.attempts += 1;
        json!({
            "t": "msg",
            "epoch": epoch,
            "seq": seq,
            "attempt": message.attempts,
            "accepted_at": "2099-01-01T00:00:00Z",
            "envelope": message.envelope,
        })
    }

    pub(crate) fn page(&mut self) -> (u16, Value) {
        let open: Vec<u64> = (1..=self.messages.len() as u64)
            .filter(|seq| !self.settled.contains(seq))
            .collect();
        let items: Vec<Value> = open.into_iter().map(|seq| self.item(seq)).collect();
        (
            200,
            json!({"epoch": self.epoch(), "floor": self.floor(), "items": items}),
        )
    }
}
