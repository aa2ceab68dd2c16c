//! The warnings and errors that the controllers of this process log.

use std::sync::LazyLock;

use homeostat_testing::RecordedLog;
use tracing::Level;
use tracing::subscriber::set_global_default;

/// The lines since [`record_warnings`].
static LOG: LazyLock<RecordedLog> = LazyLock::new(|| RecordedLog::new("homeostat", Level::WARN));

/// Keeps the warnings and errors from now on. Another call has no effect.
pub fn record_warnings() {
    // An error means that a subscriber is set already.
    drop(set_global_default(LOG.clone()));
}

/// Returns true if one line contains all of these texts.
pub(crate) fn has_line(texts: &[&str]) -> bool {
    LOG.count(texts) > 0
}
