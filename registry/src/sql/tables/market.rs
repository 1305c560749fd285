//! The tables of the market. What was paid stays paid, whatever is copied over it.

use super::Kind::{Number, Text};
use super::Table;
use crate::limits::{COPY_PAGE_LARGE_ROWS, COPY_PAGE_ROWS};

/// Rows of a table that stays.
const fn kept(
    name: &'static str,
    keys: usize,
    columns: &'static [(&'static str, super::Kind)],
    renews: &'static str,
) -> Table {
    Table {
        name,
        columns,
        keys,
        renews,
        is_swept: false,
        page_rows: COPY_PAGE_ROWS,
        afterwards: &[],
    }
}

/// In the order of the room's other tables.
pub(super) const TABLES: [Table; 14] = [
    kept(
        "market_money",
        1,
        &[("id", Number), ("credited", Number), ("demo", Number)],
        "UPDATE SET credited = excluded.credited, demo = excluded.demo \
         WHERE market_money.credited <= excluded.credited AND market_money.demo <= excluded.demo",
    ),
    kept(
        "market_accounts",
        1,
        &[
            ("id", Text),
            ("label", Text),
            ("owner", Text),
            ("balance", Number),
            ("held", Number),
            ("budget", Number),
            ("spent", Number),
            ("suspended", Number),
            ("created_at_ms", Number),
            ("lines", Number),
        ],
        "UPDATE SET balance = excluded.balance, held = excluded.held, budget = excluded.budget, \
         spent = excluded.spent, suspended = excluded.suspended, lines = excluded.lines \
         WHERE market_accounts.lines <= excluded.lines",
    ),
    kept(
        "market_lines",
        2,
        &[
            ("account", Text),
            ("number", Number),
            ("kind", Text),
            ("amount", Number),
            ("reference", Text),
            ("balance", Number),
            ("at_ms", Number),
        ],
        "NOTHING",
    ),
    Table {
        is_swept: true,
        ..kept(
            "market_keys",
            2,
            &[
                ("account", Text),
                ("id", Text),
                ("hash", Text),
                ("label", Text),
                ("budget", Number),
                ("spent", Number),
                ("created_at_ms", Number),
            ],
            "NOTHING",
        )
    },
    kept(
        "market_references",
        1,
        &[
            ("reference", Text),
            ("purpose", Text),
            ("subject", Text),
            ("amount", Number),
            ("at_ms", Number),
        ],
        "NOTHING",
    ),
    kept(
        "market_channels",
        1,
        &[
            ("id", Text),
            ("secret_hash", Text),
            ("account", Text),
            ("account_key", Text),
            ("deposit", Number),
            ("used", Number),
            ("held", Number),
            ("refunded", Number),
            ("status", Text),
            ("opened_at_ms", Number),
            ("expires_at_ms", Number),
        ],
        "UPDATE SET deposit = excluded.deposit, used = excluded.used, held = excluded.held, \
         refunded = excluded.refunded, status = excluded.status WHERE market_channels.status = 'open' \
         AND market_channels.deposit <= excluded.deposit AND market_channels.used <= excluded.used",
    ),
    kept(
        "market_invocations",
        1,
        &[
            ("id", Text),
            ("status", Text),
            ("agent", Text),
            ("product", Text),
            ("capability", Text),
            ("account", Text),
            ("account_key", Text),
            ("channel", Text),
            ("amount", Number),
            ("visitor", Text),
            ("holder", Text),
            ("deadline_ms", Number),
            ("charged", Number),
            ("fee", Number),
            ("started_at_ms", Number),
            ("ended_at_ms", Number),
            ("payment", Text),
        ],
        "UPDATE SET status = excluded.status, charged = excluded.charged, fee = excluded.fee, \
         ended_at_ms = excluded.ended_at_ms WHERE market_invocations.status IN ('started', 'settling')",
    ),
    Table {
        is_swept: true,
        page_rows: COPY_PAGE_LARGE_ROWS,
        ..kept(
            "market_repeats",
            1,
            &[
                ("key_hash", Text),
                ("body_hash", Text),
                ("invocation", Text),
                ("status", Number),
                ("body", Text),
                ("started_at_ms", Number),
            ],
            "NOTHING",
        )
    },
    Table {
        is_swept: true,
        ..kept(
            "market_trials",
            1,
            &[("visitor", Text), ("used", Number)],
            "NOTHING",
        )
    },
    Table {
        is_swept: true,
        page_rows: COPY_PAGE_LARGE_ROWS,
        ..kept(
            "market_payments",
            1,
            &[
                ("key_hash", Text),
                ("invocation", Text),
                ("status", Text),
                ("amount", Number),
                ("payment", Text),
                ("answer_status", Number),
                ("answer_body", Text),
                ("receipt_nonce", Text),
                ("receipt", Text),
                ("transaction_id", Text),
                ("at_ms", Number),
            ],
            "UPDATE SET invocation = excluded.invocation, status = excluded.status, \
             answer_status = excluded.answer_status, answer_body = excluded.answer_body, \
             receipt_nonce = excluded.receipt_nonce, receipt = excluded.receipt, \
             transaction_id = excluded.transaction_id WHERE market_payments.status IN ('claimed', 'settling')",
        )
    },
    kept(
        "market_receipts",
        1,
        &[
            ("nonce", Text),
            ("invocation", Text),
            ("receipt", Text),
            ("at_ms", Number),
        ],
        "NOTHING",
    ),
    kept(
        "market_earnings",
        1,
        &[
            ("agent", Text),
            ("earned", Number),
            ("paid_out", Number),
            ("fees", Number),
            ("calls", Number),
            ("paid_directly", Number),
        ],
        "UPDATE SET earned = excluded.earned, paid_out = excluded.paid_out, fees = excluded.fees, \
         calls = excluded.calls, paid_directly = excluded.paid_directly WHERE market_earnings.calls <= excluded.calls \
         AND market_earnings.paid_out <= excluded.paid_out",
    ),
    Table {
        is_swept: true,
        page_rows: COPY_PAGE_LARGE_ROWS,
        ..kept(
            "market_peers",
            1,
            &[
                ("url", Text),
                ("status", Text),
                ("mode", Text),
                ("pinned", Text),
                ("shown", Text),
                ("found", Text),
                ("depth", Number),
                ("declared", Text),
                ("first_ms", Number),
                ("due_ms", Number),
                ("tried_ms", Number),
                ("crawled_ms", Number),
                ("failures", Number),
                ("error", Text),
                ("capabilities", Number),
                ("preview", Text),
            ],
            "NOTHING",
        )
    },
    kept(
        "market_peer_lines",
        1,
        &[
            ("number", Number),
            ("peer", Text),
            ("actor", Text),
            ("action", Text),
            ("detail", Text),
            ("at_ms", Number),
        ],
        "NOTHING",
    ),
];
