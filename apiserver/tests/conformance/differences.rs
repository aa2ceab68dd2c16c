//! What the embedded server answers otherwise, and why.

use crate::script::Script;

/// The exchanges of `differences.txt`.
#[derive(Debug)]
pub(crate) struct Differences(Vec<Difference>);

#[derive(Debug)]
struct Difference {
    /// `script / title`
    exchange: String,
    /// Why, after `on purpose: ` or `not yet: `.
    reason: String,
}

// === impl Differences ===

impl Differences {
    /// Reads lines `## on purpose: reason` and `## not yet: reason`, each followed by exchanges.
    ///
    /// # Errors
    ///
    /// A line that is neither, or an exchange that no script has.
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

    /// Why an exchange is answered otherwise.
    pub(crate) fn reason(&self, exchange: &str) -> Option<&str> {
        self.0.iter().find(|known| known.exchange == exchange).map(|known| known.reason.as_str())
    }
}

fn is_in(scripts: &[Script], line: &str) -> bool {
    let Some((script, title)) = line.split_once(" / ") else { return false };
    let script = scripts.iter().find(|known| known.name == script);
    script.is_some_and(|script| script.exchanges.iter().any(|known| known.title == title))
}
