//! The task of one socket, from the challenge to the close frame.

use std::time::Duration;

use actix_web::web::Data;
use aip_protocol::error::ErrorCode;
use aip_relay::admission::Door;
use aip_relay::inbox::{Join, Link, Output};
use aip_relay::limits::NAK_SECS_MAX;
use bytes::Bytes;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::Place;
use super::auth::{SignedIn, sign_in};
use super::close::Ending;
use super::frame::{self, Frame};
use super::pace::Pace;
use super::sends::Sends;
use super::wire::{Heard, Wire};
use crate::app::App;
use crate::error::ApiError;
use crate::limits::{PROOF_RECHECK_SECS, SETTLE_SECS};
use crate::request_id::RequestId;
use crate::throttle::Network;

/// Serves one socket, which comes from `network`, until it ends. `place` is held until the agent has signed in.
pub async fn serve(
    app: Data<App>,
    mut wire: Box<Wire>,
    id: RequestId,
    network: Option<Network>,
    place: Place,
) {
    // Boxed: what is needed to begin is not kept by sockets that idle.
    let ending = match Box::pin(begin(&app, &mut wire, id, network, place)).await {
        Ok(mut socket) => {
            let ending = socket.run(&mut wire).await;
            Box::pin(socket.end(&mut wire, ending)).await;
            ending
        }
        Err(ending) => ending,
    };
    tracing::debug!(request.id = %id, ?ending, "A socket has ended");
    Box::pin(wire.close(ending)).await;
}

/// Signs the agent in and opens its session.
async fn begin(
    app: &Data<App>,
    wire: &mut Wire,
    id: RequestId,
    network: Option<Network>,
    place: Place,
) -> Result<Box<Socket>, Ending> {
    let deadline = Instant::now() + Duration::from_secs(app.settings.receive.auth_timeout_secs);
    let signed_in = tokio::select! {
        signed_in = timeout_at(deadline, greet(app, wire, id, network)) => signed_in.unwrap_or(Err(Ending::AuthTimeout))?,
        () = app.stop.cancelled() => return Err(Ending::GoingAway),
    };
    drop(place);
    wire.welcome();
    let join = Join {
        session: app.sockets.session(),
        share: signed_in.share,
        credit: signed_in.credit,
    };
    let (link, ready) = match app.inbox.join(signed_in.did.clone(), join).await {
        Ok(joined) => joined,
        Err(error) => {
            let error = ApiError::failed(error.code(), error);
            return Err(refuse(app, wire, id, &error, Ending::Failed).await);
        }
    };
    // The hub may have begun to close before the session could be told.
    if app.stop.is_cancelled() {
        return Err(Ending::GoingAway);
    }
    wire.send(frame::ready(&ready)).await?;
    let now = Instant::now();
    let receive = &app.settings.receive;
    Ok(Box::new(Socket {
        app: app.clone(),
        id,
        door: Door::Socket(signed_in.did.clone()),
        signed_in,
        link,
        sends: Sends::new(network),
        pace: Pace::new(receive.frames_per_sec_max),
        silence: Duration::from_secs(receive.silence_timeout_secs),
        pinged_at: now,
        checked_at: now,
    }))
}

/// Sends the challenge and takes the answer.
async fn greet(
    app: &App,
    wire: &mut Wire,
    id: RequestId,
    network: Option<Network>,
) -> Result<SignedIn, Ending> {
    let challenge = app.registry.socket_challenge();
    wire.send(frame::challenge(challenge.text(), &app.domain, app.clock.now()))
        .await?;
    let text = loop {
        if let Heard::Text(text) = wire.hear().await? {
            break text;
        }
    };
    let signed_in = match Frame::parse(&text).map_err(|_unreadable| Ending::BadFrame)? {
        Frame::Auth(auth) => sign_in(app, network, challenge, auth).await,
        _ => Err(ApiError::refused(
            ErrorCode::TokenInvalid,
            "Sign in first: the first frame is `auth`.",
        )),
    };
    match signed_in {
        Ok(signed_in) => Ok(signed_in),
        Err(error) => Err(refuse(app, wire, id, &error, Ending::Unauthenticated).await),
    }
}

/// Tells the agent why it is not let in.
async fn refuse(app: &App, wire: &mut Wire, id: RequestId, error: &ApiError, ending: Ending) -> Ending {
    let code = error.code();
    app.metrics.erred(code.as_str());
    if let Some(cause) = error.cause() {
        app.failures.log(id, code.as_str(), cause);
    }
    match wire.send(frame::error(code, &error.refusal().detail)).await {
        Ok(()) => ending,
        Err(gone) => gone,
    }
}

/// A socket whose agent has signed in.
struct Socket {
    app: Data<App>,
    id: RequestId,
    door: Door,
    signed_in: SignedIn,
    link: Link,
    sends: Sends,
    pace: Pace,
    silence: Duration,
    pinged_at: Instant,
    checked_at: Instant,
}

/// What a socket wakes up for.
enum Turn {
    Out(Output),
    Sent(Vec<String>),
    Heard(Result<Heard, Ending>),
    Time,
}

impl Socket {
    async fn run(&mut self, wire: &mut Wire) -> Ending {
        loop {
            let turn = self.turn(wire).await;
            if let Err(ending) = self.take(wire, turn).await {
                return ending;
            }
        }
    }

    /// What happens next. What the agent is owed goes first; its own frames wait while earlier ones have no effect yet.
    async fn turn(&mut self, wire: &mut Wire) -> Turn {
        if let Some(output) = self.link.ready() {
            return Turn::Out(output);
        }
        let wake_at = self.wake_at(wire);
        let listens = self.sends.has_room() && !self.link.is_backlogged();
        tokio::select! {
            biased;
            output = self.link.next() => Turn::Out(output),
            frames = self.sends.answered(&self.app, &self.door, self.id) => Turn::Sent(frames),
            heard = wire.hear(), if listens => Turn::Heard(heard),
            () = sleep_until(wake_at) => Turn::Time,
        }
    }

    async fn take(&mut self, wire: &mut Wire, turn: Turn) -> Result<(), Ending> {
        match turn {
            Turn::Out(output) => self.put_out(wire, output).await,
            Turn::Sent(frames) => {
                for text in frames {
                    wire.send(text).await?;
                }
                Ok(())
            }
            Turn::Heard(heard) => match heard? {
                Heard::Text(text) => self.take_frame(&text),
                Heard::Alive => self.count(),
            },
            Turn::Time => Box::pin(self.on_time(wire)).await,
        }
    }

    async fn put_out(&mut self, wire: &mut Wire, output: Output) -> Result<(), Ending> {
        let text = match output {
            Output::Message(item) => frame::message(self.link.epoch(), &item),
            Output::Acked(floor) => frame::acked(self.link.epoch(), floor),
            Output::Refused { code, detail } => frame::error(code, detail),
            Output::Status(update) => frame::status(&update),
            Output::Close(reason) => return Err(reason.into()),
        };
        wire.send(text).await
    }

    fn count(&self) -> Result<(), Ending> {
        if self.pace.admits() {
            Ok(())
        } else {
            Err(Ending::TooFast)
        }
    }

    fn take_frame(&mut self, text: &Bytes) -> Result<(), Ending> {
        self.count()?;
        match Frame::parse(text).map_err(|_unreadable| Ending::BadFrame)? {
            Frame::Ack { epoch, upto, also } => self.link.ack(epoch, upto, also),
            Frame::Nak {
                epoch,
                seq,
                retry_after_secs,
            } => {
                let pause = Duration::from_secs(retry_after_secs.min(NAK_SECS_MAX));
                self.link.nak(epoch, seq, pause);
            }
            Frame::Reject { epoch, seq, code } => self.link.reject(epoch, seq, code),
            Frame::Credit { messages } => {
                self.link
                    .credit(messages.min(self.app.settings.receive.credit_messages_max));
            }
            Frame::Send { reference, envelope } => self.sends.push(reference, envelope),
            // It has signed in already.
            Frame::Auth(_) => return Err(Ending::BadFrame),
        }
        Ok(())
    }

    /// When something is due: a ping, the end of a silent socket, a look at the agent. The session minds its own time.
    fn wake_at(&self, wire: &Wire) -> Instant {
        let ping_at = wire.heard_at().max(self.pinged_at) + self.silence * 3 / 4;
        let end_at = wire.heard_at() + self.silence;
        let check_at = self.checked_at + Duration::from_secs(PROOF_RECHECK_SECS);
        self.app.sockets.round_after(ping_at.min(end_at).min(check_at))
    }

    async fn on_time(&mut self, wire: &mut Wire) -> Result<(), Ending> {
        let now = Instant::now();
        let quiet = now.duration_since(wire.heard_at());
        if quiet >= self.silence {
            if self.sends.is_idle() && !self.link.is_backlogged() {
                return Err(Ending::Silent);
            }
            wire.excuse();
        }
        let pings =
            quiet >= self.silence * 3 / 4 && now.duration_since(self.pinged_at) >= self.silence * 3 / 4;
        if pings {
            self.pinged_at = now;
            wire.ping().await?;
        }
        // With a ping too: the socket is awake for it anyway.
        if pings || now.duration_since(self.checked_at) >= Duration::from_secs(PROOF_RECHECK_SECS) {
            self.checked_at = now;
            if !self.signed_in.holds(&self.app).await {
                return Err(Ending::Unauthenticated);
            }
        }
        Ok(())
    }

    /// Finishes what was taken in, within a time: sends are answered, acks and rejects made durable.
    async fn end(mut self: Box<Self>, wire: &mut Wire, ending: Ending) {
        let finishing = async {
            while !self.sends.is_idle() {
                let frames = self.sends.answered(&self.app, &self.door, self.id).await;
                if ending != Ending::Gone {
                    for text in frames {
                        if wire.send(text).await.is_err() {
                            break;
                        }
                    }
                }
            }
            self.link.settle().await;
        };
        if timeout(Duration::from_secs(SETTLE_SECS), finishing)
            .await
            .is_err()
        {
            tracing::warn!(request.id = %self.id, "A socket could not finish in time; its agent gets messages again");
        }
    }
}
