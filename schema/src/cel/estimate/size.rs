//! The sizes that a value may have.

use crate::cel::expression::Literal;

/// The possible sizes of a text, list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

// === impl Size ===

impl Size {
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) const fn of(size: u64) -> Self {
        Self { least: size, most: size }
    }

    /// Returns the size of a literal.
    pub(super) fn of_literal(literal: &Literal) -> Self {
        Self::of(match literal {
            Literal::String(text) => text.chars().count() as u64,
            Literal::Bytes(bytes) => bytes.len() as u64,
            _ => 1,
        })
    }

    pub(super) const fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// Returns the cost of reading a text of this size.
    pub(super) fn scan(self) -> u64 {
        scaled(self.most, 0.1)
    }
}

/// Returns the product, rounded up.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream computes so; the cast saturates"
)]
pub(super) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
