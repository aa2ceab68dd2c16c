//! Label selectors: conditions on the labels of an object.
//!
//! A selector is parsed once and then matches without an allocation. The texts of its errors are
//! the API server's, because a test server and a client-side check must say the same as a real
//! server.
//!
//! [`parse`](LabelSelector::parse) reads the text form of a query. The builder methods read the
//! structured form (`matchLabels`, `matchExpressions`) of a `Deployment` or a `ReplicaSet`. Both
//! check each key and value when the requirement is added, so that a [`LabelSelector`] is always
//! valid.

mod parse;
mod requirement;
mod validation;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "k8s-openapi")]
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as metav1;

use self::requirement::{Operator, Requirement};
use crate::go_quote;

/// A label selector: an object matches if all requirements hold. The empty selector matches every
/// object.
///
/// It accepts what the API server accepts, and rejects the rest with the API server's text. Its
/// `Display` form is the one that the query parameter `labelSelector` takes; requirements are
/// sorted by key, as upstream prints them.
///
/// A requirement for a label that the object does not have holds for `!=`, `notin` and `!key`, and
/// for no other form.
///
/// Use it to decide which objects a controller owns, and to build a query. A match costs one
/// look-up in the labels for each requirement; `in` and `notin` add a look-up in the set of values.
///
/// # Examples
///
/// ```
/// use std::collections::BTreeMap;
///
/// use homeostat_core::LabelSelector;
///
/// let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
/// let selector = LabelSelector::parse("app in (web, api),!canary")?;
/// assert!(selector.matches(&labels));
///
/// let selector = LabelSelector::default()
///     .with_label("app", "web")?
///     .with_expression("tier", "NotIn", &["cache", "db"])?;
/// assert!(selector.matches(&labels));
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache,db)");
///
/// let error = LabelSelector::parse("a===b").unwrap_err();
/// assert_eq!(error.to_string(), "unable to parse requirement: found '=', expected: identifier");
/// # Ok::<_, homeostat_core::LabelSelectorError>(())
/// ```
#[doc(alias = "labels.Selector")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key. Requirements for one key keep the order in which they were given.
    requirements: Vec<Requirement>,
}

/// The API server would reject this label selector; the text is the API server's.
///
/// Several problems of one requirement are in one text: `[first, second]`. Show the text to the
/// user who wrote the selector; a retry does not help.
///
/// # Examples
///
/// ```
/// use homeostat_core::LabelSelector;
///
/// let error = LabelSelector::default().with_expression("tier", "In", &[]).unwrap_err();
/// let text = error.to_string();
/// assert!(text.ends_with("for 'in', 'notin' operators, values set can't be empty"), "{text}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(String);

// === impl LabelSelector ===

impl LabelSelector {
    /// Parses the text of the query parameter `labelSelector`: `a=b`, `a==b`, `a!=b`, `a in (x,y)`,
    /// `a notin (x)`, `a`, `!a`, `a>1` and `a<1`, joined by commas.
    ///
    /// White space between the parts is ignored. The text after a null byte is ignored as well, as
    /// the API server does.
    ///
    /// # Errors
    ///
    /// Fails if the text does not follow the grammar, or if no label can have such a key or value.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::LabelSelector;
    ///
    /// let selector = LabelSelector::parse(" tier in (db,cache) , app == web ")?;
    /// assert_eq!(selector.to_string(), "app=web,tier in (cache,db)");
    /// assert!(LabelSelector::parse("app in web").is_err());
    /// # Ok::<_, homeostat_core::LabelSelectorError>(())
    /// ```
    #[doc(alias = "labels.Parse")]
    pub fn parse(selector: &str) -> Result<Self, LabelSelectorError> {
        parse::requirements(selector).map(Self::from_requirements)
    }

    /// Adds an entry of `matchLabels`: the label `key` must have the value `value`.
    ///
    /// # Errors
    ///
    /// Fails if no label can have this key or this value.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::LabelSelector;
    ///
    /// let selector = LabelSelector::default().with_label("app", "web")?;
    /// assert_eq!(selector.to_string(), "app=web");
    /// assert!(LabelSelector::default().with_label("app", "-").is_err());
    /// # Ok::<_, homeostat_core::LabelSelectorError>(())
    /// ```
    pub fn with_label(mut self, key: &str, value: &str) -> Result<Self, LabelSelectorError> {
        self.requirements.push(Requirement::new(key, Operator::Equals, &[value])?);
        Ok(Self::from_requirements(self.requirements))
    }

    /// Adds an entry of `matchExpressions`. `operator` is `In`, `NotIn`, `Exists` or
    /// `DoesNotExist`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such operator, if `In` or `NotIn` has no value, if `Exists` or
    /// `DoesNotExist` has one, or if no label can have this key or one of these values.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::LabelSelector;
    ///
    /// let selector = LabelSelector::default()
    ///     .with_expression("canary", "DoesNotExist", &[])?
    ///     .with_expression("tier", "In", &["web", "api"])?;
    /// assert_eq!(selector.to_string(), "!canary,tier in (api,web)");
    /// # Ok::<_, homeostat_core::LabelSelectorError>(())
    /// ```
    pub fn with_expression(
        mut self,
        key: &str,
        operator: &str,
        values: &[&str],
    ) -> Result<Self, LabelSelectorError> {
        let operator = match operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                return Err(LabelSelectorError(format!(
                    "{} is not a valid label selector operator",
                    go_quote(other)
                )));
            }
        };
        self.requirements.push(Requirement::new(key, operator, values)?);
        Ok(Self::from_requirements(self.requirements))
    }

    /// Returns true if the selector has no requirement, and so matches every object.
    ///
    /// A controller whose selector is empty would claim every object of its namespace: upstream's
    /// `ReplicaSet` validation rejects that.
    #[doc(alias = "Empty")]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns true if an object with these labels matches. `None` means an object without labels.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use homeostat_core::LabelSelector;
    ///
    /// let selector = LabelSelector::parse("app!=web")?;
    /// let unlabelled: Option<&BTreeMap<String, String>> = None;
    /// assert!(selector.matches(unlabelled));
    /// assert!(!selector.matches(&BTreeMap::from([("app".into(), "web".into())])));
    /// # Ok::<_, homeostat_core::LabelSelectorError>(())
    /// ```
    #[doc(alias = "Matches")]
    pub fn matches<'a>(&self, labels: impl Into<Option<&'a BTreeMap<String, String>>>) -> bool {
        let labels = labels.into();
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }

    /// Sorts by key. The sort is stable: requirements for one key keep their order.
    fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key().cmp(other.key()));
        Self { requirements }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    fn from_str(selector: &str) -> Result<Self, LabelSelectorError> {
        Self::parse(selector)
    }
}

/// Converts as upstream's `LabelSelectorAsSelector`, except that upstream turns a missing selector
/// into one that matches nothing: that choice is the caller's here.
#[cfg(feature = "k8s-openapi")]
impl TryFrom<&metav1::LabelSelector> for LabelSelector {
    type Error = LabelSelectorError;

    fn try_from(selector: &metav1::LabelSelector) -> Result<Self, LabelSelectorError> {
        let mut converted = Self::default();
        for (key, value) in selector.match_labels.iter().flatten() {
            converted = converted.with_label(key, value)?;
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values: Vec<_> = expression.values.iter().flatten().map(String::as_str).collect();
            converted =
                converted.with_expression(&expression.key, &expression.operator, &values)?;
        }
        Ok(converted)
    }
}

#[cfg(test)]
mod tests;
