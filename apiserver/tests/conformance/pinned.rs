//! The replies of the embedded server to the exchanges of `differences.txt`: a known difference
//! must not become another one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::differences::Differences;
use crate::play::Outcome;
use crate::print::print_answer;
use crate::suite::{directory, play_embedded, scripts};

/// The longest reply that is pinned with its body, in lines. Of a longer one, which describes all
/// kinds, only the status and the headers are.
const MAX_LINES: usize = 60;

/// The first lines of the file.
const HEAD: &str = "# Replies of the embedded server that differ from those of the real one; \
    `differences.txt` has the reasons.\n\
    # HOMEOSTAT_RECORD=pinned writes this file.\n";

/// The pinned replies by exchange: `script / title`.
#[derive(Debug)]
pub(crate) struct Pinned(BTreeMap<String, String>);

// === impl Pinned ===

impl Pinned {
    /// Reads `pinned.txt`: lines `### script / title`, each followed by the lines of the reply.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(crate) fn load() -> Result<Self, String> {
        let file = directory().join("pinned.txt");
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let parts = text.split("### ").skip(1).filter_map(|part| part.split_once('\n'));
        let replies = parts.map(|(name, reply)| {
            let lines: Vec<&str> = reply.lines().filter(|line| line.starts_with('<')).collect();
            (name.to_owned(), lines.join("\n"))
        });
        Ok(Self(replies.collect()))
    }

    /// Compares a reply with the pinned one.
    ///
    /// # Errors
    ///
    /// Returns the two replies if they differ.
    pub(crate) fn check(&self, name: &str, outcome: Option<&Outcome>) -> Result<(), String> {
        let reply = shown(outcome);
        match self.0.get(name) {
            Some(pinned) if *pinned == reply => Ok(()),
            Some(pinned) => Err(format!(
                "the known difference has changed\npinned:\n{pinned}\nreceived:\n{reply}"
            )),
            None => Err("record it: HOMEOSTAT_RECORD=pinned".to_owned()),
        }
    }
}

/// Writes `pinned.txt` with the present replies.
///
/// # Errors
///
/// Returns an error if a file cannot be read or written.
pub(crate) fn record() -> Result<(), String> {
    let scripts = scripts()?;
    let differences = Differences::load(&scripts)?;
    let mut text = HEAD.to_owned();
    for script in &scripts {
        let mut outcomes = Vec::new();
        for (nth, exchange) in script.exchanges.iter().enumerate() {
            let name = format!("{} / {}", script.name, exchange.title);
            if differences.reason(&name).is_none() {
                continue;
            }
            if outcomes.is_empty() {
                outcomes = play_embedded(script);
            }
            let _ = writeln!(text, "\n### {name}\n{}", shown(outcomes[nth].as_ref()));
        }
    }
    fs::write(directory().join("pinned.txt"), text).map_err(|error| error.to_string())
}

/// Returns the text of a reply, as a file has it.
fn shown(outcome: Option<&Outcome>) -> String {
    let reply = match outcome {
        None => "not played".to_owned(),
        Some(Err(error)) => format!("no reply: {error}"),
        Some(Ok(answer)) => print_answer(answer),
    };
    let lines: Vec<&str> = reply.lines().map(str::trim_end).collect();
    let end = match lines.len() {
        ..=MAX_LINES => lines.len(),
        _ => lines.iter().position(|line| line.starts_with(['{', '['])).unwrap_or(1),
    };
    let lines = lines[..end].iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("< {line}")).collect::<Vec<_>>().join("\n")
}
