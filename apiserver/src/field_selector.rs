//! Field selectors, as they stand in the query of a LIST, WATCH or DELETE: `path=value` and
//! `path!=value`.
//!
//! They accept what the API server accepts, and reject the rest with its text. Label selectors are
//! [`homeostat_core::LabelSelector`].

use std::borrow::Cow;

/// A parsed field selector: an object matches if all terms hold. The empty selector matches every
/// object.
///
/// The parser does not know which paths a kind supports: check
/// [`requirements`](Self::requirements).
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::field_selector::FieldSelector;
///
/// let selector = FieldSelector::parse("spec.nodeName=,status.phase!=Failed")?;
/// assert!(selector.matches(|path| (path == "status.phase").then(|| "Running".into())));
/// assert!(!selector.matches(|path| (path == "spec.nodeName").then(|| "node-1".into())));
/// # Ok::<_, homeostat_apiserver::field_selector::FieldSelectorError>(())
/// ```
#[doc(alias = "fields.Selector")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Sorted by their text, as the API server sorts them.
    terms: Vec<Term>,
}

/// The comparison between a field and the value of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

/// The text is no field selector. The error's text is the message of the 400 that the API server
/// answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldSelectorError(String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: String,
    operator: FieldOperator,
    value: String,
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Parses `path=value`, `path==value` and `path!=value`, joined by commas. In values, `\\`,
    /// `\,` and `\=` stand for the second character.
    ///
    /// # Errors
    ///
    /// Fails if a term has no operator, or if its value has a bad escape or an unescaped `=`.
    #[doc(alias = "ParseSelector")]
    pub fn parse(selector: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let terms = terms
            .into_iter()
            .filter(|term| !term.is_empty())
            .map(|term| Term::parse(selector, term))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// Returns true if the selector has no term, and so matches every object.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the terms: path, operator, value.
    pub fn requirements(&self) -> impl Iterator<Item = (&str, FieldOperator, &str)> {
        self.terms.iter().map(|term| (term.path.as_str(), term.operator, term.value.as_str()))
    }

    /// Returns true if an object with these fields matches. A missing field counts as empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.terms.iter().all(|term| {
            let equal = field(&term.path).unwrap_or_default() == term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }
}

// === impl Term ===

impl Term {
    fn parse(selector: &str, term: &str) -> Result<Self, FieldSelectorError> {
        let (path, operator, value) = split_operator(term).ok_or_else(|| {
            FieldSelectorError(format!("invalid selector: '{selector}'; can't understand '{term}'"))
        })?;
        Ok(Self { path: path.to_owned(), operator, value: unescape(value)? })
    }
}

/// Splits at each comma that is not escaped by a backslash.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut escaped = false;
    selector
        .split(|character| {
            let splits = character == ',' && !escaped;
            escaped = character == '\\' && !escaped;
            splits
        })
        .collect()
}

/// Splits at the first operator.
fn split_operator(term: &str) -> Option<(&str, FieldOperator, &str)> {
    let at = term
        .match_indices(['=', '!'])
        .map(|(at, _)| at)
        .find(|&at| term[at..].starts_with('=') || term[at..].starts_with("!="))?;
    let (path, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((path, FieldOperator::NotEquals, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((path, FieldOperator::Equals, value))
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(FieldSelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            // The API server prints the character as a number.
            ',' | '=' => {
                return Err(FieldSelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(character)
                )));
            }
            plain_character => plain.push(plain_character),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::FieldOperator::{Equals, NotEquals};
    use super::*;

    fn terms(selector: &str) -> Vec<(String, FieldOperator, String)> {
        FieldSelector::parse(selector)
            .unwrap()
            .requirements()
            .map(|(path, operator, value)| (path.to_owned(), operator, value.to_owned()))
            .collect()
    }

    fn term(path: &str, operator: FieldOperator, value: &str) -> (String, FieldOperator, String) {
        (path.to_owned(), operator, value.to_owned())
    }

    #[test]
    fn terms_have_a_path_an_operator_and_a_value() {
        assert_eq!(
            terms("metadata.name=a,b==c,d!=e,,f="),
            [
                term("b", Equals, "c"),
                term("d", NotEquals, "e"),
                term("f", Equals, ""),
                term("metadata.name", Equals, "a"),
            ]
        );
        assert!(FieldSelector::parse("").unwrap().is_empty());
        assert!(FieldSelector::parse(",").unwrap().is_empty());
    }

    #[test]
    fn values_are_unescaped() {
        assert_eq!(terms(r"k=a\,b\=c\\"), [term("k", Equals, r"a,b=c\")]);
        assert_eq!(terms(r"k=a\\,l=b"), [term("k", Equals, r"a\"), term("l", Equals, "b")]);
    }

    #[test]
    fn bad_selectors_are_rejected_with_the_servers_text() {
        for (selector, message) in [
            ("x", "invalid selector: 'x'; can't understand 'x'"),
            ("a=b,x!y", "invalid selector: 'a=b,x!y'; can't understand 'x!y'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(FieldSelector::parse(selector).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn missing_field_counts_as_empty() {
        let unscheduled = FieldSelector::parse("spec.nodeName=").unwrap();
        assert!(unscheduled.matches(|_| None));
        assert!(unscheduled.matches(|_| Some("".into())));
        assert!(!unscheduled.matches(|_| Some("node".into())));
        let scheduled = FieldSelector::parse("spec.nodeName!=").unwrap();
        assert!(!scheduled.matches(|_| None));
        assert!(scheduled.matches(|_| Some("node".into())));
    }

    #[test]
    fn all_terms_must_hold() {
        let fields = FieldSelector::parse("a=1,b!=2").unwrap();
        assert!(fields.matches(|_| Some("1".into())));
        assert!(!fields.matches(|_| Some("2".into())));
    }

    proptest! {
        #[test]
        fn escaped_value_is_read_back(value in r"[a\\,=!é]{0,8}") {
            let escaped = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
            prop_assert_eq!(terms(&format!("k!={escaped}")), [term("k", NotEquals, &value)]);
        }

        #[test]
        fn parser_never_panics(selector in r"[ab!=\\,é]{0,10}") {
            let _outcome = FieldSelector::parse(&selector);
        }
    }
}
