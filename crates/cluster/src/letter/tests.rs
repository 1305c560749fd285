//! Every signal survives; nothing else is read.

use zeroize::Zeroizing;

use super::*;

fn names() -> Names {
    Names::new("aip", Zeroizing::new([1; 32]))
}

fn mailbox() -> MailboxId {
    MailboxId::from_bytes([7; 16])
}

fn status(code: Option<String>) -> Signal {
    Signal::Status(StatusUpdate {
        id: Uuid::from_u128(u128::MAX),
        to: Did::parse("did:aip:hub.example:bob").unwrap(),
        status: Status::Dead,
        code,
        at: Timestamp::from_unix_millis(1_796_000_000_123),
    })
}

fn sealed(json: &str) -> Vec<u8> {
    let channel = names().channel(&mailbox());
    let mut bytes = names().seal(&channel, json.as_bytes()).to_vec();
    bytes.extend(json.as_bytes());
    bytes
}

fn read_here(bytes: &[u8]) -> Option<(u64, News)> {
    read(&names(), &names().channel(&mailbox()), bytes)
}

#[test]
fn a_signal_comes_out_as_it_went_in() {
    let also = (1..=8_192).collect();
    let signals = [
        Signal::Offered { seq: u64::MAX },
        Signal::Settled {
            upto: 1,
            also,
            floor: 1,
        },
        Signal::Buried { seq: 0 },
        Signal::Released { seqs: Vec::new() },
        status(None),
        status(Some("attempts_exhausted".to_owned())),
        Signal::Close(CloseReason::Unauthenticated),
        Signal::Joined {
            generation: 1_796_000_000_000_000,
            share: true,
        },
    ];
    let channel = names().channel(&mailbox());
    for signal in signals {
        let news = News::Signal(mailbox(), signal);
        let bytes = write(&names(), &channel, 42, news.clone()).unwrap();
        assert_eq!(read_here(&bytes), Some((42, news)));
    }
    let changed = News::Changed(Did::parse("did:aip:hub.example:bob").unwrap());
    let bytes = write(&names(), "aip:news", 42, changed.clone()).unwrap();
    assert_eq!(read(&names(), "aip:news", &bytes), Some((42, changed)));
}

#[test]
fn what_is_too_long_is_neither_written_nor_read() {
    let channel = names().channel(&mailbox());
    let many = Signal::Released {
        seqs: vec![u64::MAX; 10_000],
    };
    assert_eq!(write(&names(), &channel, 1, News::Signal(mailbox(), many)), None);
    let seqs = vec![1; LETTER_SEQS_MAX + 1];
    let more = News::Signal(mailbox(), Signal::Released { seqs });
    let bytes = write(&names(), &channel, 1, more).unwrap();
    assert_eq!(read_here(&bytes), None);
    let code = News::Signal(mailbox(), status(Some("a".repeat(257))));
    let bytes = write(&names(), &channel, 1, code).unwrap();
    assert_eq!(read_here(&bytes), None);
    assert_eq!(read_here(&vec![b' '; LETTER_BYTES_MAX + 1]), None);
}

#[test]
fn nothing_else_is_a_signal() {
    let own = hex::encode([7; 16]);
    let good = format!(r#"{{"from":1,"what":{{"buried":{{"to":"{own}","seq":1}}}}}}"#);
    assert!(read_here(&sealed(&good)).is_some());
    let others = hex::encode([8; 16]);
    let bad = [
        String::new(),
        "{}".to_owned(),
        good.replace("\"seq\":1", "\"seq\":-1"),
        good.replace("\"seq\":1", "\"seq\":1e3"),
        good.replace("\"seq\":1", "\"seq\":1,\"more\":2"),
        good.replace("\"from\":1", "\"from\":18446744073709551616"),
        good.replace(&own, &others),
        good.replace(&own, "07"),
        good.replace("buried", "burnt"),
        r#"{"from":1,"what":{"changed":{"did":"did:aip:hub.example:bob"}}}"#.to_owned(),
        format!("{good} x"),
        good.replace('1', "[".repeat(10_000).as_str()),
    ];
    for json in bad {
        assert_eq!(read_here(&sealed(&json)), None, "{json}");
    }
    let mut unsealed = sealed(&good);
    unsealed[3] ^= 1;
    assert_eq!(read_here(&unsealed), None);
    for length in 0..sealed(&good).len() {
        assert_eq!(read_here(&sealed(&good)[..length]), None);
    }
    let elsewhere = read(&names(), "aip:to:0000", &sealed(&good));
    assert_eq!(elsewhere, None);
}
