//! Asking an agent and waiting for its answer: one sealed message each way.
//!
//! Who asks takes a place among those that wait before the question goes out, so that no answer is too quick. An answer
//! counts only from the agent that was asked, of the type that was asked for, and while somebody waits for it; all others
//! are settled in silence.
//!
//! The processes of a hub share its agent's mailbox, so an answer may come to a process that did not ask. Every process
//! asks in a conversation of its own: one that takes up an answer of another's conversation hands it back for a while, and
//! the one that asked reads its own conversation beside its session ([`watch`]).

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aip_protocol::envelope::Envelope;
use aip_protocol::name::Did;
use aip_relay::inbox::Reader;
use aip_relay::mailbox::{Status, StoreError};
use aip_relay::presence::StatusUpdate;
use aip_relay::relay::SendError;
use aip_relay::session::SessionId;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::limits::{
    ANSWERS_AT_ONCE, ELSEWHERE_OFFERS_MAX, ELSEWHERE_PAUSE, QUESTIONS_MAX, WITHDRAWAL_LIFETIME,
    WORDS_KNOWN_MAX,
};
use super::receive::Verdict;
use super::stats::Fate;
use super::{HubAgent, Outgoing, message_id};
use crate::app::App;

/// What the types of words before an answer end with.
pub(super) const PROGRESS: &str = ".progress";

/// What the conversations of questions begin with.
const THREAD: &str = "hub-asks-";

/// Takes the plaintext of a word.
pub(crate) type Hear = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Hears what is said before the answer.
#[derive(Clone)]
pub struct Hearing {
    /// The type of such words.
    pub kind: &'static str,
    /// Takes the plaintext of one, and never waits.
    pub hear: Hear,
}

impl Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Too many wait for answers in this process already.
    #[error("{QUESTIONS_MAX} questions wait for their answers already")]
    Busy,
    /// The question did not go out.
    #[error("the question cannot be sent: {0}")]
    NotSent(#[from] SendError),
    /// It was not taken: the recipient's program rejected it, its time was over, or it could not be delivered.
    #[error("the question was not taken ({0})")]
    NotTaken(String),
    /// Nobody answered within the time.
    #[error("no answer came in time")]
    TimedOut,
}

/// Who waits for what, in this process.
pub struct Questions {
    /// The conversation of this process's questions.
    thread: String,
    waiting: Mutex<HashMap<Uuid, Waiter>>,
}

/// Somebody who waits.
struct Waiter {
    from: Did,
    kind: String,
    hearing: Option<Hearing>,
    /// The last words that were heard.
    heard: VecDeque<Uuid>,
    answer: oneshot::Sender<Result<Vec<u8>, AskError>>,
}

/// A place among those that wait; given back when it is dropped.
struct Place<'a> {
    questions: &'a Questions,
    id: Uuid,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.questions.waiting().remove(&self.id);
    }
}

impl Questions {
    /// Nobody waits yet. `process` tells this process from the others of the hub.
    pub(super) fn new(process: u64) -> Self {
        Self {
            thread: format!("{THREAD}{process:016x}"),
            waiting: Mutex::default(),
        }
    }

    /// How many wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Uuid, Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for the answer to `id`. One who asks the same again takes it over.
    fn take_place(&self, id: Uuid, waiter: Waiter) -> Result<Place<'_>, AskError> {
        let mut waiting = self.waiting();
        if waiting.len() >= QUESTIONS_MAX {
            return Err(AskError::Busy);
        }
        waiting.insert(id, waiter);
        Ok(Place { questions: self, id })
    }

    /// The question that this answers and that is waited for here. Looked at before anything is opened.
    fn asked(&self, envelope: &Envelope) -> Option<Uuid> {
        let id = Uuid::try_parse(envelope.reply_to.as_deref()?).ok()?;
        let waiting = self.waiting();
        let waiter = waiting.get(&id)?;
        (waiter.from == envelope.from && waiter.kind == envelope.kind).then_some(id)
    }

    /// Who hears this word, which is said before an answer that is waited for here. Whoever asks first is told: a message may
    /// be offered again, and where processes share the mailbox its session and [`watch`] see the same one.
    fn hearing(&self, envelope: &Envelope) -> Option<Hearing> {
        let id = Uuid::try_parse(envelope.reply_to.as_deref()?).ok()?;
        let mut waiting = self.waiting();
        let waiter = waiting.get_mut(&id)?;
        let hearing = waiter.hearing.as_ref()?.clone();
        let is_one = waiter.from == envelope.from && hearing.kind == envelope.kind;
        if !is_one || waiter.heard.contains(&envelope.id) {
            return None;
        }
        if waiter.heard.len() >= WORDS_KNOWN_MAX {
            waiter.heard.pop_front();
        }
        waiter.heard.push_back(envelope.id);
        Some(hearing)
    }

    fn answer(&self, id: Uuid, answer: Result<Vec<u8>, AskError>) {
        if let Some(waiter) = self.waiting().remove(&id) {
            // Who asked may have gone in this very moment.
            drop(waiter.answer.send(answer));
        }
    }

    /// News of a message that the agent sent: where it is a question that will not be answered, nobody waits for it.
    pub(super) fn hear(&self, update: &StatusUpdate) {
        if !matches!(update.status, Status::Dead | Status::Expired | Status::Refused) {
            return;
        }
        let is_asked = self
            .waiting()
            .get(&update.id)
            .is_some_and(|waiter| waiter.from == update.to);
        if is_asked {
            let why = update.code.clone();
            let why = why.unwrap_or_else(|| update.status.as_str().to_owned());
            self.answer(update.id, Err(AskError::NotTaken(why)));
        }
    }

    /// Whether it belongs to a conversation of another process's questions.
    fn is_elsewhere(&self, envelope: &Envelope) -> bool {
        let thread = envelope.thread.as_deref().unwrap_or_default();
        thread.starts_with(THREAD) && thread != self.thread
    }
}

impl Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions")
            .field("waiting", &self.waiting_count())
            .finish_non_exhaustive()
    }
}

impl HubAgent {
    /// Sends a question and waits for the answer of the type `kind`: the plaintext that the agent asked has sealed for
    /// this one. A question that is asked again with its key goes out once. May be dropped at any moment; what comes
    /// after that, or after `wait`, is not looked at.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask(&self, question: Outgoing, kind: &str, wait: Duration) -> Result<Vec<u8>, AskError> {
        self.ask_hearing(question, kind, wait, None).await
    }

    /// The same, and hears what the agent says before its answer.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask_hearing(
        &self,
        mut question: Outgoing,
        kind: &str,
        wait: Duration,
        hearing: Option<Hearing>,
    ) -> Result<Vec<u8>, AskError> {
        let key = question.key.get_or_insert_with(|| {
            self.with_rng(|mut rng| aip_protocol::envelope::new_id(&mut rng).to_string())
        });
        let id = message_id(&question.to, &question.kind, key);
        question.thread = Some(self.questions.thread.clone());
        question.expires_at = Some(self.clock.now() + wait);
        let (answer, answered) = oneshot::channel();
        let waiter = Waiter {
            from: question.to.clone(),
            kind: kind.to_owned(),
            hearing,
            heard: VecDeque::new(),
            answer,
        };
        let _place = self.questions.take_place(id, waiter)?;
        let asking = async {
            self.send(question).await?;
            // Dropped where the same was asked again.
            answered.await.unwrap_or(Err(AskError::TimedOut))
        };
        timeout(wait, asking).await.unwrap_or(Err(AskError::TimedOut))
    }

    /// Tells who was asked that nobody waits any more: `word` is about the question of this key. It is worth nothing after a
    /// while.
    ///
    /// # Errors
    /// It did not go out.
    pub async fn withdraw(&self, mut word: Outgoing, question: (&str, &str)) -> Result<(), SendError> {
        let (kind, key) = question;
        word.reply_to = Some(message_id(&word.to, kind, key).hyphenated().to_string());
        word.thread = Some(self.questions.thread.clone());
        word.expires_at = Some(self.clock.now() + WITHDRAWAL_LIFETIME);
        word.key = Some(key.to_owned());
        self.send(word).await.map(drop)
    }

    /// Who waits for answers.
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// What becomes of an answer, or of a word before it. `is_shared`: other processes read this mailbox.
    pub(super) fn take_answer(&self, envelope: &Envelope, attempt: u32, is_shared: bool) -> Verdict {
        if envelope.kind.ends_with(PROGRESS) {
            if let Some(hearing) = self.questions.hearing(envelope) {
                if let Ok(plaintext) = self.open(envelope) {
                    (hearing.hear)(&plaintext);
                }
                return Verdict::Done(Fate::Answered);
            }
        } else if let Some(id) = self.questions.asked(envelope) {
            let opened = self.open(envelope);
            let unreadable = |_other_key| AskError::NotTaken("unreadable".to_owned());
            self.questions.answer(id, opened.map_err(unreadable));
            return Verdict::Done(Fate::Answered);
        }
        if is_shared && attempt < ELSEWHERE_OFFERS_MAX && self.questions.is_elsewhere(envelope) {
            return Verdict::Later(ELSEWHERE_PAUSE);
        }
        Verdict::Done(Fate::Ignored)
    }
}

/// Reads the conversation of this process's own questions, where other processes share the mailbox: an answer reaches who
/// asked, whoever's session has it in hand. Ends with the reader; the caller comes again.
pub(super) async fn watch(app: &App) {
    if let Err(error) = read_own(app).await {
        tracing::warn!(%error, "Answers to questions of this process that come to another one are not seen for a moment");
    }
}

async fn read_own(app: &App) -> Result<(), StoreError> {
    let agent = &app.agent;
    let session = SessionId::from_random(agent.with_rng(|rng| rng.next_u64()));
    let reader = app.inbox.reader(agent.did().clone(), None, session).await?;
    let Ok(reader) = reader else {
        return Ok(());
    };
    let mut reader = reader.of_thread(agent.questions.thread.clone());
    while !reader.is_closed() {
        read_once(app, &mut reader).await?;
        reader.changed().await;
    }
    Ok(())
}

async fn read_once(app: &App, reader: &mut Reader) -> Result<(), StoreError> {
    loop {
        let page = reader.read(ANSWERS_AT_ONCE).await?;
        let mut answered = Vec::new();
        for item in &page.items {
            let Ok(envelope) = Envelope::parse(&item.wire) else {
                continue;
            };
            let verdict = app.agent.take_answer(&envelope, item.attempt, false);
            if verdict == Verdict::Done(Fate::Answered) {
                app.agent.stats().count(Fate::Answered);
                answered.push(item.seq);
            }
        }
        if answered.is_empty() {
            return Ok(());
        }
        // What is refused here is offered to a session again, and settled there.
        let acked = app
            .inbox
            .ack(app.agent.did(), page.epoch.as_str(), 0, &answered)
            .await?;
        if let Err(refusal) = acked {
            tracing::debug!(
                code = refusal.code.as_str(),
                "Answers that were read are settled later"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use aip_protocol::time::Timestamp;

    use super::*;

    fn waiter(from: &str) -> (Waiter, oneshot::Receiver<Result<Vec<u8>, AskError>>) {
        let (answer, answered) = oneshot::channel();
        let waiter = Waiter {
            from: Did::parse(from).unwrap(),
            kind: "a.b.response".to_owned(),
            hearing: None,
            heard: VecDeque::new(),
            answer,
        };
        (waiter, answered)
    }

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    const SHOP: &str = "did:aip:hub.example:shop";

    #[test]
    fn so_many_questions_wait_and_no_more() {
        let questions = Questions::new(1);
        let mut places: Vec<Place<'_>> = (0..QUESTIONS_MAX)
            .map(|number| questions.take_place(id(number), waiter(SHOP).0).unwrap())
            .collect();
        let refused = questions.take_place(id(QUESTIONS_MAX), waiter(SHOP).0);
        assert!(matches!(refused, Err(AskError::Busy)));
        places.pop();
        assert_eq!(questions.waiting_count(), QUESTIONS_MAX - 1);
        assert!(questions.take_place(id(QUESTIONS_MAX), waiter(SHOP).0).is_ok());
        drop(places);
        assert_eq!(questions.waiting_count(), 0);
    }

    #[test]
    fn a_question_that_will_not_be_answered_is_over_at_once() {
        let questions = Questions::new(1);
        let (waiter, mut answered) = waiter(SHOP);
        let _place = questions.take_place(id(7), waiter).unwrap();
        let update = |number: usize, to: &str, status: Status| StatusUpdate {
            id: id(number),
            to: Did::parse(to).unwrap(),
            status,
            code: Some("type_unsupported".to_owned()),
            at: Timestamp::from_unix_millis(0),
        };
        questions.hear(&update(7, SHOP, Status::Stored));
        questions.hear(&update(8, SHOP, Status::Dead));
        questions.hear(&update(7, "did:aip:hub.example:other", Status::Dead));
        assert!(answered.try_recv().is_err(), "it still may be answered");
        questions.hear(&update(7, SHOP, Status::Dead));
        let over = answered.try_recv().unwrap();
        assert!(matches!(over, Err(AskError::NotTaken(code)) if code == "type_unsupported"));
    }
}
