-- The market beyond one hub and beyond its own money: peers, payments on chains, jobs (room: registry, for market). Types and
-- units as in 0004.

-- Listings that were read from the catalog of another hub.
ALTER TABLE listings ADD COLUMN hub TEXT DEFAULT NULL;  -- its address; NULL: an agent of this hub offers it

-- Other hubs that sell.
CREATE TABLE market_peers (
    url          TEXT   NOT NULL PRIMARY KEY,
    status       TEXT   NOT NULL,  -- pending | active | key_mismatch | blocked
    mode         TEXT   NOT NULL,  -- broker | sells_for | reseller
    pinned       TEXT,             -- its key, a Multikey
    shown        TEXT,             -- the other one that it shows
    found        TEXT   NOT NULL,  -- seed | operator | announced | the address of the peer that named it
    depth        BIGINT NOT NULL,
    declared     TEXT   NOT NULL,  -- what it says about itself, JSON
    first_ms     BIGINT NOT NULL,
    due_ms       BIGINT NOT NULL,  -- when it is asked next
    tried_ms     BIGINT,
    crawled_ms   BIGINT,           -- when its manifest was last good
    failures     BIGINT NOT NULL,
    error        TEXT,
    capabilities BIGINT NOT NULL,
    preview      TEXT   NOT NULL   -- some of what a pending one offers, JSON
);
CREATE INDEX market_peers_by_due ON market_peers (due_ms, url) WHERE status <> 'blocked';
CREATE INDEX market_peers_by_status ON market_peers (status, first_ms, url);
CREATE INDEX market_peers_by_key ON market_peers (pinned);

-- What was decided about them; lines are added and never changed.
CREATE TABLE market_peer_lines (
    number BIGINT NOT NULL PRIMARY KEY,  -- from 1, without a gap
    peer   TEXT   NOT NULL,
    actor  TEXT   NOT NULL,  -- operator | hub
    action TEXT   NOT NULL,
    detail TEXT   NOT NULL,
    at_ms  BIGINT NOT NULL
);

-- Payments that moved outside the hub (x402), or may have: each pays one call. One that was given back is gone.
CREATE TABLE market_payments (
    key_hash       TEXT   NOT NULL PRIMARY KEY,  -- of network, asset, payer and the payer's nonce
    invocation     TEXT   NOT NULL,
    status         TEXT   NOT NULL,              -- claimed | settling | settled | unclear
    amount         BIGINT NOT NULL,
    payment        TEXT   NOT NULL,              -- what was shown, and for which terms: "t" and text, or "x" and hexadecimal
    answer_status  BIGINT,                       -- what the call ends with, while it is settling
    answer_body    TEXT,
    receipt_nonce  TEXT,
    receipt        TEXT,
    transaction_id TEXT,                         -- once it is settled
    at_ms          BIGINT NOT NULL
);
ALTER TABLE market_invocations ADD COLUMN payment TEXT DEFAULT NULL;  -- what it is paid with outside the hub
CREATE INDEX market_invocations_settling ON market_invocations (deadline_ms, id) WHERE status = 'settling';
ALTER TABLE market_earnings ADD COLUMN paid_directly BIGINT NOT NULL DEFAULT 0;  -- outside the hub: not in `earned`

-- What is known of a listing beside what it says: which words it had before, and what an operator decided about it.
ALTER TABLE listings ADD COLUMN trail TEXT NOT NULL DEFAULT '';  -- JSON; empty: nothing
ALTER TABLE listings ADD COLUMN review TEXT DEFAULT NULL;        -- released or rejected, a blank, and the hash of what it said
CREATE INDEX listings_suspect ON listings (id) WHERE flags <> '[]' OR review IS NOT NULL;
