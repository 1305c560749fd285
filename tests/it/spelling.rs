//! Numbers and JSON as AIMarket signs them are what `CPython` prints, for far more of them than a table holds.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use aip_protocol::market::{Number, Value, digest};
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};

/// Doubles of any bits.
const ANY: usize = 200_000;
/// Of each of the other kinds.
const OF_A_KIND: usize = 50_000;

/// Runs a program of Python on this input and gives back its lines.
fn python(program: &str, input: String) -> Vec<String> {
    let mut python = Command::new("python3")
        .args(["-X", "utf8", "-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 (scripts/setup)");
    let mut stdin = python.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = python.wait_with_output().expect("it runs");
    writer.join().expect("no panic").expect("it reads");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split('\n').map(str::to_owned).collect()
}

/// Any bits; amounts of money; what lies half way between two decimals; the edges of every power of two and of ten.
fn doubles(rng: &mut StdRng) -> Vec<f64> {
    let mut numbers: Vec<f64> = (0..ANY).map(|_| f64::from_bits(rng.next_u64())).collect();
    numbers.extend((0..OF_A_KIND).map(|_| f64::from(rng.next_u32()) / 1_000_000.0));
    numbers.extend((0..OF_A_KIND).map(|_| {
        let digits =
            f64::from(rng.random_range(1_u32 << 17..1 << 21)) * 2_f64.powi(32) + f64::from(rng.next_u32());
        digits / f64::from(1_u32 << rng.random_range(0..8))
    }));
    let below_normal = (0..52).map(|bit| f64::from_bits(1 << bit));
    let powers = below_normal.chain((1..2047).map(|exponent: u64| f64::from_bits(exponent << 52)));
    let tens = (-323..309).map(|power| format!("1e{power}").parse().expect("a number"));
    for edge in powers.chain(tens) {
        numbers.extend([edge.next_down(), edge, edge.next_up(), -edge]);
    }
    numbers.extend([0.0, -0.0, 0.1, 0.2 + 0.1, 1e-5, 5.0, 1e15, 1e16]);
    numbers.retain(|number| number.is_finite());
    numbers
}

#[test]
fn doubles_are_spelled_as_cpython_spells_them() {
    let numbers = doubles(&mut StdRng::seed_from_u64(20_261_130));
    assert!(numbers.len() > ANY, "{}", numbers.len());
    let mut input = String::new();
    for number in &numbers {
        writeln!(input, "{:016x}", number.to_bits()).expect("memory");
    }
    let program = "import struct, sys\n\
                   for line in sys.stdin: print(repr(struct.unpack('>d', bytes.fromhex(line))[0]))";
    let lines = python(program, input);
    assert_eq!(lines.len(), numbers.len() + 1);
    for (number, theirs) in numbers.iter().zip(&lines) {
        let ours = Number::float(*number).expect("finite");
        assert_eq!(&ours.to_string(), theirs, "{:016x}", number.to_bits());
        let read = Number::parse(theirs).expect("what Python prints is JSON");
        assert_eq!(read.as_f64().to_bits(), number.to_bits());
        assert!(read.is_float());
    }
}

/// A JSON text with everything in it that the two spellings could differ in: escapes, letters of every width, both kinds of
/// numbers in odd spellings, names that sort otherwise in UTF-16, empty arrays and objects.
fn text(rng: &mut StdRng, levels: u32) -> String {
    match rng.random_range(0..if levels == 0 { 6 } else { 8 }) {
        0 => ["null", "true", "false"][rng.random_range(0..3)].to_owned(),
        1 => (rng.next_u64() >> rng.random_range(0..64)).to_string(),
        2 => format!("-{}", rng.next_u32()),
        3 => format!("{}e{}", rng.next_u32(), rng.random_range(-40..40)),
        4 => format!("{}.{:03}", rng.random_range(0..100), rng.random_range(0..1_000)),
        5 => string(rng),
        6 => {
            let items: Vec<String> = (0..rng.random_range(0..4))
                .map(|_| text(rng, levels - 1))
                .collect();
            format!("[{}]", items.join(" ,"))
        }
        _ => {
            let mut members: Vec<String> = Vec::new();
            for index in 0..rng.random_range(0..5) {
                // The name ends in its index, so that none comes twice.
                let name = string(rng);
                let name = format!("{}{index}\"", name.strip_suffix('"').unwrap_or(&name));
                members.push(format!("{name} : {}", text(rng, levels - 1)));
            }
            format!("{{{}}}", members.join(", "))
        }
    }
}

fn string(rng: &mut StdRng) -> String {
    const PARTS: [&str; 22] = [
        "a",
        "Z",
        "0",
        "/",
        "\\/",
        "\\\\",
        "\\\"x",
        "\\b",
        "\\t",
        "\\n",
        "\\f",
        "\\r",
        "\\u0000",
        "\\u001F",
        "\u{7f}",
        "é",
        "\\u00e9",
        "\u{2028}",
        "\u{ff5e}",
        "\u{1f600}",
        "\\ud83d\\ude00",
        "|",
    ];
    let parts = (0..rng.random_range(0..6)).map(|_| PARTS[rng.random_range(0..PARTS.len())]);
    format!("\"{}\"", parts.collect::<String>())
}

#[test]
fn both_texts_of_any_json_are_those_of_cpython() {
    let mut rng = StdRng::seed_from_u64(20_261_130);
    let texts: Vec<String> = (0..20_000).map(|_| text(&mut rng, 4)).collect();
    let program = "import hashlib, json, sys\n\
                   for line in sys.stdin:\n\
                   \x20 value = json.loads(line)\n\
                   \x20 for more in ({}, {'separators': (',', ':')}):\n\
                   \x20   text = json.dumps(value, sort_keys=True, ensure_ascii=False, **more)\n\
                   \x20   print(hashlib.sha256(text.encode()).hexdigest())";
    let lines = python(program, texts.join("\n"));
    assert_eq!(lines.len(), 2 * texts.len() + 1);
    for (text, theirs) in texts.iter().zip(lines.chunks(2)) {
        let value = Value::parse(text.as_bytes()).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        let ours = [digest::spaced(&value), digest::compact(&value)].map(|text| digest::sha256_hex(&text));
        assert_eq!(ours.as_slice(), theirs, "{text}");
    }
}
