//! The options of a write: what its query says beside which object is meant.

use serde_json::json;

use super::params::Params;
use crate::status::{Cause, Failure, Result};
use crate::types::quote;

/// How a write is meant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    /// Whether the write is only tried.
    pub(crate) dry_run: bool,
    pub(crate) validation: Validation,
}

/// What becomes of members that nobody knows, or that stand twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    Warn,
    Strict,
}

/// The longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

// === impl Params ===

impl Params {
    /// The options of a write, which the real server calls `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    ///
    /// # Errors
    ///
    /// All that is wrong with them.
    pub(crate) fn write_options(&self, kind: &str) -> Result<WriteOptions> {
        let mut causes = Vec::new();
        if kind == "PatchOptions" && self.is_said("force") {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        check_manager(self.get("fieldManager"), &mut causes);
        let dry_run = check_dry_run(&self.all("dryRun"), &mut causes);
        let validation = match self.get("fieldValidation") {
            "" | "Warn" => Validation::Warn,
            "Strict" => Validation::Strict,
            "Ignore" => Validation::Ignore,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                causes.push(Cause::unsupported("fieldValidation", &json!(other), &supported));
                Validation::Warn
            }
        };
        if causes.is_empty() {
            Ok(WriteOptions { dry_run, validation })
        } else {
            Err(Failure::invalid_options(kind, &causes))
        }
    }
}

fn check_manager(name: &str, causes: &mut Vec<Cause>) {
    if name.len() > LONGEST_MANAGER {
        causes.push(Cause::too_long("fieldManager", LONGEST_MANAGER));
    }
    for (at, c) in name.char_indices() {
        if c.is_control() || (c != ' ' && c.is_whitespace()) {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
            causes.push(Cause::invalid_shown("fieldManager", &quote(name), &why));
        }
    }
}

/// Whether a write is only tried.
pub(crate) fn check_dry_run(values: &[&str], causes: &mut Vec<Cause>) -> bool {
    if values.iter().any(|value| *value != "All") {
        causes.push(Cause::unsupported("dryRun", &json!(values), &["All"]));
    }
    !values.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> Result<WriteOptions> {
        Params::parse(query).write_options("PatchOptions")
    }

    #[test]
    fn what_is_not_said_is_a_write_with_warnings() {
        let options = options("").unwrap();
        assert!(!options.dry_run);
        assert_eq!(options.validation, Validation::Warn);
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        let refusal =
            options("force=1&fieldManager=%0A&dryRun=some&fieldValidation=x").unwrap_err();
        for wrong in ["force: ", "U+000A (at position 0)", "dryRun: ", "fieldValidation: "] {
            assert!(refusal.message.contains(wrong), "{wrong}: {}", refusal.message);
        }
    }
}
