//! What is done. There are few of everything, so that steps meet.

use proptest::option;
use proptest::prelude::*;

/// A step. Amounts are millionths, moments seconds.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Create {
        account: u8,
        grant: u64,
    },
    Credit {
        account: u8,
        amount: u64,
        reference: u8,
    },
    Budget {
        account: u8,
        of_key: bool,
        budget: Option<u64>,
    },
    Suspend {
        account: u8,
        suspended: bool,
    },
    Revoke {
        account: u8,
    },
    Open {
        channel: u8,
        account: Option<u8>,
        deposit: u64,
        lives: i64,
    },
    TopUp {
        channel: u8,
        amount: u64,
        reference: u8,
    },
    Close {
        channel: u8,
    },
    Expire {
        limit: u32,
    },
    Begin {
        /// `None`: one that was never begun.
        call: Option<u8>,
        purse: Payment,
        asked: Option<(u8, u8)>,
        holder: u8,
        takes: i64,
        seller: u8,
    },
    /// Where `is_known`, of a call that is under way if there is one.
    Finish {
        is_known: bool,
        call: u8,
        paid: Option<(u64, u64)>,
    },
    Abandon {
        holder: Option<u8>,
        limit: u32,
    },
    Forget,
    PayOut {
        seller: u8,
        amount: u64,
        reference: u8,
    },
    Wait {
        secs: i64,
    },
    /// The store is opened anew, and a process that is gone is cleared away.
    Crash {
        holder: u8,
    },
}

/// What a call is paid with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payment {
    Free,
    Account(u8, u64),
    Channel(u8, u64),
    Trial(u8),
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        1 => Just(1),
        8 => (1_u64..=12).prop_map(|cents| cents * 10_000),
        1 => Just(333_333),
    ]
}

fn much() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => amount(),
        3 => (1_u64..=9).prop_map(|dimes| dimes * 100_000),
    ]
}

fn payment() -> impl Strategy<Value = Payment> {
    prop_oneof![
        1 => Just(Payment::Free),
        1 => (0_u8..2).prop_map(Payment::Trial),
        5 => (0_u8..2, amount()).prop_map(|(account, amount)| Payment::Account(account, amount)),
        5 => (0_u8..3, amount()).prop_map(|(channel, amount)| Payment::Channel(channel, amount)),
    ]
}

fn money_in() -> impl Strategy<Value = Step> {
    let (account, reference) = (0_u8..2, 0_u8..8);
    prop_oneof![
        4 => (0_u8..2, much()).prop_map(|(account, grant)| Step::Create { account, grant }),
        5 => (account, much(), reference)
            .prop_map(|(account, amount, reference)| Step::Credit { account, amount, reference }),
    ]
}

fn channels() -> impl Strategy<Value = Step> {
    let open = (0_u8..3, option::weighted(0.8, 0_u8..2), much(), 1_i64..30);
    prop_oneof![
        5 => open.prop_map(|(channel, account, deposit, lives)| Step::Open { channel, account, deposit, lives }),
        3 => (0_u8..3, amount(), 0_u8..8)
            .prop_map(|(channel, amount, reference)| Step::TopUp { channel, amount, reference }),
        2 => (0_u8..3).prop_map(|channel| Step::Close { channel }),
        1 => (1_u32..3).prop_map(|limit| Step::Expire { limit }),
    ]
}

fn calls() -> impl Strategy<Value = Step> {
    let asked = option::weighted(0.3, (0_u8..3, 0_u8..2));
    let begin = (
        option::weighted(0.1, 0_u8..8),
        payment(),
        asked,
        0_u8..2,
        1_i64..60,
        0_u8..2,
    );
    prop_oneof![
        6 => begin.prop_map(|(call, purse, asked, holder, takes, seller)| {
            Step::Begin { call, purse, asked, holder, takes, seller }
        }),
        6 => (any::<bool>(), 0_u8..8, option::weighted(0.7, (amount(), amount()))).prop_map(|(is_known, call, paid)| Step::Finish { is_known, call, paid }),
        1 => (option::of(0_u8..2), 1_u32..4).prop_map(|(holder, limit)| Step::Abandon { holder, limit }),
        1 => Just(Step::Forget),
    ]
}

fn rules() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0_u8..2, any::<bool>(), option::of(amount()))
            .prop_map(|(account, of_key, budget)| Step::Budget { account, of_key, budget }),
        2 => (0_u8..2, any::<bool>()).prop_map(|(account, suspended)| Step::Suspend { account, suspended }),
        1 => (0_u8..2).prop_map(|account| Step::Revoke { account }),
        3 => (0_u8..2, amount(), 0_u8..8)
            .prop_map(|(seller, amount, reference)| Step::PayOut { seller, amount, reference }),
        2 => (1_i64..40).prop_map(|secs| Step::Wait { secs }),
        2 => (0_u8..2).prop_map(|holder| Step::Crash { holder }),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => money_in(),
        3 => channels(),
        6 => calls(),
        2 => rules(),
    ]
}
