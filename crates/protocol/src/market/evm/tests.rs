//! Against the published vectors of AIMarket and its SDKs, of EIP-55 and EIP-712, and against what is malformed.

use serde_json::Value;

use super::debit::DebitAuthorization;
use super::eip712::Domain;
use super::payer::{PayerProof, personal_digest};
use super::transfer::Transfer;
use super::{Address, EvmKey, EvmSignature, Word, keccak256};

const SDK: &str = include_str!("../../../../../tests/vectors/aimarket/sdk/debit_authorization.json");
const DEBIT: &str = include_str!("../../../../../tests/vectors/aimarket/vectors/debit-authorization.json");
const PROOFS: &str = include_str!("../../../../../tests/vectors/aimarket/vectors/payer-proof.json");

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

fn key(hex_text: &str) -> EvmKey {
    let mut bytes = [0; 32];
    hex::decode_to_slice(hex_text.trim_start_matches("0x"), &mut bytes).unwrap();
    EvmKey::from_bytes(&bytes).unwrap()
}

/// The SDK's vector: its authorization with the signature in it, its domain, and itself.
fn sdk() -> (DebitAuthorization, EvmSignature, Domain, Value) {
    let vector = json(SDK);
    let mut members = vector["params"].as_object().unwrap().clone();
    members.insert("signature".to_owned(), vector["expectedSignature"].clone());
    let (authorization, signature) = DebitAuthorization::read(&members).unwrap();
    let escrow = Address::parse(text(&vector["params"], "verifyingContract")).unwrap();
    let domain = DebitAuthorization::domain(31_337, escrow);
    (authorization, signature, domain, vector)
}

#[test]
fn keccak_is_not_sha3() {
    let hashed = |text: &str| hex::encode(keccak256(text.as_bytes()));
    assert_eq!(
        hashed(""),
        "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    );
    assert_eq!(
        hashed("abc"),
        "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"
    );
}

#[test]
fn the_case_of_an_address_is_a_checksum() {
    for good in [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        "0x52908400098527886E0F7030069857D2E4169EE7",
        "0xde709f2102306220921060314715629080e2fb77",
    ] {
        let address = Address::parse(good).unwrap();
        assert_eq!(address.to_string(), good);
        assert_eq!(Address::parse(&address.lower()).unwrap(), address);
        let shouted = format!("0X{}", good.trim_start_matches("0x").to_uppercase());
        assert_eq!(Address::parse(&shouted).unwrap(), address);
    }
    for bad in [
        "",
        "0x",
        "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1Beaed",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaedd",
        "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaeg",
        "0xé5aaeb6053f3e94c9b9a09f33669435e7ef1bea",
    ] {
        assert!(Address::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn numbers_have_256_bits() {
    let most = format!("0x{}", "f".repeat(64));
    let decimal = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    assert_eq!(Word::parse(decimal).unwrap(), Word::parse(&most).unwrap());
    assert_eq!(Word::parse("0010").unwrap().to_u128(), Some(10));
    assert_eq!(Word::parse("0xA").unwrap(), Word::from(10_u64));
    assert_eq!(Word::from(u128::MAX).to_u128(), Some(u128::MAX));
    assert_eq!(Word::parse(&most).unwrap().to_u128(), None);
    assert!(Word::from(9_u64) < Word::from(256_u64));
    let beyond = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
    for bad in [
        "",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "0x",
        " 1",
        "٣",
        beyond,
        &format!("{most}0"),
    ] {
        assert!(Word::parse(bad).is_err(), "{bad}");
    }
    assert!(Word::parse_hash("0x1").is_err());
}

#[test]
fn a_debit_is_signed_as_the_sdks_sign_it() {
    let (authorization, signature, domain, vector) = sdk();
    let digest = authorization.digest(&domain);
    assert_eq!(
        format!("0x{}", hex::encode(digest)),
        text(&vector, "expectedDigest")
    );
    let signer = Address::parse(text(&vector, "expectedSigner")).unwrap();
    assert_eq!(signature.recover(&digest).unwrap(), signer);
    let key = key(text(&vector, "ethereumPrivateKeyHex"));
    assert_eq!(key.address(), signer);
    assert_eq!(key.sign(&digest).to_string(), text(&vector, "expectedSignature"));
}

#[test]
fn a_debit_that_was_changed_was_signed_by_somebody_else() {
    let (authorization, signature, domain, vector) = sdk();
    let signer = Address::parse(text(&vector, "expectedSigner")).unwrap();
    let changed = [
        DebitAuthorization {
            amount: Word::from(5_000_001_u64),
            ..authorization
        },
        DebitAuthorization {
            nonce: Word::from(1_u64),
            ..authorization
        },
        DebitAuthorization {
            hub: authorization.token,
            ..authorization
        },
        DebitAuthorization {
            receipt_id: authorization.channel_id,
            ..authorization
        },
    ];
    for changed in changed {
        assert_ne!(signature.recover(&changed.digest(&domain)).ok(), Some(signer));
    }
    let elsewhere = Domain {
        chain_id: 8_453,
        ..domain.clone()
    };
    assert_ne!(
        signature.recover(&authorization.digest(&elsewhere)).ok(),
        Some(signer)
    );
    // Over the hash of the digest, as a library makes it that hashes what it is given.
    let twice = keccak256(&authorization.digest(&domain));
    assert_ne!(signature.recover(&twice).ok(), Some(signer));
}

#[test]
fn a_debit_is_read_in_both_spellings_and_each_member_once() {
    let (authorization, ..) = sdk();
    let vector = json(DEBIT);
    let mut snake = serde_json::Map::new();
    for (name, value) in vector["message"].as_object().unwrap() {
        let name = name.replace("Id", "_id");
        snake.insert(name, value.clone());
    }
    let signature = json(SDK)["expectedSignature"].clone();
    snake.insert("sig".to_owned(), signature.clone());
    assert_eq!(DebitAuthorization::read(&snake).unwrap().0, authorization);
    let refused = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut members = snake.clone();
        change(&mut members);
        assert!(DebitAuthorization::read(&members).is_err(), "{members:?}");
    };
    refused(&|members| drop(members.remove("deadline")));
    refused(&|members| drop(members.insert("channelId".to_owned(), "0x1".into())));
    refused(&|members| drop(members.insert("signature".to_owned(), signature.clone())));
    refused(&|members| drop(members.insert("amount".to_owned(), (-5).into())));
    refused(&|members| drop(members.insert("amount".to_owned(), 1.5.into())));
    refused(&|members| drop(members.insert("hub".to_owned(), Value::Null)));
}

#[test]
fn a_signature_has_one_form() {
    let (authorization, signature, domain, _) = sdk();
    let digest = authorization.digest(&domain);
    let bytes = signature.to_bytes();
    assert_eq!(EvmSignature::from_bytes(&bytes).unwrap(), signature);
    let with = |place: usize, byte: u8| {
        let mut bytes = bytes;
        bytes[place] = byte;
        EvmSignature::from_bytes(&bytes)
    };
    for last in [0, 1, 26, 29, 30, 255] {
        assert!(with(64, last).is_err(), "{last}");
    }
    let other = with(64, if bytes[64] == 27 { 28 } else { 27 }).unwrap();
    assert_ne!(other.recover(&digest).ok(), signature.recover(&digest).ok());
    // The other s: the order of the curve less this one. It verifies elsewhere, and makes a second name of one payment.
    let order = hex::decode("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").unwrap();
    let mut high = bytes;
    let mut borrow = 0_i16;
    for place in (0..32).rev() {
        let digit = i16::from(order[place]) - i16::from(bytes[32 + place]) - borrow;
        borrow = i16::from(digit < 0);
        high[32 + place] = u8::try_from(digit.rem_euclid(256)).unwrap();
    }
    high[64] = if bytes[64] == 27 { 28 } else { 27 };
    assert!(EvmSignature::from_bytes(&high).is_err());
    assert!(EvmSignature::from_bytes(&[0; 65]).is_err());
    for bad in [
        "",
        "0x",
        "0x00",
        signature.to_string().trim_start_matches("0x"),
        &format!("{signature}00"),
    ] {
        assert!(EvmSignature::parse(bad).is_err(), "{bad}");
    }
    assert!(EvmKey::from_bytes(&[0; 32]).is_err() && EvmKey::from_bytes(&[0xff; 32]).is_err());
}

#[test]
fn pitfall_25_a_deposit_is_claimed_by_who_paid_it() {
    let vector = json(PROOFS);
    let key = key(text(&vector, "test_key"));
    assert_eq!(key.address().to_string(), text(&vector, "test_address"));
    let cases = vector["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 7);
    let mut signed = 0;
    for case in cases {
        let proof = PayerProof {
            chain: text(case, "chain"),
            transaction: text(case, "tx_hash"),
            payer: text(case, "payer"),
            amount_usd: case["amount_usd"].as_f64().unwrap(),
        };
        assert_eq!(proof.text(), text(case, "message"), "{}", case["name"]);
        let Some(signature) = case["signature"].as_str() else {
            continue;
        };
        signed += 1;
        let signature = EvmSignature::parse(signature).unwrap();
        let payer = Address::parse(text(case, "recovers_to")).unwrap();
        assert_eq!(proof.signer(&signature).unwrap(), payer);
        assert_eq!(key.sign(&personal_digest(&proof.text())), signature);
        let more = PayerProof {
            amount_usd: proof.amount_usd + 0.01,
            ..proof
        };
        assert_ne!(more.signer(&signature).ok(), Some(payer));
    }
    assert_eq!(signed, 3);
}

#[test]
fn pitfall_26_no_amount_is_no_cents() {
    for (amount_usd, cents) in [
        (f64::NAN, "-1"),
        (f64::INFINITY, "-1"),
        (1e300, "-1"),
        (-1.0, "-100"),
        (0.0, "0"),
        (0.005, "0"),
        (0.015, "2"),
    ] {
        let proof = PayerProof {
            chain: "base",
            transaction: "",
            payer: "",
            amount_usd,
        };
        assert!(
            proof.text().ends_with(&format!("amount_cents:{cents}")),
            "{amount_usd}"
        );
    }
}

/// The domain separator that USDC publishes on Base, and an authorization for it.
#[test]
fn a_transfer_is_signed_for_one_token_on_one_chain() {
    let token = Domain {
        name: "USD Coin".to_owned(),
        version: "2".to_owned(),
        chain_id: 8_453,
        contract: Address::parse("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913").unwrap(),
    };
    assert_eq!(
        hex::encode(token.separator()),
        "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"
    );
    let key = EvmKey::from_bytes(&[7; 32]).unwrap();
    let transfer = Transfer {
        from: key.address(),
        to: Address::from_bytes([1; 20]),
        value: Word::from(10_000_u64),
        valid_after: Word::from(100_u64),
        valid_before: Word::from(200_u64),
        nonce: Word::from_bytes([9; 32]),
    };
    let signature = key.sign(&transfer.digest(&token));
    assert!(transfer.is_signed(&token, &signature));
    let test_net = Domain {
        chain_id: 84_532,
        ..token.clone()
    };
    assert!(!transfer.is_signed(&test_net, &signature));
    for changed in [
        Transfer {
            to: key.address(),
            ..transfer
        },
        Transfer {
            value: Word::from(1_u64),
            ..transfer
        },
        Transfer {
            nonce: Word::from(0_u64),
            ..transfer
        },
        Transfer {
            from: transfer.to,
            ..transfer
        },
    ] {
        assert!(!changed.is_signed(&token, &signature), "{changed:?}");
    }
    let at = |secs| transfer.is_valid_at(secs);
    assert_eq!((at(100), at(101), at(199), at(200)), (false, true, true, false));
}
