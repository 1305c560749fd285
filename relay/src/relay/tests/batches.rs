//! Several envelopes in one request.

use aip_federation::egress::fake::Reply;

use super::store::Failure;
use super::*;
use crate::mailbox::StoreError;

fn array(items: &[Vec<u8>]) -> Bytes {
    Bytes::from([b"[", items.join(&b", "[..]).as_slice(), b"]"].concat())
}

async fn codes(bench: &Bench, items: &[Vec<u8>]) -> Vec<&'static str> {
    let items = bench.relay.submit_batch(array(items), &Door::Home).await.unwrap();
    let code = |item: BatchItem| match item.result {
        Ok(submission) => submission.status.as_str(),
        Err(error) => error.code().as_str(),
    };
    items.into_iter().map(code).collect()
}

#[tokio::test]
async fn each_is_judged_on_its_own_and_order_is_kept() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let good: Vec<_> = (0..3).map(|_| bench.envelope(&alice, &bob).to_wire()).collect();
    let bad = forged(&bench.envelope(&alice, &bob), |object| {
        object.insert("type", "aip.receipt");
    });
    let items = [
        good[0].clone(),
        bad,
        b"7".to_vec(),
        good[1].clone(),
        good[1].clone(),
        b"{\"x\":1.5}".to_vec(),
        good[2].clone(),
    ];
    let expected = [
        "stored",
        "signature_invalid",
        "member_invalid",
        "stored",
        "duplicate",
        "json_invalid",
        "stored",
    ];
    assert_eq!(codes(&bench, &items).await, expected);
    assert_eq!(bench.waiting(&bob).await, good);
}

#[tokio::test]
async fn a_refused_one_is_named_where_it_can_be_read() {
    let bench = Bench::new();
    let (alice, nobody) = (bench.agent("alice"), bench.stranger("nobody"));
    let envelope = bench.envelope(&alice, &nobody);
    let body = array(&[envelope.to_wire(), b"{}".to_vec()]);
    let items = bench.relay.submit_batch(body, &Door::Home).await.unwrap();
    assert_eq!((items[0].id, items[1].id), (Some(envelope.id), None));
}

#[tokio::test]
async fn a_hundred_to_several_mailboxes_lie_there_in_their_order() {
    let bench = Bench::new();
    let alice = bench.agent("alice");
    let others: Vec<_> = (0..4)
        .map(|number| bench.agent(&format!("agent{number}")))
        .collect();
    let envelopes: Vec<_> = (0..100)
        .map(|number| bench.envelope(&alice, &others[number % 4]).to_wire())
        .collect();
    assert_eq!(codes(&bench, &envelopes).await, ["stored"; 100]);
    for (number, other) in others.iter().enumerate() {
        let expected: Vec<_> = envelopes.iter().skip(number).step_by(4).collect();
        assert_eq!(bench.waiting(other).await, *expected);
    }
}

#[tokio::test]
async fn the_whole_is_refused_when_it_is_no_array_or_too_much() {
    let bench = Bench::new();
    for (body, code) in [
        (Bytes::from_static(b"[1,"), "json_invalid"),
        (Bytes::from_static(b"{}"), "json_invalid"),
        (array(&vec![b"1".to_vec(); 101]), "body_too_large"),
        (Bytes::from(vec![b' '; 4 * 1024 * 1024 + 1]), "body_too_large"),
    ] {
        let refusal = bench.relay.submit_batch(body, &Door::Home).await.unwrap_err();
        assert_eq!(refusal.code.as_str(), code);
    }
    assert!(
        bench
            .relay
            .submit_batch(Bytes::from_static(b" [ ] "), &Door::Home)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn row_83_one_item_over_the_envelope_limit_is_refused_alone() {
    let bench = Bench::new();
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let large = [b"\"".to_vec(), vec![b'x'; 256 * 1024], b"\"".to_vec()].concat();
    let items = [large, bench.envelope(&alice, &bob).to_wire()];
    assert_eq!(codes(&bench, &items).await, ["envelope_too_large", "stored"]);
}

#[tokio::test]
async fn each_item_costs_rate_and_a_failed_store_touches_one() {
    let bench = Bench::with(|config| config.rate = slow_rate(4));
    let (alice, bob) = (bench.agent("alice"), bench.agent("bob"));
    let items: Vec<_> = (0..5).map(|_| bench.envelope(&alice, &bob).to_wire()).collect();
    bench
        .store
        .fail_next(Failure::Before(StoreError::Unavailable("down".into())));
    assert_eq!(
        codes(&bench, &items).await,
        ["unavailable", "stored", "stored", "stored", "rate_limited"]
    );
}

#[tokio::test]
async fn direct_recipients_get_theirs_in_order_and_a_failure_sends_the_rest_to_the_mailbox() {
    let bench = Bench::new();
    let (alice, bob, carol) = (
        bench.agent("alice"),
        bench.direct_agent("bob"),
        bench.agent("carol"),
    );
    bench.outbound.set([Reply::Status(200), Reply::Status(500)]);
    let items: Vec<_> = [&bob, &carol, &bob, &bob]
        .map(|to| bench.envelope(&alice, to).to_wire())
        .to_vec();
    assert_eq!(
        codes(&bench, &items).await,
        ["delivered", "stored", "stored", "stored"]
    );
    let posted: Vec<_> = bench
        .outbound
        .posted()
        .into_iter()
        .map(|posted| posted.body)
        .collect();
    assert_eq!(posted, [items[0].clone(), items[2].clone()]);
    assert_eq!(bench.waiting(&bob).await, [items[2].clone(), items[3].clone()]);
}
