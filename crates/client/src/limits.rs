//! Every bound of the client, in one place. Those of the protocol itself are in `aip_protocol::limits`.

use std::time::Duration;

/// An answer of a hub is read up to this size, in bytes: a full inbox page or batch, with room.
pub const ANSWER_BYTES_MAX: usize = 48 * 1024 * 1024;
/// How long a connection to the hub may take to open.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request may take, answer included. A direct endpoint may hold the hub for 10 s.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Added to `wait_s` of a long poll before the request is given up.
pub const LONG_POLL_SLACK: Duration = Duration::from_secs(15);

/// Envelopes in one `POST /api/v1/messages` (spec §5).
pub const BATCH_MESSAGES_MAX: usize = 100;
/// Bytes of one batch (spec §5: 4 MiB), with room for brackets and commas.
pub const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024 - 1024;

/// How long the same bytes may be offered after `created_at`: window plus tolerance of spec §5.
pub const SEND_WINDOW: Duration =
    Duration::from_secs(aip_protocol::limits::WINDOW_SECS + aip_protocol::limits::TOLERANCE_SECS);
/// The longest `Retry-After` that is followed as it is; longer ones are cut to it.
pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(5);

/// A verified identity is used for this long before it is looked up again.
pub const IDENTITY_FRESH: Duration = Duration::from_mins(5);
/// Between two forced look-ups of the same identity: a stream of forgeries must not become a stream of requests.
pub const IDENTITY_REFRESH_MIN: Duration = Duration::from_secs(5);
/// Before a hub that did not answer is asked for the same identity again, and a move that the other side did not confirm is
/// looked at again: neither may cost every message a time-out.
pub const LOOKUP_PAUSE: Duration = Duration::from_secs(30);
/// Identities held in memory.
pub const IDENTITIES_MAX: usize = 4096;
/// Pages of one identity history that are read.
pub const HISTORY_PAGES_MAX: usize = 256;
/// Operations of one identity history that are read.
pub const HISTORY_OPERATIONS_MAX: usize = 10_000;

/// Part of a token's life, in percent, after which it is renewed.
pub const TOKEN_RENEW_PERCENT: u32 = 80;
/// The shortest and the longest life that a token is believed to have, whatever the two clocks say.
pub const TOKEN_LIFE_MIN: Duration = Duration::from_mins(1);
/// See [`TOKEN_LIFE_MIN`].
pub const TOKEN_LIFE_MAX: Duration = Duration::from_hours(24);

/// Logins in a row that are tried when a hub does not know the challenge that it gave out: where several processes
/// answer at one address, the second may not know the first one's.
pub const LOGIN_ATTEMPTS_MAX: u32 = 4;

/// Messages in flight that a listener asks for by default (spec §6).
pub const CREDIT_DEFAULT: u32 = 64;
/// The largest credit that a listener asks for.
pub const CREDIT_MAX: u32 = 1024;
/// A WebSocket frame (spec §6: 1 MiB).
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Frames that wait to be written.
pub const COMMANDS_MAX: usize = 256;
/// Status frames kept for a slow reader; older ones are dropped.
pub const STATUSES_KEPT: usize = 1024;
/// How long opening a socket, from connect to `ready`, may take.
pub const SESSION_OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a frame may take to leave.
pub const SOCKET_WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two pings; the hub closes a socket that is silent for 60 s.
pub const PING_EVERY: Duration = Duration::from_secs(20);
/// A socket is given up after this many ping intervals in which nothing arrived.
pub const SILENT_PINGS_MAX: u32 = 3;
/// How long one envelope sent over the socket waits for its answer.
pub const SOCKET_SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a closing listener waits for the acks under way to be confirmed.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a listener that was dropped waits for the hub to see that it is gone.
pub const LINGER: Duration = Duration::from_secs(1);
/// A session that lived this long counts as a success: the next reconnect starts at the shortest delay.
pub const SESSION_STEADY: Duration = Duration::from_secs(5);
/// Refused authentications in a row, without an open session in between, after which a listener gives up.
pub const AUTH_FAILURES_MAX: u32 = 3;
/// The longest pause, in seconds, that a message handed back is kept away.
pub const NAK_SECS_MAX: u64 = 300;

/// Sealing keys kept for messages in flight.
pub const SEALING_KEYS_KEPT_MAX: usize = 16;
/// A key file is refused above this size, in bytes.
pub const KEY_FILE_BYTES_MAX: u64 = 256 * 1024;

/// How long the ids of processed messages are kept, whatever epoch they were processed in. Spec §5 needs 20 minutes; a
/// mailbox that was restored from a backup offers again what is up to seven days old, so this covers the retention
/// of a mailbox.
pub const IDS_KEPT: Duration = Duration::from_hours(8 * 24);
/// Ids kept at most, the newest of all epochs together; about 5 MiB of memory. A backup that is restored must not be
/// older than so many messages of one agent, or what was open in it is processed twice.
pub const IDS_MAX: usize = 65_536;
/// Records in an inbox log before it is folded into a snapshot.
pub const INBOX_LOG_RECORDS_MAX: u64 = 8192;

/// Messages whose receipts are waited for, and receipts, kept beside the keys; the oldest go first.
pub const RECEIPTS_KEPT_MAX: usize = 4096;
/// Receipts that are asked for between two looks at how many are kept.
pub const RECEIPTS_PRUNE_EVERY: u64 = 64;
/// Sealings of one message whose receipt is taken: a message that had to be sealed again has other bytes.
pub const RECEIPT_DIGESTS_MAX: usize = 4;
/// Bytes of the envelope of a receipt; a good one has about a thousand.
pub const RECEIPT_BYTES_MAX: usize = 8 * 1024;
/// Receipts that wait to be sent. When so many do, further ones are not given: acknowledging never waits for them.
pub const RECEIPTS_WAITING_MAX: usize = 1024;
/// Receipts that came in, kept for a slow reader of them; all are in the store.
pub const RECEIPTS_TOLD: usize = 256;

/// Moves of one agent, one after the other, that are followed.
pub const MOVES_FOLLOWED_MAX: usize = 3;
/// Claims to have moved of which is known whether the other side confirms them.
pub const MOVES_REMEMBERED_MAX: usize = 1024;

/// A listing on the wire, in bytes (spec §9 leaves it to hubs; this project's take so much).
pub const LISTING_BYTES_MAX: usize = 64 * 1024;
/// Of them, those that agent, version, time, key and signature take at most.
pub const LISTING_FRAME_BYTES: usize = 1024;
/// Bytes of a `listing_id`; a longer id of a row is replaced by its hash.
pub const LISTING_ID_BYTES_MAX: usize = 128;
/// Bytes of a listing's name.
pub const LISTING_NAME_BYTES_MAX: usize = 512;
/// Bytes of a listing's description.
pub const LISTING_DESCRIPTION_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a listing's language (BCP 47).
pub const LISTING_LANG_BYTES_MAX: usize = 35;
/// Tags of a listing.
pub const LISTING_TAGS_MAX: usize = 64;
/// Bytes of a tag.
pub const LISTING_TAG_BYTES_MAX: usize = 128;
/// Attributes of a listing.
pub const LISTING_ATTRIBUTES_MAX: usize = 128;
/// Bytes of an attribute's name.
pub const LISTING_ATTRIBUTE_NAME_BYTES_MAX: usize = 64;
/// Bytes of an attribute's text.
pub const LISTING_ATTRIBUTE_TEXT_BYTES_MAX: usize = 1024;
/// Levels of arrays and objects in a listing, the listing itself the first.
pub const LISTING_LEVELS_MAX: usize = 24;
/// Digits of a price before its point.
pub const PRICE_WHOLE_DIGITS_MAX: usize = 11;
/// Digits of a price behind its point.
pub const PRICE_FRACTION_DIGITS_MAX: usize = 8;
/// Bytes of a text that is looked at as a price.
pub const PRICE_TEXT_BYTES_MAX: usize = 64;

/// A file to import, in bytes.
pub const IMPORT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Rows of a file to import.
pub const IMPORT_ROWS_MAX: usize = 200_000;
/// One row as the file writes it, in bytes: it may hold much that a listing leaves out.
pub const IMPORT_ROW_BYTES_MAX: usize = 256 * 1024;
/// Columns of a table to import.
pub const IMPORT_COLUMNS_MAX: usize = 512;
/// Remarks on one row; further ones are left out.
pub const IMPORT_REMARKS_MAX: usize = 16;
/// Offers of one product that are looked at.
pub const IMPORT_OFFERS_MAX: usize = 256;
/// Levels of a foreign document that are looked through for rows.
pub const IMPORT_LEVELS_MAX: usize = 32;

/// Listings that are published at the same time.
pub const PUBLISH_AT_ONCE: usize = 8;
/// Listings of an agent that are asked for at once.
pub const LISTINGS_PAGE: u32 = 100;
/// Pages of an agent's own listings that are read.
pub const LISTINGS_PAGES_MAX: usize = 10_000;
/// Rows in one request of a provider.
pub const INGEST_ROWS_MAX: usize = 500;
/// Bytes in one request of a provider.
pub const INGEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long one request of a provider may take.
pub const INGEST_TIMEOUT: Duration = Duration::from_mins(2);
/// Bytes of a file that holds a provider key.
pub const PROVIDER_KEY_BYTES_MAX: u64 = 4096;
/// How long a search is tried again on a hub that does not answer.
pub const SEARCH_WINDOW: Duration = Duration::from_secs(20);
/// Results on one page of a search (spec §9).
pub const SEARCH_LIMIT_MAX: u32 = 100;

/// How long one poll for an answer waits.
pub const ANSWER_POLL: Duration = Duration::from_secs(10);
/// How long an answer is waited for, where nothing else is said.
pub const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Messages of one conversation that one poll brings.
pub const THREAD_MESSAGES_MAX: u32 = 20;

/// How long a call of a capability may take, where nothing else is said: what a provider gets at most, and the hub's part.
pub const INVOKE_TIMEOUT: Duration = Duration::from_secs(345);
/// One event of a call that is followed, in bytes: the largest is its result, of which hubs take 1 MiB.
pub const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a stream of events may be silent: a hub that is there says so every 15 seconds.
pub const STREAM_IDLE_MAX: Duration = Duration::from_mins(1);
/// Jobs whose secrets are kept; the oldest go first.
pub const JOBS_KEPT_MAX: usize = 256;
/// Bytes of the key of an account, or of a channel's id or secret.
pub const PURSE_SECRET_BYTES_MAX: usize = 256;
/// Bytes of a file that holds them.
pub const PURSE_FILE_BYTES_MAX: u64 = 64 * 1024;
/// Channels that are written down.
pub const CHANNELS_KEPT_MAX: usize = 64;
/// Bytes of a receipt, as it is sent to be checked.
pub const RECEIPT_JSON_BYTES_MAX: usize = 128 * 1024;
/// Calls that a provider works on at once.
pub const CALLS_AT_ONCE: usize = 8;
/// Calls that it has taken and does not work on yet.
pub const CALLS_WAITING_MAX: usize = 1_024;
/// Words about a call that wait to be sent; a handler that says more waits.
pub const WORDS_WAITING_MAX: usize = 16;
/// How long the last words about a call may keep its answer waiting.
pub const LAST_WORDS_WAIT: Duration = Duration::from_secs(2);
/// How long a call may take that does not say until when somebody waits for it.
pub const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// Bytes of the id of an item whose details are asked for.
pub const OFFER_ITEM_BYTES_MAX: usize = 256;
/// Bytes of what somebody wants to know about an item, in words.
pub const OFFER_NOTE_BYTES_MAX: usize = 4_096;
/// Bytes of a file that offers are answered from.
pub const OFFER_FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
