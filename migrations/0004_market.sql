-- The market's money (room: registry, for market). TEXT and BIGINT only; times are milliseconds since 1970 (`_ms`), hashes
-- hexadecimal SHA-256, amounts millionths of a dollar and never negative.

-- One row: the money that was ever made. Whoever moves money holds this row until the commit, so that one change comes after
-- the other in every process.
CREATE TABLE market_money (
    id       BIGINT NOT NULL PRIMARY KEY,  -- 1
    credited BIGINT NOT NULL,              -- put into accounts
    demo     BIGINT NOT NULL               -- put into channels from nowhere
);
INSERT INTO market_money (id, credited, demo) VALUES (1, 0, 0);

CREATE TABLE market_accounts (
    id            TEXT   NOT NULL PRIMARY KEY,
    label         TEXT   NOT NULL,
    owner         TEXT   UNIQUE,    -- the DID of an agent here
    balance       BIGINT NOT NULL,  -- what is held is not in it
    held          BIGINT NOT NULL,
    budget        BIGINT,           -- NULL: no ceiling
    spent         BIGINT NOT NULL,
    suspended     BIGINT NOT NULL,  -- 0 or 1
    created_at_ms BIGINT NOT NULL,
    lines         BIGINT NOT NULL   -- how many it has in the table below
);

-- The ledgers of accounts: lines are added and never changed.
CREATE TABLE market_lines (
    account   TEXT   NOT NULL,
    number    BIGINT NOT NULL,  -- from 1, without a gap
    kind      TEXT   NOT NULL,  -- credit | hold | capture | release | deposit | refund
    amount    BIGINT NOT NULL,
    reference TEXT   NOT NULL,
    balance   BIGINT NOT NULL,  -- after it
    at_ms     BIGINT NOT NULL,
    PRIMARY KEY (account, number)
);

-- Keys that spend from accounts; a revoked one is gone.
CREATE TABLE market_keys (
    account       TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    hash          TEXT   NOT NULL UNIQUE,
    label         TEXT   NOT NULL,
    budget        BIGINT,
    spent         BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (account, id)
);

-- References of payments, each good once.
CREATE TABLE market_references (
    reference TEXT   NOT NULL PRIMARY KEY,
    purpose   TEXT   NOT NULL,  -- credit | top_up | pay_out
    subject   TEXT   NOT NULL,  -- an account, a channel, an agent
    amount    BIGINT NOT NULL,
    at_ms     BIGINT NOT NULL
);

CREATE TABLE market_channels (
    id            TEXT   NOT NULL PRIMARY KEY,
    secret_hash   TEXT   NOT NULL,
    account       TEXT,             -- where its money comes from; NULL: from nowhere, and so is the next one
    account_key   TEXT,
    deposit       BIGINT NOT NULL,
    used          BIGINT NOT NULL,
    held          BIGINT NOT NULL,
    refunded      BIGINT NOT NULL,
    status        TEXT   NOT NULL,  -- open | closed | expired
    opened_at_ms  BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX market_channels_by_expiry ON market_channels (status, expires_at_ms, id);

CREATE TABLE market_invocations (
    id            TEXT   NOT NULL PRIMARY KEY,
    status        TEXT   NOT NULL,  -- started | finished | abandoned
    agent         TEXT   NOT NULL,  -- whose capability
    product       TEXT   NOT NULL,
    capability    TEXT   NOT NULL,
    account       TEXT,             -- paid from an account and its key, or from a channel, or free
    account_key   TEXT,
    channel       TEXT,
    amount        BIGINT NOT NULL,  -- what was held
    visitor       TEXT,             -- whose free call
    holder        TEXT   NOT NULL,  -- the process that makes it
    deadline_ms   BIGINT NOT NULL,
    charged       BIGINT NOT NULL,
    fee           BIGINT NOT NULL,  -- of it
    started_at_ms BIGINT NOT NULL,
    ended_at_ms   BIGINT
);
CREATE INDEX market_invocations_under_way ON market_invocations (deadline_ms, id) WHERE status = 'started';

-- What was asked with a key of the caller's, and answered; it goes in time.
CREATE TABLE market_repeats (
    key_hash      TEXT   NOT NULL PRIMARY KEY,
    body_hash     TEXT   NOT NULL,
    invocation    TEXT   NOT NULL UNIQUE,
    status        BIGINT,           -- of HTTP; NULL while it is under way
    body          TEXT,             -- "t" and text, or "x" and hexadecimal
    started_at_ms BIGINT NOT NULL
);
CREATE INDEX market_repeats_by_start ON market_repeats (started_at_ms);

-- How many free calls visitors had.
CREATE TABLE market_trials (
    visitor TEXT   NOT NULL PRIMARY KEY,
    used    BIGINT NOT NULL
);

-- Receipts as they were given out.
CREATE TABLE market_receipts (
    nonce      TEXT   NOT NULL PRIMARY KEY,
    invocation TEXT   NOT NULL,
    receipt    TEXT   NOT NULL,  -- "t" and text, or "x" and hexadecimal
    at_ms      BIGINT NOT NULL
);

-- What providers earned.
CREATE TABLE market_earnings (
    agent    TEXT   NOT NULL PRIMARY KEY,
    earned   BIGINT NOT NULL,  -- the hub's fees left out
    paid_out BIGINT NOT NULL,  -- of it
    fees     BIGINT NOT NULL,
    calls    BIGINT NOT NULL
);
