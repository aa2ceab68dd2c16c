//! Continue tokens: the state that is listed, and the position of the client in it.

use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::go_base64::RAW_URL;
use crate::go_json::{kind_of, syntax_error};
use crate::status::{Failure, Result};

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Token {
    v: String,
    /// The revision of the first page; -1 continues with the present state.
    pub(super) rv: i64,
    /// The smallest key that may come next, below the list's path.
    start: String,
}

// === impl Token ===

impl Token {
    /// Returns the token that continues after `key`, which is relative to the list's path.
    pub(super) fn after(revision: u64, key: &str) -> Self {
        let rv = i64::try_from(revision).unwrap_or(i64::MAX);
        Self { v: "meta.k8s.io/v1".to_owned(), rv, start: format!("/{key}\0") }
    }

    /// Returns the token to use when this one has expired: the rest of the list, from the present
    /// state.
    pub(super) fn for_present_state(&self) -> Self {
        Self { rv: -1, start: self.start_key().to_owned(), v: self.v.clone() }
    }

    /// Returns the smallest key that may come next.
    pub(super) fn start_key(&self) -> &str {
        self.start.strip_prefix('/').unwrap_or(&self.start)
    }

    pub(super) fn encode(&self) -> String {
        RAW_URL.encode(serde_json::to_vec(self).expect("strings and a number are always JSON"))
    }

    pub(super) fn decode(text: &str) -> Result<Self> {
        let refusal = |detail: String| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {detail}"
            ))
        };
        let bytes = RAW_URL.decode(text).map_err(|error| {
            let at = match error {
                DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
                DecodeError::InvalidPadding => text.find('=').unwrap_or(text.len()),
                DecodeError::InvalidLength(_) => text.len() / 4 * 4,
            };
            refusal(format!("illegal base64 data at input byte {at}"))
        })?;
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| refusal(syntax_error(&bytes).unwrap_or_else(|| error.to_string())))?;
        let value = with_lower_case(value);
        if let Some(detail) = wrong_member(&value) {
            return Err(refusal(format!("json: cannot unmarshal {detail}")));
        }
        let token: Option<Self> =
            serde_json::from_value(value).map_err(|error| refusal(error.to_string()))?;
        let token = token.unwrap_or_default();
        let known = token.v == "meta.k8s.io/v1";
        let is_clean = |part: &str| !matches!(part, "" | "." | "..");
        let is_clean = token.start == "/" || token.start_key().split('/').all(is_clean);
        if !known {
            return Err(refusal(format!(
                "server does not recognize this encoded version {}",
                token.v
            )));
        }
        if token.start.is_empty() {
            return Err(refusal(format!("encoded start key empty (version {})", token.v)));
        }
        if token.rv == 0 {
            return Err(refusal(format!(
                "incorrect encoded start resourceVersion (version {})",
                token.v
            )));
        }
        if !is_clean {
            return Err(refusal(token.start));
        }
        Ok(token)
    }
}

/// Gives the members of an object names in lower case, and removes nulls: Go ignores both.
fn with_lower_case(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(members.map(|(name, value)| (name.to_lowercase(), value)).collect())
        }
        other => other,
    }
}

/// Returns Go's error about the first member of a token that has the wrong type.
fn wrong_member(token: &Value) -> Option<String> {
    let into = "into Go struct field continueToken";
    match token {
        Value::Null => None,
        Value::Object(members) => [("v", "string"), ("rv", "int64"), ("start", "string")]
            .iter()
            .find_map(|(name, expected)| {
                let value = members.get(*name).filter(|value| !value.is_null())?;
                let fits = if *expected == "int64" { value.is_i64() } else { value.is_string() };
                (!fits).then(|| format!("{} {into}.{name} of type {expected}", kind_of(value)))
            }),
        other => Some(format!("{} into Go value of type storage.continueToken", kind_of(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_has_upstreams_encoding() {
        let token = Token::after(24, "gen-qdkk5");
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjQsInN0YXJ0IjoiL2dlbi1xZGtrNVx1MDAwMCJ9";
        assert_eq!(token.encode(), text);
        assert_eq!(Token::decode(text).unwrap(), token);
        assert_eq!(token.start_key(), "gen-qdkk5\0");
    }

    #[test]
    fn bad_token_is_rejected_with_upstreams_text() {
        let refusal = Token::decode("garbage").unwrap_err();
        let expected = "invalid continue token: continue key is not valid: invalid character \
            '\\u0081' looking for beginning of value";
        assert_eq!(refusal.message, expected);
    }
}
