//! The costs of functions and operators.

use super::size::{Size, scaled};
use super::{Estimator, Part};
use crate::cel::signature::Signature;
use crate::cel::types::Type;

/// The length that is assumed for the pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// The length that is assumed for the name of a named format.
const FORMAT_NAME: u64 = 64;
/// The bytes of an address.
const ADDRESS: Size = Size { least: 4, most: 16 };

impl Estimator<'_> {
    /// Returns the cost of a form of a function, without its arguments, and the size of its
    /// result.
    pub(super) fn cost_of(
        &self,
        name: &str,
        form: &Signature,
        target: Option<&Part<'_>>,
        arguments: &[Part<'_>],
    ) -> (u64, Option<Size>) {
        let known = match (target, arguments) {
            (Some(target), _) => member(self, name, form, target, arguments),
            (None, [a, b]) => binary(name, form, a, b),
            (None, [only]) => unary(name, form, only),
            _ => None,
        };
        known.unwrap_or((1, None))
    }

    /// Returns the cost of looking at each item of a list, or at the characters of a text.
    fn traversal(&self, target: &Part<'_>) -> u64 {
        let Type::List(items) = target.kind else { return target.size().scan() };
        let of_item = match items.as_ref() {
            Type::String | Type::Bytes => {
                target.path.item_size(self.root).unwrap_or(Size::UNKNOWN).scan()
            }
            _ => 0,
        };
        target.size().most.saturating_mul(of_item.saturating_add(1))
    }
}

type Cost = Option<(u64, Option<Size>)>;

fn member(
    estimator: &Estimator<'_>,
    name: &str,
    form: &Signature,
    target: &Part<'_>,
    arguments: &[Part<'_>],
) -> Cost {
    let size = target.size();
    Some(match (name, arguments) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
            (estimator.traversal(target), None)
        }
        ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => (size.scan(), Some(size)),
        ("format", [_]) => (size.scan(), None),
        ("startsWith" | "endsWith", [part]) => (part.size().scan(), None),
        ("contains", [part]) => (size.scan().saturating_mul(part.size().scan()), None),
        ("matches", [pattern]) => (search(size, pattern), None),
        ("find" | "findAll", [pattern, ..]) => {
            (search(size, pattern), Some(Size::up_to(size.most)))
        }
        ("replace", [from, to, ..]) => {
            (scaled(size.most, 0.2), Some(replaced(size, from.size(), to.size())))
        }
        ("split", [_, rest @ ..]) => {
            let stated = rest.first().and_then(|most| most.number);
            // A negative number is no limit: upstream reads its bits.
            let most = stated.map_or(size.most, i64::cast_unsigned);
            (scaled(size.most, 0.2), Some(Size::up_to(most)))
        }
        ("join", separator) => {
            let size = joined(estimator, target, separator.first());
            (size.scan(), Some(size))
        }
        ("containsIP" | "containsCIDR", [other]) => {
            let is_text = form.arguments[1] == Type::String;
            let read = if is_text { other.size().scan() } else { 0 };
            let twice = ADDRESS.plus(ADDRESS).scan();
            let masked = if name == "containsCIDR" { ADDRESS.scan() + 1 } else { 0 };
            ((twice + masked).saturating_add(read), None)
        }
        ("validate", [text]) => (scaled(text.size().scan(), FORMAT_PATTERN * 0.25), None),
        ("slice", [from, to]) => {
            let end = to.number.map_or(size.most, |end| u64::try_from(end).unwrap_or(0));
            let start = from.number.map_or(0, |start| u64::try_from(start).unwrap_or(0));
            list_of(Size::of(end.wrapping_sub(start)), 1.0)
        }
        ("flatten", [depth]) => {
            let depth = depth.number.map_or(u64::MAX, |depth| u64::try_from(depth).unwrap_or(0));
            list_of(size, as_factor(depth))
        }
        ("reverse" | "flatten", []) if matches!(target.kind, Type::List(_)) => list_of(size, 1.0),
        ("distinct", []) => list_of(size.times(size), 2.0),
        ("sort", []) => {
            let items = match target.kind {
                Type::List(items) => Some(items.as_ref()),
                _ => None,
            };
            let (cost, size) = sort(size, items);
            (cost, Some(size))
        }
        _ => return None,
    })
}

fn binary(name: &str, form: &Signature, a: &Part<'_>, b: &Part<'_>) -> Cost {
    let is_text = matches!(form.arguments[0], Type::String | Type::Bytes);
    Some(match name {
        "_==_" if a.kind == b.kind => match (a.kind, b.size) {
            (Type::Opaque("kubernetes.NamedFormat"), _) => (scaled(FORMAT_NAME, 0.1), None),
            (Type::Opaque("kubernetes.URL"), Some(size)) => (size.scan(), None),
            (Type::Opaque(_), _) => (1, None),
            _ => (equality(a, b), None),
        },
        "_==_" | "_!=_" => (equality(a, b), None),
        "_<_" | "_<=_" | "_>_" | "_>=_" if is_text => (equality(a, b), None),
        "_+_" => {
            let size = a.size().plus(b.size());
            match &form.arguments[0] {
                Type::List(_) => (1, Some(size)),
                _ if is_text => (size.scan(), Some(size)),
                _ => return None,
            }
        }
        "@in" if matches!(form.arguments[1], Type::List(_)) => (scaled(b.size().most, 1.0), None),
        "matches" => (search(a.size(), b), None),
        "sets.contains" | "sets.intersects" | "sets.equivalent" => {
            let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
            let pairs = a.size().times(b.size());
            (scaled(pairs.most, factor).saturating_add(1), None)
        }
        "semver" | "isSemver" => (a.size().scan(), None),
        _ => return None,
    })
}

fn unary(name: &str, form: &Signature, only: &Part<'_>) -> Cost {
    let size = only.size();
    Some(match (name, &form.arguments[0]) {
        ("url", _) => (size.scan(), Some(size)),
        (
            "isIP" | "isCIDR" | "cidr" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
        ) => (size.scan(), None),
        ("ip.isCanonical", _) => (scaled(size.most, 0.2), None),
        ("string", Type::Bytes) => {
            (size.scan(), Some(Size { least: size.least / 4, most: size.most }))
        }
        ("bytes", Type::String) => {
            (size.scan(), Some(Size { least: size.least, most: size.most.saturating_mul(4) }))
        }
        ("strings.quote", _) => {
            let most = size.most.saturating_mul(2).saturating_add(2);
            (size.scan(), Some(Size { least: size.least.saturating_add(2), most }))
        }
        ("lists.range", _) => {
            let length = only.number.map_or(u64::MAX, |end| u64::try_from(end).unwrap_or(0));
            list_of(Size::of(length), 1.0)
        }
        _ => return None,
    })
}

/// Returns the cost of comparing two values: that of reading the smaller one.
fn equality(a: &Part<'_>, b: &Part<'_>) -> u64 {
    Size::up_to(a.size().most.min(b.size().most)).scan()
}

/// Returns the cost of searching a text for a pattern.
fn search(text: Size, pattern: &Part<'_>) -> u64 {
    // An empty text costs something, too.
    let text = text.plus(Size::of(1)).scan();
    text.saturating_mul(scaled(pattern.size().most, 0.25))
}

/// Returns the size of a text after a replacement.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as upstream")]
#[expect(clippy::cast_sign_loss, reason = "a quotient of sizes is not negative")]
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let times = |text: u64, part: u64| (text as f64 / part as f64).ceil() as u64;
    // An empty text is found around each character.
    let (most, kept) = match from.least {
        0 => (text.most.saturating_add(1), text.most),
        least if to.most <= least => (0, text.most),
        least => (times(text.most, least), 0),
    };
    let (fewest, kept_least) = match from.most {
        0 => (text.least.saturating_add(1), text.least),
        most if most <= to.least => (0, text.least),
        most => (times(text.least, most), 0),
    };
    let count = Size { least: fewest, most };
    count.times(to).plus(Size { least: kept_least, most: kept })
}

/// Returns the size of the joined items of a list.
fn joined(estimator: &Estimator<'_>, list: &Part<'_>, separator: Option<&Part<'_>>) -> Size {
    let item = match list.kind {
        Type::List(_) => list.path.item_size(estimator.root).unwrap_or(Size::UNKNOWN),
        _ => Size::of(0),
    };
    let size = list.size();
    let between = Size { least: size.least.saturating_sub(1), most: size.most.saturating_sub(1) };
    let separators = separator.map_or(Size::of(0), |separator| separator.size().times(between));
    size.times(item).plus(separators)
}

/// Returns the cost and size of sorting a list: each item is compared with each.
pub(super) fn sort(list: Size, items: Option<&Type>) -> (u64, Size) {
    let factor = match items {
        Some(Type::String | Type::Bytes | Type::Dyn) => 2.1,
        _ => 2.0,
    };
    let pairs = list.times(list);
    (list_cost(pairs, factor), pairs)
}

/// Returns the cost and size of a new list.
fn list_of(size: Size, factor: f64) -> (u64, Option<Size>) {
    (list_cost(size, factor), Some(size))
}

#[expect(clippy::cast_precision_loss, reason = "as upstream")]
fn as_factor(depth: u64) -> f64 {
    depth as f64
}

fn list_cost(size: Size, factor: f64) -> u64 {
    scaled(size.most, factor).saturating_add(11)
}
