//! A refusal.

use std::{borrow::Cow, time::Duration};

use serde::Deserialize;

use crate::list_watch::Refusal;

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
}

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

impl From<Status<'_>> for Refusal {
    fn from(status: Status<'_>) -> Self {
        let details = status.details.unwrap_or_default();
        let text = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned).unwrap_or_default();
        let mut refusal = Self::new(status.code, text(status.reason), text(status.message));
        refusal.retry_after =
            details.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        refusal.causes = details
            .causes
            .unwrap_or_default()
            .into_iter()
            .filter_map(|cause| cause.reason)
            .collect();
        refusal
    }
}
