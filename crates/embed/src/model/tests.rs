//! The models against the vectors that came with them.

use std::path::PathBuf;

use aip_catalog::Purpose;
use serde::Deserialize;

use super::files::ModelFiles;
use super::{Model, e5, ops, universal};
use crate::limits::{TEXT_BYTES_MAX, TEXT_PIECES_MAX};

#[derive(Deserialize)]
struct Reference {
    /// Only where the model is told.
    kind: Option<String>,
    text: String,
    ids: Vec<u32>,
    vector: Vec<f32>,
}

impl Reference {
    fn purpose(&self) -> Purpose {
        match self.kind.as_deref() {
            Some("passage") => Purpose::Passage,
            _ => Purpose::Query,
        }
    }
}

fn dir(id: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models").join(id)
}

fn references(id: &str) -> Vec<Reference> {
    let lines = std::fs::read_to_string(dir(id).join("reference.jsonl")).unwrap();
    let references: Vec<Reference> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(references.len() >= 10);
    references
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum::<f64>()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Alone, all together, and the other way round: always the reference.
fn check(id: &str, model: &dyn Model) {
    let references = references(id);
    let ids = |reference: &Reference| model.pieces(reference.purpose(), &reference.text).unwrap();
    let together = model
        .vectors(&references.iter().map(ids).collect::<Vec<_>>())
        .unwrap();
    let mut backwards = model
        .vectors(&references.iter().rev().map(ids).collect::<Vec<_>>())
        .unwrap();
    backwards.reverse();
    for (at, reference) in references.iter().enumerate() {
        let text = &reference.text;
        assert_eq!(ids(reference), reference.ids, "{text}");
        let alone = model.vectors(&[ids(reference)]).unwrap().remove(0);
        for vector in [&alone, &together[at], &backwards[at]] {
            let cosine = cosine(vector, &reference.vector);
            assert!(cosine > 0.999, "{text}: {cosine}");
            let length = vector.iter().map(|x| x * x).sum::<f32>();
            assert!((length - 1.0).abs() < 1e-4, "{text}: {length}");
        }
    }
}

/// Whatever comes: bounded pieces, finite vectors.
fn endure(model: &dyn Model) {
    let texts = [
        "\0".to_owned(),
        " ".repeat(100_000),
        "a".repeat(1_000_000),
        "ж".repeat(TEXT_BYTES_MAX),
        "</s><s><mask><unk> </s>".to_owned(),
        "\u{202e}\u{200b}\u{feff}\u{1f468}\u{200d}\u{1f469}".to_owned(),
        "word ".repeat(50_000),
    ];
    for text in texts {
        let pieces = model.pieces(Purpose::Passage, &text).unwrap();
        assert!(pieces.len() <= TEXT_PIECES_MAX);
        assert_eq!(
            pieces
                .iter()
                .filter(|piece| **piece == pieces[pieces.len() - 1])
                .count(),
            1
        );
        let vector = model.vectors(&[pieces]).unwrap().remove(0);
        assert!(vector.iter().all(|x| x.is_finite()));
    }
}

#[test]
fn e5_gives_the_reference_vectors() {
    let model = e5::E5::load(&ModelFiles::in_dir(&dir("multilingual-e5-small-q4-67k"))).unwrap();
    check("multilingual-e5-small-q4-67k", &model);
    endure(&model);
}

#[test]
fn the_universal_encoder_gives_the_reference_vectors() {
    let model = universal::Universal::load(&ModelFiles::in_dir(&dir("use-multilingual-v3-84k"))).unwrap();
    check("use-multilingual-v3-84k", &model);
    endure(&model);
}

/// Values of the error function to seven places, from tables (Abramowitz and Stegun, table 7.1).
#[test]
fn the_error_function_is_near_its_table() {
    let table = [
        (0.0, 0.0),
        (0.1, 0.112_462_9),
        (0.5, 0.520_499_9),
        (1.0, 0.842_700_8),
        (1.5, 0.966_105_1),
        (2.0, 0.995_322_3),
        (3.0, 0.999_977_9),
        (9.0, 1.0),
    ];
    for (x, expected) in table {
        assert!((ops::erf(x) - expected).abs() < 1e-6, "{x}");
        assert!((ops::erf(-x) + expected).abs() < 1e-6, "-{x}");
    }
}
