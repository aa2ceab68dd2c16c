//! Places that may break a rule, each for a reason.

use super::Finding;

/// Most exceptions that the list may hold.
const LIMIT: usize = 20;

/// The list of exceptions, read from its text.
///
/// Each line is `path: rule: words: reason`: findings of that rule with those words in that file
/// are allowed. Empty lines and lines that begin with `#` are comments.
#[derive(Debug, Default)]
pub struct Exceptions {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    line: String,
    path: String,
    rule: String,
    words: String,
    used: bool,
}

// === impl Exceptions ===

impl Exceptions {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// Fails if a line has no reason, or if there are more than 20 of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut entries = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<_> = line.splitn(4, ": ").collect();
            let &[path, rule, words, reason] = parts.as_slice() else {
                return Err(format!("exception without a reason: {line}"));
            };
            if reason.trim().is_empty() {
                return Err(format!("exception without a reason: {line}"));
            }
            let (line, path, rule) = (line.to_owned(), path.to_owned(), rule.to_owned());
            entries.push(Entry { line, path, rule, words: words.to_owned(), used: false });
        }
        if entries.len() > LIMIT {
            return Err(format!("{} exceptions, at most {LIMIT} are allowed", entries.len()));
        }
        Ok(Self { entries })
    }

    /// Returns true if `finding` is on the list, and notes that its entry is in use.
    pub fn allow(&mut self, finding: &Finding) -> bool {
        let entry = self.entries.iter_mut().find(|entry| {
            entry.path == finding.path && entry.rule == finding.rule && entry.words == finding.found
        });
        entry.map(|entry| entry.used = true).is_some()
    }

    /// Returns the lines that allowed nothing.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| !entry.used).map(|entry| entry.line.as_str())
    }
}
