//! The known differences of the embedded server, with their reasons.

use std::fs;

use crate::script::Script;
use crate::suite::directory;

/// The exchanges of `differences.txt`.
#[derive(Debug)]
pub(crate) struct Differences(Vec<Difference>);

#[derive(Debug)]
struct Difference {
    /// `script / title`
    exchange: String,
    /// The reason, with the prefix `on purpose: ` or `not yet: `.
    reason: String,
}

// === impl Differences ===

impl Differences {
    /// Reads `differences.txt`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or parsed.
    pub(crate) fn load(scripts: &[Script]) -> Result<Self, String> {
        let file = directory().join("differences.txt");
        Self::parse(&fs::read_to_string(file).map_err(|error| error.to_string())?, scripts)
    }

    /// Reads lines `## on purpose: reason` and `## not yet: reason`, each followed by exchanges.
    ///
    /// # Errors
    ///
    /// Returns an error for a line without a reason, and for an exchange that no script has.
    pub(crate) fn parse(text: &str, scripts: &[Script]) -> Result<Self, String> {
        let (mut reason, mut differences) = ("", Vec::new());
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match line.strip_prefix("## ") {
                Some(why) if why.starts_with("on purpose: ") || why.starts_with("not yet: ") => {
                    reason = why;
                }
                None if line.starts_with('#') => {}
                None if !reason.is_empty() && is_in(scripts, line) => differences
                    .push(Difference { exchange: line.to_owned(), reason: reason.to_owned() }),
                _ => return Err(format!("no reason, or no such exchange: {line}")),
            }
        }
        Ok(Self(differences))
    }

    /// Returns the reason for which an exchange differs.
    pub(crate) fn reason(&self, exchange: &str) -> Option<&str> {
        self.0.iter().find(|known| known.exchange == exchange).map(|known| known.reason.as_str())
    }
}

fn is_in(scripts: &[Script], line: &str) -> bool {
    let Some((script, title)) = line.split_once(" / ") else { return false };
    let script = scripts.iter().find(|known| known.name == script);
    script.is_some_and(|script| script.exchanges.iter().any(|known| known.title == title))
}
