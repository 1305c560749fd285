//! Reading the numbers of a model out of a safetensors file.

use std::io::Read;

use aip_catalog::EmbedError;
use bytes::Bytes;
use half::f16;
use ruzstd::decoding::StreamingDecoder;
use safetensors::{Dtype, SafeTensors};

use super::broken;
use crate::limits::MODEL_BYTES_MAX;

/// The first bytes of a zstd frame (RFC 8878 §3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Weights in a block of `Q4_0`.
pub(super) const Q4_WEIGHTS: usize = 32;

/// Bytes of a block of `Q4_0`: a scale as f16, then two weights a byte.
pub(super) const Q4_BYTES: usize = 18;

/// Unpacks the file if it is packed with zstd.
pub(super) fn unpack(file: Bytes) -> Result<Bytes, EmbedError> {
    if !file.starts_with(&ZSTD_MAGIC) {
        return Ok(file);
    }
    let unpacked = StreamingDecoder::new(file.as_ref()).map_err(broken)?;
    let mut bytes = Vec::new();
    let limit = MODEL_BYTES_MAX as u64 + 1;
    unpacked.take(limit).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() > MODEL_BYTES_MAX {
        return Err(broken(format_args!(
            "unpacked it is longer than {MODEL_BYTES_MAX} bytes"
        )));
    }
    Ok(bytes.into())
}

/// The named tensors of a file.
pub(super) struct Weights<'a> {
    file: &'a Bytes,
    tensors: SafeTensors<'a>,
}

impl<'a> Weights<'a> {
    /// Reads the head of a safetensors file.
    pub(super) fn read(file: &'a Bytes) -> Result<Self, EmbedError> {
        let tensors = SafeTensors::deserialize(file).map_err(broken)?;
        Ok(Self { file, tensors })
    }

    /// So many bytes, as they are in the file and without a copy.
    pub(super) fn bytes(&self, name: &str, count: usize) -> Result<Bytes, EmbedError> {
        let data = self.data(name, Dtype::U8, count)?;
        Ok(self.file.slice_ref(data))
    }

    /// So many numbers, from f16 or f32.
    pub(super) fn floats(&self, name: &str, count: usize) -> Result<Vec<f32>, EmbedError> {
        let dtype = self.tensors.tensor(name).map_err(broken)?.dtype();
        if dtype == Dtype::F16 {
            let data = self.data(name, Dtype::F16, count * 2)?.as_chunks::<2>().0;
            return Ok(data.iter().map(|x| f16::from_le_bytes(*x).to_f32()).collect());
        }
        let data = self.data(name, Dtype::F32, count * 4)?.as_chunks::<4>().0;
        Ok(data.iter().map(|x| f32::from_le_bytes(*x)).collect())
    }

    /// So many numbers out of `Q4_0` blocks.
    pub(super) fn q4(&self, name: &str, count: usize) -> Result<Vec<f32>, EmbedError> {
        let data = self.data(name, Dtype::U8, count / Q4_WEIGHTS * Q4_BYTES)?;
        let mut weights = Vec::with_capacity(count);
        q4_into(data, &mut weights);
        Ok(weights)
    }

    fn data(&self, name: &str, dtype: Dtype, count: usize) -> Result<&'a [u8], EmbedError> {
        let tensor = self.tensors.tensor(name).map_err(broken)?;
        if tensor.dtype() != dtype || tensor.data().len() != count {
            return Err(broken(format_args!(
                "the tensor {name} is {:?} of {} bytes, not {dtype:?} of {count}",
                tensor.dtype(),
                tensor.data().len(),
            )));
        }
        Ok(tensor.data())
    }
}

/// Appends the weights of `Q4_0` blocks: byte j of a block holds weight j in its low half, weight j + 16 in its high one, and a
/// weight is (half - 8) times the scale.
pub(super) fn q4_into(blocks: &[u8], weights: &mut Vec<f32>) {
    for [low, high, halves @ ..] in blocks.as_chunks::<Q4_BYTES>().0 {
        let scale = f16::from_le_bytes([*low, *high]).to_f32();
        let weight = |half: u8| (f32::from(half) - 8.0) * scale;
        weights.extend(halves.iter().map(|byte| weight(byte & 0x0f)));
        weights.extend(halves.iter().map(|byte| weight(byte >> 4)));
    }
}
