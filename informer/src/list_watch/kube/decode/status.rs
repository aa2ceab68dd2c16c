//! Decodes a Status.
//!
//! Every member is optional, because servers and proxies send partial ones. Texts are borrowed from
//! the input where they hold no escape.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use crate::list_watch::ApiError;

/// The members of a `metav1.Status` that an [`ApiError`] keeps.
///
/// Unknown members are skipped. A body that is no Status at all is handled by the caller.
#[derive(Deserialize)]
pub(super) struct Status<'a> {
    #[serde(default)]
    code: u16,
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default)]
    details: Option<StatusDetails>,
    #[serde(default)]
    metadata: Option<StatusMetadata>,
}

/// The metadata of a Status, which offers a token after a list has expired.
#[derive(Deserialize)]
struct StatusMetadata {
    #[serde(default, rename = "continue")]
    continue_token: Option<String>,
}

/// The longest text of an [`ApiError`] in bytes. The error is kept and logged, and an `ERROR` event
/// may have 16 MiB.
const MAX_TEXT: usize = 4 << 10;

/// The largest number of causes of an [`ApiError`].
const MAX_CAUSES: usize = 16;

/// `retryAfterSeconds` of 0 counts as absent. Of the causes only the reasons are kept, for
/// predicates such as "resource version too large".
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct StatusDetails {
    #[serde(default)]
    retry_after_seconds: Option<u64>,
    #[serde(default)]
    causes: Option<Vec<StatusCause>>,
}

#[derive(Deserialize)]
struct StatusCause {
    #[serde(default)]
    reason: Option<String>,
}

impl From<Status<'_>> for ApiError {
    fn from(status: Status<'_>) -> Self {
        let details = status.details.unwrap_or_default();
        let text =
            |text: Option<Cow<'_, str>>| text.map(|text| shortened(&text)).unwrap_or_default();
        let mut error = Self::new(status.code, text(status.reason), text(status.message));
        error.retry_after =
            details.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        error.causes = details
            .causes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|cause| cause.reason)
            .take(MAX_CAUSES)
            .map(|reason| shortened(&reason))
            .collect();
        let token = status.metadata.and_then(|metadata| metadata.continue_token);
        match token.filter(|token| !token.is_empty()) {
            Some(token) => error.with_continue_token(token),
            None => error,
        }
    }
}

/// Returns the text, cut after 4 KiB.
///
/// The cut is at a character boundary; `…` marks it.
fn shortened(text: &str) -> String {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}
