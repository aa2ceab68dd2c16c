//! Statistics of the requests and their outcomes.

use std::collections::BTreeMap;
use std::fmt;

use crate::corpus::Exchange;

/// Counts of requests by outcome.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    codes: BTreeMap<u16, usize>,
    /// Number of successes and errors, by method and by type of patch.
    verbs: BTreeMap<String, (usize, usize)>,
    /// Number of successful writes, by collection.
    writes: BTreeMap<String, usize>,
}

// === impl Tally ===

impl Tally {
    pub(crate) fn count(&mut self, asked: &Exchange, code: u16) {
        *self.codes.entry(code).or_default() += 1;
        let mut verbs = vec![asked.method.clone()];
        let media_type = asked.headers.iter().find(|(name, _)| name == "Content-Type");
        if let ("PATCH", Some((_, media_type))) = (&*asked.method, media_type) {
            verbs.push(media_type.clone());
        }
        if asked.method == "GET" && asked.path.contains("watch=") {
            verbs.push("watch".to_owned());
        }
        let writes = matches!(&*asked.method, "POST" | "PUT" | "PATCH" | "DELETE");
        if code < 400 && writes {
            *self.writes.entry(asked.collection()).or_default() += 1;
        }
        for verb in verbs {
            let counts = self.verbs.entry(verb).or_default();
            *(if code < 400 { &mut counts.0 } else { &mut counts.1 }) += 1;
        }
    }

    /// Checks that every important method, code and kind occurred often enough.
    pub(crate) fn check(&self, cases: usize) {
        for (verb, served, refused) in [
            ("GET", 4, 10),
            ("watch", 14, 80),
            ("POST", 12, 3),
            ("PUT", 24, 6),
            ("DELETE", 12, 35),
            ("application/merge-patch+json", 16, 7),
            ("application/strategic-merge-patch+json", 20, 8),
            ("application/json-patch+json", 80, 4),
        ] {
            let counts = self.verbs.get(verb).copied().unwrap_or_default();
            assert!(counts.0 >= cases / served, "{verb} served: {counts:?}\n{self}");
            assert!(counts.1 >= cases / refused, "{verb} refused: {counts:?}\n{self}");
        }
        for code in [400, 404, 405, 409, 415, 422] {
            let count = self.codes.get(&code).copied().unwrap_or_default();
            assert!(count >= cases / 30, "{code}: {count}\n{self}");
        }
        let kinds = self.writes.len();
        assert!(kinds >= (cases / 50).min(20), "{kinds} kinds of objects were written\n{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "codes: {:?}", self.codes)?;
        writeln!(f, "served, refused: {:?}", self.verbs)?;
        writeln!(f, "written: {:?}", self.writes)
    }
}
