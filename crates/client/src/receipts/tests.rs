//! The store of receipts, in memory and in a folder.

use super::*;

const KEY: AskedKey = [7; 16];

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn receipt(digest: &str, state: ReceiptState) -> Receipt {
    Receipt {
        id: Uuid::from_u128(1),
        from: Did::parse("did:aip:two.example:bob").unwrap(),
        digest: digest.to_owned(),
        state,
        at: at(1000),
        accepted_at: at(2000),
        envelope: Json::Null,
    }
}

fn both(test: impl Fn(&dyn Fn() -> Receipts)) {
    test(&|| Receipts::new(None));
    let folders = tempfile::tempdir().unwrap();
    let number = AtomicU64::new(0);
    test(&|| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        Receipts::new(Some(folders.path().join(number.to_string())))
    });
}

#[test]
fn a_receipt_is_kept_once_and_only_for_what_was_sent() {
    both(|make| {
        let receipts = make();
        let good = receipt("zA", ReceiptState::Delivered);
        assert_eq!(receipts.keep(KEY, good.clone()).unwrap(), Kept::Unasked);
        receipts.ask(KEY, "zA".to_owned(), at(0)).unwrap();
        let lie = receipt("zB", ReceiptState::Delivered);
        assert_eq!(receipts.keep(KEY, lie).unwrap(), Kept::OtherDigest);
        assert_eq!(receipts.keep([8; 16], good.clone()).unwrap(), Kept::Unasked);
        assert_eq!(receipts.list().unwrap(), []);
        assert_eq!(receipts.keep(KEY, good.clone()).unwrap(), Kept::Now);
        assert_eq!(receipts.keep(KEY, good.clone()).unwrap(), Kept::Before);
        assert_eq!(receipts.list().unwrap(), [good]);
        let read = receipt("zA", ReceiptState::Read);
        assert_eq!(
            receipts.keep(KEY, read.clone()).unwrap(),
            Kept::Now,
            "it says more"
        );
        let less = receipt("zA", ReceiptState::Delivered);
        assert_eq!(receipts.keep(KEY, less).unwrap(), Kept::Before);
        assert_eq!(receipts.list().unwrap(), [read]);
    });
}

#[test]
fn a_message_that_was_sealed_again_may_be_receipted_in_either_form() {
    both(|make| {
        let receipts = make();
        for digest in ["z0", "z1", "z2", "z3", "z4"] {
            receipts.ask(KEY, digest.to_owned(), at(0)).unwrap();
        }
        let forgotten = receipt("z0", ReceiptState::Delivered);
        assert_eq!(receipts.keep(KEY, forgotten).unwrap(), Kept::OtherDigest);
        let second = receipt("z1", ReceiptState::Delivered);
        assert_eq!(receipts.keep(KEY, second).unwrap(), Kept::Now);
    });
}

#[test]
fn the_store_is_bounded() {
    both(|make| {
        let mut receipts = make();
        receipts.kept_max = 10;
        for number in 0..=(2 * RECEIPTS_PRUNE_EVERY) {
            let key = u128::from(number).to_be_bytes();
            receipts.ask(key, "zA".to_owned(), at(0)).unwrap();
        }
        let held = match &receipts.folder {
            Some(folder) => entries(folder).unwrap().len(),
            None => receipts.memory().len(),
        };
        assert_eq!(held, 10);
    });
}

#[test]
fn receipts_outlive_the_process_and_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Some(folder.path().join("receipts"));
    let (sender, listener) = (Receipts::new(folder.clone()), Receipts::new(folder.clone()));
    sender.ask(KEY, "zA".to_owned(), at(0)).unwrap();
    let good = receipt("zA", ReceiptState::Delivered);
    assert_eq!(listener.keep(KEY, good.clone()).unwrap(), Kept::Now);
    assert_eq!(Receipts::new(folder).list().unwrap(), [good]);
}
