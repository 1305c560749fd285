//! What is sent, and what an answer must be.

use serde::{Deserialize, Serialize};

use crate::model::normalise;

/// `POST /v1/embeddings`.
#[derive(Serialize)]
pub(super) struct Request<'a> {
    pub(super) model: &'a str,
    pub(super) input: &'a [String],
    pub(super) encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dimensions: Option<usize>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    /// Which text it belongs to.
    index: usize,
    embedding: Vec<f32>,
}

/// Why an answer cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Garbled {
    /// Vectors of so many numbers.
    Dimensions(usize),
    /// Anything else.
    Other(String),
}

/// The vectors of an answer in the order of the texts, each of length 1.
pub(super) fn read(body: &[u8], texts: usize, dimensions: usize) -> Result<Vec<Vec<f32>>, Garbled> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| Garbled::Other(format!("no embeddings: {error}")))?;
    if answer.data.len() != texts {
        let reason = format!("{} vectors for {texts} texts", answer.data.len());
        return Err(Garbled::Other(reason));
    }
    let mut vectors = vec![None; texts];
    for Embedding { index, mut embedding } in answer.data {
        if embedding.len() != dimensions {
            return Err(Garbled::Dimensions(embedding.len()));
        }
        if !embedding.iter().all(|x| x.is_finite()) {
            return Err(Garbled::Other(format!(
                "vector {index} has a number that is not finite"
            )));
        }
        scale_down(&mut embedding);
        normalise(&mut embedding);
        match vectors.get_mut(index) {
            Some(place @ None) => *place = Some(embedding),
            Some(Some(_)) => return Err(Garbled::Other(format!("vector {index} is there twice"))),
            None => return Err(Garbled::Other(format!("vector {index} belongs to no text"))),
        }
    }
    let vectors: Option<Vec<Vec<f32>>> = vectors.into_iter().collect();
    vectors.ok_or_else(|| Garbled::Other("a vector is missing".to_owned()))
}

/// Brings the numbers to at most 1, so that their squares neither vanish nor overflow.
fn scale_down(vector: &mut [f32]) {
    let highest = vector.iter().fold(0.0_f32, |highest, x| highest.max(x.abs()));
    if highest > 0.0 {
        for x in vector {
            *x /= highest;
        }
    }
}

/// What a server says in `error.message` or `error` of a refusal: short, on one line.
pub(super) fn reason(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Reason,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Reason {
        Text(String),
        Object { message: String },
    }
    let refusal: Refusal = serde_json::from_slice(body).ok()?;
    let (Reason::Text(text) | Reason::Object { message: text }) = refusal.error;
    let text = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(text.take(200).collect())
}
