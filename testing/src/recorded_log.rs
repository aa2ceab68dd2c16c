//! The log lines of a controller, for a test that reads them.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// A [`tracing`] subscriber that keeps the log lines of a test: `WARN message=… informer=…`.
///
/// Set it with `tracing::subscriber::set_default`, which holds for the thread of the test: a
/// [`Simulation`](crate::Simulation) runs on that thread alone. A clone has the same lines.
///
/// # Examples
///
/// ```
/// use homeostat_testing::RecordedLog;
/// use tracing::Level;
/// use tracing::subscriber::with_default;
///
/// let log = RecordedLog::new("shop", Level::INFO);
/// with_default(log.clone(), || {
///     tracing::warn!(target: "shop::orders", key = "north/7", "not reconciled");
///     tracing::debug!(target: "shop::orders", "not kept");
///     tracing::warn!(target: "hyper", "not kept");
/// });
/// assert_eq!(log.lines(), ["WARN message=not reconciled key=\"north/7\""]);
/// assert_eq!(log.count(&["WARN", "north/7"]), 1);
/// ```
#[derive(Debug, Clone)]
pub struct RecordedLog {
    target: &'static str,
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

/// The level of one line and its fields, as `name=value`.
struct Line(String);

/// A second dispatcher. With one alone, `tracing` asks the subscriber of the thread that first
/// reaches a log line whether any thread wants it; with two it asks each of them.
static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

// === impl RecordedLog ===

impl RecordedLog {
    /// Returns a log that keeps lines of `level` and above whose target begins with `target`: the
    /// name of a crate, or the common prefix of several.
    pub fn new(target: &'static str, level: Level) -> Self {
        LazyLock::force(&OTHER);
        Self { target, level, lines: Arc::default() }
    }

    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Returns the number of lines that contain each of `texts`.
    pub fn count(&self, texts: &[&str]) -> usize {
        let lines = self.lines.lock();
        lines.iter().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    }
}

impl Subscriber for RecordedLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with(self.target)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// === impl Line ===

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        write!(self.0, " {field}={value:?}").unwrap_or_default();
    }
}
