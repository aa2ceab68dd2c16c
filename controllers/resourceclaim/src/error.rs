//! Errors of a pass, with upstream's texts.

use homeostat::{Object as _, TerminalError};

use crate::pod::Pod;

/// The error of a pass. Its text contains its causes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The key is retried after a back-off.
    #[error("{0}")]
    Retry(String),
    /// The key is not retried before something changes.
    #[error(transparent)]
    Terminal(TerminalError),
}

// === impl Error ===

impl Error {
    pub(crate) fn retry(text: impl Into<String>) -> Self {
        Self::Retry(text.into())
    }

    pub(crate) fn terminal(text: impl Into<String>) -> Self {
        Self::Terminal(TerminalError::new(text.into()))
    }

    /// Returns the error of a member of a `PodGroup`, as upstream without `GenericWorkload`.
    pub(crate) fn pod_group(pod: &Pod, group: &str) -> Self {
        let pod = pod.key();
        Self::terminal(format!(
            "get PodGroup for Pod {pod}: Pod is a member of PodGroup {group} but GenericWorkload \
             feature is disabled"
        ))
    }
}
