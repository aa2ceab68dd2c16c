//! The query: what it says, and what is wrong with it.

use serde_json::json;

use crate::admission::delete::{DeleteOptions, Preconditions};
use crate::status::{Cause, Failure, Result};

/// The parameters of a query, decoded.
#[derive(Debug, Default)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
}

/// How a resourceVersion is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Unset,
    Exact,
    NotOlderThan,
}

// === impl Params ===

impl Params {
    /// Reads a query. A pair that cannot be decoded is left out, as Go does.
    pub(crate) fn parse(query: &str) -> Self {
        let mut pairs = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if let (Some(key), Some(value)) = (decode(key, true), decode(value, true)) {
                pairs.push((key, value));
            }
        }
        Self { pairs }
    }

    /// The first value of a parameter; empty when there is none.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.find(key).unwrap_or("")
    }

    fn find(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// True for anything but "0" and "false", also for nothing at all: `?watch`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.find(key).is_some_and(|value| !matches!(value, "0" | "false" | "False" | "FALSE"))
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>> {
        match self.get(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!(
                    "strconv.ParseInt: parsing \"{text}\": invalid syntax"
                ))
            }),
        }
    }

    pub(crate) fn version_match(&self) -> Result<Match> {
        match self.get("resourceVersionMatch") {
            "" => Ok(Match::Unset),
            "Exact" => Ok(Match::Exact),
            "NotOlderThan" => Ok(Match::NotOlderThan),
            other => {
                let supported = ["Exact", "NotOlderThan", ""];
                let cause = Cause::unsupported("resourceVersionMatch", &json!(other), &supported);
                Err(Failure::invalid_options("ListOptions", cause))
            }
        }
    }

    /// Whether the write is only tried.
    pub(crate) fn is_dry_run(&self, options: &str) -> Result<bool> {
        let values: Vec<&str> = self
            .pairs
            .iter()
            .filter(|(key, _)| key == "dryRun")
            .map(|(_, value)| value.as_str())
            .collect();
        check_dry_run(&values, options)
    }

    /// The options of a delete without a body.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        let text = |key: &str| self.find(key).map(str::to_owned);
        Ok(DeleteOptions {
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            preconditions: None::<Preconditions>,
            propagation_policy: text("propagationPolicy"),
            orphan_dependents: self.find("orphanDependents").map(|_| self.flag("orphanDependents")),
            dry_run: self
                .pairs
                .iter()
                .filter(|(key, _)| key == "dryRun")
                .map(|(_, value)| value.clone())
                .collect(),
        })
    }
}

/// Whether `dryRun` holds what it may hold.
pub(crate) fn check_dry_run(values: &[&str], options: &str) -> Result<bool> {
    match values {
        [] => Ok(false),
        all if all.iter().all(|value| *value == "All") => Ok(true),
        other => {
            let cause = Cause::unsupported("dryRun", &json!(other), &["All"]);
            Err(Failure::invalid_options(options, cause))
        }
    }
}

/// Decodes percent signs, and pluses where they stand for spaces.
pub(super) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' if plus_is_space => bytes.push(b' '),
            b'%' => {
                let (digits, tail) = rest.split_at_checked(2)?;
                let digits = std::str::from_utf8(digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = tail;
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = "labelSelector=a%3Db%2Cc+in+%28d%29&watch&allowWatchBookmarks=0&x=%zz";
        let params = Params::parse(query);
        assert_eq!(params.find("x"), None);
        assert_eq!(params.get("labelSelector"), "a=b,c in (d)");
        assert!(params.flag("watch"));
        assert!(!params.flag("allowWatchBookmarks"));
        assert!(!params.flag("missing"));
    }
}
