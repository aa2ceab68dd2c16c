//! Compiled patterns.
//!
//! Most expressions have constant patterns, and a pattern takes about a thousand times as long to
//! compile as to match a short text. So each thread keeps those that it used last.

use std::cell::RefCell;

use regex::Regex;

use crate::go_pattern::{self, PatternError};

/// The number of patterns that a thread keeps. Each one has at most 1 MiB of compiled size.
const KEPT: usize = 32;

thread_local! {
    static LAST: RefCell<Patterns> = RefCell::default();
}

/// The patterns that were used last, the latest one at the end.
#[derive(Debug, Default)]
struct Patterns {
    kept: Vec<(Box<str>, Regex)>,
}

/// Compiles a pattern, unless the thread has it.
///
/// # Errors
///
/// Returns Go's reason if Go cannot read the pattern.
pub(super) fn compiled(pattern: &str) -> Result<Regex, PatternError> {
    LAST.with_borrow_mut(|patterns| patterns.get(pattern))
}

// === impl Patterns ===

impl Patterns {
    fn get(&mut self, pattern: &str) -> Result<Regex, PatternError> {
        let entry = match self.kept.iter().rposition(|(known, _)| **known == *pattern) {
            Some(at) => self.kept.remove(at),
            None => (pattern.into(), go_pattern::compile(pattern)?),
        };
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        let regex = entry.1.clone();
        self.kept.push(entry);
        Ok(regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_kept_while_it_is_among_the_last() {
        let mut patterns = Patterns::default();
        assert!(patterns.get("(").is_err());
        for number in 0..KEPT {
            assert!(patterns.get(&format!("^a{number}$")).unwrap().is_match(&format!("a{number}")));
        }
        // The first one is used again, so that the second one is the oldest.
        patterns.get("^a0$").unwrap();
        assert!(patterns.get("^b$").unwrap().is_match("b"));
        let kept: Vec<&str> = patterns.kept.iter().map(|(text, _)| &**text).collect();
        assert_eq!(kept.len(), KEPT);
        assert_eq!((kept[0], kept[KEPT - 2], kept[KEPT - 1]), ("^a2$", "^a0$", "^b$"));
    }
}
