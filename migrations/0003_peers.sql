-- The hubs of other domains (room: registry, for federation). TEXT and BIGINT only; times are milliseconds since 1970
-- (`_ms`), hashes hexadecimal SHA-256.

-- What is known and decided about each (spec §8).
CREATE TABLE peers (
    domain          TEXT   NOT NULL PRIMARY KEY,
    pinned          TEXT   NOT NULL DEFAULT '',           -- Multikeys with blanks between them
    document        TEXT,                                 -- the newest good one
    fresh_until_ms  BIGINT,
    frozen_code     TEXT,                                 -- NULL: not frozen, and so are the two below
    frozen_kid      TEXT,
    frozen_since_ms BIGINT,
    stance          TEXT   NOT NULL DEFAULT 'undecided',  -- undecided | allowed | blocked | limited
    items_per_sec   BIGINT,                               -- limits the operator set; NULL: the hub's own
    bytes_per_sec   BIGINT,
    queue_items     BIGINT,
    first_seen_ms   BIGINT NOT NULL,
    last_in_ms      BIGINT,
    last_out_ms     BIGINT,
    good_items      BIGINT NOT NULL DEFAULT 0
);

-- Whose turn it is to send to a peer.
CREATE TABLE peer_leases (
    peer     TEXT   NOT NULL PRIMARY KEY,
    holder   TEXT   NOT NULL,
    until_ms BIGINT NOT NULL
);

-- Which items of a peer's outbox were settled here. A peer that is forgotten keeps its windows.
CREATE TABLE peer_windows (
    peer   TEXT   NOT NULL,
    epoch  TEXT   NOT NULL,  -- hash of the peer's epoch, whose form is the peer's own affair
    number BIGINT NOT NULL,  -- counts the epochs of a peer, in the order in which they came
    floor  BIGINT NOT NULL,  -- everything up to here is settled
    above  TEXT   NOT NULL,  -- what else is: runs, each "skipped numbers" or "skipped numbers+further members"
    PRIMARY KEY (peer, epoch)
);

-- Those of them that were refused, each with its code; the newest ones of each window.
CREATE TABLE peer_refusals (
    peer     TEXT   NOT NULL,
    epoch    TEXT   NOT NULL,
    peer_seq BIGINT NOT NULL,
    code     TEXT   NOT NULL,
    PRIMARY KEY (peer, epoch, peer_seq)
);

-- Nonces of signed requests, each good once until it is over.
CREATE TABLE peer_nonces (
    hash          TEXT   NOT NULL PRIMARY KEY,  -- of the peer's domain and the nonce
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX peer_nonces_by_expiry ON peer_nonces (expires_at_ms);

-- Identity histories of agents elsewhere, as they were last verified.
CREATE TABLE remote_histories (
    did           TEXT   NOT NULL PRIMARY KEY,
    peer          TEXT   NOT NULL,
    length        BIGINT NOT NULL,  -- how many operations
    fetched_at_ms BIGINT NOT NULL,
    bytes         BIGINT NOT NULL,  -- of these operations
    operations    TEXT   NOT NULL   -- a JSON array, oldest first
);
CREATE INDEX remote_histories_by_peer ON remote_histories (peer, fetched_at_ms);

-- One row: the last number of each of the two logs below, and how many histories there are above. Whoever adds a line, or
-- adds or drops a history, holds this row until the commit, so that lines become visible in the order of their numbers.
CREATE TABLE peer_log (
    id            BIGINT NOT NULL PRIMARY KEY,  -- 1
    evidence      BIGINT NOT NULL,
    audit         BIGINT NOT NULL,
    histories     BIGINT NOT NULL,
    history_bytes BIGINT NOT NULL
);
INSERT INTO peer_log (id, evidence, audit, histories, history_bytes) VALUES (1, 0, 0, 0, 0);

-- What peers did and cannot take back.
CREATE TABLE peer_evidence (
    number  BIGINT NOT NULL PRIMARY KEY,
    peer    TEXT   NOT NULL,
    hash    TEXT   NOT NULL,  -- of code, subject and objects
    code    TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    objects TEXT   NOT NULL,  -- a JSON array
    at_ms   BIGINT NOT NULL,
    UNIQUE (peer, hash)
);
CREATE INDEX peer_evidence_by_peer ON peer_evidence (peer, number);

-- What was decided about peers.
CREATE TABLE peer_audit (
    number BIGINT NOT NULL PRIMARY KEY,
    peer   TEXT   NOT NULL,
    actor  TEXT   NOT NULL,
    action TEXT   NOT NULL,
    detail TEXT   NOT NULL,
    at_ms  BIGINT NOT NULL
);
CREATE INDEX peer_audit_by_peer ON peer_audit (peer, actor, number);
