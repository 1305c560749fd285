//! The WebSocket door of the scripted hub.

use std::collections::BTreeSet;

use aip_client::protocol::challenge::challenge_object;
use aip_client::protocol::identity::Identity;
use aip_client::protocol::name::Did;
use aip_client::protocol::signature::{Signature, Tag, verify};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::{FakeHub, seqs};

type Socket = WebSocketStream<TcpStream>;

#[expect(
    clippy::result_large_err,
    clippy::unnecessary_wraps,
    reason = "the shape of the library's callback"
)]
fn choose_protocol(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let protocol = request.headers()["sec-websocket-protocol"].clone();
    assert_eq!(protocol, "aip.v1");
    response.headers_mut().insert("sec-websocket-protocol", protocol);
    Ok(response)
}

pub(super) async fn serve(hub: FakeHub, stream: TcpStream) {
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, choose_protocol).await else {
        return;
    };
    let Some((name, credit)) = authenticate(&hub, &mut socket).await else {
        return;
    };
    let break_after = hub.state().break_sessions_after.pop_front().unwrap_or(usize::MAX);
    let mut session = Session {
        hub,
        name,
        credit,
        in_flight: BTreeSet::new(),
        highest: 0,
        offered: 0,
    };
    loop {
        // Asked for before looking, so that no change falls in between.
        let hub = session.hub.clone();
        let changed = hub.changed.notified();
        let kick = session.hub.state().kick.take();
        // Not a close code, but the line itself: the process died.
        if kick == Some(0) {
            return;
        }
        if let Some(code) = kick {
            let frame = CloseFrame {
                code: code.into(),
                reason: "".into(),
            };
            drop(socket.close(Some(frame)).await);
            return;
        }
        while session.in_flight.len() < session.credit {
            if session.offered == break_after {
                return;
            }
            let Some(frame) = session.offer() else { break };
            if write(&mut socket, &frame).await.is_none() {
                return;
            }
        }
        tokio::select! {
            () = changed => {}
            received = socket.next() => match received {
                Some(Ok(Message::Text(text))) => {
                    for answer in session.handle(&serde_json::from_str(&text).unwrap()) {
                        if write(&mut socket, &answer).await.is_none() {
                            return;
                        }
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

async fn authenticate(hub: &FakeHub, socket: &mut Socket) -> Option<(String, usize)> {
    let challenge = hub.challenge();
    let domain = hub
        .state()
        .claimed_domain
        .clone()
        .unwrap_or_else(|| hub.domain.clone());
    let hello = json!({"t": "challenge", "challenge": challenge, "domain": domain, "server_time": "2099-01-01T00:00:00Z"});
    write(socket, &hello).await?;
    let Some(Ok(Message::Text(text))) = socket.next().await else {
        return None;
    };
    let auth: Value = serde_json::from_str(&text).unwrap();
    hub.state().frames.push(auth.clone());
    let did = Did::parse(auth["did"].as_str().unwrap()).unwrap();
    let name = did.name().to_owned();
    let history = hub.state().histories.get(&name).cloned().unwrap_or_default();
    let identity = Identity::replay(history).ok()?;
    let key = identity.current_signing(auth["kid"].as_str().unwrap()).cloned();
    let sig = Signature::parse(auth["sig"].as_str().unwrap()).unwrap();
    let object = challenge_object(&hub.domain, &challenge, &did);
    if !key.is_some_and(|key| verify(&key, Tag::Challenge, &object, &sig)) {
        write(
            socket,
            &json!({"t": "error", "code": "key_unknown", "detail": "as scripted"}),
        )
        .await?;
        drop(
            socket
                .close(Some(CloseFrame {
                    code: 4401.into(),
                    reason: "".into(),
                }))
                .await,
        );
        return None;
    }
    let ready = {
        let mut state = hub.state();
        state.sessions += 1;
        let session = state.sessions;
        let mailbox = state.mailboxes.entry(name.clone()).or_default();
        let (epoch, floor, pending) = (mailbox.epoch(), mailbox.floor(), mailbox.pending());
        json!({"t": "ready", "session": session, "epoch": epoch, "floor": floor, "pending": pending})
    };
    write(socket, &ready).await?;
    Some((name, usize::try_from(auth["credit"].as_u64().unwrap()).unwrap()))
}

async fn write(socket: &mut Socket, frame: &Value) -> Option<()> {
    socket.send(Message::text(frame.to_string())).await.ok()
}

struct Session {
    hub: FakeHub,
    name: String,
    credit: usize,
    in_flight: BTreeSet<u64>,
    /// The highest sequence number that this session offered.
    highest: u64,
    offered: usize,
}

impl Session {
    fn offer(&mut self) -> Option<Value> {
        let mut state = self.hub.state();
        let (seq, frame) = state.mailboxes.get_mut(&self.name)?.offer(&self.in_flight)?;
        self.in_flight.insert(seq);
        self.highest = self.highest.max(seq);
        self.offered += 1;
        Some(frame)
    }

    fn handle(&mut self, frame: &Value) -> Vec<Value> {
        self.hub.state().frames.push(frame.clone());
        match frame["t"].as_str().unwrap() {
            "ack" => self.ack(frame),
            "nak" | "reject" if self.is_foreign(frame) => Self::epoch_changed(),
            // Offered again at once: the tests do not wait for clocks.
            "nak" => {
                self.in_flight.remove(&frame["seq"].as_u64().unwrap());
                Vec::new()
            }
            "reject" => {
                let seq = frame["seq"].as_u64().unwrap();
                self.in_flight.remove(&seq);
                self.hub
                    .state()
                    .mailboxes
                    .get_mut(&self.name)
                    .unwrap()
                    .ack(0, &[seq]);
                Vec::new()
            }
            "send" if let Some(code) = self.refused_send() => {
                vec![json!({"t": "sent", "ref": frame["ref"], "code": code, "detail": "as scripted"})]
            }
            "send" => {
                let (_, mut answer) = self.hub.accept(frame["envelope"].to_string().as_bytes());
                answer["t"] = "sent".into();
                answer["ref"] = frame["ref"].clone();
                let status = json!({"t": "status", "id": answer["id"], "to": frame["envelope"]["to"], "status": "stored"});
                vec![answer, status]
            }
            other => panic!("an agent does not say {other}"),
        }
    }

    fn refused_send(&self) -> Option<&'static str> {
        self.hub.state().refuse_sends.pop_front()
    }

    /// Whether the frame speaks of another epoch than the mailbox has now.
    fn is_foreign(&self, frame: &Value) -> bool {
        frame["epoch"] != self.hub.state().mailboxes[&self.name].epoch()
    }

    fn epoch_changed() -> Vec<Value> {
        vec![json!({"t": "error", "code": "epoch_changed", "detail": "Connect again."})]
    }

    fn ack(&mut self, frame: &Value) -> Vec<Value> {
        if self.is_foreign(frame) {
            return Self::epoch_changed();
        }
        let (upto, also) = (frame["upto"].as_u64().unwrap(), seqs(&frame["also"]));
        let mut state = self.hub.state();
        let forget = state.forget_acks;
        let mailbox = state.mailboxes.get_mut(&self.name).unwrap();
        let highest = self.highest.max(mailbox.floor());
        if upto > highest || also.iter().any(|seq| *seq > highest) {
            return vec![
                json!({"t": "error", "code": "cursor_invalid", "detail": "beyond what was offered"}),
            ];
        }
        if forget {
            return Vec::new();
        }
        mailbox.ack(upto, &also);
        self.in_flight.retain(|seq| *seq > upto && !also.contains(seq));
        vec![json!({"t": "acked", "epoch": mailbox.epoch(), "floor": mailbox.floor()})]
    }
}
