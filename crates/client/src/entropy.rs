//! Chance as an argument: keys, message ids, salts and jitter all draw from one injected source.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::SysRng;
use rand_core::{CryptoRng, UnwrapErr};
use uuid::Uuid;

/// A shared, cryptographically strong source of random bytes. The default is the operating system's.
#[derive(Clone)]
pub struct Entropy(Arc<Mutex<Box<dyn CryptoRng + Send>>>);

impl Entropy {
    /// The operating system's source.
    pub fn system() -> Self {
        Self::from_rng(UnwrapErr(SysRng))
    }

    /// Another source, such as a seeded one in tests.
    pub fn from_rng(rng: impl CryptoRng + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(rng))))
    }

    /// Lends the source to a function.
    pub fn with<T>(&self, draw: impl FnOnce(&mut dyn CryptoRng) -> T) -> T {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        draw(&mut **rng)
    }

    /// Random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|rng| rng.fill_bytes(&mut bytes));
        bytes
    }

    /// A fresh message id (UUID v4).
    pub fn message_id(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid()
    }

    /// A duration between zero and `most`, evenly distributed: the "full jitter" of a back-off.
    pub fn up_to(&self, most: Duration) -> Duration {
        let draw = self.with(|rng| rng.next_u32());
        most.mul_f64(f64::from(draw) / f64::from(u32::MAX))
    }
}

impl Default for Entropy {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_4_and_differ() {
        let entropy = Entropy::system();
        let (one, two) = (entropy.message_id(), entropy.message_id());
        assert_eq!(one.get_version_num(), 4);
        assert_ne!(one, two);
    }

    #[test]
    fn jitter_stays_within_its_bound() {
        let entropy = Entropy::system();
        for _ in 0..1000 {
            assert!(entropy.up_to(Duration::from_millis(7)) <= Duration::from_millis(7));
        }
        assert_eq!(entropy.up_to(Duration::ZERO), Duration::ZERO);
    }
}
