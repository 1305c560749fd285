-- What agents offer (room: registry). TEXT and BIGINT only; times are milliseconds since 1970 (`_ms`), hashes hexadecimal.

-- One row: where the log of changes stands. Whoever changes a listing holds this row until the commit, so that changes
-- become visible in the order of their numbers, whoever makes them.
CREATE TABLE listing_log (
    id            BIGINT NOT NULL PRIMARY KEY,  -- 1
    change_seq    BIGINT NOT NULL,              -- the last change
    number        BIGINT NOT NULL,              -- the last number that a listing was given
    forgotten_seq BIGINT NOT NULL               -- tombstones up to here are gone
);
INSERT INTO listing_log (id, change_seq, number, forgotten_seq) VALUES (1, 0, 0, 0);

-- Listings (spec §9) and the tombstones of deleted ones, which keep the version.
CREATE TABLE listings (
    id            TEXT   NOT NULL PRIMARY KEY,  -- the hub's, made from agent and listing_id
    number        BIGINT NOT NULL UNIQUE,
    agent         TEXT   NOT NULL,              -- DID
    listing_id    TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    deleted       BIGINT NOT NULL,              -- 1: a tombstone
    digest        TEXT   NOT NULL,
    provider      TEXT,                         -- who handed it in; NULL: its agent signed it
    flags         TEXT   NOT NULL,              -- a JSON array
    change_seq    BIGINT NOT NULL UNIQUE,       -- its place in the log
    stored_at_ms  BIGINT NOT NULL,
    expires_at_ms BIGINT,
    json          TEXT   NOT NULL               -- the listing in its canonical form; empty in a tombstone
);
CREATE INDEX listings_by_agent ON listings (agent, id);
CREATE INDEX listings_deleted ON listings (change_seq) WHERE deleted = 1;

-- How many listings and tombstones an agent has: what the table of listings says, counted.
CREATE TABLE listing_owners (
    agent   TEXT   NOT NULL PRIMARY KEY,
    live    BIGINT NOT NULL,
    deleted BIGINT NOT NULL
);

-- Who hands listings in for an agent, known by the hash of the key only.
CREATE TABLE providers (
    id              TEXT   NOT NULL PRIMARY KEY,
    hash            TEXT   NOT NULL UNIQUE,
    name            TEXT   NOT NULL,
    agent           TEXT   NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    revoked_at_ms   BIGINT,
    last_used_at_ms BIGINT
);
