//! Exact amounts: whole billionths.

use std::cmp::Ordering;

use crate::limbs::Limbs;

/// The number of billionths in one.
const ONE: i128 = 1_000_000_000;

/// An exact amount in billionths, the smallest unit that a quantity has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Amount {
    /// Every amount whose magnitude is at most `i128::MAX` billionths, about 1.7·10^29.
    Small(i128),
    /// Every other amount.
    Large(Box<Large>),
}

/// An amount that does not fit into [`Amount::Small`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Large {
    negative: bool,
    magnitude: Limbs,
}

// === impl Amount ===

impl Amount {
    pub(crate) const ZERO: Self = Self::Small(0);

    /// `value` · 10^`power` billionths.
    pub(crate) fn scaled(value: i64, power: u32) -> Self {
        let small = 10_i128.checked_pow(power).and_then(|unit| unit.checked_mul(value.into()));
        small.map_or_else(
            || {
                let mut magnitude = Limbs::from_u128(value.unsigned_abs().into());
                magnitude.scale_up(power as usize);
                Self::new(value < 0, magnitude)
            },
            Self::Small,
        )
    }

    /// `magnitude` billionths, in the only representation that equal amounts have.
    pub(crate) fn new(negative: bool, magnitude: Limbs) -> Self {
        match magnitude.to_u128().and_then(|small| i128::try_from(small).ok()) {
            Some(small) => Self::Small(if negative { -small } else { small }),
            None => Self::Large(Box::new(Large { negative, magnitude })),
        }
    }

    pub(crate) fn sign(&self) -> Ordering {
        match self {
            Self::Small(nano) => nano.cmp(&0),
            Self::Large(large) if large.negative => Ordering::Less,
            Self::Large(_) => Ordering::Greater,
        }
    }

    /// Returns true for a whole number.
    pub(crate) fn is_integer(&self) -> bool {
        match self {
            Self::Small(nano) => nano % ONE == 0,
            Self::Large(large) => large.magnitude.is_multiple_of_base(),
        }
    }

    /// Returns true if the magnitude is below `bound`.
    pub(crate) fn is_within(&self, bound: i64) -> bool {
        matches!(self, Self::Small(nano) if nano.abs() < i128::from(bound) * ONE)
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        if let (Self::Small(left), Self::Small(right)) = (self, other)
            && let Some(sum) = left.checked_add(*right).filter(|sum| *sum != i128::MIN)
        {
            return Self::Small(sum);
        }
        let (negative, left) = self.parts();
        let (other_negative, right) = other.parts();
        if negative == other_negative {
            return Self::new(negative, left.add(&right));
        }
        match left.cmp(&right) {
            Ordering::Less => Self::new(other_negative, right.subtract(&left)),
            Ordering::Equal | Ordering::Greater => Self::new(negative, left.subtract(&right)),
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Small(nano) => Self::Small(-nano),
            Self::Large(large) => Self::Large(Box::new(Large {
                negative: !large.negative,
                magnitude: large.magnitude.clone(),
            })),
        }
    }

    pub(crate) fn multiplied(&self, factor: i64) -> Self {
        if let Self::Small(nano) = self
            && let Some(product) = nano.checked_mul(factor.into()).filter(|it| *it != i128::MIN)
        {
            return Self::Small(product);
        }
        let (negative, mut magnitude) = self.parts();
        magnitude.multiply(factor.unsigned_abs());
        Self::new(negative != (factor < 0), magnitude)
    }

    /// The magnitude in units of 10^`power` billionths, rounded up, and true if that is exact.
    pub(crate) fn magnitude_in(&self, power: u32) -> (Limbs, bool) {
        let (_, mut magnitude) = self.parts();
        let exact = magnitude.scale_down_rounding_up(power as usize);
        (magnitude, exact)
    }

    /// The amount in units of 10^`power` billionths, rounded away from zero, limited to what an
    /// `i64` holds.
    pub(crate) fn in_units(&self, power: u32) -> i64 {
        let small = match self {
            Self::Small(nano) => 10_i128.checked_pow(power).map(|unit| {
                let rest = nano % unit;
                nano / unit + rest.signum()
            }),
            Self::Large(_) => None,
        };
        let clamp = |wide: i128| i64::try_from(wide).unwrap_or_else(|_| limit(wide < 0));
        small.map_or_else(
            || {
                let negative = self.sign().is_lt();
                let (magnitude, _) = self.magnitude_in(power);
                let wide = magnitude.to_u128().and_then(|wide| i128::try_from(wide).ok());
                let signed = wide.map(|wide| if negative { -wide } else { wide });
                signed.map_or_else(|| limit(negative), clamp)
            },
            clamp,
        )
    }

    /// The amount rounded away from zero to a multiple of 10^`power` billionths, and true if
    /// nothing changed.
    pub(crate) fn rounded_up(&self, power: u32) -> (Self, bool) {
        let (mut magnitude, exact) = self.magnitude_in(power);
        magnitude.scale_up(power as usize);
        (Self::new(self.sign().is_lt(), magnitude), exact)
    }

    fn parts(&self) -> (bool, Limbs) {
        match self {
            Self::Small(nano) => (*nano < 0, Limbs::from_u128(nano.unsigned_abs())),
            Self::Large(large) => (large.negative, large.magnitude.clone()),
        }
    }
}

fn limit(negative: bool) -> i64 {
    if negative { i64::MIN } else { i64::MAX }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Small(left), Self::Small(right)) => left.cmp(right),
            // The magnitude of a large amount exceeds that of every small one.
            (Self::Small(_), Self::Large(_)) => other.sign().reverse(),
            (Self::Large(_), Self::Small(_)) => self.sign(),
            (Self::Large(left), Self::Large(right)) => match (left.negative, right.negative) {
                (false, false) => left.magnitude.cmp(&right.magnitude),
                (true, true) => right.magnitude.cmp(&left.magnitude),
                (left, right) => right.cmp(&left),
            },
        }
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
