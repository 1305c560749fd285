//! The connection for commands: there, in doubt, or gone. Whoever asks does not wait for one that is not there.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::stats::{Counters, Health};

/// What a server says that is there and of no use: a replica, one that reads its data, one that lets nobody in.
const USELESS_CODES: [&str; 5] = ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH", "NOPERM"];

/// What is known of the connection.
enum State {
    Up {
        connection: MultiplexedConnection,
        /// What does not work all the same.
        complaint: Option<String>,
    },
    /// Something was not answered; nobody else is to wait until it is looked at.
    Doubtful(MultiplexedConnection),
    Down(String),
}

/// The way to Redis.
pub(crate) struct Link {
    state: Mutex<State>,
    doubts: Notify,
    answer_timeout: Duration,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(crate) fn new(answer_timeout: Duration) -> Self {
        Self {
            state: Mutex::new(State::Down("there was no connection yet".to_owned())),
            doubts: Notify::new(),
            answer_timeout,
        }
    }

    /// There is a connection.
    pub(crate) fn rise(&self, connection: MultiplexedConnection) {
        *self.state() = State::Up {
            connection,
            complaint: None,
        };
    }

    /// It is gone, and why.
    pub(crate) fn fall(&self, reason: String) {
        *self.state() = State::Down(reason);
    }

    /// It has answered, with a complaint or none.
    pub(crate) fn trust(&self, complaint: Option<String>) {
        let mut state = self.state();
        let connection = match &*state {
            State::Up { connection, .. } | State::Doubtful(connection) => connection.clone(),
            State::Down(_) => return,
        };
        *state = State::Up {
            connection,
            complaint,
        };
    }

    /// Something was not answered.
    fn doubt(&self) {
        let mut state = self.state();
        if let State::Up { connection, .. } = &*state {
            *state = State::Doubtful(connection.clone());
            self.doubts.notify_one();
        }
    }

    /// Waits until somebody has a doubt.
    pub(crate) async fn doubted(&self) {
        self.doubts.notified().await;
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(*self.state(), State::Up { .. })
    }

    pub(crate) fn health(&self) -> Health {
        match &*self.state() {
            State::Up { complaint: None, .. } => Health::Connected,
            State::Doubtful(_) => Health::Degraded {
                reason: "Redis did not answer in time".to_owned(),
            },
            State::Up {
                complaint: Some(reason),
                ..
            }
            | State::Down(reason) => Health::Degraded {
                reason: reason.clone(),
            },
        }
    }

    /// Asks, if somebody is there; `None` when there is no good answer in time, which is counted.
    pub(crate) async fn ask<T, F>(
        &self,
        counters: &Counters,
        commands: usize,
        question: impl FnOnce(MultiplexedConnection) -> F,
    ) -> Option<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let connection = match &*self.state() {
            State::Up { connection, .. } => connection.clone(),
            State::Doubtful(_) | State::Down(_) => return None,
        };
        counters.commands.add(commands);
        match timeout(self.answer_timeout, question(connection)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                counters.failures.one();
                if error.is_unrecoverable_error() || error.is_timeout() || is_useless(&error) {
                    self.doubt();
                }
                None
            }
            Err(_late) => {
                counters.timeouts.one();
                self.doubt();
                None
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_useless(error: &RedisError) -> bool {
    error.code().is_some_and(|code| USELESS_CODES.contains(&code))
}
