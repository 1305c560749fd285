//! The bounds of the hub's own agent.

use std::num::NonZeroU32;
use std::time::Duration;

use aip_relay::rate::Rate;

/// Messages that one process works on at the same time.
pub const MESSAGES_AT_ONCE: u32 = 8;

/// Requests of one sender that one process answers with more than a refusal.
pub const REQUEST_RATE: Rate = Rate {
    messages_per_sec: REQUESTS_PER_SEC,
    burst_messages: REQUEST_BURST,
};

/// The long run of [`REQUEST_RATE`].
const REQUESTS_PER_SEC: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// After a pause, by [`REQUEST_RATE`].
const REQUEST_BURST: NonZeroU32 = NonZeroU32::new(50).unwrap();

/// Offers after which a message is given up whose answer cannot be sent: its sender's mailbox does not take it, or its
/// sender's hub cannot be asked who that is.
pub const ANSWER_ATTEMPTS_MAX: u32 = 8;

/// Offers after which the sender is told of a failure of the hub's own, instead of another try.
pub const FAILURE_ATTEMPTS_MAX: u32 = 4;

/// The pause before another try after a failure of the hub's own. It doubles with every offer where an answer cannot be sent.
pub const FAILURE_PAUSE: Duration = Duration::from_secs(2);

/// The pause before another try where a refusal names none.
pub const REFUSAL_PAUSE: Duration = Duration::from_secs(30);

/// The pause before the mailbox is entered again.
pub const SESSION_PAUSE: Duration = Duration::from_secs(2);

/// The pause before another try to get the agent's identity in order.
pub const IDENTITY_PAUSE: Duration = Duration::from_secs(30);

/// Times that the identity is looked at anew since another process was faster.
pub const IDENTITY_ATTEMPTS_MAX: u32 = 4;

/// Bytes of an envelope that are not the sealed body: the header with its longest members, the signature.
pub const ENVELOPE_HEAD_BYTES: usize = 4 * 1024;

/// Questions that one process waits with for their answers.
pub const QUESTIONS_MAX: usize = 1_024;

/// How long the word that nobody waits for an answer any more is worth something.
pub const WITHDRAWAL_LIFETIME: Duration = Duration::from_mins(1);

/// Words before an answer that are known again, so that none is heard twice.
pub const WORDS_KNOWN_MAX: usize = 256;

/// Answers that are read at once from the conversation of a process's own questions.
pub const ANSWERS_AT_ONCE: usize = 16;

/// The offer with which an answer to a question of another process is given up: that one is no more, or does not wait.
pub const ELSEWHERE_OFFERS_MAX: u32 = 4;

/// The pause before such an answer is offered again. The process that asked has long read it by then.
pub const ELSEWHERE_PAUSE: Duration = Duration::from_secs(2);

/// Bytes of the id of an item that is asked for.
pub const ITEM_ID_BYTES_MAX: usize = 256;

/// Pictures and files that an offer tells of.
pub const MEDIA_MAX: usize = 64;

/// Ways to reach somebody that an offer tells.
pub const CONTACT_MEMBERS_MAX: usize = 32;
