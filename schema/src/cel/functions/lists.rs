//! Lists and sets.

use std::cmp::Ordering;

use super::{Result, equal, numbers};
use crate::cel::error::EvalError;
use crate::cel::steps::Steps;
use crate::cel::value::Value;

/// The largest list that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

pub(super) fn call<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    if let ("lists.range", [Value::Int(length)]) = (name, arguments) {
        return Some(range(steps, *length));
    }
    let items = arguments.first()?.items()?;
    Some(match (name, &arguments[1..]) {
        ("isSorted", []) => {
            let in_order =
                |pair: &[Value<'a>]| pair[0].compare(&pair[1]) != Some(Ordering::Greater);
            Ok(Value::Bool(items.windows(2).all(in_order)))
        }
        ("sum", []) => sum(steps, items),
        ("min", []) => extreme(items, Ordering::Less, "min"),
        ("max", []) => extreme(items, Ordering::Greater, "max"),
        ("indexOf", [item]) => position(steps, items.iter(), item),
        ("lastIndexOf", [item]) => {
            let length = i64::try_from(items.len()).ok()?;
            position(steps, items.iter().rev(), item).map(|found| match found {
                Value::Int(at) if at >= 0 => Value::Int(length - 1 - at),
                other => other,
            })
        }
        ("slice", [Value::Int(from), Value::Int(to)]) => slice(&items, *from, *to),
        ("flatten", []) => flatten_to(steps, items, 1),
        ("flatten", [Value::Int(depth)]) => flatten_to(steps, items, *depth),
        ("reverse", []) => Ok(Value::list(items.into_iter().rev().collect())),
        ("first", []) => Ok(Value::optional(items.first().cloned())),
        ("last", []) => Ok(Value::optional(items.last().cloned())),
        ("sort", []) => sort(items),
        ("distinct", []) => distinct(steps, items),
        ("sets.contains", [other]) => all_in(steps, &other.items()?, &items).map(Value::Bool),
        ("sets.equivalent", [other]) => {
            let other = other.items()?;
            let both = all_in(steps, &other, &items)
                .and_then(|first| Ok(first && all_in(steps, &items, &other)?));
            both.map(Value::Bool)
        }
        ("sets.intersects", [other]) => {
            let other = other.items()?;
            let found = items.iter().map(|item| is_in(steps, item, &other));
            any(found).map(Value::Bool)
        }
        _ => return None,
    })
}

fn range<'a>(steps: &Steps, length: i64) -> Result<'a> {
    let problem = if length < 0 {
        format!("size must be non-negative, got {length}")
    } else if length > MAX_RANGE {
        format!("size {length} exceeds maximum allowed ({MAX_RANGE})")
    } else {
        steps.spend(usize::try_from(length).unwrap_or(usize::MAX))?;
        return Ok(Value::list((0..length).map(Value::Int).collect()));
    };
    Err(EvalError::new(format!("lists.range: {problem}")))
}

fn any(
    mut results: impl Iterator<Item = std::result::Result<bool, EvalError>>,
) -> std::result::Result<bool, EvalError> {
    results.find(|result| !matches!(result, Ok(false))).unwrap_or(Ok(false))
}

fn is_in<'a>(
    steps: &Steps,
    item: &Value<'a>,
    list: &[Value<'a>],
) -> std::result::Result<bool, EvalError> {
    any(list.iter().map(|other| equal(steps, item, other)))
}

fn all_in<'a>(
    steps: &Steps,
    part: &[Value<'a>],
    list: &[Value<'a>],
) -> std::result::Result<bool, EvalError> {
    let missing = part.iter().map(|item| is_in(steps, item, list).map(|found| !found));
    any(missing).map(|missing| !missing)
}

fn sum<'a>(steps: &Steps, items: Vec<Value<'a>>) -> Result<'a> {
    let mut items = items.into_iter();
    let Some(mut sum) = items.next() else { return Ok(Value::Int(0)) };
    for item in items {
        steps.spend(sum.weight() + item.weight())?;
        sum = numbers::call("_+_", &[sum, item])
            .unwrap_or_else(|| Err(EvalError::no_such_overload()))?;
    }
    Ok(sum)
}

fn slice<'a>(items: &[Value<'a>], from: i64, to: i64) -> Result<'a> {
    let problem = if from < 0 || to < 0 {
        "negative indexes not supported".to_owned()
    } else if from > to {
        "start index must be less than or equal to end index".to_owned()
    } else {
        format!("list is length {}", items.len())
    };
    let bound = |at: i64| usize::try_from(at).ok();
    let part = bound(from).zip(bound(to)).and_then(|(from, to)| items.get(from..to));
    let part = part.map(|part| Value::list(part.to_vec()));
    part.ok_or_else(|| EvalError::new(format!("cannot slice({from}, {to}), {problem}")))
}

/// Joins lists inside of a list, and those inside of them, to a depth. The steps are counted before
/// each copy: many items may be one list in memory.
fn flatten_to<'a>(steps: &Steps, items: Vec<Value<'a>>, depth: i64) -> Result<'a> {
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut items = items;
    for _ in 0..depth {
        if items.iter().all(|item| item.items().is_none()) {
            break;
        }
        let mut all = Vec::new();
        for item in items {
            steps.spend(item.weight() + 1)?;
            match item.items() {
                Some(inner) => all.extend(inner),
                None => all.push(item),
            }
        }
        items = all;
    }
    Ok(Value::list(items))
}

fn extreme<'a>(items: Vec<Value<'a>>, wanted: Ordering, name: &str) -> Result<'a> {
    let mut items = items.into_iter();
    let first = items.next();
    let mut best = first.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))?;
    for item in items {
        if item.compare(&best).ok_or_else(EvalError::no_such_overload)? == wanted {
            best = item;
        }
    }
    Ok(best)
}

fn position<'a, 'b>(
    steps: &Steps,
    items: impl Iterator<Item = &'b Value<'a>>,
    item: &Value<'a>,
) -> Result<'a>
where
    'a: 'b,
{
    for (other, at) in items.zip(0..) {
        if equal(steps, item, other)? {
            return Ok(Value::Int(at));
        }
    }
    Ok(Value::Int(-1))
}

fn sort(mut items: Vec<Value<'_>>) -> Result<'_> {
    if items.windows(2).any(|pair| pair[0].type_name() != pair[1].type_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    items.sort_by(|a, b| a.compare(b).unwrap_or(Ordering::Equal));
    Ok(Value::list(items))
}

fn distinct<'a>(steps: &Steps, items: Vec<Value<'a>>) -> Result<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in items {
        if !is_in(steps, &item, &kept)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}
