//! Envelopes that an agent sends over its socket. They go in order: what comes while some are being stored waits, and
//! is then stored together.

use std::collections::VecDeque;
use std::future::pending;
use std::mem;

use actix_web::web::Data;
use aip_relay::admission::Door;
use aip_relay::relay::{BatchItem, SendError, Submission};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

use super::frame;
use crate::app::App;
use crate::error::ApiError;
use crate::limits::{SENDS_BYTES_MAX, SENDS_MAX};
use crate::request_id::RequestId;
use crate::routes::messages::refused;
use crate::throttle::Network;

/// The sends of one socket.
pub(super) struct Sends {
    waiting: VecDeque<(String, Bytes)>,
    waiting_bytes: usize,
    running: Option<LocalBoxFuture<'static, Vec<String>>>,
    network: Option<Network>,
}

impl Sends {
    /// None yet, of a socket from `network`.
    pub(super) fn new(network: Option<Network>) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            running: None,
            network,
        }
    }

    /// Whether one more may be taken in; until then the socket is not read.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < SENDS_MAX && self.waiting_bytes < SENDS_BYTES_MAX
    }

    /// Whether everything was answered.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    /// Takes an envelope in.
    pub(super) fn push(&mut self, reference: String, envelope: Bytes) {
        self.waiting_bytes += envelope.len();
        self.waiting.push_back((reference, envelope));
    }

    /// Waits for answers, as frames; for ever when nothing was sent. Nothing is lost when the future is dropped.
    pub(super) async fn answered(&mut self, app: &Data<App>, door: &Door, id: RequestId) -> Vec<String> {
        if self.running.is_none() && !self.waiting.is_empty() {
            self.waiting_bytes = 0;
            let batch = mem::take(&mut self.waiting);
            self.running = Some(Box::pin(submit(
                app.clone(),
                door.clone(),
                id,
                self.network,
                batch,
            )));
        }
        match &mut self.running {
            Some(running) => {
                let frames = running.as_mut().await;
                self.running = None;
                frames
            }
            None => pending().await,
        }
    }
}

/// Signatures that are not good count against the network address, as they do over HTTP.
async fn submit(
    app: Data<App>,
    door: Door,
    id: RequestId,
    network: Option<Network>,
    batch: VecDeque<(String, Bytes)>,
) -> Vec<String> {
    let references = batch.iter().map(|(reference, _)| reference);
    if let Err(error) = app.throttle.admit_proof(network) {
        app.metrics.erred(error.code().as_str());
        return references
            .map(|reference| frame::refusal(reference, error.refusal()))
            .collect();
    }
    match app.relay.submit_batch(array(&batch), &door).await {
        Ok(items) => references
            .zip(items)
            .map(|(reference, item)| answer(&app, id, network, reference, item))
            .collect(),
        Err(refusal) => references
            .map(|reference| frame::refusal(reference, &refusal))
            .collect(),
    }
}

fn array(batch: &VecDeque<(String, Bytes)>) -> Bytes {
    let bytes: usize = batch.iter().map(|(_, envelope)| envelope.len() + 1).sum();
    let mut array = BytesMut::with_capacity(bytes + 1);
    for (index, (_, envelope)) in batch.iter().enumerate() {
        array.put_u8(if index == 0 { b'[' } else { b',' });
        array.put_slice(envelope);
    }
    array.put_u8(b']');
    array.freeze()
}

fn answer(app: &App, id: RequestId, network: Option<Network>, reference: &str, item: BatchItem) -> String {
    let members = match item.result {
        Ok(submission) => members_of(&submission),
        Err(error) => {
            let is_refusal = matches!(error, SendError::Refused(_));
            let error = ApiError::from(error);
            if let Some(cause) = error.cause().filter(|_| !is_refusal) {
                app.failures.log(id, error.code().as_str(), cause);
            }
            app.metrics.erred(error.code().as_str());
            app.throttle.count_proof(network, error.code());
            let mut members: Map<String, Value> = refused(error.refusal());
            members.extend(
                item.id
                    .map(|id| ("id".to_owned(), id.hyphenated().to_string().into())),
            );
            members
        }
    };
    frame::sent(reference, members)
}

fn members_of(submission: &Submission) -> Map<String, Value> {
    match serde_json::to_value(submission) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
