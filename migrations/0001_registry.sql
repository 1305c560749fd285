-- Who exists (room: registry). TEXT and BIGINT only, so that SQLite and PostgreSQL take the same text.
-- Times are milliseconds since 1970 (`_ms`); hashes of secrets are lower-case hexadecimal SHA-256.

-- Facts about the hub that owns this database, such as its domain.
CREATE TABLE hub_facts (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row for each name that was ever registered; a name is never given away again.
CREATE TABLE agents (
    name              TEXT   NOT NULL PRIMARY KEY,
    head              TEXT   NOT NULL,  -- multihash of the newest operation
    seq               BIGINT NOT NULL,  -- and its number
    standing          TEXT   NOT NULL,  -- active | suspended
    registered_at_ms  BIGINT NOT NULL,
    deactivated_at_ms BIGINT,
    invite            TEXT,             -- id of the invite that let the agent in
    mailbox_messages  BIGINT,           -- quotas the operator set; NULL: the hub's defaults
    mailbox_bytes     BIGINT,
    sender_messages   BIGINT
);

-- The signed histories (spec §3), each operation in its canonical bytes: their SHA-256 is the next `prev`.
CREATE TABLE operations (
    name           TEXT   NOT NULL REFERENCES agents (name),
    seq            BIGINT NOT NULL,
    operation      TEXT   NOT NULL,
    admitted_at_ms BIGINT NOT NULL,
    PRIMARY KEY (name, seq)
);

-- Bearer tokens (spec §6), known by their hash only.
CREATE TABLE tokens (
    hash          TEXT   NOT NULL PRIMARY KEY,
    name          TEXT   NOT NULL,
    kid           TEXT   NOT NULL,      -- the key that asked for it; the token dies with the key
    issued_at_ms  BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX tokens_by_name ON tokens (name, issued_at_ms);
CREATE INDEX tokens_by_expiry ON tokens (expires_at_ms);

-- Challenges that were answered well, until they would have expired anyway: each works once.
CREATE TABLE spent_challenges (
    hash          TEXT   NOT NULL PRIMARY KEY,
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX spent_challenges_by_expiry ON spent_challenges (expires_at_ms);

-- What lets an agent register where the policy is `invite`, known by its hash only.
CREATE TABLE invites (
    id            TEXT   NOT NULL PRIMARY KEY,
    hash          TEXT   NOT NULL UNIQUE,
    note          TEXT   NOT NULL,
    uses_max      BIGINT NOT NULL,
    uses_left     BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT
);
