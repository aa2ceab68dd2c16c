//! Paths into an object, in the part of kubectl's `JSONPath` that printer columns use.

use serde_json::Value;

use crate::fields::Fields;

/// A path such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// An item; a negative index counts from the end.
    Index(i64),
    /// Every item or member.
    All,
    /// The value, and every value inside it.
    Descend,
    Filter(Filter),
}

/// `?(@.path op value)`, or `?(@.path)` for an existing value.
#[derive(Debug, Clone, PartialEq)]
struct Filter {
    path: JsonPath,
    condition: Option<(Comparison, Value)>,
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

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

// === impl JsonPath ===

impl JsonPath {
    /// Parses a path; `None` if it is malformed or uses another part of the language.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = parse_step(rest, &mut steps)?;
        }
        Some(Self { steps })
    }

    /// Returns the first value at the path.
    pub(crate) fn first<'a>(&self, object: &'a Fields) -> Option<&'a Value> {
        let Some((Step::Field(name), rest)) = self.steps.split_first() else {
            // The root has no value of its own: only a path with a field leads somewhere.
            return None;
        };
        let mut found = vec![object.get(name)?];
        for step in rest {
            found = found.into_iter().flat_map(|value| step.follow(value)).collect();
        }
        found.into_iter().next()
    }

    fn all<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.follow(value)).collect();
        }
        found
    }
}

/// Reads one step, and returns the rest.
fn parse_step<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    if let Some(inner) = text.strip_prefix('[') {
        let end = closing_bracket(inner)?;
        steps.push(Step::parse_brackets(inner[..end].trim())?);
        return Some(&inner[end + 1..]);
    }
    let inner = text.strip_prefix('.')?;
    let (inner, descends) = inner.strip_prefix('.').map_or((inner, false), |inner| (inner, true));
    if descends {
        steps.push(Step::Descend);
    }
    if inner.starts_with('[') || (inner.is_empty() && !descends) {
        return Some(inner);
    }
    parse_field(inner, steps)
}

/// Reads a name up to the next unescaped `.` or `[`, and returns the rest.
fn parse_field<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    let end = loop {
        match chars.next() {
            None => break text.len(),
            Some((at, '.' | '[')) => break at,
            Some((_, '\\')) => name.push(chars.next()?.1),
            Some((_, c)) => name.push(c),
        }
    };
    if name.is_empty() {
        return None;
    }
    steps.push(if name == "*" { Step::All } else { Step::Field(name) });
    Some(&text[end..])
}

/// Returns the position of the bracket that closes the text, outside of quotes.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0_usize, None);
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (Some(quote), c) if c == quote => quoted = None,
            (None, '\'' | '"') => quoted = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

// === impl Step ===

impl Step {
    fn parse_brackets(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Some(filter) = text.strip_prefix("?(").and_then(|text| text.strip_suffix(')')) {
            return Filter::parse(filter).map(Self::Filter);
        }
        match text.parse() {
            Ok(index) => Some(Self::Index(index)),
            Err(_) => unquote(text).map(|name| Self::Field(name.to_owned())),
        }
    }

    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Field(name), value) => value.get(name).into_iter().collect(),
            (Self::Index(index), Value::Array(items)) => {
                let from_end =
                    || items.len().checked_sub(usize::try_from(index.unsigned_abs()).ok()?);
                let at = if *index < 0 { from_end() } else { usize::try_from(*index).ok() };
                at.and_then(|at| items.get(at)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(fields)) => fields.values().collect(),
            (Self::Descend, value) => descend(value),
            (Self::Filter(filter), Value::Array(items)) => {
                items.iter().filter(|item| filter.holds(item)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn descend(value: &Value) -> Vec<&Value> {
    let mut found = vec![value];
    match value {
        Value::Array(items) => found.extend(items.iter().flat_map(descend)),
        Value::Object(fields) => found.extend(fields.values().flat_map(descend)),
        _ => {}
    }
    found
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

// === impl Filter ===

impl Filter {
    fn parse(text: &str) -> Option<Self> {
        let operator = COMPARISONS.iter().find_map(|(sign, comparison)| {
            text.split_once(sign).map(|(path, value)| (path, *comparison, value))
        });
        let Some((path, comparison, value)) = operator else {
            return Some(Self { path: Self::parse_path(text)?, condition: None });
        };
        let value = value.trim();
        let value = match unquote(value) {
            Some(text) => Value::from(text),
            None => serde_json::from_str(value).ok()?,
        };
        Some(Self { path: Self::parse_path(path)?, condition: Some((comparison, value)) })
    }

    fn parse_path(text: &str) -> Option<JsonPath> {
        JsonPath::parse(text.trim().strip_prefix('@')?)
    }

    fn holds(&self, item: &Value) -> bool {
        let found = self.path.all(item);
        let Some((comparison, expected)) = &self.condition else { return !found.is_empty() };
        found.first().is_some_and(|found| comparison.holds(found, expected))
    }
}

// === impl Comparison ===

impl Comparison {
    fn holds(self, found: &Value, expected: &Value) -> bool {
        let order = match (found, expected) {
            (Value::String(found), Value::String(expected)) => Some(found.cmp(expected)),
            (Value::Number(found), Value::Number(expected)) => {
                found.as_f64().zip(expected.as_f64()).and_then(|(a, b)| a.partial_cmp(&b))
            }
            _ => None,
        };
        match self {
            Self::Equal => found == expected || order.is_some_and(std::cmp::Ordering::is_eq),
            Self::NotEqual => found != expected,
            Self::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Self::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Self::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Self::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn first(path: &str, object: &Value) -> Option<Value> {
        JsonPath::parse(path).unwrap().first(object.as_object().unwrap()).cloned()
    }

    #[test]
    fn paths_lead_to_fields_items_and_filtered_items() {
        let object = json!({
            "spec": {"a.b": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (path, expected) in [
            (".spec.a\\.b", json!(1)),
            (".spec['a.b']", json!(1)),
            (".spec.list[1].n", json!("y")),
            (".spec.list[-1].v", json!(2)),
            (".spec.list[*].v", json!(1)),
            (".spec.list[?(@.n==\"y\")].v", json!(2)),
            (".spec.list[?(@.v>1)].n", json!("y")),
            (".status.conditions[?(@.type == 'Ready')].status", json!("True")),
            (".status..status", json!("True")),
        ] {
            assert_eq!(first(path, &object), Some(expected), "{path}");
        }
        assert_eq!(first(".spec.list[7]", &object), None);
        assert_eq!(first(".spec.list[?(@.n!=\"x\")].none", &object), None);
    }

    #[test]
    fn malformed_path_is_refused() {
        for path in ["spec", ".spec[", ".spec[?(x)]", ".a..", ".spec[a]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
