//! Natural numbers of any size, in base 10^9.

use std::cmp::Ordering;
use std::fmt;

/// The base. One limb holds nine decimal digits.
const BASE: u64 = 1_000_000_000;
/// The number of decimal digits in one limb.
const DIGITS: usize = 9;

/// A natural number: little-endian limbs below [`BASE`], the last of which is not zero.
///
/// A decimal base makes reading and writing decimal text linear in its length. With a binary base
/// both are quadratic, and a megabyte of digits would occupy a processor for seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Limbs(Vec<u32>);

// === impl Limbs ===

impl Limbs {
    pub(crate) fn from_u128(mut number: u128) -> Self {
        let mut limbs = Vec::new();
        while number > 0 {
            limbs.push(limb(number % u128::from(BASE)));
            number /= u128::from(BASE);
        }
        Self(limbs)
    }

    /// Reads decimal digits. The caller has checked that every byte is a digit.
    pub(crate) fn from_digits(digits: &[u8]) -> Self {
        let value =
            |chunk: &[u8]| chunk.iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'));
        Self(digits.rchunks(DIGITS).map(value).collect()).trimmed()
    }

    /// Returns the number, or `None` if it does not fit.
    pub(crate) fn to_u128(&self) -> Option<u128> {
        self.0.iter().rev().try_fold(0_u128, |sum, limb| {
            sum.checked_mul(u128::from(BASE))?.checked_add(u128::from(*limb))
        })
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let mut sum = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        let mut carry = 0;
        for at in 0..self.0.len().max(other.0.len()) {
            let total = self.at(at) + other.at(at) + carry;
            sum.push(limb(u128::from(total % BASE)));
            carry = total / BASE;
        }
        sum.push(limb(u128::from(carry)));
        Self(sum).trimmed()
    }

    /// Returns `self - other`. The caller has checked that `other` is not greater.
    pub(crate) fn subtract(&self, other: &Self) -> Self {
        let mut difference = Vec::with_capacity(self.0.len());
        let mut borrow = 0;
        for at in 0..self.0.len() {
            let taken = other.at(at) + borrow;
            borrow = u64::from(self.at(at) < taken);
            difference.push(limb(u128::from(self.at(at) + borrow * BASE - taken)));
        }
        Self(difference).trimmed()
    }

    pub(crate) fn multiply(&mut self, factor: u64) {
        let mut carry = 0_u128;
        for place in &mut self.0 {
            let total = u128::from(*place) * u128::from(factor) + carry;
            *place = limb(total % u128::from(BASE));
            carry = total / u128::from(BASE);
        }
        while carry > 0 {
            self.0.push(limb(carry % u128::from(BASE)));
            carry /= u128::from(BASE);
        }
        *self = std::mem::replace(self, Self(Vec::new())).trimmed();
    }

    /// Divides by a number of at most 10^9 and returns the remainder.
    pub(crate) fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0;
        for place in self.0.iter_mut().rev() {
            let total = remainder * BASE + u64::from(*place);
            *place = limb(u128::from(total / u64::from(divisor)));
            remainder = total % u64::from(divisor);
        }
        *self = std::mem::replace(self, Self(Vec::new())).trimmed();
        limb(u128::from(remainder))
    }

    /// Multiplies by 10^`power`.
    pub(crate) fn scale_up(&mut self, power: usize) {
        if self.0.is_empty() {
            return;
        }
        self.multiply(10_u64.pow(remaining(power)));
        self.0.splice(0..0, std::iter::repeat_n(0, power / DIGITS));
    }

    /// Divides by 10^`power`, rounds up, and returns true if the division was exact.
    pub(crate) fn scale_down_rounding_up(&mut self, power: usize) -> bool {
        let dropped = (power / DIGITS).min(self.0.len());
        let mut exact = self.0.drain(..dropped).all(|limb| limb == 0);
        exact &= self.divide(10_u32.pow(remaining(power))) == 0;
        if !exact {
            *self = self.add(&Self::from_u128(1));
        }
        exact
    }

    /// Returns true if the number is a multiple of 10^9.
    pub(crate) fn is_multiple_of_base(&self) -> bool {
        self.at(0) == 0
    }

    fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().map_or(0, u64::from)
    }

    fn trimmed(mut self) -> Self {
        let used = self.0.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
        self.0.truncate(used);
        self
    }
}

impl Ord for Limbs {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Limbs {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Limbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = self.0.iter().rev();
        write!(f, "{}", limbs.next().unwrap_or(&0))?;
        limbs.try_for_each(|limb| write!(f, "{limb:09}"))
    }
}

/// Narrows a number that the caller has reduced below [`BASE`].
fn limb(number: u128) -> u32 {
    u32::try_from(number).expect("the number is below the base")
}

/// The part of a power of ten that does not move whole limbs.
fn remaining(power: usize) -> u32 {
    u32::try_from(power % DIGITS).expect("the number is below nine")
}
