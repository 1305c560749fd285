//! The SQL text about the market.

use std::sync::LazyLock;

const ACCOUNT: &str = "id, label, owner, balance, held, budget, spent, suspended, created_at_ms, lines";
const LINE: &str = "account, number, kind, amount, reference, balance, at_ms";
const KEY: &str = "account, id, hash, label, budget, spent, created_at_ms";
const CHANNEL: &str = "id, secret_hash, account, account_key, deposit, used, held, refunded, status, opened_at_ms, \
     expires_at_ms";
const INVOCATION: &str = "id, status, agent, product, capability, account, account_key, channel, amount, visitor, holder, \
     deadline_ms, charged, fee, started_at_ms, ended_at_ms, payment";
const PAYMENT: &str = "key_hash, invocation, status, amount, payment, answer_status, answer_body, receipt_nonce, receipt, \
     transaction_id, at_ms";
const EARNED: &str = "agent, earned, paid_out, fees, calls, paid_directly";

/// Columns of a table, of which another one may have some too.
fn of(table: &str, columns: &str) -> String {
    let columns: Vec<_> = columns
        .split(", ")
        .map(|column| format!("{table}.{column}"))
        .collect();
    columns.join(", ")
}

/// Makes a row or replaces the one with its key, which are the first columns.
fn put(table: &str, columns: &str, keys: usize) -> String {
    let names: Vec<_> = columns.split(", ").collect();
    let (key, rest) = names.split_at_checked(keys).unwrap_or_default();
    let values: Vec<_> = (1..=names.len()).map(|number| format!("${number}")).collect();
    let set: Vec<_> = rest
        .iter()
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    format!(
        "INSERT INTO {table} ({columns}) VALUES ({}) ON CONFLICT ({}) DO UPDATE SET {}",
        values.join(", "),
        key.join(", "),
        set.join(", ")
    )
}

/// How the columns of a key are called where they stand beside those of its account.
const KEY_AS: &str = "k.account AS key_account, k.id AS key_id, k.hash AS key_hash, k.label AS key_label, \
     k.budget AS key_budget, k.spent AS key_spent, k.created_at_ms AS key_created_at_ms";

/// How those of a repetition are called beside those of its invocation.
const REPEAT_AS: &str = "r.key_hash, r.body_hash, r.invocation, r.status AS answer_status, r.body AS answer_body, \
     r.started_at_ms AS asked_at_ms";

/// The money that was made, which nobody else touches until the commit: all changes of the market stand in line here.
pub(super) fn lock_money(for_update: &str) -> String {
    format!("SELECT credited, demo FROM market_money WHERE id = 1{for_update}")
}

pub(super) const SET_MONEY: &str = "UPDATE market_money SET credited = $1, demo = $2 WHERE id = 1";

pub(super) static GET_ACCOUNT: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {ACCOUNT} FROM market_accounts WHERE id = $1"));

pub(super) static GET_ACCOUNT_OF: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {ACCOUNT} FROM market_accounts WHERE owner = $1"));

pub(super) static LIST_ACCOUNTS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {ACCOUNT} FROM market_accounts WHERE id > $1 ORDER BY id LIMIT $2"));

pub(super) static PUT_ACCOUNT: LazyLock<String> = LazyLock::new(|| put("market_accounts", ACCOUNT, 1));

pub(super) static ADD_LINE: LazyLock<String> =
    LazyLock::new(|| format!("INSERT INTO market_lines ({LINE}) VALUES ($1, $2, $3, $4, $5, $6, $7)"));

pub(super) static LIST_LINES: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {LINE} FROM market_lines WHERE account = $1 AND number > $2 ORDER BY number LIMIT $3")
});

pub(super) static GET_KEY: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {KEY_AS} FROM market_keys k WHERE k.account = $1 AND k.id = $2"));

pub(super) static LIST_KEYS: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {KEY_AS} FROM market_keys k WHERE k.account = $1 ORDER BY k.created_at_ms, k.id")
});

pub(super) static FIND_KEY: LazyLock<String> = LazyLock::new(|| {
    let account = of("a", ACCOUNT);
    format!(
        "SELECT {KEY_AS}, {account} FROM market_keys k JOIN market_accounts a ON a.id = k.account WHERE k.hash = $1"
    )
});

pub(super) const HAS_HASH: &str = "SELECT 1 AS there FROM market_keys WHERE hash = $1";

pub(super) const COUNT_KEYS: &str = "SELECT COUNT(*) AS keys FROM market_keys WHERE account = $1";

pub(super) static PUT_KEY: LazyLock<String> = LazyLock::new(|| put("market_keys", KEY, 2));

pub(super) const DROP_KEY: &str = "DELETE FROM market_keys WHERE account = $1 AND id = $2";

pub(super) const GET_REFERENCE: &str =
    "SELECT reference, purpose, subject, amount, at_ms FROM market_references WHERE reference = $1";

pub(super) const ADD_REFERENCE: &str =
    "INSERT INTO market_references (reference, purpose, subject, amount, at_ms) VALUES ($1, $2, $3, $4, $5)";

pub(super) static GET_CHANNEL: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {CHANNEL} FROM market_channels WHERE id = $1"));

pub(super) static LIST_CHANNELS: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {CHANNEL} FROM market_channels WHERE id > $1 ORDER BY id LIMIT $2"));

pub(super) const COUNT_OPEN_CHANNELS: &str =
    "SELECT COUNT(*) AS channels FROM market_channels WHERE status = 'open'";

pub(super) const COUNT_OPEN_CHANNELS_OF: &str =
    "SELECT COUNT(*) AS channels FROM market_channels WHERE status = 'open' AND account = $1";

pub(super) static LIST_OVER_CHANNELS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CHANNEL} FROM market_channels WHERE status = 'open' AND expires_at_ms < $1 AND held = 0 \
         ORDER BY expires_at_ms, id LIMIT $2"
    )
});

pub(super) static PUT_CHANNEL: LazyLock<String> = LazyLock::new(|| put("market_channels", CHANNEL, 1));

pub(super) static GET_INVOCATION: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {INVOCATION} FROM market_invocations WHERE id = $1"));

/// With what it is answered again, if that is kept.
pub(super) static FIND_INVOCATION: LazyLock<String> = LazyLock::new(|| {
    let invocation = of("i", INVOCATION);
    format!(
        "SELECT {invocation}, r.status AS answer_status, r.body AS answer_body \
         FROM market_invocations i LEFT JOIN market_repeats r ON r.invocation = i.id WHERE i.id = $1"
    )
});

pub(super) static LIST_STARTED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {INVOCATION} FROM market_invocations WHERE status = 'started' AND deadline_ms <= $1 \
         ORDER BY deadline_ms, id LIMIT $2"
    )
});

pub(super) static LIST_STARTED_BY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {INVOCATION} FROM market_invocations WHERE status = 'started' AND holder = $1 \
         ORDER BY deadline_ms, id LIMIT $2"
    )
});

pub(super) static LIST_SETTLING: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {INVOCATION} FROM market_invocations WHERE status = 'settling' AND deadline_ms <= $1 \
         ORDER BY deadline_ms, id LIMIT $2"
    )
});

pub(super) static LIST_SETTLING_BY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {INVOCATION} FROM market_invocations WHERE status = 'settling' AND holder = $1 \
         ORDER BY deadline_ms, id LIMIT $2"
    )
});

pub(super) static GET_PAYMENT: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {PAYMENT} FROM market_payments WHERE key_hash = $1"));

pub(super) static PUT_PAYMENT: LazyLock<String> = LazyLock::new(|| put("market_payments", PAYMENT, 1));

pub(super) const DROP_PAYMENT: &str = "DELETE FROM market_payments WHERE key_hash = $1";

pub(super) static PUT_INVOCATION: LazyLock<String> =
    LazyLock::new(|| put("market_invocations", INVOCATION, 1));

pub(super) static GET_REPEAT: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {REPEAT_AS} FROM market_repeats r WHERE r.key_hash = $1"));

/// With its invocation.
pub(super) static FIND_REPEAT: LazyLock<String> = LazyLock::new(|| {
    let invocation = of("i", INVOCATION);
    format!(
        "SELECT {REPEAT_AS}, {invocation} \
         FROM market_repeats r JOIN market_invocations i ON i.id = r.invocation WHERE r.key_hash = $1"
    )
});

pub(super) const ADD_REPEAT: &str =
    "INSERT INTO market_repeats (key_hash, body_hash, invocation, started_at_ms) VALUES ($1, $2, $3, $4)";

pub(super) const SET_ANSWER: &str = "UPDATE market_repeats SET status = $2, body = $3 WHERE invocation = $1";

pub(super) const DROP_REPEAT: &str = "DELETE FROM market_repeats WHERE invocation = $1";

pub(super) const DROP_ANSWERED: &str = "DELETE FROM market_repeats WHERE key_hash IN (SELECT key_hash \
     FROM market_repeats WHERE started_at_ms < $1 AND status IS NOT NULL ORDER BY started_at_ms LIMIT $2)";

pub(super) const GET_TRIALS: &str = "SELECT used FROM market_trials WHERE visitor = $1";

pub(super) const SET_TRIALS: &str = "INSERT INTO market_trials (visitor, used) VALUES ($1, $2) \
     ON CONFLICT (visitor) DO UPDATE SET used = excluded.used";

pub(super) const GET_RECEIPT: &str = "SELECT receipt FROM market_receipts WHERE nonce = $1";

pub(super) const ADD_RECEIPT: &str =
    "INSERT INTO market_receipts (nonce, invocation, receipt, at_ms) VALUES ($1, $2, $3, $4)";

pub(super) static GET_EARNED: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {EARNED} FROM market_earnings WHERE agent = $1"));

pub(super) static LIST_EARNED: LazyLock<String> = LazyLock::new(|| {
    format!("SELECT {EARNED} FROM market_earnings WHERE agent > $1 ORDER BY agent LIMIT $2")
});

pub(super) static PUT_EARNED: LazyLock<String> = LazyLock::new(|| put("market_earnings", EARNED, 1));

/// What is in a column altogether.
fn sum(what: &str, from: &str) -> String {
    format!("(SELECT CAST(COALESCE(SUM({what}), 0) AS BIGINT) FROM {from})")
}

/// One statement, so that it is of one moment.
pub(super) static TOTALS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT m.credited, m.demo, {} AS balances, {} AS held_of_accounts, {} AS held_of_channels, {} AS channels, \
         {} AS earned, {} AS paid_out, {} AS fees, {} AS demo_returned, {} AS paid_directly FROM market_money m WHERE m.id = 1",
        sum("balance", "market_accounts"),
        sum("held", "market_accounts"),
        sum("held", "market_channels"),
        sum("deposit - used - held", "market_channels WHERE status = 'open'"),
        sum("earned", "market_earnings"),
        sum("paid_out", "market_earnings"),
        sum("fees", "market_earnings"),
        sum("refunded", "market_channels WHERE account IS NULL"),
        sum("paid_directly", "market_earnings"),
    )
});

/// What cannot be, and the sentence about each that is found all the same.
pub(in crate::sql) const CHECKS: [(&str, &str); 10] = [
    (
        "SELECT CAST(m.credited AS TEXT) FROM market_money m WHERE m.credited + m.demo <> \
         (SELECT COALESCE(SUM(balance + held), 0) FROM market_accounts) \
         + (SELECT COALESCE(SUM(held), 0) FROM market_channels) \
         + (SELECT COALESCE(SUM(deposit - used - held), 0) FROM market_channels WHERE status = 'open') \
         + (SELECT COALESCE(SUM(earned + fees), 0) FROM market_earnings) \
         + (SELECT COALESCE(SUM(refunded), 0) FROM market_channels WHERE account IS NULL) LIMIT $1",
        "of the {} millionths of a dollar that were put in some were lost, or there are too many",
    ),
    (
        "SELECT CAST(m.credited AS TEXT) FROM market_money m WHERE m.credited <> \
         (SELECT COALESCE(SUM(amount), 0) FROM market_lines WHERE kind = 'credit') LIMIT $1",
        "the ledgers do not say that {} millionths of a dollar were put in",
    ),
    (
        "SELECT a.id FROM market_accounts a WHERE a.lines <> \
         (SELECT COUNT(*) FROM market_lines l WHERE l.account = a.id) LIMIT $1",
        "the ledger of {} has not as many lines as were counted",
    ),
    (
        "SELECT a.id FROM market_accounts a WHERE a.balance <> COALESCE( \
         (SELECT l.balance FROM market_lines l WHERE l.account = a.id AND l.number = a.lines), 0) LIMIT $1",
        "the balance of {} is not that of its last line",
    ),
    (
        "SELECT a.id FROM market_accounts a WHERE a.held <> (SELECT COALESCE(SUM(i.amount), 0) \
         FROM market_invocations i WHERE i.account = a.id AND i.status = 'started') LIMIT $1",
        "what is held of {} is not what its calls hold",
    ),
    (
        "SELECT c.id FROM market_channels c WHERE c.held <> (SELECT COALESCE(SUM(i.amount), 0) \
         FROM market_invocations i WHERE i.channel = c.id AND i.status = 'started') LIMIT $1",
        "what is held of {} is not what its calls hold",
    ),
    (
        "SELECT c.id FROM market_channels c WHERE c.status <> 'open' AND \
         (c.held <> 0 OR c.deposit <> c.used + c.refunded) LIMIT $1",
        "{} has ended, and not all of its money went somewhere",
    ),
    (
        "SELECT e.agent FROM market_earnings e WHERE e.paid_out > e.earned OR e.earned + e.fees <> \
         (SELECT COALESCE(SUM(i.charged), 0) FROM market_invocations i WHERE i.agent = e.agent) LIMIT $1",
        "what {} earned is not what was paid for its calls",
    ),
    (
        "SELECT e.agent FROM market_earnings e WHERE e.paid_directly <> (SELECT COALESCE(SUM(p.amount), 0) \
         FROM market_payments p JOIN market_invocations i ON i.id = p.invocation \
         WHERE i.agent = e.agent AND p.status = 'settled') LIMIT $1",
        "what {} was paid directly is not what was paid for its calls",
    ),
    (
        "SELECT i.id FROM market_invocations i WHERE i.payment IS NOT NULL AND i.status IN ('started', 'settling') \
         AND NOT EXISTS (SELECT 1 FROM market_payments p WHERE p.key_hash = i.payment AND p.invocation = i.id) LIMIT $1",
        "call {} is under way, and the payment that it is paid with is not there",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_made_or_replaced_by_its_key() {
        assert_eq!(
            put("t", "a, b, c", 2),
            "INSERT INTO t (a, b, c) VALUES ($1, $2, $3) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c"
        );
        assert_eq!(of("t", "a, b"), "t.a, t.b");
    }
}
