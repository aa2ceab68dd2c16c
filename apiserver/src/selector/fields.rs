//! Field selectors: `path=value` and `path!=value`.

use std::borrow::Cow;

use super::SelectorError;

/// A parsed field selector: all its terms must hold. The empty one selects everything.
///
/// Which paths a kind supports is not known here: check [`requirements`](Self::requirements).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// In the order of their text, as a real server sorts them.
    terms: Vec<Term>,
}

/// How a field compares to the value of its term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// `=` or `==`.
    Equals,
    /// `!=`.
    NotEquals,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: String,
    operator: FieldOperator,
    value: String,
}

// === impl Fields ===

impl Fields {
    /// Parses `path=value`, `path==value` and `path!=value`, joined by commas. In values, `\\`, `\,` and `\=` stand for
    /// the second character.
    ///
    /// # Errors
    ///
    /// When a term has no operator, or its value has a bad escape or an unescaped `=`.
    pub fn parse(selector: &str) -> Result<Self, SelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let terms = terms
            .into_iter()
            .filter(|term| !term.is_empty())
            .map(|term| Term::parse(selector, term))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// True if every object matches.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms: path, operator, value.
    pub fn requirements(&self) -> impl Iterator<Item = (&str, FieldOperator, &str)> {
        self.terms.iter().map(|term| (term.path.as_str(), term.operator, term.value.as_str()))
    }

    /// Whether an object with these fields is selected. A field that is not there counts as empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.terms.iter().all(|term| {
            let equal = field(&term.path).unwrap_or_default() == term.value;
            equal == (term.operator == FieldOperator::Equals)
        })
    }
}

// === impl Term ===

impl Term {
    fn parse(selector: &str, term: &str) -> Result<Self, SelectorError> {
        let (path, operator, value) = split_operator(term).ok_or_else(|| {
            SelectorError(format!("invalid selector: '{selector}'; can't understand '{term}'"))
        })?;
        Ok(Self { path: path.to_owned(), operator, value: unescape(value)? })
    }
}

/// Splits at the commas that no backslash precedes.
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

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            // Real servers print the character as a number.
            ',' | '=' => {
                return Err(SelectorError(format!(
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

    use super::{FieldOperator::*, *};

    fn terms(selector: &str) -> Vec<(String, FieldOperator, String)> {
        Fields::parse(selector)
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
        assert!(Fields::parse("").unwrap().is_empty());
        assert!(Fields::parse(",").unwrap().is_empty());
    }

    #[test]
    fn values_are_unescaped() {
        assert_eq!(terms(r"k=a\,b\=c\\"), [term("k", Equals, r"a,b=c\")]);
        assert_eq!(terms(r"k=a\\,l=b"), [term("k", Equals, r"a\"), term("l", Equals, "b")]);
    }

    #[test]
    fn bad_selectors_are_refused_in_the_servers_words() {
        for (selector, message) in [
            ("x", "invalid selector: 'x'; can't understand 'x'"),
            ("a=b,x!y", "invalid selector: 'a=b,x!y'; can't understand 'x!y'"),
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (r"a=b\c", r"invalid field selector: invalid escape sequence: \c"),
            (r"a=b\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(Fields::parse(selector).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_missing_field_is_an_empty_one() {
        let unscheduled = Fields::parse("spec.nodeName=").unwrap();
        assert!(unscheduled.matches(|_| None));
        assert!(unscheduled.matches(|_| Some("".into())));
        assert!(!unscheduled.matches(|_| Some("node".into())));
        let scheduled = Fields::parse("spec.nodeName!=").unwrap();
        assert!(!scheduled.matches(|_| None));
        assert!(scheduled.matches(|_| Some("node".into())));
    }

    #[test]
    fn all_terms_must_hold() {
        let fields = Fields::parse("a=1,b!=2").unwrap();
        assert!(fields.matches(|_| Some("1".into())));
        assert!(!fields.matches(|_| Some("2".into())));
    }

    proptest! {
        #[test]
        fn an_escaped_value_is_read_back(value in r"[a\\,=!é]{0,8}") {
            let escaped = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
            prop_assert_eq!(terms(&format!("k!={escaped}")), [term("k", NotEquals, &value)]);
        }

        #[test]
        fn nothing_panics(selector in r"[ab!=\\,é]{0,10}") {
            let _outcome = Fields::parse(&selector);
        }
    }
}
