//! Paths into an object, in kubectl's `JSONPath`, which printer columns use.
//!
//! The rules are those of client-go's `util/jsonpath` down to its oddities: a step that does not
//! fit one of the values fails as a whole, and then the column has no value. Left out are ranges,
//! and the bytes of a text that `*` leads to.

mod parse;

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use crate::fields::Fields;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    /// The path, and what follows a `}` in it: it has no value, but may fail.
    actions: Vec<Vec<Step>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Slice(Slice),
    /// Every item or member.
    All,
    /// The value, and every text, list and object inside it.
    Descend,
    Union(Vec<Vec<Self>>),
    Filter(Filter),
    Literal(Value),
    /// A word, which always fails.
    Word,
}

/// Some items of a list. A negative index counts from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: End,
    step: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The end of the list.
    Open,
    At(i64),
    /// After the first item: the slice is one item.
    Next(i64),
}

/// `?(left comparison right)`, or `?(left)` for an existing value.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Vec<Step>,
    /// The comparison is `None` if it is unknown: it fails.
    condition: Option<(Option<Comparison>, Vec<Step>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The values at a path. The error has those that a filter counts nevertheless.
type Found<'v> = Result<Vec<&'v Value>, Vec<&'v Value>>;

// === impl JsonPath ===

impl JsonPath {
    /// Parses a path; `None` if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        parse::actions(text).map(|actions| Self { actions })
    }

    /// Returns the first value at the path.
    pub(crate) fn first<'v>(&'v self, object: &'v Fields) -> Option<Cow<'v, Value>> {
        let (path, others) = self.actions.split_first()?;
        if let (Some((Step::Field(name), rest)), []) = (path.split_first(), others) {
            let found = object.get(name).into_iter().collect();
            let found = Walk::default().along(rest, found).ok()?;
            return found.into_iter().next().map(Cow::Borrowed);
        }
        let root = Value::Object(object.clone());
        let found = Walk::default().along(path, vec![&root]).ok()?;
        let fails = |action: &Vec<_>| Walk::default().along(action, vec![&root]).is_err();
        let fails = others.iter().any(fails);
        found.into_iter().next().filter(|_| !fails).map(|value| Cow::Owned(value.clone()))
    }
}

/// A walk along a path, which ends with an error after too many values: two descents visit each
/// value as often as there are values around it.
struct Walk {
    /// The number of values that may still be visited.
    left: usize,
}

/// The most values that a path may visit. The largest object has about half as many.
const MOST_VISITS: usize = 200_000;

// === impl Walk ===

impl Default for Walk {
    fn default() -> Self {
        Self { left: MOST_VISITS }
    }
}

impl Walk {
    fn along<'v>(&mut self, steps: &'v [Step], values: Vec<&'v Value>) -> Found<'v> {
        steps.iter().try_fold(values, |values, step| step.follow(values, self))
    }

    /// Counts visited values. Returns `None` if they are too many.
    fn visit(&mut self, values: usize) -> Option<()> {
        self.left = self.left.checked_sub(values)?;
        Some(())
    }
}

// === impl Step ===

impl Step {
    fn follow<'v>(&'v self, values: Vec<&'v Value>, walk: &mut Walk) -> Found<'v> {
        if walk.visit(values.len()).is_none() {
            return Err(Vec::new());
        }
        match self {
            Self::Field(name) => {
                Ok(values.into_iter().filter_map(|value| value.get(name)).collect())
            }
            Self::Slice(slice) => slice.of_each(values, walk),
            Self::All => {
                let mut found = Vec::new();
                for value in values {
                    let parts = parts(value);
                    walk.visit(parts.len()).ok_or_else(Vec::new)?;
                    found.extend(parts);
                }
                Ok(found)
            }
            Self::Descend => {
                let mut found = Vec::new();
                for value in values {
                    descend(value, &mut found, walk).ok_or_else(Vec::new)?;
                }
                Ok(found)
            }
            Self::Union(paths) => {
                let found = paths.iter().map(|path| walk.along(path, values.clone()));
                let found: Result<Vec<_>, _> = found.collect();
                found.map(|found| found.concat()).map_err(|_| values)
            }
            Self::Filter(filter) => filter.of_each(values, walk),
            Self::Literal(value) => Ok(vec![value]),
            Self::Word => Err(values),
        }
    }
}

fn parts(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

/// Adds a value, and those inside it. Returns `None` if they are too many.
fn descend<'v>(value: &'v Value, found: &mut Vec<&'v Value>, walk: &mut Walk) -> Option<()> {
    walk.visit(1)?;
    let parts = parts(value);
    if !parts.is_empty() || value.as_str().is_some_and(|text| !text.is_empty()) {
        found.push(value);
    }
    parts.into_iter().try_for_each(|part| descend(part, found, walk))
}

// === impl Slice ===

impl Slice {
    fn of_each<'v>(&self, values: Vec<&'v Value>, walk: &mut Walk) -> Found<'v> {
        let mut found = Vec::new();
        for value in &values {
            walk.visit(value.as_array().map_or(0, Vec::len)).ok_or_else(Vec::new)?;
            match value {
                Value::Null => {}
                Value::Array(items) => match self.of(items) {
                    // As upstream, an empty slice ends the step.
                    Some([]) => return Ok(found),
                    Some(slice) => {
                        let step = self.step.and_then(|step| usize::try_from(step).ok());
                        found.extend(slice.iter().step_by(step.unwrap_or(1).max(1)));
                    }
                    None => return Err(values),
                },
                _ => return Err(values),
            }
        }
        Ok(found)
    }

    /// Returns the items from the first one to the last one; `None` if the list has not as many.
    fn of<'v>(&self, items: &'v [Value]) -> Option<&'v [Value]> {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let from = from_end(self.from.unwrap_or(0));
        let to = match self.to {
            End::Open | End::Next(0) => length,
            End::At(to) | End::Next(to) => from_end(to),
        };
        if from == to {
            return Some(&[]);
        }
        let has_step = self.step.is_none_or(|step| step > 0);
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        items.get(from..to).filter(|slice| has_step && !slice.is_empty())
    }
}

// === impl Filter ===

impl Filter {
    fn of_each<'v>(&'v self, values: Vec<&'v Value>, walk: &mut Walk) -> Found<'v> {
        let mut found = Vec::new();
        for value in &values {
            let Some(more) = self.of(value, walk) else { return Err(values) };
            found.extend(more);
        }
        Ok(found)
    }

    /// Returns the items of a list for which the filter holds; `None` if one cannot be compared.
    fn of<'v>(&self, value: &'v Value, walk: &mut Walk) -> Option<Vec<&'v Value>> {
        let mut found = Vec::new();
        for item in value.as_array()? {
            walk.visit(1)?;
            if self.holds(item, walk)? {
                found.push(item);
            }
        }
        Some(found)
    }

    /// Returns true if an item is one of the filter's; `None` if it cannot be compared.
    fn holds(&self, item: &Value, walk: &mut Walk) -> Option<bool> {
        let left = walk.along(&self.left, vec![item]);
        let Some((comparison, right)) = &self.condition else {
            let (Ok(found) | Err(found)) = left;
            return Some(!found.is_empty());
        };
        let single = |found: Vec<_>| match found.as_slice() {
            [] => Some(None),
            [one] => Some(Some(*one)),
            _ => None,
        };
        let Some(left) = single(left.ok()?)? else { return Some(false) };
        let Some(right) = single(walk.along(right, vec![item]).ok()?)? else { return Some(false) };
        (*comparison)?.holds(left, right)
    }
}

// === impl Comparison ===

impl Comparison {
    /// Compares values of one type; `None` if their types differ or have no order.
    fn holds(self, left: &Value, right: &Value) -> Option<bool> {
        let order = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) if left.is_f64() != right.is_f64() => None,
            (Value::Number(left), Value::Number(right)) if left.is_f64() => {
                left.as_f64()?.partial_cmp(&right.as_f64()?)
            }
            (Value::Number(left), Value::Number(right)) => {
                Some(left.as_i64()?.cmp(&right.as_i64()?))
            }
            (Value::Bool(left), Value::Bool(right)) => match self {
                Self::Equal | Self::NotEqual => Some(left.cmp(right)),
                _ => None,
            },
            _ => None,
        };
        order.map(|order| match self {
            Self::Equal => order == Ordering::Equal,
            Self::NotEqual => order != Ordering::Equal,
            Self::Less => order == Ordering::Less,
            Self::LessOrEqual => order != Ordering::Greater,
            Self::Greater => order == Ordering::Greater,
            Self::GreaterOrEqual => order != Ordering::Less,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn assert_first(path: &str, expected: &Value) {
        let object = json!({"spec": {
            "s": "text", "i": 7, "a.b": "dotted", "a": {"b": "deep"}, "map": {"x": "y"},
            "nested": [[1, 2], [3, 4]],
            "list": [
                {"n": "a", "v": 1, "f": 1.5, "m": "z", "flag": false},
                {"n": "b", "v": 2, "f": 2.5, "m": "b", "flag": true, "w": 1},
            ],
        }});
        let parsed = JsonPath::parse(path).expect("a path");
        let found = parsed.first(object.as_object().expect("an object"));
        assert_eq!(found.as_deref().unwrap_or(&Value::Null), expected, "{path}");
    }

    #[test]
    fn paths_lead_to_fields_items_and_slices() {
        for (path, expected) in [
            (".spec.a\\.b", json!("dotted")),
            (".spec['a\\.b']", json!("dotted")),
            (".spec['a.b']", json!("deep")),
            (".spec['i','s']", json!(7)),
            (".spec.list[1].n", json!("b")),
            (".spec.list[-1].n", json!("b")),
            (".spec.list[-2:].n", json!("a")),
            (".spec.list[1:].n", json!("b")),
            (".spec.list[::2].n", json!("a")),
            (".spec.list[1,0].n", json!("b")),
            (".spec.list[].n", json!("a")),
            (".spec.list[*].v", json!(1)),
            (".spec.nested[0][1]", json!(2)),
            (".spec.map.*", json!("y")),
            (".spec..x", json!("y")),
            ("..x", json!("y")),
            (".spec.s} {.spec.i", json!("text")),
        ] {
            assert_first(path, &expected);
        }
    }

    #[test]
    fn filters_compare_values_of_one_type() {
        for (path, expected) in [
            (".spec.list[?(@.n==\"b\")].v", json!(2)),
            (".spec.list[?( @.n == 'b' )].v", json!(2)),
            (".spec.list[?(@.n!=\"a\")].v", json!(2)),
            (".spec.list[?(@.n>='b')].v", json!(2)),
            (".spec.list[?(@.n==@.m)].v", json!(2)),
            (".spec.list[?(@.w)].v", json!(2)),
            (".spec.list[?(@.v>1)].n", json!("b")),
            (".spec.list[?(@.f>1.5)].n", json!("b")),
            (".spec.list[?(@.flag==true)].n", json!("b")),
            (".spec.list[?(@.f>1)].n", json!(null)),
            (".spec.list[?(@.flag<true)].n", json!(null)),
            (".spec.list[?(@.n=\"b\")].n", json!(null)),
            (".spec.list[?(@.n==b)].n", json!(null)),
            (".spec.map[?(@.x)]", json!(null)),
        ] {
            assert_first(path, &expected);
        }
    }

    #[test]
    fn step_that_does_not_fit_has_no_value() {
        let paths = [".", ".spec.", ".spec.list.[0].n", ".spec.list[5]", ".spec.list[0:9].n"];
        for path in paths.into_iter().chain([".spec.s[0]", ".spec.map[0]", ".spec.s} {nonsense"]) {
            assert_first(path, &Value::Null);
        }
    }

    #[test]
    fn path_that_visits_too_many_values_has_no_value() {
        let nested = (0..100).fold(json!({"x": 1}), |inner, _| json!({"x": [inner], "y": 2}));
        let object = nested.as_object().expect("an object");
        for (path, expected) in [
            ("..y", Some(2)),
            ("..x..y", Some(2)),
            ("..x..x..x..x..y", None),
            (".x..[*]..[*]..[*]..[?(@.z)].y", None),
            (".x[0,0]..x[0,0]..x[0,0]..x[0,0]..y", None),
        ] {
            let parsed = JsonPath::parse(path).expect("a path");
            let found = parsed.first(object).and_then(|found| found.as_i64());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn malformed_path_is_refused() {
        let paths = [".spec[", ".spec[?(@.a", ".a....b", ".spec[a]", ".spec[\"a\"]", ".a,.b"];
        for path in paths {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
