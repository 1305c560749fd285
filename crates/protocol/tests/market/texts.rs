//! The texts that are signed, to the byte.

use aip_protocol::error::ErrorCode;
use aip_protocol::market::receipt::ReceiptDraft;
use aip_protocol::market::{Members, Number, Reason, Value, Verdict, digest, receipt};

use crate::support::{base64, code, draft, key, members, signed, verify, with, with_in_signature};

#[test]
fn pitfall_08_both_alphabets_and_no_padding_are_read_and_nothing_is_dropped() {
    let good = signed();
    let value = members(&good["signature"])["value"].as_str().unwrap().to_owned();
    let url = value.replace('+', "-").replace('/', "_");
    for spelling in [
        url.clone(),
        url.trim_end_matches('=').to_owned(),
        value.trim_end_matches('=').to_owned(),
    ] {
        assert_eq!(
            verify(&with_in_signature(&good, "value", spelling)).verdict,
            Verdict::True
        );
    }
    for stray in ["!", " ", "\n", "=", "é", "-_+/"] {
        let (head, tail) = value.split_at(40);
        for spelling in [
            format!("{head}{stray}{tail}"),
            format!("{stray}{value}"),
            format!("{value}{stray}"),
        ] {
            let check = verify(&with_in_signature(&good, "value", spelling));
            assert_eq!(code(&check), "signature-malformed", "{stray:?}");
        }
    }
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", ""))),
        "signature-malformed"
    );
    assert_eq!(
        code(&verify(&with_in_signature(&good, "value", "A".repeat(100_000)))),
        "signature-malformed"
    );
}

/// What is signed has the numbers as Python spells them, also floats where the schema has an integer.
#[test]
fn pitfall_10_numbers_are_signed_as_python_spells_them() {
    for (price, latency, spelled) in [
        ("1e-05", "12.34", ("1e-05", "12.34")),
        ("0.00001", "0", ("1e-05", "0")),
        ("0.0", "0.0", ("0.0", "0.0")),
        ("5.0", "8100", ("5.0", "8100")),
        ("0", "1e3", ("0", "1000.0")),
        ("1E16", "-0", ("1e+16", "0")),
    ] {
        let number = |text: &str| Value::from(Number::parse(text).unwrap());
        let unsigned = with(
            &with(&signed(), "price_usd", number(price)),
            "latency_ms",
            number(latency),
        );
        let (price, latency) = spelled;
        let text = format!(
            "nonce:rcpt_00000000000000000000000000000001|product_id:prod-001|capability_id:translate.multi@v2\
             |price_usd:{price}|timestamp:2026-11-30T14:00:00Z|success:1|latency_ms:{latency}"
        );
        let by_hand = with_in_signature(&unsigned, "value", base64(&key().sign_bytes(text.as_bytes())));
        assert_eq!(
            receipt::sign(unsigned, &key()).unwrap(),
            Value::Object(by_hand.clone())
        );
        assert_eq!(verify(&by_hand).verdict, Verdict::True);
    }
    // A hub writes a price that is whole as a float.
    let free = ReceiptDraft {
        price_micros: 0,
        ..draft()
    }
    .sign(&key())
    .unwrap();
    assert_eq!(free.get("price_usd").unwrap().to_string(), "0.0");
}

#[test]
fn pitfall_11_a_browser_may_drop_the_point_of_a_whole_price() {
    for micros in [0, 5_000_000] {
        let receipt = ReceiptDraft {
            price_micros: micros,
            ..draft()
        }
        .sign(&key())
        .unwrap();
        let bytes = String::from_utf8(receipt.to_bytes()).unwrap();
        let whole = format!("\"price_usd\":{}", Number::usd(micros));
        let browser = bytes.replace(&whole, whole.trim_end_matches(".0"));
        let spelled = bytes.replace(&whole, &format!("{whole}00"));
        for text in [&browser, &spelled] {
            assert_ne!(text, &bytes);
            let value = Value::parse(text.as_bytes()).unwrap();
            assert_eq!(verify(&members(&value)).verdict, Verdict::True, "{text}");
        }
    }
    // Only of the price, and only the spelling.
    let good = signed();
    assert_eq!(
        code(&verify(&with(&good, "latency_ms", Number::float(12.0).unwrap()))),
        "signature-invalid"
    );
    assert_eq!(
        code(&verify(&with(&good, "price_usd", 0_u32))),
        "signature-invalid"
    );
    let text = Value::Object(good).to_string().replace(":0.4,", ":0.40,");
    assert_eq!(
        verify(&members(&Value::parse(text.as_bytes()).unwrap())).verdict,
        Verdict::True
    );
}

#[test]
fn pitfall_12_letters_are_hashed_raw_and_the_two_texts_differ() {
    let tools = Value::parse("[{\"b\": 1e-05, \"a\": \"é\\u00e9/\\u2028\"}]".as_bytes()).unwrap();
    let spaced = digest::spaced(&tools);
    assert_eq!(spaced, "[{\"a\": \"éé/\u{2028}\", \"b\": 1e-05}]".as_bytes());
    assert_eq!(
        digest::compact(&tools),
        "[{\"a\":\"éé/\u{2028}\",\"b\":1e-05}]".as_bytes()
    );
    assert_eq!(
        digest::sha256_hex(&digest::spaced(&Value::Object(Members::new()))),
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
    // A browser writes the same tools in other escapes.
    let escaped = Value::parse("[{\"a\":\"\\u00e9\\u00E9\\/\\u2028\",\"b\":0.00001}]".as_bytes()).unwrap();
    assert_eq!(digest::spaced(&escaped), spaced);
}

/// Fields are joined by `|`: were one allowed inside, `a|product_id:b` and nothing would be signed as `a` and `b`.
#[test]
fn a_field_that_could_be_read_as_two_is_neither_signed_nor_believed() {
    for name in ["nonce", "product_id", "capability_id", "timestamp"] {
        let receipt = with(&signed(), name, "a|product_id:b");
        let refusal = receipt::sign(receipt.clone(), &key()).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::MemberInvalid);
        assert_eq!(
            verify(&receipt).verdict,
            Verdict::False(Reason::MemberInvalid(name))
        );
    }
    let text = "nonce:n|product_id:p|capability_id:c|price_usd:0|timestamp:t|success:0|latency_ms:0";
    let value = base64(&key().sign_bytes(text.as_bytes()));
    let block = Value::from([("value", Value::from(value))]);
    let parts = Value::from([
        ("nonce", Value::from("n")),
        ("product_id", "p".into()),
        ("capability_id", "c".into()),
        ("timestamp", "t".into()),
        ("signature", block.clone()),
    ]);
    assert_eq!(verify(&members(&parts)).verdict, Verdict::True);
    for name in ["price_usd", "latency_ms", "success"] {
        for odd in [
            Value::from("0"),
            Value::Array(Vec::new()),
            Value::from(1_u32).clone(),
        ] {
            let check = verify(&with(&members(&parts), name, odd));
            assert!(
                matches!(code(&check), "member-invalid" | "signature-invalid"),
                "{name}"
            );
        }
    }
}
