//! The arithmetic that both models share, on tensors in the memory of this process.

use candle_core::{CpuStorage, Device, InplaceOp1, Layout, Result, Tensor};

/// Numbers as a tensor.
pub(super) fn tensor<const N: usize>(numbers: Vec<f32>, shape: [usize; N]) -> Result<Tensor> {
    Tensor::from_vec(numbers, shape.as_slice(), &Device::Cpu)
}

/// A count that is small enough to be exact as f32.
#[expect(clippy::cast_precision_loss, reason = "places and widths are below 2^24")]
pub(super) fn number(count: usize) -> f32 {
    count as f32
}

/// Changes each row (the last dimension) of a tensor where it is.
pub(super) fn for_rows(x: &Tensor, change: impl Fn(&mut [f32])) -> Result<()> {
    x.inplace_op1(&Rows(change))
}

struct Rows<F>(F);

impl<F: Fn(&mut [f32])> InplaceOp1 for Rows<F> {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            candle_core::bail!("rows of a tensor that is not contiguous");
        };
        let width = layout.dims().last().copied().unwrap_or(1).max(1);
        let CpuStorage::F32(numbers) = storage else {
            candle_core::bail!("rows of a tensor that is not f32");
        };
        for row in numbers
            .get_mut(start..end)
            .unwrap_or_default()
            .chunks_exact_mut(width)
        {
            (self.0)(row);
        }
        Ok(())
    }
}

/// Adds a bias to a row.
pub(super) fn add(row: &mut [f32], bias: &[f32]) {
    for (x, b) in row.iter_mut().zip(bias) {
        *x += b;
    }
}

/// A layer norm: what a row is multiplied with and what is added after it has mean 0 and variance 1.
pub(super) struct Norm {
    pub(super) gain: Vec<f32>,
    pub(super) bias: Vec<f32>,
    /// Added to the variance.
    pub(super) eps: f32,
}

impl Norm {
    pub(super) fn apply(&self, row: &mut [f32]) {
        let count = number(row.len());
        let mean = row.iter().sum::<f32>() / count;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
        let scale = 1.0 / (variance + self.eps).sqrt();
        for ((x, gain), bias) in row.iter_mut().zip(&self.gain).zip(&self.bias) {
            *x = (*x - mean) * scale * gain + bias;
        }
    }
}

/// Makes a row positive with sum 1.
pub(super) fn softmax(row: &mut [f32]) {
    let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - highest).exp();
        sum += *x;
    }
    for x in row {
        *x /= sum;
    }
}

/// Cuts off what is below 0.
pub(super) fn relu(row: &mut [f32]) {
    for x in row {
        *x = x.max(0.0);
    }
}

/// The exact GELU: x times the share of a normal distribution that is below x.
pub(super) fn gelu(row: &mut [f32]) {
    for x in row {
        *x = 0.5 * *x * (1.0 + erf(*x * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// The error function to within 5e-7: a quotient of two polynomials, as compilers can do it for many numbers at once.
pub(super) fn erf(x: f32) -> f32 {
    const ABOVE: [f32; 7] = [
        -2.726_142_3e-10,
        2.770_681_4e-8,
        -2.101_024e-6,
        -5.692_506_4e-5,
        -7.349_906_3e-4,
        -2.954_6e-3,
        -1.609_603_3e-2,
    ];
    const BELOW: [f32; 5] = [
        -1.456_607_2e-5,
        -2.133_740_6e-4,
        -1.682_827e-3,
        -7.373_329_2e-3,
        -1.426_474e-2,
    ];
    let x = x.clamp(-4.0, 4.0);
    let squared = x * x;
    let polynomial = |factors: &[f32]| factors.iter().fold(0.0, |sum, factor| sum * squared + factor);
    x * polynomial(&ABOVE) / polynomial(&BELOW)
}
