//! The limits of a value, as an `OpenAPI` v3 schema states them.

use std::sync::Arc;

use regex::Regex;
use serde_json::{Number, Value};

use crate::go_pattern;

/// The limits of a value that an `OpenAPI` v3 schema can state.
///
/// # Examples
///
/// ```
/// use homeostat_schema::Constraints;
///
/// let replicas = Constraints { minimum: Some(1.into()), ..Constraints::default() };
/// assert!(!replicas.exclusive_minimum);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// The format's name, such as `date-time`. An unknown name is ignored.
    pub format: Option<String>,
    /// The allowed values; empty for any.
    pub allowed: Vec<Value>,
    /// The smallest number.
    pub minimum: Option<Number>,
    /// True if the number must be larger than `minimum`.
    pub exclusive_minimum: bool,
    /// The largest number.
    pub maximum: Option<Number>,
    /// True if the number must be smaller than `maximum`.
    pub exclusive_maximum: bool,
    /// A number that divides the value.
    pub multiple_of: Option<Number>,
    /// The smallest number of characters.
    pub min_length: Option<u64>,
    /// The largest number of characters.
    pub max_length: Option<u64>,
    /// A regular expression that the text must contain.
    pub pattern: Option<Pattern>,
    /// The smallest number of items.
    pub min_items: Option<u64>,
    /// The largest number of items.
    pub max_items: Option<u64>,
    /// True if no item may occur twice.
    pub unique_items: bool,
    /// The smallest number of fields.
    pub min_properties: Option<u64>,
    /// The largest number of fields.
    pub max_properties: Option<u64>,
    /// The names of required fields.
    pub required: Vec<String>,
    /// Conditions that must all hold.
    pub all_of: Vec<Condition>,
    /// Conditions of which one or more must hold.
    pub any_of: Vec<Condition>,
    /// Conditions of which exactly one must hold.
    pub one_of: Vec<Condition>,
    /// A condition that must not hold.
    pub not: Option<Box<Condition>>,
}

/// The limits inside `allOf`, `anyOf`, `oneOf` or `not`. A condition declares no types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// The type's name, where `x-kubernetes-int-or-string` has one; else `None`.
    pub type_name: Option<String>,
    /// The limits of the value.
    pub constraints: Constraints,
    /// The limits of fields.
    pub fields: Vec<(String, Self)>,
    /// The limits of the fields of a map.
    pub values: Option<Box<Self>>,
    /// The limits of the items of a list.
    pub items: Option<Box<Self>>,
}

/// A regular expression, compiled once. It takes time linear in the text.
///
/// # Examples
///
/// ```
/// use homeostat_schema::Pattern;
///
/// let pattern = Pattern::new("^[a-z]+$").unwrap();
/// assert!(pattern.is_match("abc") && !pattern.is_match("A"));
/// assert!(Pattern::new("(").is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Arc<str>,
    compiled: Arc<Regex>,
}

// === impl Constraints ===

impl Constraints {
    /// Returns true if there are no limits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

// === impl Pattern ===

impl Pattern {
    /// Compiles an expression in the syntax of Go, of at most 1 MiB of compiled size.
    ///
    /// # Errors
    ///
    /// Returns the reason if the expression is invalid or too large.
    pub fn new(text: &str) -> Result<Self, String> {
        let compiled = go_pattern::compile(text).map_err(|error| error.to_string())?;
        Ok(Self { text: text.into(), compiled: Arc::new(compiled) })
    }

    /// Returns the expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if `text` contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
