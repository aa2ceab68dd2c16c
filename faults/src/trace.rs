//! The record of all faults, in order, with the time and the client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::request_info::ClientRequest;

/// The record of the faults that a [`Faults`](crate::Faults) injected, one entry per fault, in
/// order.
///
/// A test prints it when it fails:
///
/// ```text
///   0.000000 controller#4 create pods in default: reply lost (201 Created)
///   0.800000 controller watch pods: reset in the middle of a line
///   1.500000 server: compacted at 57
/// ```
///
/// The number after `#` is the position of the request among all requests of the client.
///
/// The trace keeps at least the newest 100,000 entries, and drops the oldest ones of a long run.
/// The counts include them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    entries: Vec<TraceEntry>,
    /// The number of entries that were dropped.
    dropped: usize,
    faults: usize,
    /// The events that watches have delivered, by client, resource and group.
    events: BTreeMap<(Arc<str>, String), u64>,
}

/// The number of entries that are kept at least; at most there are twice as many.
const KEPT: usize = 100_000;

/// One line of a [`Trace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    elapsed: Duration,
    /// Empty for the server, and for a client without a name.
    client: Arc<str>,
    /// Position of the request among those of the client.
    request_number: Option<u64>,
    message: String,
    is_fault: bool,
    /// The resource with its group, if the entry is an event of a watch.
    event_of: Option<String>,
}

// === impl Trace ===

impl Trace {
    /// Returns the entries that are kept, in order.
    pub fn entries(&self) -> &[TraceEntry] {
        &self.entries
    }

    /// Returns the messages, without times and clients.
    pub fn messages(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.message.as_str()).collect()
    }

    /// Returns the number of faults. Traffic that was recorded besides does not count.
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// Returns the number of entries that were dropped because the run was long.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns the number of events that the watches of the clients of this name have delivered, by
    /// resource and group, bookmarks included: `pods`, `replicasets.apps`. They are recorded after
    /// [`Faults::trace_traffic`](crate::Faults::trace_traffic).
    pub fn events_by(&self, client: &str) -> BTreeMap<&str, u64> {
        let counts = self.events.iter().filter(|((name, _), _)| **name == *client);
        counts.map(|((_, resource), count)| (resource.as_str(), *count)).collect()
    }

    pub(crate) fn push(&mut self, entry: TraceEntry) {
        tracing::debug!(
            client = &*entry.client,
            request = entry.request_number,
            "{}",
            entry.message
        );
        self.faults += usize::from(entry.is_fault);
        if let Some(resource) = &entry.event_of {
            let key = (Arc::clone(&entry.client), resource.clone());
            *self.events.entry(key).or_insert(0) += 1;
        }
        // Half of them at once: each entry is moved once at most.
        if self.entries.len() == 2 * KEPT {
            self.entries.drain(..KEPT);
            self.dropped += KEPT;
        }
        self.entries.push(entry);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "{} older entries were dropped", self.dropped)?;
        }
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

// === impl TraceEntry ===

impl TraceEntry {
    /// Creates the entry of a fault on a request, the `number`th of its client.
    pub(crate) fn of_request(
        elapsed: Duration,
        request: &ClientRequest,
        number: Option<u64>,
        message: &str,
    ) -> Self {
        let message = format!("{request}: {message}");
        let client = Arc::clone(&request.client);
        Self { elapsed, client, request_number: number, message, is_fault: true, event_of: None }
    }

    /// Creates the entry of a fault on a client, or on the server if `client` is empty.
    pub(crate) fn of_client(elapsed: Duration, client: Arc<str>, message: String) -> Self {
        Self { elapsed, client, request_number: None, message, is_fault: true, event_of: None }
    }

    /// Marks the entry as traffic instead of a fault.
    pub(crate) fn into_traffic(self) -> Self {
        Self { is_fault: false, ..self }
    }

    /// Marks the entry as an event of a watch of this resource, which has its group.
    pub(crate) fn into_event(self, resource: String) -> Self {
        Self { event_of: Some(resource), ..self.into_traffic() }
    }

    /// Returns the time of the entry since the creation of the [`Faults`](crate::Faults).
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Returns the name of the client; empty for the server and for a client without a name.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Returns the position of the request among those of its client, counted from 1.
    pub fn request_number(&self) -> Option<u64> {
        self.request_number
    }

    /// Returns the description of what happened.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} ", self.elapsed.as_secs_f64())?;
        match (&*self.client, self.request_number) {
            ("", None) => {}
            (client, None) => write!(f, "{client} ")?,
            (client, Some(number)) => write!(f, "{client}#{number} ")?,
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_of_a_long_run_keeps_the_newest_entries_and_all_counts() {
        let mut trace = Trace::default();
        for number in 0..=2 * KEPT {
            let message = format!("note {number}");
            trace.push(TraceEntry::of_client(Duration::ZERO, Arc::default(), message));
        }
        assert_eq!(trace.entries().len(), KEPT + 1);
        assert_eq!((trace.dropped(), trace.faults()), (KEPT, 2 * KEPT + 1));
        assert_eq!(trace.messages()[0], format!("note {KEPT}"));
        assert!(trace.to_string().starts_with("100000 older entries were dropped\n"));
    }
}
