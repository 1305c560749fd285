//! Selling over the relay: answering the calls that the agent's hub hands on (`aip.invoke.request`).

mod progress;
mod server;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use aip_protocol::name::{Did, HUB_NAME, Handle, Name};
use aip_protocol::time::Timestamp;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use uuid::Uuid;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::limits::{CALLS_AT_ONCE, CALLS_WAITING_MAX};
use crate::listen::Listener;
use crate::message::Incoming;

pub use progress::CallProgress;
use server::{Server, Sorted};

/// The type of a call.
pub const KIND_INVOKE: &str = "aip.invoke.request";
/// The type of its answer.
pub const KIND_INVOKED: &str = "aip.invoke.response";
/// The type of what is said before its answer.
pub const KIND_PROGRESS: &str = "aip.invoke.progress";
/// The type of the word that nobody wants its result any more.
pub const KIND_CANCEL: &str = "aip.invoke.cancel";

/// A call of a capability of this agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServedCall {
    /// The call: the same in every attempt, so that what was done is not done again.
    pub id: Uuid,
    /// Whose capability.
    pub product_id: String,
    /// Which capability.
    pub capability_id: String,
    /// What the buyer gave.
    pub input: Value,
    /// After this moment nobody waits for the answer.
    pub ends_at: Option<Timestamp>,
    /// Counts the times it was offered, from 1.
    pub attempt: u32,
    /// Tells who follows the call how far it is.
    pub progress: CallProgress,
}

impl ServedCall {
    /// A call as it comes the first time, with all the time there is: to try a handler out.
    pub fn new(
        id: Uuid,
        product_id: impl Into<String>,
        capability_id: impl Into<String>,
        input: Value,
    ) -> Self {
        Self {
            id,
            product_id: product_id.into(),
            capability_id: capability_id.into(),
            input,
            ends_at: None,
            attempt: 1,
            progress: CallProgress::default(),
        }
    }
}

/// What became of a message while serving.
#[derive(Debug)]
#[non_exhaustive]
pub enum Served {
    /// The call was carried out, and its result is with the hub.
    Answered(ServedCall),
    /// The handler said why not, and that is with the hub; nothing is charged.
    Refused(ServedCall, String),
    /// Nobody waited any more: it was not carried out, or its result came too late.
    Late(ServedCall),
    /// Its buyer cancelled it: the work was dropped, and nobody is answered.
    Cancelled(ServedCall),
    /// The answer could not be given to the hub; the call comes again while its time lasts.
    Unanswered(ServedCall, Error),
    /// It claims to be a call, and its sender is not the agent's hub, or its body is none: a dead letter.
    Rejected(Box<Incoming>),
    /// Other mail. It is left unsettled: it stays in the mailbox for another listener.
    Left(Box<Incoming>),
}

impl Client {
    /// Answers calls until the listener ends: `handler` makes a result of each, or says in a sentence for the buyer why not.
    /// Several are worked on at once ([`CALLS_AT_ONCE`]). `told` hears what became of each message. After `stop` no more calls
    /// are taken, and those in hand are finished.
    ///
    /// A call is settled after its answer was given to the hub: after a crash it comes again while somebody waits for it,
    /// with the same [`ServedCall::id`]. The work of a call that its buyer cancels is dropped. Calls are taken from the agent's own hub only. Other mail is not touched, and takes
    /// up the listener's credit; an agent that sells had better have a name of its own.
    ///
    /// # Errors
    /// Those of [`Listener::next`].
    pub async fn serve<F, H>(
        &self,
        listener: &mut Listener,
        handler: H,
        mut told: impl FnMut(&Served),
        stop: impl Future<Output = ()>,
    ) -> Result<()>
    where
        F: Future<Output = std::result::Result<Value, String>>,
        H: Fn(ServedCall) -> F,
    {
        let server = Arc::new(Server {
            client: self.clone(),
            acker: listener.acker(),
            hub: hub_agent(self.keys()?.did())?,
            taken: Mutex::new(HashMap::new()),
        });
        let (mut waiting, mut in_hand, mut takes_more) = (VecDeque::new(), FuturesUnordered::new(), true);
        tokio::pin!(stop);
        loop {
            while takes_more
                && in_hand.len() < CALLS_AT_ONCE
                && let Some(taken) = waiting.pop_front()
            {
                in_hand.push(Arc::clone(&server).carry_out(taken, &handler));
            }
            tokio::select! {
                biased;
                () = &mut stop, if takes_more => takes_more = false,
                Some(served) = in_hand.next() => told(&served?),
                // Read on also while no more can be worked on: what is cancelled is said here.
                message = listener.next(), if takes_more && waiting.len() < CALLS_WAITING_MAX => {
                    let message = match message {
                        Err(Error::Closed) => { takes_more = false; continue; }
                        message => message?,
                    };
                    match server.sorted(message).await? {
                        Sorted::Call(taken) => waiting.push_back(*taken),
                        Sorted::Other(served) => told(&served),
                        Sorted::Heard => {}
                    }
                }
                else => return Ok(()),
            }
        }
    }
}

/// The hub's own agent.
fn hub_agent(own: &Did) -> Result<Did> {
    let (name, domain) = (Name::parse(HUB_NAME)?, own.domain());
    Ok(Handle { name, domain }.did())
}
