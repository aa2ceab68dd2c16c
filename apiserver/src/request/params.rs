//! The query of a request.

use std::borrow::Cow;
use std::time::Duration;

use homeostat_core::parse_go_duration;

use crate::admission::delete::{DeleteOptions, IGNORE_READ_ERRORS, Preconditions};
use crate::go_json::{GoInteger, parse_integer};
use crate::status::{Failure, Result};

/// The time that the real server gives to any request (`--request-timeout`). A client may set less.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The parameters of a query, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
}

// === impl Params ===

impl Params {
    /// Parses a query. A pair that cannot be decoded is ignored, as in Go.
    pub(crate) fn parse(query: &str) -> Self {
        let mut pairs = Vec::new();
        // Go ignores pairs with a semicolon, which was once a separator.
        for part in query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if let (Some(key), Some(value)) = (decode(key, true), decode(value, true)) {
                pairs.push((key.into_owned(), value.into_owned()));
            }
        }
        Self { pairs }
    }

    /// Returns the first value of a parameter; empty if there is none.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.find(key).unwrap_or("")
    }

    fn find(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns true if a parameter is present, even if it is empty.
    pub(crate) fn is_present(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Returns all values of a parameter.
    pub(crate) fn all(&self, key: &str) -> Vec<&str> {
        let values = self.pairs.iter().filter(|(known, _)| known == key);
        values.map(|(_, value)| value.as_str()).collect()
    }

    /// Returns true for any value but "0" and "false", also for an empty one: `?watch`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.find(key).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Returns the time that the client gives to the request; `None` if that is no less than the
    /// server's own limit.
    pub(crate) fn time_limit(&self) -> Option<Duration> {
        let nanoseconds = parse_go_duration(self.get("timeout")).ok()?;
        let limit = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        (!limit.is_zero() && limit < MAX_TIME).then_some(limit)
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>> {
        let Some(text) = self.find(key) else { return Ok(None) };
        parse_integer(text, GoInteger::Int).map(Some).map_err(Failure::bad_request)
    }

    fn preconditions(&self) -> Option<Preconditions> {
        let text = |key: &str| self.find(key).filter(|text| !text.is_empty()).map(str::to_owned);
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        let is_any = uid.is_some() || resource_version.is_some();
        is_any.then_some(Preconditions { uid, resource_version })
    }

    /// Returns the options of a delete without a body.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        let text = |key: &str| self.find(key).map(str::to_owned);
        Ok(DeleteOptions {
            grace_period_seconds: self.number("gracePeriodSeconds")?,
            preconditions: self.preconditions(),
            propagation_policy: text("propagationPolicy"),
            orphan_dependents: self.find("orphanDependents").map(|_| self.flag("orphanDependents")),
            dry_run: self.all("dryRun").into_iter().map(str::to_owned).collect(),
            ignores_read_errors: self
                .find(IGNORE_READ_ERRORS)
                .map(|_| self.flag(IGNORE_READ_ERRORS)),
        })
    }
}

/// Decodes percent signs, and pluses if they stand for spaces. Invalid UTF-8 is replaced.
fn decode(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' if plus_is_space => bytes.push(b' '),
            b'%' => {
                let (digits, tail) = rest.split_at_checked(2)?;
                let [high, low] =
                    [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
                bytes.push(u8::try_from(high? * 16 + low?).ok()?);
                rest = tail;
            }
            other => bytes.push(other),
        }
    }
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Decodes the percent signs of a path.
pub(crate) fn decode_lossy(path: &str) -> Option<Cow<'_, str>> {
    decode(path, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_is_decoded() {
        let query = "labelSelector=a%3Db%2Cc+in+%28d%29&watch&allowWatchBookmarks=0&x=%zz";
        let params = Params::parse(query);
        assert_eq!(params.find("x"), None);
        assert_eq!(params.get("labelSelector"), "a=b,c in (d)");
        assert!(params.flag("watch"));
        assert!(!params.flag("allowWatchBookmarks"));
        assert!(!params.flag("missing"));
    }
}
