//! What happened, in order, with the time and the client.

use std::{fmt, sync::Arc, time::Duration};

use super::call::Call;

/// What happened to the clients of a [`Faults`](super::Faults), one entry per fault, in order; print it when a test
/// fails.
///
/// ```text
///   0.000000 controller#4 create pods in default: reply lost (201 Created)
///   0.800000 controller watch pods: reset in the middle of a line
///   1.500000 server: compacted at 57
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    entries: Vec<Entry>,
}

/// One line of a [`Trace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    at: Duration,
    /// Empty: nobody in particular, or a client without a name.
    client: Arc<str>,
    /// The how-manieth request of that client.
    call: Option<u64>,
    words: String,
    is_fault: bool,
}

// === impl Trace ===

impl Trace {
    /// The lines, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What was done, without times and clients.
    pub fn words(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.words.as_str()).collect()
    }

    /// How many faults there were; what was recorded besides does not count.
    pub fn faults(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_fault).count()
    }

    pub(super) fn push(&mut self, entry: Entry) {
        tracing::debug!(client = &*entry.client, call = entry.call, "{}", entry.words);
        self.entries.push(entry);
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

// === impl Entry ===

impl Entry {
    /// Something that happened to a request, the `number`th of its client.
    pub(super) fn of(at: Duration, call: &Call, number: Option<u64>, words: &str) -> Self {
        let words = format!("{call}: {words}");
        Self { at, client: Arc::clone(&call.client), call: number, words, is_fault: true }
    }

    /// Something that happened to somebody, or to everybody.
    pub(super) fn at(at: Duration, client: Arc<str>, words: String) -> Self {
        Self { at, client, call: None, words, is_fault: true }
    }

    /// The same, but it is no fault: the conversation as it went.
    pub(super) fn told(self) -> Self {
        Self { is_fault: false, ..self }
    }

    /// When: the time since the faults were made.
    pub fn at_time(&self) -> Duration {
        self.at
    }

    /// To whom; empty: to nobody in particular, or to a client without a name.
    pub fn client(&self) -> &str {
        &self.client
    }

    /// Which of the client's requests, counted from one.
    pub fn call(&self) -> Option<u64> {
        self.call
    }

    /// What.
    pub fn words(&self) -> &str {
        &self.words
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6} ", self.at.as_secs_f64())?;
        match (&*self.client, self.call) {
            ("", None) => {}
            (client, None) => write!(f, "{client} ")?,
            (client, Some(call)) => write!(f, "{client}#{call} ")?,
        }
        f.write_str(&self.words)
    }
}
