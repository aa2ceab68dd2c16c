//! [`Quantity`], its formats and its arithmetic.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Sum;
use std::ops::{Add, AddAssign, MulAssign, Neg, Sub, SubAssign};
use std::str::FromStr;

use crate::amount::Amount;
use crate::canonical::canonical;
use crate::format::Format;
use crate::parse::{self, ParseQuantityError, Parsed};

/// An amount of a resource, with the notation in which it was given (`resource.Quantity` of
/// apimachinery).
///
/// The amount is exact: a whole number of billionths of any size. Precision below one billionth is
/// rounded away from zero when a text is read. Comparison and equality are numeric: `1024Mi` equals
/// `1Gi`.
///
/// [`Display`](fmt::Display) writes the canonical form, as the API server stores it. A quantity
/// that was read keeps its text where apimachinery keeps it (`1.500`, `007`, `1E3`). Arithmetic
/// drops the text.
///
/// # Examples
///
/// ```
/// use homeostat_quantity::Quantity;
///
/// let mut used: Quantity = "0".parse()?;
/// used += &"50Gi".parse()?;
/// used += &"1024Mi".parse()?;
/// assert_eq!(used.to_string(), "51Gi");
/// assert_eq!(used, "52224Mi".parse()?);
/// assert_eq!("1.5".parse::<Quantity>()?.to_string(), "1500m");
/// # Ok::<(), homeostat_quantity::ParseQuantityError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Amount,
    format: Format,
    /// The text that was read, if it is to be written again and differs from the canonical form.
    text: Option<Box<str>>,
}

/// A power of 1000: the unit of [`Quantity::scaled`], [`Quantity::scaled_value`] and
/// [`Quantity::round_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scale {
    /// 10⁻⁹, the smallest unit of a quantity.
    Nano,
    /// 10⁻⁶
    Micro,
    /// 10⁻³
    Milli,
    /// 1
    One,
    /// 10³
    Kilo,
    /// 10⁶
    Mega,
    /// 10⁹
    Giga,
    /// 10¹²
    Tera,
    /// 10¹⁵
    Peta,
    /// 10¹⁸
    Exa,
}

// === impl Quantity ===

impl Quantity {
    /// Zero, in the format `DecimalSI`.
    pub const ZERO: Self = Self { amount: Amount::ZERO, format: Format::DecimalSI, text: None };

    /// Returns the quantity `value` in `format`.
    pub fn new(value: i64, format: Format) -> Self {
        Self { amount: Amount::scaled(value, Scale::One.billionths()), format, text: None }
    }

    /// Returns the quantity `value` · `scale` in the format `DecimalSI`.
    ///
    /// ```
    /// use homeostat_quantity::{Quantity, Scale};
    ///
    /// assert_eq!(Quantity::scaled(1500, Scale::Milli).to_string(), "1500m");
    /// ```
    pub fn scaled(value: i64, scale: Scale) -> Self {
        let amount = Amount::scaled(value, scale.billionths());
        Self { amount, format: Format::DecimalSI, text: None }
    }

    /// Returns the format in which the quantity is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns true for zero.
    pub fn is_zero(&self) -> bool {
        self.amount == Amount::ZERO
    }

    /// Returns true for an amount above zero.
    pub fn is_positive(&self) -> bool {
        self.amount.sign().is_gt()
    }

    /// Returns true for an amount below zero.
    pub fn is_negative(&self) -> bool {
        self.amount.sign().is_lt()
    }

    /// Returns true for a whole number.
    pub fn is_integer(&self) -> bool {
        self.amount.is_integer()
    }

    /// Returns the amount, rounded away from zero to a whole number.
    ///
    /// An amount beyond the range of `i64` becomes its nearest end. apimachinery's `Value` returns
    /// 0 or a wrapped number for some of those amounts, and rounds some negative ones towards zero.
    pub fn value(&self) -> i64 {
        self.scaled_value(Scale::One)
    }

    /// Returns the amount in thousandths, rounded away from zero. See [`value`](Self::value).
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(Scale::Milli)
    }

    /// Returns the amount in units of `scale`, rounded away from zero. See [`value`](Self::value).
    pub fn scaled_value(&self, scale: Scale) -> i64 {
        self.amount.in_units(scale.billionths())
    }

    /// Returns the amount if it is a whole number in the range of `i64`.
    pub fn to_i64(&self) -> Option<i64> {
        let value = self.value();
        (Amount::scaled(value, Scale::One.billionths()) == self.amount).then_some(value)
    }

    /// Returns the nearest `f64`, infinite if there is none.
    pub fn to_f64(&self) -> f64 {
        let (magnitude, _) = self.amount.magnitude_in(0);
        let size = format!("{magnitude}e-9").parse().unwrap_or(f64::NAN);
        if self.is_negative() { -size } else { size }
    }

    /// Rounds away from zero to a multiple of `scale`. Returns true if the amount was one already.
    ///
    /// ```
    /// use homeostat_quantity::{Quantity, Scale};
    ///
    /// let mut size: Quantity = "1001m".parse()?;
    /// assert!(!size.round_up(Scale::One));
    /// assert_eq!(size.to_string(), "2");
    /// # Ok::<(), homeostat_quantity::ParseQuantityError>(())
    /// ```
    pub fn round_up(&mut self, scale: Scale) -> bool {
        let power = i32::try_from(scale.billionths()).unwrap_or(i32::MAX) - 9;
        // apimachinery keeps the text if its last digit stands for a multiple of the scale.
        if self.text.as_deref().is_some_and(|text| parse::last_power(text) >= power) {
            return true;
        }
        self.text = None;
        let (rounded, exact) = self.amount.rounded_up(scale.billionths());
        self.amount = rounded;
        exact
    }

    /// Replaces the amount and drops the text. A zero takes the format of `other`, as in
    /// apimachinery.
    fn replace(&mut self, amount: Amount, other: &Self) {
        if self.is_zero() {
            self.format = other.format;
        }
        self.amount = amount;
        self.text = None;
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<i64> for Quantity {
    /// Returns the quantity in the format `DecimalSI`.
    fn from(value: i64) -> Self {
        Self::new(value, Format::DecimalSI)
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    /// Reads a quantity in time and memory linear in the length of the text.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let Parsed { amount, format, is_kept } = parse::parse(text)?;
        let is_kept = is_kept && text != canonical(&amount, format);
        Ok(Self { amount, format, text: is_kept.then(|| text.into()) })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.pad(text),
            None => f.pad(&canonical(&self.amount, self.format)),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.amount.hash(state);
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AddAssign<&Self> for Quantity {
    /// Adds. A zero takes the format of the other quantity.
    fn add_assign(&mut self, other: &Self) {
        self.replace(self.amount.add(&other.amount), other);
    }
}

impl SubAssign<&Self> for Quantity {
    /// Subtracts. A zero takes the format of the other quantity.
    fn sub_assign(&mut self, other: &Self) {
        self.replace(self.amount.add(&other.amount.negated()), other);
    }
}

impl MulAssign<i64> for Quantity {
    /// Multiplies. The format stays.
    fn mul_assign(&mut self, factor: i64) {
        self.amount = self.amount.multiplied(factor);
        self.text = None;
    }
}

impl Add<&Quantity> for &Quantity {
    type Output = Quantity;

    fn add(self, other: &Quantity) -> Quantity {
        let mut sum = self.clone();
        sum += other;
        sum
    }
}

impl Sub<&Quantity> for &Quantity {
    type Output = Quantity;

    fn sub(self, other: &Quantity) -> Quantity {
        let mut difference = self.clone();
        difference -= other;
        difference
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self { amount: self.amount.negated(), format: self.format, text: None }
    }
}

impl<'a> Sum<&'a Self> for Quantity {
    fn sum<I: Iterator<Item = &'a Self>>(quantities: I) -> Self {
        quantities.fold(Self::ZERO, |mut sum, quantity| {
            sum += quantity;
            sum
        })
    }
}

// === impl Scale ===

impl Scale {
    /// The power of ten of the number of billionths in the scale.
    fn billionths(self) -> u32 {
        3 * self as u32
    }
}
