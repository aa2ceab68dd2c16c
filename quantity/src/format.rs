//! [`Format`] and its suffixes.

/// The suffixes of `DecimalSI` and their powers of ten.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// The suffixes of `BinarySI`, each 1024 times the one before.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The notation of a quantity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1000 with a letter: `500m`, `12M`.
    #[default]
    DecimalSI,
    /// Powers of 1024 with two letters: `12Mi`.
    BinarySI,
    /// Powers of 1000 with an exponent: `12e6`.
    DecimalExponent,
}

// === impl Format ===

impl Format {
    pub(crate) fn decimal_power(suffix: &str) -> Option<i32> {
        DECIMAL.iter().find_map(|(known, power)| (*known == suffix).then_some(*power))
    }

    pub(crate) fn decimal_suffix(power: i32) -> Option<&'static str> {
        DECIMAL.iter().find_map(|(suffix, known)| (*known == power).then_some(*suffix))
    }

    /// The power of two of a suffix.
    pub(crate) fn binary_power(suffix: &str) -> Option<u32> {
        (1..).zip(BINARY).find_map(|(step, known)| (known == suffix).then_some(10 * step))
    }

    /// The suffixes of `BinarySI`, in ascending order.
    pub(crate) fn binary_suffixes() -> &'static [&'static str] {
        &BINARY
    }
}
